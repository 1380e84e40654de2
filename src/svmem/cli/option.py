"""Options and arguments that several commands share, and the numbers in them."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "AsJson",
    "Columns",
    "Force",
    "MemoryFile",
    "Queries",
    "QueryFile",
    "Yes",
    "horizon_in",
    "ids_in",
    "numbers_in",
]

MemoryFile = Annotated[Path, typer.Argument(metavar="MEMORY", help="A memory file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as one line of JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Queries = Annotated[
    list[str] | None, typer.Option("--query", help="A query as numbers with commas between them; may be repeated.")
]
QueryFile = Annotated[Path | None, typer.Option("--queries", help="A table with a query a row.")]
Columns = Annotated[str | None, typer.Option(help="Columns of --queries that hold the key; all by default.")]


def numbers_in(text: str, option: str) -> list[float]:
    """Return the numbers in an option."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"it takes numbers with commas between them, got {text!r}", param_hint=option
        ) from None


def ids_in(text: str, option: str) -> list[int]:
    """Return the ids in an option."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        said = f"it takes whole numbers with commas between them, got {text!r}"
        raise typer.BadParameter(said, param_hint=option) from None


def horizon_in(text: str) -> tuple[int, int]:
    """Return admissions and deletions: one number for both, or two."""
    numbers = ids_in(text, "--horizon")
    if len(numbers) > 2 or min(numbers) < 0:
        raise typer.BadParameter(f"it takes one count for both or two, got {text!r}", param_hint="--horizon")
    return numbers[0], numbers[-1]
