"""Ninety-digit arithmetic shared by the enumeration and the active-set oracle: kernel, Cholesky, conditions."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from mpmath.ctx_mp import MPContext
from numpy.typing import NDArray

from tests.oracles.setting import Setting, total

__all__ = [
    "ZERO",
    "Matrix",
    "Number",
    "Optimum",
    "classify",
    "collecting",
    "ctx",
    "gram_matrix",
    "number",
    "solve_many",
]

# Answers hold to fifty digits also where a ridge of 1e-30 is all that separates equal keys.
DIGITS = 90
ctx: Any = MPContext()
ctx.dps = DIGITS
ZERO: Any = ctx.mpf(10) ** -45  # below this a number of order 1 counts as zero
Number = Any  # an mpf of `ctx`; mpmath has no types
Matrix = list[list[Number]]


@dataclass(frozen=True, slots=True)
class Optimum:
    """The optimum to fifty digits. h = f + ridge alpha - K_ii/2 - offset; the sets hold row numbers."""

    alpha: list[Number]
    offset: Number
    h: list[Number]
    margin: tuple[int, ...]
    bound: tuple[int, ...]
    reserve: tuple[int, ...]
    gram: Matrix

    @property
    def alpha64(self) -> NDArray[np.float64]:
        """The coefficients rounded to float64."""
        return np.array([float(a) for a in self.alpha])

    @property
    def h64(self) -> NDArray[np.float64]:
        """The gradients above the offset, rounded to float64."""
        return np.array([float(h) for h in self.h])

    def f(self, i: int) -> Number:
        """Return the readout weight of key i, the sum over j of alpha_j K_ij."""
        return ctx.fdot(self.gram[i], self.alpha)

    @property
    def level(self) -> float:
        """Return f on the margin, or on the best bound key where the margin is empty."""
        chosen = self.margin or self.bound
        return float(max(self.f(i) for i in chosen))


def number(x: Any) -> Number:
    """Return a float, an int or a Fraction as an mpf, a binary fraction exactly."""
    if hasattr(x, "numerator") and hasattr(x, "denominator"):
        return ctx.mpf(int(x.numerator)) / int(x.denominator)
    return ctx.mpf(float(x))


def _entry(x: list[Number], y: list[Number], setting: Setting) -> Number:
    if setting.kernel == "rbf":
        return ctx.exp(-ctx.fsum((a - b) ** 2 for a, b in zip(x, y, strict=True)) / ctx.mpf(setting.sigma) ** 2)
    if setting.kernel == "laplacian":
        return ctx.exp(-ctx.fsum(abs(a - b) for a, b in zip(x, y, strict=True)) / ctx.mpf(setting.sigma))
    inner = ctx.fdot(x, y)
    return inner / ctx.sqrt(ctx.fdot(x, x) * ctx.fdot(y, y)) if setting.kernel == "cosine" else inner


def gram_matrix(keys: Any, setting: Setting) -> Matrix:
    """Return the kernel of the float64 keys, taken as exact numbers."""
    rows = [[number(x) for x in row] for row in np.asarray(keys, dtype=np.float64)]
    if setting.kernel == "precomputed":
        return rows
    gram = [[ctx.zero] * len(rows) for _ in rows]
    for i, x in enumerate(rows):
        for j in range(i + 1):
            gram[i][j] = gram[j][i] = _entry(x, rows[j], setting)
    return gram


def solve_many(matrix: Matrix, sides: Matrix) -> Matrix:
    """Return the solutions of matrix x = side for each side, by Cholesky; the matrix is positive definite."""
    n = len(matrix)
    low: Matrix = []
    for i in range(n):
        row: list[Number] = []
        for j in range(i):
            row.append((matrix[i][j] - ctx.fdot(row[:j], low[j][:j])) / low[j][j])
        row.append(ctx.sqrt(matrix[i][i] - ctx.fdot(row, row)))
        low.append(row)
    columns = [[low[i][j] for i in range(j, n)] for j in range(n)]
    answers = []
    for side in sides:
        y: list[Number] = []
        for i in range(n):
            y.append((side[i] - ctx.fdot(low[i][:i], y)) / low[i][i])
        x = [ctx.zero] * n
        for i in reversed(range(n)):
            x[i] = (y[i] - ctx.fdot(columns[i][1:], x[i + 1 :])) / low[i][i]
        answers.append(x)
    return answers


def _slopes(alpha: list[Number], gram: Matrix, setting: Setting) -> list[Number]:
    ridge = number(setting.ridge)
    return [ctx.fdot(row, alpha) + ridge * a - row[i] / 2 for i, (row, a) in enumerate(zip(gram, alpha, strict=True))]


def classify(alpha: list[Number], gram: Matrix, setting: Setting) -> Optimum:
    """Sort a feasible point into sets, give it its offset and check every condition. Raises ValueError if one fails."""
    cap = number(setting.C)
    scale = max([ctx.one, *(abs(row[i]) for i, row in enumerate(gram))])
    margin = tuple(i for i, a in enumerate(alpha) if a > ZERO and cap - a > ZERO)
    bound = tuple(i for i, a in enumerate(alpha) if abs(cap - a) <= ZERO)
    reserve = tuple(i for i, a in enumerate(alpha) if abs(a) <= ZERO)
    slopes = _slopes(alpha, gram, setting)
    offset = ctx.fsum(slopes[i] for i in margin) / len(margin) if margin else max(slopes[i] for i in bound)
    h = [s - offset for s in slopes]
    failures = [
        *(i for i in margin if abs(h[i]) > ZERO * scale),
        *(i for i in bound if h[i] > ZERO * scale),
        *(i for i in reserve if h[i] < -ZERO * scale),
    ]
    off = abs(ctx.fsum(alpha) - number(total(setting.C)))
    if failures or off > ZERO or len(margin) + len(bound) + len(reserve) != len(alpha):
        raise ValueError(f"not the optimum: conditions fail at {failures}, the sum is off by {float(off):.3g}")
    return Optimum(alpha, offset, h, margin, bound, reserve, gram)


def collecting(gram: Matrix, setting: Setting) -> Optimum:
    """Return the answer for too few keys: each carries 1/n and is bound, the offset is the largest slope."""
    n = len(gram)
    alpha = [ctx.one / n] * n
    slopes = _slopes(alpha, gram, setting)
    offset = max(slopes)
    return Optimum(alpha, offset, [s - offset for s in slopes], (), tuple(range(n)), (), gram)
