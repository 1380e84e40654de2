"""What a report shows of a memory, as plain arrays."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from svmem.core.problem import Problem
from svmem.types import Coefficients, Json, Keys, Vector

__all__ = ["Contents", "OwnerRow", "owner_rows"]


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """Records in id order; `owner` is the empty string where there is none.

    `drawn` are the rows that figures show one by one, all of them or a fixed sample, and `score` their gate scores.
    """

    problem: Problem
    keys: Keys
    value_dim: int
    alpha: Coefficients
    drawn: NDArray[np.int64]
    score: Vector
    sets: dict[str, NDArray[np.bool_]]  # margin, bound, reserve
    owner: NDArray[np.str_]
    digest: str
    collecting: bool
    optimality: Json


@dataclass(frozen=True, slots=True)
class OwnerRow:
    """How much of the memory is one owner's: records, those that carry answers, and the share of the coefficients."""

    owner: str
    records: int
    active: int
    mass: float


def owner_rows(contents: Contents) -> list[OwnerRow]:
    """Return one row an owner, the largest share of the coefficients first."""
    names, which = np.unique(contents.owner, return_inverse=True)
    records = np.bincount(which, minlength=len(names))
    active = np.bincount(which, weights=contents.alpha > 0, minlength=len(names))
    mass = np.bincount(which, weights=contents.alpha, minlength=len(names))
    rows = [OwnerRow(str(n), int(r), int(a), float(m)) for n, r, a, m in zip(names, records, active, mass, strict=True)]
    return sorted(rows, key=lambda row: (-row.mass, row.owner))
