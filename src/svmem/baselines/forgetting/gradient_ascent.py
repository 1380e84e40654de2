"""Forgetting by unlearning: steps that make the readout of the forgotten records worse."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from svmem.baselines.forgetting.state import State, log_kernel
from svmem.errors import InvalidInput
from svmem.types import Coefficients, Values, Vector

__all__ = ["GradientAscent", "capped", "loss", "slope"]

HALVINGS = 100  # of an interval no longer than a few caps: more than the 53 bits there are


@dataclass(frozen=True, slots=True)
class GradientAscent:
    """Projected gradient ascent on the forgotten records' readout loss, over the coefficients of all records.

    [Ramesh2026, version 1] names gradient ascent on the forgotten fact as the gradient-based baseline and gives no
    setting, so all of this is our choice: the loss is half the mean of |read(x_i) - v_i|^2 over the forgotten i; a
    step moves the fastest coefficient by `rate` caps, whatever the slope, and is projected back onto
    0 <= alpha <= C, sum 1; there are `steps` of them, fewer only where the slope vanishes. Forgotten records stay in.
    """

    steps: int = 50
    rate: float = 0.1

    def __post_init__(self) -> None:
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 1:
            raise InvalidInput(f"steps must be a whole number of at least 1, got {self.steps!r}")
        if not (self.rate > 0 and math.isfinite(self.rate)):
            raise InvalidInput(f"rate must be positive and finite, got {self.rate}")

    def __call__(self, state: State, gone: ArrayLike) -> Coefficients:
        """Return the new coefficients. Raises InvalidInput for a memory that still collects: it has no cap to keep."""
        rows, problem, alpha = state.rows(gone), state.problem, state.alpha.copy()
        if len(alpha) < problem.n_min:
            raise InvalidInput(f"steps under the cap C need at least {problem.n_min} records, got {len(alpha)}")
        kernel = log_kernel(problem.kernel, state.keys[rows], state.keys)
        for _ in range(self.steps):
            upwards = slope(kernel, state.values, state.values[rows], alpha)
            fastest = np.abs(upwards).max()
            if fastest == 0:
                break
            alpha = capped(alpha + self.rate * problem.C / fastest * upwards, problem.C)
        return alpha


def loss(kernel: NDArray[np.float64], values: Values, aim: Values, alpha: Coefficients) -> float:
    """Return half the mean squared distance between readouts and `aim` (g, v), given log kappa (g, n)."""
    weights, total = _weights(kernel, alpha)
    return 0.5 * float(np.square((weights * alpha) @ values / total[:, None] - aim).sum() / len(aim))


def slope(kernel: NDArray[np.float64], values: Values, aim: Values, alpha: Coefficients) -> Vector:
    """Return d loss / d alpha (n,): the mean over i of kappa_ij / Z_i (v_j - r_i).(r_i - v_i)."""
    weights, total = _weights(kernel, alpha)
    share = weights / total[:, None]
    read = (share * alpha) @ values
    off = read - aim
    return (share * (off @ values.T - (off * read).sum(axis=1)[:, None])).mean(axis=0)


def _weights(kernel: NDArray[np.float64], alpha: Coefficients) -> tuple[NDArray[np.float64], Vector]:
    """Return kappa (g, n) relative to the nearest active record, and Z (g,), its sum under alpha."""
    nearest = kernel[:, alpha > 0].max(axis=1, keepdims=True)
    with np.errstate(over="ignore"):
        weights = np.exp(kernel - nearest)
    if not np.isfinite(weights).all():
        raise InvalidInput("a forgotten record must lie near an active one: the slope of its readout overflows")
    return weights, weights @ alpha


def capped(point: Vector, cap: float) -> Coefficients:
    """Return the nearest point with coordinates in [0, cap] and sum 1: a shift that is found by bisection."""
    low, high = point.min() - cap, point.max()
    for _ in range(HALVINGS):
        shift = 0.5 * (low + high)
        if np.clip(point - shift, 0, cap).sum() > 1:
            low = shift
        else:
            high = shift
    return np.clip(point - 0.5 * (low + high), 0, cap)
