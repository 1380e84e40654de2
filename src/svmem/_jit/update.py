"""Changes of the retained set: nodes that arrive, grow, shrink or leave. `settle` and `finish` find the new optimum."""

import numpy as np
from numba import njit

from svmem._jit import doubled
from svmem._jit.work import (
    ALPHA,
    BOUND,
    BOUND_RECORDS,
    CAP,
    GRAD,
    HALF,
    IN_MARGIN,
    MARGIN,
    MASS,
    MULT,
    NEAR,
    NODE_AT,
    NODES,
    OFFSET,
    OK,
    PLACE,
    RESERVE,
    SIZE,
    SLOT,
    SUM_HIGH,
    SUM_LOW,
    ZONE,
    add_to_sums,
    enter_margin,
    leave_margin,
    node_row,
)


@njit(cache=True, nogil=True)
def attach(w, node):
    """Take up the node behind the present columns: fill in its sums and its entries in the margin's rows."""
    w.counts[NODES] = node + 1
    row = np.empty(node + 1)
    node_row(w, node, row)
    a, a_low = 0.0, 0.0
    for i in range(node):
        if w.tag[ZONE, i] == BOUND:
            p, e = doubled.two_product(w.node[MULT, i], row[i])
            a, a_low = doubled.add(a, a_low, p, e)
    w.node[SUM_HIGH, node], w.node[SUM_LOW, node] = a, a_low
    grad = w.real[CAP] * a - w.node[HALF, node]
    for k in range(w.counts[IN_MARGIN]):
        value = row[w.order[NODE_AT, k]]
        w.rows[w.order[SLOT, k], node] = value
        grad += w.node[MASS, w.order[NODE_AT, k]] * value
    w.node[GRAD, node] = grad
    w.node[MASS, node] = 0.0
    w.node[ALPHA, node] = 0.0
    w.tag[ZONE, node] = RESERVE
    w.tag[PLACE, node] = -1


@njit(cache=True, nogil=True)
def set_multiplicity(w, node, mult):
    """Change how many records a node stands for; its mass is cut to the cap. Return (code, optimum may change)."""
    zone, mass = w.tag[ZONE, node], w.node[MASS, node]
    if zone == RESERVE:
        w.node[MULT, node] = mult
        return OK, False
    row = np.empty(w.counts[NODES])
    node_row(w, node, row)
    if zone == MARGIN:
        leave_margin(w, w.tag[PLACE, node], RESERVE)
    else:
        add_to_sums(w, row, -w.node[MULT, node])
        w.counts[BOUND_RECORDS] -= np.int64(w.node[MULT, node])
        w.tag[ZONE, node] = RESERVE
    w.node[MULT, node] = mult
    cap = mult * w.real[CAP]
    w.node[MASS, node] = min(mass, cap)
    if mult == 0.0:
        return OK, True
    if mass < cap:
        return enter_margin(w, node), True
    add_to_sums(w, row, mult)
    w.counts[BOUND_RECORDS] += np.int64(mult)
    w.tag[ZONE, node] = BOUND
    return OK, True


@njit(cache=True, nogil=True)
def detach(w, node):
    """Drop a reserve node; the last node takes its place, and its key is overwritten."""
    last = w.counts[NODES] - 1
    w.counts[NODES] = last
    for c in range(w.xt.shape[0]):
        w.xt[c, node] = w.xt[c, last]
        w.xt[c, last] = 0.0
    if node == last:
        return
    for k in range(w.counts[IN_MARGIN]):
        w.rows[w.order[SLOT, k], node] = w.rows[w.order[SLOT, k], last]
    for r in range(w.node.shape[0]):
        w.node[r, node] = w.node[r, last]
    w.tag[ZONE, node] = w.tag[ZONE, last]
    w.tag[PLACE, node] = w.tag[PLACE, last]
    if w.tag[PLACE, node] >= 0:
        w.order[NODE_AT, w.tag[PLACE, node]] = node


@njit(cache=True, nogil=True)
def change(w, nodes, mults, arrivals):
    """Set multiplicities and attach arrivals. Return (code, optimum may change).

    Nodes come in falling order; multiplicity 0 makes one leave.
    Arrivals stand, with multiplicity, behind the present columns; the caller has made room for them and for one margin
    row a changed node.
    """
    touched = False
    first = w.counts[NODES]
    for node in range(first, first + arrivals):
        attach(w, node)
        if w.node[GRAD, node] - w.real[OFFSET] < NEAR * w.real[SIZE]:
            touched = True
    for i in range(nodes.shape[0]):
        code, moved = set_multiplicity(w, nodes[i], mults[i])
        if code != OK:
            return code, True
        touched = touched or moved
        if mults[i] == 0.0:
            detach(w, nodes[i])
    return OK, touched
