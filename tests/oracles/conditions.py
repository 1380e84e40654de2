"""How far coefficients and an offset are from the conditions of optimality, in plain float64."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tests.oracles.setting import Setting, fewest, total

__all__ = ["Residuals", "duality_gap", "residuals"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Residuals:
    """Zero everywhere at the exact optimum, but for rounding in `sum` and in `kkt`.

    box: how far a coefficient leaves [0, C]; sum: |sum a - total|; kkt: the worst broken condition on h, relative to
    the largest of 1 and |K_ii|.
    """

    box: float
    sum: float
    kkt: float


def residuals(alpha: Array, offset: float, gram: Array, setting: Setting) -> Residuals:
    """Measure an answer against the conditions on margin, bound and reserve."""
    n = len(alpha)
    if n < fewest(setting.C):
        return _collecting_residuals(alpha, offset, gram, setting)
    box = max(0.0, float(-alpha.min()), float(alpha.max()) - setting.C)
    off = abs(float(sum(map(Fraction, alpha.tolist())) - total(setting.C)))
    h = gram @ alpha + setting.ridge * alpha - np.diag(gram) / 2 - offset
    above, below = h[alpha < setting.C], h[alpha > 0]  # h >= 0 unless at the cap, h <= 0 unless zero
    kkt = max(0.0, float(-above.min(initial=0.0)), float(below.max(initial=0.0)))
    if not ((alpha > 0) & (alpha < setting.C)).any():  # the offset is then the lower end of its interval
        kkt = max(kkt, abs(float(h[alpha == setting.C].max())))
    return Residuals(box, off, kkt / max(1.0, float(np.abs(np.diag(gram)).max())))


def _collecting_residuals(alpha: Array, offset: float, gram: Array, setting: Setting) -> Residuals:
    slopes = gram @ alpha + setting.ridge * alpha - np.diag(gram) / 2
    scale = max(1.0, float(np.abs(np.diag(gram)).max()))
    box = float(np.abs(alpha - 1 / len(alpha)).max())
    return Residuals(box, abs(math.fsum(alpha) - 1), abs(offset - float(slopes.max())) / scale)


def duality_gap(alpha: Array, gram: Array, setting: Setting) -> float:
    """Return r.alpha minus the least r.beta over the capped simplex, r = (K + ridge I) alpha - diag(K)/2."""
    r = gram @ alpha + setting.ridge * alpha - np.diag(gram) / 2
    left, least = float(total(setting.C)), 0.0
    for slope in np.sort(r):
        mass = min(setting.C, left)
        least += mass * float(slope)
        left -= mass
    return float(r @ alpha) - least
