"""The incremental solver's buffers, and the moves of a node between reserve, margin and bound.

A node is a distinct key with its multiplicity m; its mass is m alpha. Kernel rows are kept for margin nodes only.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from svmem._jit import doubled
from svmem._jit.factor import append, copy, remove
from svmem._jit.rows import kernel_row

RESERVE, MARGIN, BOUND = 0, 1, 2  # values of `zone`
OK, FULL, STALLED, SINGULAR, UNSURE = 0, 1, 2, 3, 4  # what the compiled solver says
NODES, IN_MARGIN, BOUND_RECORDS, CODE, SUM_UPDATES = 0, 1, 2, 3, 4  # places in `count`
# Places in `real`; HALF_STEP: a coefficient this close to C is C.
CAP, RIDGE, SCALE, TOTAL, TOTAL_LOW, OFFSET, OFFSET_LOW, SIZE, HALF_STEP = 0, 1, 2, 3, 4, 5, 6, 7, 8
TARGET, ONES, HIGH, LOW, RES, RES_LOW, TEMP, RIDGES = 0, 1, 2, 3, 4, 5, 6, 7  # rows of `small`

# Inequalities this close to equality, relative to the largest kernel value, are decided in doubled arithmetic.
NEAR = 1e-10


class Work(NamedTuple):
    """Arrays over nodes (capacity n) and over the margin (capacity s); the same object for one working set."""

    xt: np.ndarray  # (d, n) features, one node a column
    half: np.ndarray  # (n,) kappa(x, x) / 2
    mult: np.ndarray  # (n,) multiplicity, as float
    mass: np.ndarray  # (n,) multiplicity times coefficient
    zone: np.ndarray  # (n,) int8
    place: np.ndarray  # (n,) int64, position in the margin or -1
    sum_high: np.ndarray  # (n,) sum over bound records of kappa, doubled
    sum_low: np.ndarray
    alpha: np.ndarray  # (n,) canonical coefficient of each of the node's records
    grad: np.ndarray  # (n,) f + ridge alpha - kappa(x, x)/2 as of the last pricing
    rows: np.ndarray  # (s, n) kernel rows of margin nodes, by slot
    slot: np.ndarray  # (s,) int64, slot of each margin position; behind them the free slots
    margin: np.ndarray  # (s,) int64, node at each margin position
    gram: np.ndarray  # (s, s) kernel among the margin
    chol: np.ndarray  # (s, s) upper factor of gram + diag(ridge / multiplicity)
    small: np.ndarray  # (8, s) scratch
    point: np.ndarray  # (d,) scratch
    count: np.ndarray  # int64
    real: np.ndarray  # float64


@njit(cache=True, nogil=True)
def node_row(w, node, out):
    """Write the kernel row of a node into out[:nodes]."""
    for c in range(w.point.shape[0]):
        w.point[c] = w.xt[c, node]
    kernel_row(w.count[CODE], w.real[SCALE], w.point, w.xt, w.count[NODES], out)


@njit(cache=True, nogil=True)
def add_to_sums(w, row, weight):
    """Add weight * row to the doubled sums over the bound set."""
    n = w.count[NODES]
    high = w.sum_high[:n]
    low = w.sum_low[:n]
    part = row[:n]
    for i in range(n):
        p, e = doubled.two_product(weight, part[i])
        s, f = doubled.two_sum(high[i], p)
        high[i], low[i] = doubled.fast_two_sum(s, low[i] + (e + f))
    w.count[SUM_UPDATES] += 1


@njit(cache=True, nogil=True)
def refactor(w):
    """Recompute the factor with doubled arithmetic, for margins whose pivots drown in rounding. False if not positive."""
    s = w.count[IN_MARGIN]
    high = np.zeros((s, s))
    low = np.zeros((s, s))
    for i in range(s):
        copy(high[i, i:s], w.gram[i, i:s])
        node = w.margin[i]
        high[i, i], low[i, i] = doubled.two_sum(w.gram[i, i], w.real[RIDGE] / w.mult[node])
    done = doubled_cholesky(high, low)
    if done:
        for i in range(s):
            copy(w.chol[i, :s], high[i])
    return done


@njit(cache=True, nogil=True)
def doubled_cholesky(high, low):
    """Replace the upper triangle of the doubled matrix by its factor U, A = U'U. False if a pivot is not positive."""
    s = high.shape[0]
    for i in range(s):
        if not high[i, i] > 0:
            return False
        root = np.sqrt(high[i, i])
        p, e = doubled.two_product(root, root)
        r, f = doubled.add(high[i, i], low[i, i], -p, -e)
        root_high, root_low = doubled.fast_two_sum(root, r / (2 * root))
        high[i, i], low[i, i] = root_high, root_low
        for j in range(i + 1, s):
            high[i, j], low[i, j] = doubled.divide(high[i, j], low[i, j], root_high, root_low)
        for k in range(i + 1, s):
            factor, factor_low = -high[i, k], -low[i, k]
            for j in range(k, s):
                p, e = doubled.multiply(factor, factor_low, high[i, j], low[i, j])
                high[k, j], low[k, j] = doubled.add(high[k, j], low[k, j], p, e)
    return True


@njit(cache=True, nogil=True)
def enter_margin(w, node):
    """Move a reserve or bound node into the margin, its mass unchanged. Return OK, FULL (nothing changed) or SINGULAR."""
    s = w.count[IN_MARGIN]
    if s == w.margin.shape[0]:
        return FULL
    row = w.rows[w.slot[s]]
    node_row(w, node, row)
    if w.zone[node] == BOUND:
        add_to_sums(w, row, -w.mult[node])
        w.count[BOUND_RECORDS] -= np.int64(w.mult[node])
    column = w.small[TEMP]
    for k in range(s):
        value = row[w.margin[k]]
        w.gram[k, s] = value
        w.gram[s, k] = value
        column[k] = value
    w.gram[s, s] = 2.0 * w.half[node]
    w.margin[s] = node
    w.place[node] = s
    w.zone[node] = MARGIN
    w.count[IN_MARGIN] = s + 1
    ridge = w.real[RIDGE] / w.mult[node]
    # The exact pivot is at least the node's ridge: one far below it is rounding, and the factor is done again.
    if append(w.chol, s, column, w.gram[s, s] + ridge, 0.5 * ridge) or refactor(w):
        return OK
    return SINGULAR


@njit(cache=True, nogil=True)
def leave_margin(w, position, zone):
    """Move a margin node to the reserve (mass 0) or to the bound (mass at its cap)."""
    s = w.count[IN_MARGIN]
    node = w.margin[position]
    freed = w.slot[position]
    if zone == BOUND:
        w.mass[node] = w.mult[node] * w.real[CAP]
        add_to_sums(w, w.rows[freed], w.mult[node])
        w.count[BOUND_RECORDS] += np.int64(w.mult[node])
    else:
        w.mass[node] = 0.0
    w.zone[node] = zone
    w.place[node] = -1
    remove(w.chol, s, position, w.small[TEMP])
    for i in range(s):
        copy(w.gram[i, position : s - 1], w.gram[i, position + 1 : s])
    for i in range(position, s - 1):
        copy(w.gram[i, : s - 1], w.gram[i + 1, : s - 1])
        w.margin[i] = w.margin[i + 1]
        w.slot[i] = w.slot[i + 1]
        w.place[w.margin[i]] = i
    w.slot[s - 1] = freed
    w.count[IN_MARGIN] = s - 1
