"""The margin's masses by doubled arithmetic in canonical order: a function of the retained set and its partition alone.

Slow, O(s^3), and needed only where `refine` cannot be sure of a rounding.
"""

import numpy as np
from numba import njit

from svmem._jit import doubled
from svmem._jit.rows import PRECOMPUTED, kernel_row
from svmem._jit.settle import free_mass
from svmem._jit.work import (
    BOUND,
    CAP,
    CODE,
    HALF,
    HIGH,
    LOW,
    MARGIN,
    MULT,
    NODES,
    OFFSET,
    OFFSET_LOW,
    PLACE,
    RIDGE,
    SCALE,
    ZONE,
    doubled_cholesky,
)


@njit(cache=True, nogil=True)
def precedes(w, a, b):
    """Return whether node a comes before node b: by coordinates, then by multiplicity."""
    for c in range(w.xt.shape[0]):
        if w.xt[c, a] != w.xt[c, b]:
            return w.xt[c, a] < w.xt[c, b]
    return w.node[MULT, a] < w.node[MULT, b]


@njit(cache=True, nogil=True)
def ordered_nodes(w, zone):
    """Return the nodes of a zone in canonical order (binary insertion)."""
    nodes = np.empty(w.counts[NODES], np.int64)
    size = 0
    for node in range(w.counts[NODES]):
        if w.tag[ZONE, node] == zone:
            low, high = 0, size
            while low < high:
                middle = (low + high) // 2
                if precedes(w, nodes[middle], node):
                    low = middle + 1
                else:
                    high = middle
            for i in range(size, low, -1):
                nodes[i] = nodes[i - 1]
            nodes[low] = node
            size += 1
    return nodes[:size]


@njit(cache=True, nogil=True)
def gather(w, nodes):
    """Return the features (d, len(nodes)) of some nodes, as contiguous rows."""
    out = np.empty((w.xt.shape[0], nodes.shape[0]))
    for c in range(w.xt.shape[0]):
        for i in range(nodes.shape[0]):
            out[c, i] = w.xt[c, nodes[i]]
    return out


@njit(cache=True, nogil=True)
def right_hand_side(w, margin, features):
    """Return the doubled diag(K)/2 - C sum over the bound set at the margin nodes, summed in canonical order."""
    s = margin.shape[0]
    high, low, row = np.zeros(s), np.zeros(s), np.empty(s)
    for node in ordered_nodes(w, BOUND):
        point = w.xt[:, node].copy()
        if w.counts[CODE] >= PRECOMPUTED:
            for k in range(s):
                row[k] = point[margin[k]]
        else:
            kernel_row(w.counts[CODE], w.real[SCALE], point, features, s, row)
        for k in range(s):
            p, e = doubled.two_product(w.node[MULT, node], row[k])
            high[k], low[k] = doubled.add(high[k], low[k], p, e)
    for k in range(s):
        p, e = doubled.multiply(high[k], low[k], -w.real[CAP], 0.0)
        high[k], low[k] = doubled.add(w.node[HALF, margin[k]], 0.0, p, e)
    return high, low


@njit(cache=True, nogil=True)
def factor_of(w, margin):
    """Return the doubled upper factor of K + ridge over the margin nodes, and whether it is positive definite."""
    s = margin.shape[0]
    high, low = np.zeros((s, s)), np.zeros((s, s))
    for i in range(s):
        node = margin[i]
        for j in range(i, s):
            high[i, j] = w.gram[w.tag[PLACE, node], w.tag[PLACE, margin[j]]]
        high[i, i], low[i, i] = doubled.two_sum(high[i, i], w.real[RIDGE] / w.node[MULT, node])
    return high, low, doubled_cholesky(high, low)


@njit(cache=True, nogil=True)
def solve_doubled(u, u_low, x, x_low):
    """Replace the doubled vector x by the solution of U'U z = x."""
    s = x.shape[0]
    for j in range(s):
        x[j], x_low[j] = doubled.divide(x[j], x_low[j], u[j, j], u_low[j, j])
        for k in range(j + 1, s):
            p, e = doubled.multiply(x[j], x_low[j], -u[j, k], -u_low[j, k])
            x[k], x_low[k] = doubled.add(x[k], x_low[k], p, e)
    for j in range(s - 1, -1, -1):
        a, a_low = x[j], x_low[j]
        for k in range(j + 1, s):
            p, e = doubled.multiply(u[j, k], u_low[j, k], -x[k], -x_low[k])
            a, a_low = doubled.add(a, a_low, p, e)
        x[j], x_low[j] = doubled.divide(a, a_low, u[j, j], u_low[j, j])


@njit(cache=True, nogil=True)
def doubled_sum(high, low):
    """Return the doubled sum of a doubled vector, first entry first."""
    a, a_low = 0.0, 0.0
    for k in range(high.shape[0]):
        a, a_low = doubled.add(a, a_low, high[k], low[k])
    return a, a_low


@njit(cache=True, nogil=True)
def solve_canonically(w):
    """Write the doubled masses and offset where `refine` does. False if A is not positive definite."""
    margin = ordered_nodes(w, MARGIN)
    u, u_low, positive = factor_of(w, margin)
    if not positive:
        return False
    x, x_low = right_hand_side(w, margin, gather(w, margin))
    ones, ones_low = np.ones(x.shape[0]), np.zeros(x.shape[0])
    solve_doubled(u, u_low, x, x_low)
    solve_doubled(u, u_low, ones, ones_low)
    a, a_low = doubled_sum(x, x_low)
    b, b_low = doubled_sum(ones, ones_low)
    free, free_low = free_mass(w)
    a, a_low = doubled.add(free, free_low, -a, -a_low)
    offset, offset_low = doubled.divide(a, a_low, b, b_low)
    for k in range(x.shape[0]):
        p, e = doubled.multiply(offset, offset_low, ones[k], ones_low[k])
        place = w.tag[PLACE, margin[k]]
        w.small[HIGH, place], w.small[LOW, place] = doubled.add(x[k], x_low[k], p, e)
    w.real[OFFSET], w.real[OFFSET_LOW] = offset, offset_low
    return True
