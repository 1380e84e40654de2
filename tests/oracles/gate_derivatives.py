"""The derivative of one gate in two ways: a dense system over all keys, and differences of the fifty-digit optimum."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.oracles.gates import GateAnswer, gram_of, reference_gate
from tests.oracles.precise import precise
from tests.oracles.setting import Setting

__all__ = ["Jacobian", "dense_jacobian", "difference_jacobian"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Jacobian:
    """Derivatives of alpha (n,) and of the offset with respect to keys (n, d), sigma and C; the sets stay."""

    alpha_keys: Array  # (n, n, d)
    alpha_sigma: Array  # (n,)
    alpha_C: Array  # (n,)
    offset_keys: Array  # (n, d)
    offset_sigma: float
    offset_C: float


def dense_jacobian(keys: Any, boundary: int, C: float, sigma: float, ridge: float) -> Jacobian:
    """Differentiate the conditions of every key at once, by one dense system of n + 1 unknowns.

    Margin: (K + ridge I) da - dmu = -dK a; bound: da = dC; reserve: da = 0; and the sum keeps still. Where the margin
    is empty, the sum's row gives way to the offset's definition. The ridge makes this regular for equal keys as well:
    moving one of them away shifts mass between it and its twins, at a rate of order 1 / ridge.
    """
    keys = np.asarray(keys, dtype=np.float64)[:boundary]
    answer = reference_gate(keys, boundary, C, sigma, ridge)
    n, d = keys.shape
    sides, matrix = _sides(keys, answer, sigma), _system(keys, answer, sigma, ridge)
    solved = np.asarray(np.linalg.solve(matrix, sides), dtype=np.float64)  # (n + 1, n d + 2)
    alpha, offset = solved[:n], solved[n]
    return Jacobian(
        alpha[:, : n * d].reshape(n, n, d),
        alpha[:, n * d],
        alpha[:, n * d + 1],
        offset[: n * d].reshape(n, d),
        float(offset[n * d]),
        float(offset[n * d + 1]),
    )


def _system(keys: Array, answer: GateAnswer, sigma: float, ridge: float) -> Array:
    n = len(keys)
    slope = gram_of(keys, sigma).astype(np.float64) + ridge * np.eye(n)
    matrix = np.zeros((n + 1, n + 1))
    inside, outside = list(answer.margin), [*answer.bound, *answer.reserve]
    matrix[inside, :n] = slope[inside]
    matrix[inside, n] = -1
    matrix[outside, outside] = 1
    if inside:
        matrix[n, :n] = 1
    else:
        matrix[n, :n] = -slope[_leader(keys, answer, sigma, ridge)]
        matrix[n, n] = 1
    return matrix


def _leader(keys: Array, answer: GateAnswer, sigma: float, ridge: float = 0.0) -> int:
    """Return the bound key that sets the offset where the margin is empty."""
    slopes = gram_of(keys, sigma).astype(np.float64) @ answer.alpha + ridge * answer.alpha
    return max(answer.bound, key=lambda i: slopes[i])


def _sides(keys: Array, answer: GateAnswer, sigma: float) -> Array:
    """Return the right sides, one column for each coordinate of each key, one for sigma and one for C."""
    n, d = keys.shape
    a, gram = answer.alpha, gram_of(keys, sigma).astype(np.float64)
    apart = keys[:, None] - keys[None]  # (n, n, d)
    by_left = -2 / sigma**2 * gram[:, :, None] * apart  # of K_ij with respect to key i
    moved = np.zeros((n, n, d))  # (dK a)_i with respect to key p
    for p in range(n):
        moved[:, p] = a[p] * by_left[p]
        moved[p, p] = (a[:, None] * by_left[p]).sum(axis=0)
    stretched = gram * np.square(apart).sum(axis=2) * 2 / sigma**3 @ a
    change = np.column_stack([moved.reshape(n, n * d), stretched, np.zeros(n)])  # dK a
    sides = np.zeros((n + 1, n * d + 2))
    sides[list(answer.margin)] = -change[list(answer.margin)]
    if not answer.collecting:
        sides[list(answer.bound), n * d + 1] = 1
    if not answer.margin:
        sides[n] = change[_leader(keys, answer, sigma)]
    return sides


def difference_jacobian(keys: Any, boundary: int, C: float, sigma: float, ridge: float, step: float = 1e-7) -> Jacobian:
    """Return central differences of the fifty-digit optimum, for a few keys away from a change of sets."""
    keys = np.asarray(keys, dtype=np.float64)[:boundary]
    n, d = keys.shape

    def slope(at: Any, x: float) -> tuple[Array, float]:
        high, low = precise(*at(x + step)), precise(*at(x - step))
        width = (x + step) - (x - step)
        rise = [float((u - v) / width) for u, v in zip(high.alpha, low.alpha, strict=True)]
        return np.array(rise), float((high.offset - low.offset) / width)

    def moved(i: int, c: int) -> Any:
        def at(x: float) -> tuple[Array, Setting]:
            other = keys.copy()
            other[i, c] = x
            return other, Setting(C, "rbf", sigma, ridge)

        return at

    by_key = [[slope(moved(i, c), float(keys[i, c])) for c in range(d)] for i in range(n)]
    alpha_sigma, offset_sigma = slope(lambda x: (keys, Setting(C, "rbf", x, ridge)), sigma)
    alpha_C, offset_C = slope(lambda x: (keys, Setting(x, "rbf", sigma, ridge)), C)
    return Jacobian(
        np.array([[pair[0] for pair in row] for row in by_key]).transpose(2, 0, 1),
        alpha_sigma,
        alpha_C,
        np.array([[pair[1] for pair in row] for row in by_key]),
        offset_sigma,
        offset_C,
    )
