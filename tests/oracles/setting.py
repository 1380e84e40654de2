"""The problem in plain numbers, so that an oracle needs no type of the subject."""

import math
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Setting", "fewest", "total"]

_SLACK = Fraction(4, 2**53)  # a cap this close to 1/k, relative to k C = 1, is meant as 1/k


@dataclass(frozen=True, slots=True)
class Setting:
    """minimise a'(K + ridge I)a - diag(K)'a over sum a = 1, 0 <= a <= C.

    kernel: "rbf" exp(-|x-y|^2/sigma^2), "laplacian" exp(-|x-y|_1/sigma), "linear", "cosine" or "precomputed".
    """

    C: float
    kernel: str = "rbf"
    sigma: float = 1.0
    ridge: float = 1e-8


def _whole(cap: float) -> int | None:
    """Return k where the cap is the float of 1/k, else None."""
    exact = Fraction(cap)
    below = math.floor(1 / exact)
    for k in (below, below + 1):
        if abs(k * exact - 1) <= _SLACK:
            return k
    return None


def total(cap: float) -> Fraction:
    """Return what the coefficients sum to: 1, or exactly k C where C stands for 1/k."""
    k = _whole(cap)
    return Fraction(1) if k is None else k * Fraction(cap)


def fewest(cap: float) -> int:
    """Return the least number of keys that can carry the total."""
    k = _whole(cap)
    return math.ceil(1 / Fraction(cap)) if k is None else k
