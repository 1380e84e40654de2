"""Building a working set's sums, rows and factor from given masses, and from nothing."""

import numpy as np
from numba import njit

from svmem._jit.rows import kernel_row
from svmem._jit.work import (
    BOUND,
    BOUND_RECORDS,
    CAP,
    CODE,
    IN_MARGIN,
    MARGIN,
    NODES,
    OK,
    RESERVE,
    RIDGE,
    SCALE,
    SUM_UPDATES,
    add_to_sums,
    enter_margin,
    node_row,
)


@njit(cache=True, nogil=True)
def sum_bound(w):
    """Recompute the doubled sums over the bound set, node by node."""
    n = w.count[NODES]
    for i in range(n):
        w.sum_high[i] = w.sum_low[i] = 0.0
    w.count[BOUND_RECORDS] = 0
    row = np.empty(n)
    for i in range(n):
        if w.zone[i] == BOUND:
            node_row(w, i, row)
            add_to_sums(w, row, w.mult[i])
            w.count[BOUND_RECORDS] += np.int64(w.mult[i])
    w.count[SUM_UPDATES] = 0


@njit(cache=True, nogil=True)
def rebuild(w):
    """Derive zones, sums, rows and factor from the masses; the caller has made room. Return OK or SINGULAR."""
    n = w.count[NODES]
    for i in range(n):
        cap = w.mult[i] * w.real[CAP]
        w.zone[i] = RESERVE if w.mass[i] <= 0.0 else (BOUND if w.mass[i] >= cap else MARGIN)
        w.place[i] = -1
    for k in range(w.margin.shape[0]):
        w.slot[k] = k
    w.count[IN_MARGIN] = 0
    sum_bound(w)
    for i in range(n):
        if w.zone[i] == MARGIN:
            w.zone[i] = RESERVE
            code = enter_margin(w, i)
            if code != OK:
                return code
    return OK


@njit(cache=True, nogil=True)
def grad_of_masses(w, nodes):
    """Write f + ridge alpha - kappa/2 into grad for the masses of the given nodes, all other masses being zero."""
    n = w.count[NODES]
    for i in range(n):
        w.grad[i] = -w.half[i]
    row = np.empty(n)
    for j in nodes:
        node_row(w, j, row)
        mass = w.mass[j]
        for i in range(n):
            w.grad[i] += mass * row[i]
        w.grad[j] += w.real[RIDGE] * (mass / w.mult[j])


@njit(cache=True, nogil=True)
def scores(w, points_t, weights, out):
    """Write sum_j weights_j kappa(node, point_j) into out (nodes,) for points_t (d, m): the row of each node at a time."""
    m = weights.shape[0]
    row = np.empty(m)
    point = np.empty(points_t.shape[0])
    for i in range(w.count[NODES]):
        for c in range(point.shape[0]):
            point[c] = w.xt[c, i]
        kernel_row(w.count[CODE], w.real[SCALE], point, points_t, m, row)
        total = 0.0
        for j in range(m):
            total += weights[j] * row[j]
        out[i] = total
