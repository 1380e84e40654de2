"""The incremental solver's buffers, and the moves of a node between reserve, margin and bound.

A node is a distinct key with its multiplicity m; its mass is m alpha. Kernel rows are kept for margin nodes only.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from svmem._jit import doubled
from svmem._jit.factor import append, copy, remove
from svmem._jit.rows import GRAM, kernel_row

RESERVE, MARGIN, BOUND = 0, 1, 2  # values of `zone`
OK, FULL, STALLED, SINGULAR, AGAIN = 0, 1, 2, 3, 4  # what the compiled solver says; AGAIN: settle once more
NODES, IN_MARGIN, BOUND_RECORDS, CODE, SUM_UPDATES = 0, 1, 2, 3, 4  # places in `counts`
# Places in `real`; HALF_STEP: a coefficient this close to C is C.
CAP, RIDGE, SCALE, TOTAL, TOTAL_LOW, OFFSET, OFFSET_LOW, SIZE, HALF_STEP = 0, 1, 2, 3, 4, 5, 6, 7, 8
# Rows of `node`: kappa(x, x) / 2; multiplicity; mass = multiplicity times coefficient; the doubled sum of kappa over
# the bound records; the canonical coefficient of one record; f + ridge alpha - kappa(x, x) / 2 as of the last pricing.
HALF, MULT, MASS, SUM_HIGH, SUM_LOW, ALPHA, GRAD = 0, 1, 2, 3, 4, 5, 6
ZONE, PLACE = 0, 1  # rows of `tag`
NODE_AT, SLOT = 0, 1  # rows of `order`
TARGET, ONES, HIGH, LOW, RES, RES_LOW, TEMP = 0, 1, 2, 3, 4, 5, 6  # rows of `small`

# Inequalities this close to equality, relative to the largest kernel value, are decided in doubled arithmetic.
NEAR = 1e-10


class Work(NamedTuple):
    """Arrays over nodes (capacity n) and over the margin (capacity s), one set for one working set.

    Few arrays with named rows, since each array costs time at every call and at every compilation.
    """

    xt: np.ndarray  # (d, n) features, one node a column
    node: np.ndarray  # (7, n) numbers of each node
    tag: np.ndarray  # (2, n) int64: zone, and position in the margin or -1
    order: np.ndarray  # (2, s) int64 by position in the margin: the node, the slot of its row; then the free slots
    rows: np.ndarray  # (s, n) kernel rows of margin nodes, by slot
    gram: np.ndarray  # (s, s) kernel among the margin
    chol: np.ndarray  # (s, s) upper factor of gram + diag(ridge / multiplicity)
    small: np.ndarray  # (7, s) scratch over the margin
    point: np.ndarray  # (d,) scratch
    counts: np.ndarray  # int64
    real: np.ndarray  # float64


@njit(cache=True, nogil=True)
def node_row(w, node, out):
    """Write the kernel row of a node into out[:nodes]."""
    if w.counts[CODE] == GRAM:
        copy(out[: w.counts[NODES]], w.xt[node, : w.counts[NODES]])
        return
    for c in range(w.point.shape[0]):
        w.point[c] = w.xt[c, node]
    kernel_row(w.counts[CODE], w.real[SCALE], w.point, w.xt, w.counts[NODES], out)


@njit(cache=True, nogil=True)
def add_to_sums(w, row, weight):
    """Add weight * row to the doubled sums over the bound set."""
    n = w.counts[NODES]
    high = w.node[SUM_HIGH, :n]
    low = w.node[SUM_LOW, :n]
    part = row[:n]
    for i in range(n):
        p, e = doubled.two_product(weight, part[i])
        s, f = doubled.two_sum(high[i], p)
        high[i], low[i] = doubled.fast_two_sum(s, low[i] + (e + f))
    w.counts[SUM_UPDATES] += 1


@njit(cache=True, nogil=True)
def refactor(w):
    """Recompute the factor with doubled arithmetic, for pivots that drown in rounding. False if one is not positive."""
    s = w.counts[IN_MARGIN]
    high = np.zeros((s, s))
    low = np.zeros((s, s))
    for i in range(s):
        copy(high[i, i:s], w.gram[i, i:s])
        node = w.order[NODE_AT, i]
        high[i, i], low[i, i] = doubled.two_sum(w.gram[i, i], w.real[RIDGE] / w.node[MULT, node])
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
        rest, _ = doubled.add(high[i, i], low[i, i], -p, -e)
        root_high, root_low = doubled.fast_two_sum(root, rest / (2 * root))
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
def list_in_margin(w, node):
    """Put a reserve or bound node at the margin's end, all but its column of the factor. There must be room."""
    s = w.counts[IN_MARGIN]
    row = w.rows[w.order[SLOT, s]]
    node_row(w, node, row)
    if w.tag[ZONE, node] == BOUND:
        add_to_sums(w, row, -w.node[MULT, node])
        w.counts[BOUND_RECORDS] -= np.int64(w.node[MULT, node])
    for k in range(s):
        value = row[w.order[NODE_AT, k]]
        w.gram[k, s] = value
        w.gram[s, k] = value
    w.gram[s, s] = 2.0 * w.node[HALF, node]
    w.order[NODE_AT, s] = node
    w.tag[PLACE, node] = s
    w.tag[ZONE, node] = MARGIN
    w.counts[IN_MARGIN] = s + 1


@njit(cache=True, nogil=True)
def enter_margin(w, node):
    """Move a reserve or bound node into the margin with its mass. Return OK, FULL (nothing changed) or SINGULAR."""
    s = w.counts[IN_MARGIN]
    if s == w.order.shape[1]:
        return FULL
    list_in_margin(w, node)
    column = w.small[TEMP]
    copy(column[:s], w.gram[s, :s])
    ridge = w.real[RIDGE] / w.node[MULT, node]
    # The exact pivot is at least the node's ridge: one far below it is rounding, and the factor is done again.
    if append(w.chol, s, column, w.gram[s, s] + ridge, 0.5 * ridge) or refactor(w):
        return OK
    return SINGULAR


@njit(cache=True, nogil=True)
def leave_margin(w, position, zone):
    """Move a margin node to the reserve (mass 0) or to the bound (mass at its cap)."""
    s = w.counts[IN_MARGIN]
    node = w.order[NODE_AT, position]
    freed = w.order[SLOT, position]
    if zone == BOUND:
        w.node[MASS, node] = w.node[MULT, node] * w.real[CAP]
        add_to_sums(w, w.rows[freed], w.node[MULT, node])
        w.counts[BOUND_RECORDS] += np.int64(w.node[MULT, node])
    else:
        w.node[MASS, node] = 0.0
    w.tag[ZONE, node] = zone
    w.tag[PLACE, node] = -1
    remove(w.chol, s, position, w.small[TEMP])
    for i in range(s):
        copy(w.gram[i, position : s - 1], w.gram[i, position + 1 : s])
    for i in range(position, s - 1):
        copy(w.gram[i, : s - 1], w.gram[i + 1, : s - 1])
        w.order[NODE_AT, i] = w.order[NODE_AT, i + 1]
        w.order[SLOT, i] = w.order[SLOT, i + 1]
        w.tag[PLACE, w.order[NODE_AT, i]] = i
    w.order[SLOT, s - 1] = freed
    w.counts[IN_MARGIN] = s - 1
