"""Sequential minimal optimisation with second-order pair selection, to a coarse gap. [FanChenLin2005]

Kernel rows are computed on demand and kept in a bounded cache; the exact steps of `settle` do the rest.
"""

import numpy as np
from numba import njit

from svmem._jit.work import CAP, GRAD, HALF, MASS, MULT, NODES, RIDGE, node_row


@njit(cache=True, nogil=True)
def cached_row(w, node, cache, where, owner, hand):
    """Return the kernel row of a node from the cache (rows, nodes), computing it over the oldest row when missing."""
    place = where[node]
    if place < 0:
        place = hand[0]
        hand[0] = (place + 1) % cache.shape[0]
        if place == hand[1]:  # the row in use by the caller stays
            place = hand[0]
            hand[0] = (place + 1) % cache.shape[0]
        if owner[place] >= 0:
            where[owner[place]] = -1
        owner[place] = node
        where[node] = place
        node_row(w, node, cache[place])
    return place


@njit(cache=True, nogil=True)
def first_of_pair(grad, mass, cap):
    """Return the node of smallest grad that can still grow."""
    best, lowest = -1, np.inf
    for i in range(grad.shape[0]):
        if grad[i] < lowest and mass[i] < cap[i]:
            best, lowest = i, grad[i]
    return best


@njit(cache=True, nogil=True)
def second_of_pair(grad, mass, diagonal, bend, row, start):
    """Return the node that gives up mass with the largest second-order gain, and the largest violation."""
    best, gain, violation = -1, 0.0, 0.0
    for j in range(grad.shape[0]):
        difference = grad[j] - start
        if difference > 0.0 and mass[j] > 0.0:
            violation = max(violation, difference)
            value = difference * difference / (diagonal[j] + bend - 2.0 * row[j])
            if value > gain:
                best, gain = j, value
    return best, violation


@njit(cache=True, nogil=True)
def smo(w, tolerance, limit, cache):
    """Exchange mass between pairs until the largest violation is under `tolerance`. Uses and updates mass and grad.

    Expects grad to match mass. Returns the number of exchanges.
    """
    n = w.counts[NODES]
    mass, grad = w.node[MASS, :n], w.node[GRAD, :n]
    ridge = w.real[RIDGE] / w.node[MULT, :n]
    cap = w.real[CAP] * w.node[MULT, :n]
    diagonal = 2.0 * w.node[HALF, :n] + ridge
    where, owner, hand = np.empty(n, np.int64), np.empty(cache.shape[0], np.int64), np.zeros(2, np.int64)
    for k in range(n):
        where[k] = -1
    for k in range(cache.shape[0]):
        owner[k] = -1
    for iteration in range(limit):
        i = first_of_pair(grad, mass, cap)
        if i < 0:
            return iteration
        hand[1] = -1
        place = cached_row(w, i, cache, where, owner, hand)
        hand[1] = place
        row_i = cache[place, :n]
        bend = diagonal[i]
        j, violation = second_of_pair(grad, mass, diagonal, bend, row_i, grad[i])
        if j < 0 or violation <= tolerance:
            return iteration
        row_j = cache[cached_row(w, j, cache, where, owner, hand), :n]
        move = (grad[j] - grad[i]) / (diagonal[j] + bend - 2.0 * row_i[j])
        move = min(move, min(cap[i] - mass[i], mass[j]))
        mass[i] = cap[i] if move == cap[i] - mass[i] else mass[i] + move
        mass[j] = 0.0 if move == mass[j] else mass[j] - move
        for k in range(n):
            grad[k] += move * (row_i[k] - row_j[k])
        grad[i] += move * ridge[i]
        grad[j] -= move * ridge[j]
    return limit
