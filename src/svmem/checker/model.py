"""What keys and coefficients say about the optimum: residuals, level, and distances. docs/derivations/optimality.md"""

import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np

from .doubled import Pair, add, multiply, negative, total
from .kernel import RADIAL, entries

__all__ = ["SAFE", "Model", "sum_error", "whole"]

ERROR = 2.0**-68  # above the error of every residual here, for mass 1 and kernel entries up to 1
SAFE = 1 + 1e-12  # covers the float64 roundings after the residuals; certificates leave room for it
_PAIRS = 1 << 15  # kernel entries at once


def whole(cap: float) -> tuple[int, Fraction]:
    """Return the fewest keys that can carry everything, and everything: 1, or k C where C is the float of 1/k."""
    k, exact = round(1 / cap), Fraction(cap)
    return (k, k * exact) if abs(k * exact - 1) <= Fraction(4, 2**53) else (math.ceil(1 / exact), Fraction(1))


def sum_error(share: Any, size: Any, needed: tuple[int, Fraction]) -> float:
    """Return what the coefficients of all records sum to, less what they should, correctly rounded."""
    n, (least, everything) = int(size.sum()), needed
    carried = sum((Fraction(a) * m for a, m in zip(share.tolist(), size.tolist(), strict=True)), Fraction(0))
    return float(carried - (everything if n >= least else min(n, 1)))


class Model:
    """All arrays are over nodes: distinct keys in canonical order, `size` records each, every one with `share`.

    r: residuals (K + ridge I) alpha - diag(K)/2, and level, the `least`-th smallest of them over records, as pairs;
    h = r - level; error: of r; reach: how far r may be from that of the optimum; gap, w, alpha: bounds.
    """

    def __init__(self, keys: Any, size: Any, certificate: Any) -> None:
        problem, active = certificate["problem"], certificate["active"]
        self.keys, self.size, self.kernel = keys, size, problem["kernel"]
        self.cap, self.ridge, self.offset = float(problem["C"]), float(problem["ridge"]), float(certificate["offset"])
        self.active = np.array(active["node"], dtype=int)
        self.share = np.zeros(len(size))
        self.share[self.active] = active["alpha"]
        self.n, self.least = int(size.sum()), whole(problem["C"])[0]
        self.collecting, self.radial = self.n < self.least, self.kernel["name"] in RADIAL
        self.r, self.diagonal = self._residuals()
        self.level = self.smallest(self.r, min(self.n, self.least))
        self.h = add(self.r, negative(self.level))[0]
        largest = np.sqrt(self.diagonal * self.diagonal.max(initial=0.0))  # of |K_ij| in each row
        self.error = ERROR * (largest * (1 + self.share @ size) + self.ridge * self.share + self.diagonal)
        length = np.sqrt(self.diagonal + self.ridge)
        self.sum_error = sum_error(self.share, size, whole(problem["C"]))
        self.gap, self.w, self.alpha = self._equal_shares(length) if self.collecting else self._bounds(length)
        self.reach = length * self.w * SAFE

    def smallest(self, values: Pair, k: int) -> Pair:
        """Return the k-th smallest value over the records; infinity where there are fewer, 0 of none."""
        order = np.lexsort(values[::-1])
        place = int(np.searchsorted(np.cumsum(self.size[order]), k))
        if k == 0 or place == len(order):
            return (math.inf if k else 0.0), 0.0
        return float(values[0][order[place]]), float(values[1][order[place]])

    def _residuals(self) -> tuple[Pair, Any]:
        """Return r and diag(K), the latter rounded up."""
        mass = multiply((self.share[self.active], 0.0), (self.size[self.active].astype(float), 0.0))
        f = np.zeros(len(self.keys)), np.zeros(len(self.keys))
        step = max(1, _PAIRS // max(len(self.active), 1))

        def weigh(start: int) -> None:
            rows = slice(start, start + step)
            block = entries(self.keys[rows, None, :], self.keys[None, self.active, :], self.kernel)
            f[0][rows], f[1][rows] = total(multiply(block, mass))

        with ThreadPoolExecutor() as pool:  # numpy computes without the lock; each call fills rows of its own
            list(pool.map(weigh, range(0, len(self.keys), step)))
        diagonal = np.ones(len(self.keys)), np.zeros(len(self.keys))
        if self.kernel["name"] == "linear":
            diagonal = entries(self.keys, self.keys, self.kernel)
        own = multiply((self.share, 0.0), (self.ridge, 0.0))
        r = add(add(f, own), (-diagonal[0] / 2, -diagonal[1] / 2))
        return r, diagonal[0] * (SAFE if self.kernel["name"] == "linear" else 1.0)

    def _equal_shares(self, length: Any) -> tuple[float, float, float]:
        share = Fraction(1, max(self.n, 1))
        apart = np.array([abs(float(Fraction(a) - share)) for a in self.share.tolist()])
        return 0.0, float(self.size @ (apart * length)) * SAFE, math.sqrt(self.size @ apart**2) * SAFE

    def _bounds(self, length: Any) -> tuple[float, float, float]:
        """Return bounds on the duality gap, |w - w*| and |alpha - alpha*|."""
        above, below = np.maximum(self.h + self.error, 0), np.maximum(self.error - self.h, 0)
        gap = float(self.size @ (self.share * above + (self.cap - self.share) * below))
        violation = np.maximum(np.where(self.share > 0, above, 0), np.where(self.share < self.cap, below, 0))
        miss = abs(self.sum_error)
        slip, rest = miss * float(length.max()), miss * float(self.error.max())
        slope = math.sqrt(self.size @ violation**2) / math.sqrt(self.ridge) + slip
        # w^2 <= p w + q for two pairs p, q
        w = SAFE * min((p + math.sqrt(p * p + 4 * q)) / 2 for p, q in ((slip, gap + rest), (slope, rest)))
        return (gap + rest + slip * w) * SAFE, w, w / math.sqrt(self.ridge) * SAFE
