"""Building a working set's sums, rows and factor from given masses, and from nothing."""

import numpy as np
from numba import njit

from svmem._jit.factor import add_multiple
from svmem._jit.work import (
    BOUND,
    BOUND_RECORDS,
    CAP,
    GRAD,
    IN_MARGIN,
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
def forget_zones(w):
    """Put every node on the reserve, its mass unchanged, so that `reconcile` builds everything anew."""
    for i in range(w.counts[NODES]):
        w.tag[ZONE, i] = RESERVE
    w.counts[IN_MARGIN] = 0
    sum_bound(w)


@njit(cache=True, nogil=True)
def reconcile(w):
    """Bring zones, sums, rows and factor in line with the masses; the caller has made room. Return OK or SINGULAR."""
    n = w.counts[NODES]
    row = np.empty(n)
    w.counts[IN_MARGIN] = 0
    for k in range(w.order.shape[1]):
        w.order[SLOT, k] = k
    for i in range(n):
        was = w.tag[ZONE, i] == BOUND
        now = w.node[MASS, i] >= w.node[MULT, i] * w.real[CAP]
        if was != now:
            node_row(w, i, row)
            sign = 1.0 if now else -1.0
            add_to_sums(w, row, sign * w.node[MULT, i])
            w.counts[BOUND_RECORDS] += np.int64(sign * w.node[MULT, i])
        w.tag[ZONE, i] = BOUND if now else RESERVE
        w.tag[PLACE, i] = -1
    for i in range(n):
        if w.tag[ZONE, i] == RESERVE and w.node[MASS, i] > 0.0:
            code = enter_margin(w, i)
            if code != OK:
                return code
    return OK


@njit(cache=True, nogil=True)
def add_to_grad(w, nodes, masses):
    """Add masses to nodes, and to grad what that changes."""
    n = w.counts[NODES]
    row = np.empty(n)
    for k in range(nodes.shape[0]):
        i, mass = nodes[k], masses[k]
        node_row(w, i, row)
        add_multiple(w.node[GRAD, :n], mass, row)
        w.node[GRAD, i] += w.real[RIDGE] * (mass / w.node[MULT, i])
        w.node[MASS, i] += mass
