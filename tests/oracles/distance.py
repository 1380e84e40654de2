"""How far given coefficients truly are from the optimum, to fifty digits."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.oracles.exact import Number, Optimum, ctx, number
from tests.oracles.setting import Setting

__all__ = ["Distance", "distance", "exact_residuals"]


@dataclass(frozen=True, slots=True)
class Distance:
    """Duality gap, |w - w*|, |alpha - alpha*|, the worst broken condition, and |f - f*| at each key."""

    gap: Number
    w: Number
    alpha: Number
    kkt: Number
    f: list[Number]


def exact_residuals(alpha: NDArray[np.float64], gram: list[list[Number]], ridge: float) -> list[Number]:
    """Return (K + ridge I) alpha - diag(K)/2 for float coefficients taken as exact numbers."""
    share = [number(a) for a in alpha]
    return [ctx.fdot(row, share) + number(ridge) * share[i] - row[i] / 2 for i, row in enumerate(gram)]


def distance(alpha: NDArray[np.float64], offset: float, truth: Optimum, setting: Setting) -> Distance:
    """Measure coefficients and an offset against the optimum of the same keys."""
    share, cap, gram = [number(a) for a in alpha], number(setting.C), truth.gram
    apart = [a - b for a, b in zip(share, truth.alpha, strict=True)]
    moved = [ctx.fdot(row, apart) for row in gram]
    r = exact_residuals(alpha, gram, setting.ridge)
    kkt = [ctx.zero]
    for a, slope in zip(share, r, strict=True):
        kkt += [slope - number(offset)] * (a > 0) + [number(offset) - slope] * (a < cap)
    return Distance(
        gap=min(_gap_at(level, share, r, cap) for level in r),
        w=ctx.sqrt(max(ctx.fdot(apart, moved), ctx.zero)),
        alpha=ctx.sqrt(ctx.fdot(apart, apart)),
        kkt=max(kkt),
        f=[abs(m) for m in moved],
    )


def _gap_at(level: Any, share: list[Number], r: list[Number], cap: Number) -> Number:
    """Return the gap with the sum constraint priced at `level`; the least over all levels is the duality gap."""
    return ctx.fsum(
        a * (slope - level) if slope > level else (cap - a) * (level - slope) for a, slope in zip(share, r, strict=True)
    )
