"""Doubled-precision masses on the margin, and coefficients rounded so that every history gives the same bits.

The float64 solution is refined with residuals in doubled arithmetic until it is known far beyond float64. Rounding it
then gives bits that depend on the partition alone, unless a coefficient lies so near a rounding boundary that its error
could carry it across: that is noticed, and left to `canonical`, which works in a fixed order.
"""

import math

import numpy as np
from numba import njit

from svmem._jit import doubled
from svmem._jit.factor import add_multiple, solve_lower, solve_upper, total
from svmem._jit.settle import free_mass
from svmem._jit.work import (
    CAP,
    HALF,
    HIGH,
    IN_MARGIN,
    LOW,
    MULT,
    NODE_AT,
    OFFSET,
    OFFSET_LOW,
    ONES,
    RES,
    RES_LOW,
    RIDGE,
    SIZE,
    SUM_HIGH,
    SUM_LOW,
    SUM_UPDATES,
    TARGET,
    TEMP,
)

GRID = 2.0**-56  # absolute spacing to which coefficients are rounded where float64 is finer
ENOUGH = 1e-23  # a mass known to this is rounded without doubt, but for about one in a million
ROUNDS = 8
SAFETY = 1024.0
DOUBLED_EPS = 2.0**-104


@njit(cache=True, nogil=True)
def residual(w):
    """Write b + offset - (K + ridge) x, doubled, into small[RES], small[RES_LOW]; return that of the sum."""
    s = w.counts[IN_MARGIN]
    high, low = w.small[RES, :s], w.small[RES_LOW, :s]
    x, x_low = w.small[HIGH, :s], w.small[LOW, :s]
    for k in range(s):
        node = w.order[NODE_AT, k]
        g, g_low = doubled.multiply(w.node[SUM_HIGH, node], w.node[SUM_LOW, node], -w.real[CAP], 0.0)
        h, h_low = doubled.add(w.node[HALF, node], 0.0, w.real[OFFSET], w.real[OFFSET_LOW])
        h, h_low = doubled.add(h, h_low, g, g_low)
        g, g_low = doubled.multiply(x[k], x_low[k], -(w.real[RIDGE] / w.node[MULT, node]), 0.0)
        high[k], low[k] = doubled.add(h, h_low, g, g_low)
    free, free_low = free_mass(w)
    for j in range(s):
        subtract_column(high, low, w.gram[j, :s], x[j], x_low[j])
        free, free_low = doubled.add(free, free_low, -x[j], -x_low[j])
    return free + free_low


@njit(cache=True, nogil=True)
def subtract_column(high, low, column, x, x_low):
    """Subtract (x + x_low) * column from the doubled vector (high, low). [OgitaRumpOishi2005]"""
    t = doubled.SPLITTER * x
    x_top = t - (t - x)
    x_rest = x - x_top
    for i in range(column.shape[0]):
        a = column[i]
        p = a * x
        t = doubled.SPLITTER * a
        top = t - (t - a)
        rest = a - top
        e = ((top * x_top - p) + top * x_rest + rest * x_top) + rest * x_rest
        s = high[i] - p
        back = s - high[i]
        f = (high[i] - (s - back)) + (-p - back)
        high[i] = s
        low[i] += f - e - a * x_low


@njit(cache=True, nogil=True)
def correct(w, short):
    """Add the solution for the residual to the doubled masses and offset. Return the largest change of a mass."""
    s = w.counts[IN_MARGIN]
    change, ones = w.small[TEMP, :s], w.small[ONES, :s]
    for k in range(s):
        change[k] = w.small[RES, k] + w.small[RES_LOW, k]
    solve_lower(w.chol, s, change)
    solve_upper(w.chol, s, change)
    offset = (short - total(change)) / total(ones)
    add_multiple(change, offset, ones)
    w.real[OFFSET], w.real[OFFSET_LOW] = doubled.add(w.real[OFFSET], w.real[OFFSET_LOW], offset, 0.0)
    largest = 0.0
    for k in range(s):
        largest = max(largest, abs(change[k]))
        w.small[HIGH, k], w.small[LOW, k] = doubled.add(w.small[HIGH, k], w.small[LOW, k], change[k], 0.0)
    return largest


@njit(cache=True, nogil=True)
def refine(w):
    """Refine the masses from small[TARGET] on, and the offset. Return the error of a mass, or infinity.

    The error is estimated from the first correction, which shows how much of a residual one solve leaves behind.
    """
    s = w.counts[IN_MARGIN]
    norm = 0.0
    for k in range(s):
        w.small[HIGH, k] = w.small[TARGET, k]
        w.small[LOW, k] = 0.0
        norm = max(norm, w.small[HIGH, k])
    w.real[OFFSET_LOW] = 0.0
    rounding = DOUBLED_EPS * (8.0 + math.sqrt(np.float64(s + w.counts[SUM_UPDATES]))) * w.real[SIZE]
    previous, contraction, error = norm, 1e-16, math.inf
    for _ in range(ROUNDS):
        change = correct(w, residual(w))
        floor = rounding * (4.0 + 1e16 * contraction)  # residual rounding times the condition seen so far
        if not change < 0.25 * previous:
            return floor if change <= 16.0 * floor else math.inf
        contraction = max(contraction, change / previous)
        error = SAFETY * contraction * change + rounding * (4.0 + 1e16 * contraction)
        if error < ENOUGH:
            break
        previous = change
    return error


@njit(cache=True, nogil=True)
def round_doubled(high, low, error):
    """Return (high + low) rounded to float64, or to GRID where that is coarser, and whether that is sure."""
    fraction, exponent = math.frexp(abs(high))
    if fraction == 0.5 and high * low < 0.0:  # just under a power of two, where floats lie closer
        exponent -= 1
    spacing = max(math.ldexp(1.0, exponent - 53), GRID)
    shift = 6755399441055744.0 * spacing
    nearest = (high + shift) - shift
    rest = (high - nearest) + low
    if rest > 0.5 * spacing:
        nearest += spacing
        rest -= spacing
    elif rest < -0.5 * spacing:
        nearest -= spacing
        rest += spacing
    return nearest, abs(abs(rest) - 0.5 * spacing) > error
