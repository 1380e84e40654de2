"""Building a working set's sums, rows and factor from given masses, and from nothing."""

import numpy as np
from numba import njit

from svmem._jit.work import (
    BOUND,
    BOUND_RECORDS,
    CAP,
    GRAD,
    HALF,
    IN_MARGIN,
    MARGIN,
    MASS,
    MULT,
    NODES,
    OK,
    PLACE,
    RESERVE,
    RIDGE,
    SLOT,
    SUM_HIGH,
    SUM_LOW,
    SUM_UPDATES,
    ZONE,
    add_to_sums,
    enter_margin,
    node_row,
)


@njit(cache=True, nogil=True)
def sum_bound(w):
    """Recompute the doubled sums over the bound set, node by node."""
    n = w.counts[NODES]
    for i in range(n):
        w.node[SUM_HIGH, i] = w.node[SUM_LOW, i] = 0.0
    w.counts[BOUND_RECORDS] = 0
    row = np.empty(n)
    for i in range(n):
        if w.tag[ZONE, i] == BOUND:
            node_row(w, i, row)
            add_to_sums(w, row, w.node[MULT, i])
            w.counts[BOUND_RECORDS] += np.int64(w.node[MULT, i])
    w.counts[SUM_UPDATES] = 0


@njit(cache=True, nogil=True)
def rebuild(w):
    """Derive zones, sums, rows and factor from the masses; the caller has made room. Return OK or SINGULAR."""
    n = w.counts[NODES]
    for i in range(n):
        cap = w.node[MULT, i] * w.real[CAP]
        w.tag[ZONE, i] = RESERVE if w.node[MASS, i] <= 0.0 else (BOUND if w.node[MASS, i] >= cap else MARGIN)
        w.tag[PLACE, i] = -1
    for k in range(w.order.shape[1]):
        w.order[SLOT, k] = k
    w.counts[IN_MARGIN] = 0
    sum_bound(w)
    for i in range(n):
        if w.tag[ZONE, i] == MARGIN:
            w.tag[ZONE, i] = RESERVE
            code = enter_margin(w, i)
            if code != OK:
                return code
    return OK


@njit(cache=True, nogil=True)
def grad_of_masses(w, nodes):
    """Write f + ridge alpha - kappa/2 into grad for the masses of the given nodes, all other masses being zero."""
    n = w.counts[NODES]
    for i in range(n):
        w.node[GRAD, i] = -w.node[HALF, i]
    row = np.empty(n)
    for j in nodes:
        node_row(w, j, row)
        mass = w.node[MASS, j]
        for i in range(n):
            w.node[GRAD, i] += mass * row[i]
        w.node[GRAD, j] += w.real[RIDGE] * (mass / w.node[MULT, j])
