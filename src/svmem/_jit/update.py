"""Changes of the retained set: nodes that arrive, grow, shrink or leave. `settle` and `finish` lead back to the optimum."""

import numpy as np
from numba import njit

from svmem._jit import doubled
from svmem._jit.work import (
    BOUND,
    BOUND_RECORDS,
    CAP,
    IN_MARGIN,
    MARGIN,
    NEAR,
    NODES,
    OFFSET,
    OK,
    RESERVE,
    SIZE,
    add_to_sums,
    enter_margin,
    leave_margin,
    node_row,
)


@njit(cache=True, nogil=True)
def attach(w, node):
    """Take up a node whose features stand at the end of the columns: fill in its sums and its entry in the margin's rows."""
    w.count[NODES] = node + 1
    row = np.empty(node + 1)
    node_row(w, node, row)
    a, a_low = 0.0, 0.0
    for i in range(node):
        if w.zone[i] == BOUND:
            p, e = doubled.two_product(w.mult[i], row[i])
            a, a_low = doubled.add(a, a_low, p, e)
    w.sum_high[node], w.sum_low[node] = a, a_low
    grad = w.real[CAP] * a - w.half[node]
    for k in range(w.count[IN_MARGIN]):
        value = row[w.margin[k]]
        w.rows[w.slot[k], node] = value
        grad += w.mass[w.margin[k]] * value
    w.grad[node] = grad
    w.mass[node] = 0.0
    w.alpha[node] = 0.0
    w.zone[node] = RESERVE
    w.place[node] = -1


@njit(cache=True, nogil=True)
def set_multiplicity(w, node, mult):
    """Change how many records a node stands for; its mass is cut to the new cap. Return whether the optimum may change."""
    zone, mass = w.zone[node], w.mass[node]
    if zone == RESERVE:
        w.mult[node] = mult
        return OK, False
    row = np.empty(w.count[NODES])
    node_row(w, node, row)
    if zone == MARGIN:
        leave_margin(w, w.place[node], RESERVE)
    else:
        add_to_sums(w, row, -w.mult[node])
        w.count[BOUND_RECORDS] -= np.int64(w.mult[node])
        w.zone[node] = RESERVE
    w.mult[node] = mult
    cap = mult * w.real[CAP]
    w.mass[node] = min(mass, cap)
    if mult == 0.0:
        return OK, True
    if mass < cap:
        return enter_margin(w, node), True
    add_to_sums(w, row, mult)
    w.count[BOUND_RECORDS] += np.int64(mult)
    w.zone[node] = BOUND
    return OK, True


@njit(cache=True, nogil=True)
def detach(w, node):
    """Drop a reserve node; the last node takes its place."""
    last = w.count[NODES] - 1
    w.count[NODES] = last
    if node == last:
        return
    for c in range(w.xt.shape[0]):
        w.xt[c, node] = w.xt[c, last]
    for k in range(w.count[IN_MARGIN]):
        w.rows[w.slot[k], node] = w.rows[w.slot[k], last]
    w.half[node] = w.half[last]
    w.mult[node] = w.mult[last]
    w.mass[node] = w.mass[last]
    w.alpha[node] = w.alpha[last]
    w.zone[node] = w.zone[last]
    w.place[node] = w.place[last]
    w.sum_high[node] = w.sum_high[last]
    w.sum_low[node] = w.sum_low[last]
    w.grad[node] = w.grad[last]
    if w.place[node] >= 0:
        w.margin[w.place[node]] = node


@njit(cache=True, nogil=True)
def change(w, nodes, mults, arrivals):
    """Set multiplicities (0: the node leaves; nodes in falling order) and attach arrivals. Return (code, optimum may change).

    Arrivals stand, with multiplicity, behind the present columns; the caller has made room for them and for one margin
    row a changed node.
    """
    touched = False
    first = w.count[NODES]
    for node in range(first, first + arrivals):
        attach(w, node)
        if w.grad[node] - w.real[OFFSET] < NEAR * w.real[SIZE]:
            touched = True
    for i in range(nodes.shape[0]):
        code, moved = set_multiplicity(w, nodes[i], mults[i])
        if code != OK:
            return code, True
        touched = touched or moved
        if mults[i] == 0.0:
            detach(w, nodes[i])
    return OK, touched
