"""Tables in text: .csv files with commas, in UTF-8, whose first line names the columns."""

import csv
import itertools
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from svmem.cli.table import MISSING, Columns, as_numbers, as_owners, check_names, cut
from svmem.errors import InvalidInput

__all__ = ["csv_names", "read_csv"]

PART = 4096  # rows between two steps of the progress bar
Row = tuple[int, list[str]]


def csv_names(path: Path) -> list[str]:
    """Return the names in the first line."""
    return next(_rows(path))[1]


def read_csv(path: Path, numeric: Sequence[str], owner: str | None, advance: Callable[[int], None]) -> Columns:
    """Return the numeric columns and the owners. `advance` is called with the number of rows read, part by part."""
    rows = _rows(path)
    _, header = next(rows)
    check_names(path, header, [*numeric, *([] if owner is None else [owner])])
    places = [header.index(name) for name in numeric]
    columns = [array("d") for _ in numeric]
    owners: list[str] = []
    while part := list(itertools.islice(rows, PART)):
        for name, place, column in zip(numeric, places, columns, strict=True):
            column.extend(_number(path, name, row, cells[place]) for row, cells in part)
        if owner is not None:
            place = header.index(owner)
            owners.extend(cells[place] for _, cells in part)
        advance(len(part))
    if not columns[0]:
        raise InvalidInput(f"{path} has no rows below its header")
    numbers = {
        name: as_numbers(path, name, np.frombuffer(column)) for name, column in zip(numeric, columns, strict=True)
    }
    return Columns(numbers, None if owner is None else as_owners(path, owner, owners))


def _rows(path: Path) -> Iterator[Row]:
    """Yield the header as row 0, then the rows with their numbers, each as wide as the header."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:  # spreadsheets write a byte order mark
            filled = (cells for cells in csv.reader(file, strict=True) if cells)
            header = [name.strip() for name in next(filled, [])]
            _check_header(path, header)
            yield 0, header
            for row, cells in enumerate(filled, 1):
                if len(cells) != len(header):
                    raise InvalidInput(f"{path}: row {row} has {len(cells)} cells, the header has {len(header)}")
                yield row, cells
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is no text in UTF-8; save it as CSV in UTF-8") from None
    except csv.Error as error:
        raise InvalidInput(f"{path} is no CSV table: {error}") from None


def _check_header(path: Path, header: list[str]) -> None:
    if not header:
        raise InvalidInput(f"{path} is empty; a table begins with the names of its columns")
    other = next((mark for mark in ";\t|" if len(header) == 1 and mark in header[0]), None)
    if other is not None:
        raise InvalidInput(f"{path} must part its columns by commas, its header has {other!r}; save it with commas")


def _number(path: Path, name: str, row: int, cell: str) -> float:
    try:
        if "_" not in cell:  # Python would read 1_000 as a number
            return float(cell)
    except ValueError:
        if cell.strip().lower() in MISSING:
            return float("nan")  # refused with its row later, like one that was written as nan
    raise InvalidInput(f"{path}: row {row} of column {name!r} holds {cut(cell)}, which is no number")
