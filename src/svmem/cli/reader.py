"""Tables of any known kind, by the ending of the file's name, and the queries in them."""

import csv
from collections.abc import Callable
from pathlib import Path

from svmem.cli.output import bar
from svmem.cli.table import Columns
from svmem.cli.text_table import csv_names, read_csv
from svmem.cli.typed_table import npz_names, parquet_names, read_npz, read_parquet
from svmem.errors import InvalidInput
from svmem.types import Queries

__all__ = ["names_in", "read_columns", "read_queries"]

_READERS = {
    ".csv": (csv_names, read_csv),
    ".parquet": (parquet_names, read_parquet),
    ".npz": (npz_names, read_npz),
}


def names_in(text: str, option: str) -> list[str]:
    """Return the column names in an option, parted by commas; a name with a comma stands in double quotes."""
    names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    twice = [name for name in names if names.count(name) > 1]
    if not names or "" in names or twice:
        came = f"{twice[0]!r} twice" if twice else repr(text)
        raise InvalidInput(f"{option} takes names of columns with commas between them, each once; got {came}")
    return names


def read_columns(path: Path, numeric: list[str], owner: str | None) -> Columns:
    """Return these columns of a table, with a progress bar. Raises InvalidInput for whatever is wrong with it."""
    _, read = _reader(path)
    with bar(f"reading {path.name}", None) as advance:
        return read(path, numeric, owner, advance)


def read_queries(path: Path, columns: str | None, key_dim: int) -> Queries:
    """Return the queries in a table: the named columns, or all when they can only be meant."""
    names_of, _ = _reader(path)
    names = names_of(path) if columns is None else names_in(columns, "--columns")
    if columns is None and len(names) not in (1, key_dim):
        raise InvalidInput(
            f"{path} has {len(names)} columns, the keys of this memory have {key_dim}; choose with --columns a,b"
        )
    found = read_columns(path, list(dict.fromkeys(names)), None).matrix(names)
    if found.shape[1] != key_dim:
        raise InvalidInput(
            f"{path}: {', '.join(map(repr, names))} give {found.shape[1]} numbers a query, this memory takes {key_dim}"
        )
    return found


def _reader(path: Path) -> tuple[Callable[[Path], list[str]], Callable[..., Columns]]:
    try:
        return _READERS[path.suffix.lower()]
    except KeyError:
        known = ", ".join(_READERS)
        raise InvalidInput(f"{path} is no table that can be read: its name must end in one of {known}") from None
