"""The command line of the checker."""

import sys
from collections.abc import Sequence

from . import Unreadable, check, read_certificate, read_records

__all__ = ["main"]


def main(argv: Sequence[str]) -> int:
    """Print one sentence, or one for each statement refused; return 0 borne out, 1 refused, 2 could not be read."""
    if len(argv) != 2:
        print("usage: python -m svmem.checker RECORDS.npz|.csv CERTIFICATE.json", file=sys.stderr)
        return 2
    try:
        (keys, values), certificate = read_records(argv[0]), read_certificate(argv[1])
    except Unreadable as error:
        print(error, file=sys.stderr)
        return 2
    found = check(keys, values, certificate)
    for finding in found:
        print(f"refused: {finding}")
    if not found:
        print(
            f"borne out: every statement of this {certificate['kind']} certificate holds for these {len(keys)} records"
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
