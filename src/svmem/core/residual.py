"""Residuals r = (K + ridge I) alpha - diag(K)/2 in extended precision, each with a bound on its own rounding.

Shares nothing with the compiled solver. Only the columns of records with alpha > 0 are evaluated, block by block.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

from svmem.core.problem import Problem
from svmem.kernels import RBF, Cosine, Laplacian, Linear
from svmem.types import Coefficients, Keys

__all__ = ["UNIT", "Extended", "Residuals", "residuals"]

Extended = NDArray[np.longdouble]
_Block = Callable[[slice, NDArray[np.intp]], Extended]  # rows, columns -> kernel entries

# Relative error of one operation. The floor serves machines whose long double is no IEEE format (double-double).
UNIT = np.longdouble(max(np.finfo(np.longdouble).eps / 2, 2.0**-100))
_TINY = np.finfo(np.longdouble).tiny
_EXP_UNITS = 8  # exp of the C library, in units: 4 ulps, twice what its authors state
_SECOND_ORDER = np.longdouble(1.01)  # covers products of rounding errors
_WIDTH = 512  # columns summed at once
_ENTRIES = 1 << 14  # kernel entries held at once: a quarter of a MiB, so that they stay near the processor


@dataclass(frozen=True, slots=True)
class Residuals:
    """|value - exact r| <= error for each record; `diagonal` holds K_ii, rounded up."""

    value: Extended  # (n,)
    error: Extended  # (n,)
    diagonal: Extended  # (n,)


@dataclass(frozen=True, slots=True)
class _Entries:
    """How one kernel is evaluated.

    |K_ij| <= scale_i and |entry - K_ij| <= units * UNIT * scale_i; K_ii is known to `own_units`, relatively.
    """

    block: _Block
    units: float
    scale: Extended  # (n,)
    diagonal: Extended  # (n,)
    own_units: float = 0


def residuals(keys: Keys, alpha: Coefficients, problem: Problem) -> Residuals:
    """Return r for every record; the keys (or the Gram matrix) have been checked.

    Error of r_i: that of the entries times sum alpha; one unit for each product and for each level of the pairwise
    sums, relative to f; one each for ridge alpha_i, the two additions and K_ii / 2.
    """
    entries, mass = _entries(keys, problem), alpha.astype(np.longdouble)
    n, active = len(alpha), np.flatnonzero(alpha)
    parts = [active[start : start + _WIDTH] for start in range(0, active.size, _WIDTH)]
    height = max(1, _ENTRIES // max(1, min(active.size, _WIDTH)))

    def weighted(rows: slice) -> Extended:
        sums = [_sum_by_halves(entries.block(rows, columns) * mass[columns]) for columns in parts]
        return _sum_by_halves(np.stack(sums, axis=1))

    blocks = [slice(start, start + height) for start in range(0, n if parts else 0, height)]
    with ThreadPoolExecutor() as pool:  # numpy computes without the lock; the blocks do not depend on one another
        f: Extended = np.concatenate([np.zeros(0 if blocks else n, dtype=np.longdouble), *pool.map(weighted, blocks)])
    depth = ceil(log2(min(max(active.size, 1), _WIDTH))) + ceil(log2(max(len(parts), 1)))
    own = np.longdouble(problem.ridge) * mass
    value = np.subtract(f + own, entries.diagonal / 2)
    rounding = (entries.units + depth + 1) * entries.scale * mass.sum() * _SECOND_ORDER
    rounding += 4 * (np.abs(f) + own) + (4 + entries.own_units) * entries.diagonal
    error = _SECOND_ORDER * UNIT * rounding + (n + keys.shape[1] + 8) * _TINY
    diagonal = entries.diagonal * (1 + _SECOND_ORDER * entries.own_units * UNIT)
    return Residuals(value, error, diagonal)


def _sum_by_halves(terms: Extended) -> Extended:
    """Return the sum over the last axis of `terms` (rows, columns), ceil(log2 columns) additions deep. Overwrites."""
    width = terms.shape[1]
    while width > 1:
        half = (width + 1) // 2
        terms[:, : width - half] += terms[:, half:width]
        width = half
    return terms[:, 0]


def _entries(keys: Keys, problem: Problem) -> _Entries:
    kernel, exact = problem.kernel, keys.astype(np.longdouble)
    n, d = keys.shape
    ones = np.ones(n, dtype=np.longdouble)
    if isinstance(kernel, RBF | Laplacian):
        # One unit each for difference and square (which doubles the first), d - 1 for the sum, one each for sigma^2
        # and the division: a relative error of d + 4 units of the exponent t, and t exp(-t) <= 0.37.
        units = 0.37 * (d + 5) + _EXP_UNITS
        return _Entries(_radial(exact, kernel), units, ones, ones)
    if isinstance(kernel, Cosine):
        # Each coordinate of a key of length 1 carries d/2 + 5 units, and sum |x_k y_k| <= 1.
        return _Entries(_inner(_unit_length(exact)), 2 * d + 12, ones, ones)
    if isinstance(kernel, Linear):
        length2 = np.square(exact).sum(axis=1)
        length = np.sqrt(length2) * (1 + (d + 2) * UNIT)
        return _Entries(_inner(exact), d, length * length.max(initial=np.longdouble(0)), length2, own_units=d)
    largest = np.abs(exact).max(axis=1, initial=np.longdouble(0))
    return _Entries(lambda rows, columns: exact[rows][:, columns], 0, largest, np.diag(exact).copy())


def _radial(keys: Extended, kernel: RBF | Laplacian) -> _Block:
    """Entries by coordinate differences, in units of a power of two near sigma.

    One too large for the format gives exp(-inf) = 0, rightly: the rest of sigma lies between 1/2 and 1.
    """
    squared = isinstance(kernel, RBF)
    rest, exponent = np.frexp(np.longdouble(kernel.sigma))
    unit, rest = np.ldexp(np.longdouble(1), -exponent), -rest * rest if squared else -rest

    def block(rows: slice, columns: NDArray[np.intp]) -> Extended:
        left, right = keys[rows], keys[columns]
        step = np.empty((left.shape[0], right.shape[0]), dtype=np.longdouble)
        distance = np.zeros_like(step)
        with np.errstate(over="ignore", under="ignore"):
            for k in range(keys.shape[1]):
                np.subtract(left[:, k, None], right[None, :, k], out=step)
                step *= unit
                distance += np.multiply(step, step, out=step) if squared else np.abs(step, out=step)
            distance /= rest
            return np.exp(distance, out=distance)

    return block


def _inner(keys: Extended) -> _Block:
    def block(rows: slice, columns: NDArray[np.intp]) -> Extended:
        left, right = keys[rows], keys[columns]
        product = np.zeros((left.shape[0], right.shape[0]), dtype=np.longdouble)
        for k in range(keys.shape[1]):
            product += left[:, k, None] * right[None, :, k]
        return product

    return block


def _unit_length(keys: Extended) -> Extended:
    if not keys.size:
        return keys
    scaled = keys / np.abs(keys).max(axis=1, keepdims=True)
    return scaled / np.sqrt(np.square(scaled).sum(axis=1, keepdims=True))
