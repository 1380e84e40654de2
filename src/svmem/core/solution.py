"""What a solver returns: coefficients, offset, the three sets, and how the answer was reached."""

from dataclasses import dataclass
from enum import StrEnum

from svmem.types import Coefficients, Ids

__all__ = ["Solution", "Status"]


class Status(StrEnum):
    """How an answer stands; each value is a sentence with what to do."""

    OPTIMAL = "optimal: the conditions of optimality hold"
    COLLECTING = "collecting: fewer than 1/C keys, so every key is active with 1/n; add keys to start selecting"


@dataclass(frozen=True, slots=True)
class Solution:
    """The optimum of (P). `alpha` (n,) is in id order; the sets are sorted ids that together hold every id once.

    margin: 0 < alpha < C; bound: alpha = C (when collecting: all keys); reserve: alpha = 0.
    `gap` is the duality gap in floating point, without a bound on its rounding: `svmem.certify` gives the proven one.
    """

    ids: Ids
    alpha: Coefficients
    offset: float
    margin: Ids
    bound: Ids
    reserve: Ids
    status: Status
    gap: float
