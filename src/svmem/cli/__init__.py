"""The command line. Needs the extra `cli`; the commands stand in modules of their own, this is the way in."""

import sys

from svmem.errors import SvmemError

__all__ = ["main"]

INTERRUPTED = 130  # what a shell reports for a program that Ctrl-C ended


def main(argv: list[str] | None = None) -> int:
    """Run one command; return 0, 1 for an error (one line on stderr), 2 for a command that was typed wrongly."""
    try:
        from svmem.cli.app import command

        command().main(args=argv, prog_name="svmem")
    except SystemExit as end:  # the parser always ends with it
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        return INTERRUPTED
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        return _refused(f"the command line needs the package {error.name}: pip install 'svmem[cli]'")
    except SvmemError as error:
        return _refused(str(error))
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        return _refused(f"{where}{error.strerror or error}")
    return 0


def _refused(sentence: str) -> int:
    line = "".join(c if c.isprintable() else " " for c in sentence)
    print(f"svmem: {line}", file=sys.stderr)
    return 1
