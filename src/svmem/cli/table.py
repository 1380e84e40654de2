"""Columns of a user's table as arrays, or one sentence that says what is wrong with it, in which row and column."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmem.errors import InvalidInput
from svmem.types import Values

__all__ = ["MISSING", "Columns", "as_numbers", "as_owners", "check_names", "cut"]

SHOWN = 20  # names in a message
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none"})  # what tables write where there is nothing


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Numeric columns by name, each (n, w) with w = 1 unless the column holds lists, and the owners if asked for."""

    numbers: dict[str, Values]
    owners: list[str | None] | None

    def matrix(self, names: Sequence[str]) -> Values:
        """Return these columns side by side."""
        return np.hstack([self.numbers[name] for name in names])


def check_names(path: Path, present: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise InvalidInput for a column that is not there, naming the nearest, or one that is there twice."""
    for name in wanted:
        if name not in present:
            near = difflib.get_close_matches(name, present, 1)
            remedy = f"; did you mean {near[0]!r}?" if near else _headless(present)
            raise InvalidInput(f"{path} has no column {name!r}; it has {_listed(present)}{remedy}")
        if list(present).count(name) > 1:
            raise InvalidInput(f"{path} has more than one column {name!r}; give each its own name")


def as_numbers(path: Path, name: str, column: NDArray[Any]) -> Values:
    """Return a column of any numeric type as (n, w) float64 without gaps. Raises InvalidInput with the row."""
    if column.ndim not in (1, 2) or (column.ndim == 2 and not column.shape[1]):
        raise InvalidInput(f"{path}: column {name!r} must hold a number or a list of numbers a row, got {column.shape}")
    if column.dtype.kind not in "fiub":
        example = f", such as {cut(column.flat[0])} in row 1" if column.size else ""
        raise InvalidInput(f"{path}: column {name!r} must hold numbers, it holds {_kind(column)}{example}")
    matrix = column.reshape(len(column), -1).astype(np.float64)
    odd = ~np.isfinite(matrix)
    if odd.any():
        row, place = np.argwhere(odd)[0]
        what = "no value" if np.isnan(matrix[row, place]) else f"{matrix[row, place]}"
        raise InvalidInput(f"{path}: row {row + 1} of column {name!r} holds {what}; fill it in or leave the row out")
    return matrix


def as_owners(path: Path, name: str, cells: Sequence[Any]) -> list[str | None]:
    """Return owners as text, None where there is none. Raises InvalidInput without repeating any: they may be names."""
    owners: list[str | None] = []
    for row, cell in enumerate(cells, 1):
        if isinstance(cell, bool) or not (cell is None or isinstance(cell, str | int)):
            came = f"column {name!r} holds a {type(cell).__name__} in row {row}"
            raise InvalidInput(f"{path}: owners must be text or whole numbers, {came}")
        owner = None if cell is None else str(cell)
        if owner and owner != owner.strip():
            raise InvalidInput(
                f"{path}: the owner in row {row} of column {name!r} begins or ends with a space; owners are matched "
                "letter for letter later, so take it off first"
            )
        owners.append(owner or None)
    return owners


def cut(cell: object) -> str:
    """Return a cell as it is quoted in a message: its repr, at most 40 characters of it."""
    shown = repr(cell.item() if isinstance(cell, np.generic) else cell)
    return shown if len(shown) <= 40 else f"{shown[:37]}..."


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(repr, names[:SHOWN])) + more


def _headless(names: Sequence[str]) -> str:
    try:
        [float(name) for name in names]
    except ValueError:
        return ""
    return "; the first line of a table must name its columns"


def _kind(column: NDArray[Any]) -> str:
    kinds = {"U": "text", "S": "text", "M": "dates", "m": "durations", "c": "complex numbers"}
    return kinds.get(column.dtype.kind, "something else")
