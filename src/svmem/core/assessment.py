"""What keys and coefficients alone say about the distance to the optimum: the numbers behind both certificates.

Derivation: docs/derivations/optimality.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from svmem.core.inputs import as_finite, as_matrix
from svmem.core.problem import Problem
from svmem.core.residual import Extended, Residuals, residuals
from svmem.errors import InvalidInput
from svmem.kernels import Precomputed
from svmem.types import Coefficients, Keys

__all__ = ["ROOM", "Assessment", "Distances", "assess", "rounded_up", "smallest"]

# Correctly rounded coefficients miss the sum by 1.2e-16, other solvers by up to 1e-13; the bounds include it.
SUM_TOLERANCE = 1e-12
# Covers the few roundings of the last formulas, and those of a checker that does them in float64.
ROOM = np.longdouble(1) + np.longdouble(2) ** -30


@dataclass(frozen=True, slots=True)
class Distances:
    """Bounds against the optimum: gap of the objective, |w - w*|, |alpha - alpha*|, |r_i - r*_i| (n,)."""

    gap: float
    w: float
    alpha: float
    residual: Extended


@dataclass(frozen=True, slots=True)
class Assessment:
    """Checked input, its residuals, the level (the n_min-th smallest residual) and the distances to the optimum."""

    keys: Keys
    alpha: Coefficients
    residuals: Residuals
    level: np.longdouble
    sum_error: float
    collecting: bool
    distances: Distances


def assess(keys: ArrayLike, alpha: ArrayLike, problem: Problem) -> Assessment:
    """Check the input and measure it. Raises InvalidInput where `certify` says so."""
    keys, alpha = _checked(keys, alpha, problem)
    collecting = len(alpha) < problem.n_min
    measured = residuals(keys, alpha, problem)
    if not (np.isfinite(measured.value).all() and np.isfinite(measured.error).all()):
        raise InvalidInput(f"the {problem.kernel.name} kernel overflows on these keys; scale them down")
    high, low = (1.0, 0.0) if collecting else problem.total
    off = math.fsum([*alpha.tolist(), -high, -low]) if len(alpha) else 0.0
    if not abs(off) <= SUM_TOLERANCE:
        raise InvalidInput(f"alpha must sum to {high!r} to {SUM_TOLERANCE:.0e}, got a sum that is off by {off:.3g}")
    level = smallest(measured.value, len(alpha) if collecting else problem.n_min)
    if collecting:
        distances = _from_equal_shares(alpha, np.sqrt(measured.diagonal + problem.ridge))
    else:
        distances = _bound(alpha, problem, measured, level, off, _convexity(keys, problem))
    return Assessment(keys, alpha, measured, level, off, collecting, distances)


def smallest(values: Extended, k: int) -> np.longdouble:
    """Return the k-th smallest value, counted from 1; infinity where there are fewer, 0 of none."""
    if k == 0:
        return np.longdouble(0)
    return np.sort(values)[k - 1] if k <= len(values) else np.longdouble(np.inf)


def rounded_up(value: np.longdouble) -> float:
    """Return the least float64 that is not below `value`."""
    down = float(value)
    return down if np.longdouble(down) >= value else math.nextafter(down, math.inf)


def _checked(keys: ArrayLike, alpha: ArrayLike, problem: Problem) -> tuple[Keys, Coefficients]:
    keys = as_matrix(keys, "keys")
    problem.kernel.features(keys)  # refuses what the kernel cannot take
    alpha = as_finite(alpha, "alpha")
    if alpha.shape != keys.shape[:1]:
        raise InvalidInput(f"alpha must have shape ({keys.shape[0]},), one coefficient for each key; got {alpha.shape}")
    n = len(alpha)
    if n < problem.n_min:
        if n and not (np.abs(alpha * n - 1) <= 4 * np.finfo(np.float64).eps).all():
            raise InvalidInput(
                f"alpha must be 1/n with {n} keys, fewer than the {problem.n_min} that C = {problem.C} needs; "
                f"got values from {alpha.min():.6g} to {alpha.max():.6g}"
            )
    elif not ((alpha >= 0) & (alpha <= problem.C)).all():
        row = int(np.flatnonzero(~((alpha >= 0) & (alpha <= problem.C)))[0])
        raise InvalidInput(f"alpha must lie in [0, C] with C = {problem.C!r}, got {alpha[row]!r} at index {row}")
    return keys, alpha


def _from_equal_shares(alpha: Coefficients, reach: Extended) -> Distances:
    """Bound the distance to alpha = 1/n, which is the answer by definition while collecting."""
    share = Fraction(1, max(len(alpha), 1))
    apart = np.array([abs(float(Fraction(a) - share)) for a in alpha.tolist()], dtype=np.longdouble) * ROOM
    w = (apart * reach).sum() * ROOM
    return Distances(0.0, rounded_up(w), rounded_up(np.sqrt(np.square(apart).sum()) * ROOM), reach * w)


def _bound(
    alpha: Coefficients,
    problem: Problem,
    measured: Residuals,
    level: np.longdouble,
    off: float,
    convexity: np.longdouble,
) -> Distances:
    """Bound x = |alpha - alpha*| in the norm of A = K + ridge I.

    With h = r - level, whichever way its rounding goes, v_i >= what record i violates the conditions of optimality by
    and g = sum of a_i (h_i)+ + (C - a_i) (-h_i)+ the duality gap; `miss` is what the sum of alpha is off by:
        x^2 <= g + miss (error + s x)    and    x^2 <= |v| x / sqrt(convexity) + miss (error + s x).
    The first is the duality gap; the second is of first order in the residuals and decides for small ones.
    """
    cap, mass = np.longdouble(problem.C), alpha.astype(np.longdouble)
    above = np.maximum(measured.value - level + measured.error, 0)
    below = np.maximum(level - measured.value + measured.error, 0)
    gap = (mass * above + (cap - mass) * below).sum()
    violation = np.maximum(np.where(alpha > 0, above, 0), np.where(alpha < problem.C, below, 0))
    s = np.sqrt(measured.diagonal.max() + problem.ridge)
    miss = np.longdouble(abs(off)) * ROOM
    rest = miss * measured.error.max()
    slope = np.sqrt(np.square(violation).sum()) / np.sqrt(convexity) + miss * s
    x = min(_larger_root(miss * s, gap + rest), _larger_root(slope, rest)) * ROOM
    gap = (gap + rest + miss * s * x) * ROOM
    reach = np.sqrt(measured.diagonal + problem.ridge) * x * ROOM
    return Distances(rounded_up(gap), rounded_up(x), rounded_up(x / np.sqrt(convexity) * ROOM), reach)


def _larger_root(p: np.longdouble, q: np.longdouble) -> np.longdouble:
    """Return the largest x with x^2 <= p x + q."""
    return (p + np.sqrt(p * p + 4 * q)) / 2


def _convexity(keys: Keys, problem: Problem) -> np.longdouble:
    """Return a lower bound on the eigenvalues of K + ridge I: the ridge, less what a given Gram matrix may lack."""
    if not isinstance(problem.kernel, Precomputed) or not keys.size:
        return np.longdouble(problem.ridge)
    eigenvalues = np.linalg.eigvalsh(keys)
    rounding = 4 * len(keys) * np.finfo(np.float64).eps * float(np.abs(eigenvalues).max())
    least = problem.ridge + min(0.0, float(eigenvalues[0]) - rounding)
    if not least > 0:
        raise InvalidInput(
            f"ridge must exceed {problem.ridge - least:.3g}, to which the eigenvalues of this Gram matrix can be told: "
            f"otherwise the problem cannot be shown to be convex; got {problem.ridge}"
        )
    return np.longdouble(least)
