"""What the commands print: the result on stdout, as text or as JSON; everything else on stderr."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from svmem.errors import SvmemError
from svmem.types import Json

__all__ = ["Advance", "MissingExtra", "agree", "bar", "lines", "needs", "note", "numbers", "show"]

Advance = Callable[[int], None]


class MissingExtra(SvmemError):
    """A package that an extra of svmem brings is not installed."""


def show(data: Json, text: str, *, as_json: bool) -> None:
    """Print the result to stdout: `data` as one line of strict JSON, or `text` without control characters."""
    shown = json.dumps(data, allow_nan=False) if as_json else _printable(text)
    print(shown, flush=True)  # flushed here, so that a closed pipe is noticed here


def note(sentence: str) -> None:
    """Print a sentence to stderr."""
    print(_printable(sentence), file=sys.stderr)


def lines(rows: Sequence[tuple[str, object]]) -> str:
    """Return names and what they stand for, one a line, in two columns."""
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def numbers(row: Sequence[float]) -> str:
    """Return numbers separated by commas, each with all its digits."""
    return ",".join(map(repr, row))


def agree(what: str, *, yes: bool) -> None:
    """Return if the user wants it; otherwise end the command with nothing done."""
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        note(f"svmem: {what}; nothing was changed, since nobody is here to ask: --yes agrees beforehand")
        raise typer.Exit(2)
    print(f"{what}. Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        note("nothing was changed")
        raise typer.Exit(1)


@contextmanager
def bar(title: str, total: int | None) -> Iterator[Advance]:
    """Show progress on stderr while the block runs; what it gets is called with the units done (None: unknown)."""
    count = TextColumn("{task.completed:,}") if total is None else MofNCompleteColumn()
    columns = TextColumn("{task.description:<24}"), BarColumn(), count, TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(title, total=total)
        yield lambda units: progress.advance(task, units)


@contextmanager
def needs(extra: str, path: Path | None = None) -> Iterator[None]:
    """Turn an import that fails in the block into a sentence with the remedy."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package == "svmem":
            raise
        what = "this command" if path is None else f"{path}: reading it"
        raise MissingExtra(f"{what} needs the package {package}: pip install 'svmem[{extra}]'") from None


def _printable(text: str) -> str:
    """Return the text without what would steer a terminal: names in it come from files."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)
