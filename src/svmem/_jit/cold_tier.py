"""Knowing without looking that most keys stay silent.

A cold key is a reserve key whose h = f - 1/2 - offset was computed once. When w moves by
D to a new optimum, h(x) changes by  D . phi(x) - (change of offset)
    = D . (phi(x) - w) + D . w - (change of offset) >= -|D| r + drift,
r = |phi(x) - w| being the distance of x from the centre, and drift the same for all keys. As r grows by |D| at most,
after a path of length P, the sum of the |D|, h is at least  h_0 + (sum of drifts) - r_0 P - P^2 / 2:  a cold key is
looked at again only when that is used up. D comes from the nodes whose mass changed: |D|^2 = sum of dm_i df_i,
D . w = sum of dm_i f_i.
"""

import numpy as np
from numba import njit

from svmem._jit.factor import dot
from svmem._jit.rows import GRAM, kernel_row
from svmem._jit.stream import (
    ACTIVE,
    ACTIVE_POSITION,
    ADMITTED,
    COLD,
    COUNT,
    DRIFT,
    F_BEFORE,
    FLOOR,
    MASS_BEFORE,
    MOVED,
    NODE_OF,
    NORM2,
    NOWHERE,
    OFFSET_BEFORE,
    PACE,
    PATH,
    POSITION,
    RADIUS,
    RECORDS,
    START,
    TOUCHED,
    TWIN,
    drop_node,
    heat,
    rehash,
)
from svmem._jit.work import CODE, GRAD, MASS, MULT, NODES, OFFSET, RESERVE, RIDGE, SCALE, ZONE

HOT = 192  # nodes that are kept at hand in any case: fewer cost less than keeping track of cold ones
STEPS_AHEAD = 24.0  # a hot key is cooled if it stays silent through that many moves at the present pace
STEPS_AGAIN = 12.0  # a cold key that was looked at stays cold if through that many
SMOOTH = 0.2  # weight of the last move in the pace
SMALLEST_MOVE = 1e-7  # added to each length: a squared length is only known to 1e-15
SMALLEST_RADIUS = 1e-14  # added to each squared distance from the centre, likewise
SAFE = 1e-9  # reserve inequalities with less to spare belong to hot keys, whose ties are decided exactly


@njit(cache=True, nogil=True)
def value_at(s, w, position):
    """Return f at the key of a position, from the nodes with mass."""
    size = s.state[ACTIVE]
    kernel_row(w.counts[CODE], w.real[SCALE], s.keys[position], s.active, size, s.row)
    return dot(s.row[:size], s.masses[:size])


@njit(cache=True, nogil=True)
def weigh(s, w, position):
    """Look at a key that has no node: leave it cold if it stays silent for a while, else make it a node.

    Return whether there was room for it.
    """
    f = value_at(s, w, position)
    if lay_down(s, w, position, f, STEPS_AGAIN):
        return True
    if w.counts[NODES] == w.node.shape[1]:
        return False
    if s.trace[FLOOR, position] != np.inf:
        s.state[COLD] -= 1
    heat(s, w, position)
    return True


@njit(cache=True, nogil=True)
def lay_down(s, w, position, f, steps):
    """Note a reserve key's f as of now, if it should stay silent for so many moves. Return whether it does."""
    h = f - 0.5 - w.real[OFFSET]
    radius = np.sqrt(max(1.0 - 2.0 * f + s.way[NORM2], 0.0) + SMALLEST_RADIUS)
    if not h > max(steps * s.way[PACE] * radius, SAFE):
        return False
    if s.trace[FLOOR, position] == np.inf:
        s.state[COLD] += 1
    s.trace[FLOOR, position] = h - s.way[DRIFT]
    s.trace[RADIUS, position] = radius
    s.trace[START, position] = s.way[PATH]
    return True


@njit(cache=True, nogil=True)
def follow(s, w):
    """Add to the path what the last solution moved w by, and gather the nodes with mass."""
    if w.counts[CODE] == GRAM:  # no key is ever cold
        return
    square, turn, norm2, size, moved = 0.0, 0.0, 0.0, 0, False
    for node in range(w.counts[NODES]):
        position = s.place[POSITION, node]
        mass = w.node[MASS, node]
        f = w.node[GRAD, node] + 0.5 - w.real[RIDGE] * (mass / w.node[MULT, node])
        difference = mass - s.trace[MASS_BEFORE, position]
        if difference != 0.0:
            moved = True
            square += difference * (f - s.trace[F_BEFORE, position])
            turn += difference * s.trace[F_BEFORE, position]
        s.trace[MASS_BEFORE, position] = mass
        s.trace[F_BEFORE, position] = f
        norm2 += mass * f
        if mass > 0.0:
            s.masses[size] = mass
            s.place[ACTIVE_POSITION, size] = position
            for c in range(w.xt.shape[0]):
                s.active[c, size] = w.xt[c, node]
            size += 1
    s.state[ACTIVE] = size
    s.way[NORM2] = norm2
    s.way[MOVED] = np.sqrt(max(square, 0.0)) + SMALLEST_MOVE if moved else 0.0
    s.way[PATH] += s.way[MOVED]
    s.way[PACE] += SMOOTH * (s.way[MOVED] - s.way[PACE])
    s.way[DRIFT] += turn - (w.real[OFFSET] - s.way[OFFSET_BEFORE])
    s.way[OFFSET_BEFORE] = w.real[OFFSET]


@njit(cache=True, nogil=True)
def rest(s):
    """Note that nothing has moved."""
    s.way[MOVED] = 0.0
    s.way[PACE] *= 1.0 - SMOOTH


@njit(cache=True, nogil=True)
def least_h(s, position):
    """Return what the h of a cold key is at least."""
    way = s.way[PATH] - s.trace[START, position]
    return s.trace[FLOOR, position] + s.way[DRIFT] - (s.trace[RADIUS, position] + 0.5 * way) * way


@njit(cache=True, nogil=True)
def wake(s, w):
    """Look at each cold key whose bound is used up. Return whether there was room for all that became hot."""
    if s.state[COLD] == 0:
        return True
    for position in range(s.state[ADMITTED]):
        if least_h(s, position) < SAFE and not weigh(s, w, position):
            s.state[TOUCHED] = 1  # so that the next call looks again
            return False
    return True


@njit(cache=True, nogil=True)
def cool(s, w):
    """Let go of the nodes that stay silent for a while, if there are many."""
    if w.counts[NODES] <= HOT or w.counts[CODE] == GRAM:
        return
    for node in range(w.counts[NODES] - 1, -1, -1):
        f = w.node[GRAD, node] + 0.5
        if w.tag[ZONE, node] == RESERVE and lay_down(s, w, s.place[POSITION, node], f, STEPS_AHEAD):
            drop_node(s, w, node)


@njit(cache=True, nogil=True)
def prune(s, w, kept):
    """Drop all but the support for good, and number the rest anew, in order; write into kept the old positions.

    Return (how many were kept, what the h of those dropped is at least).
    """
    least, size = np.inf, 0
    old = s.state[ADMITTED]
    for node in range(w.counts[NODES] - 1, -1, -1):
        if w.tag[ZONE, node] == RESERVE:
            least = min(least, w.node[GRAD, node] - w.real[OFFSET])
            drop_node(s, w, node)
    renamed = np.empty(old, np.int64)
    for position in range(old):
        first = s.place[TWIN, position]
        renamed[position] = NOWHERE
        if first == NOWHERE:
            continue
        if s.place[NODE_OF, first] == NOWHERE:
            least = min(least, least_h(s, first))  # infinite if it was hot
            continue
        renamed[position] = size
        kept[size] = position
        size += 1
    for at in range(size):
        position = kept[at]
        s.place[TWIN, at] = renamed[s.place[TWIN, position]]
        for row in (COUNT, NODE_OF):
            s.place[row, at] = s.place[row, position]
        for row in range(s.trace.shape[0]):
            s.trace[row, at] = s.trace[row, position]
        for c in range(s.keys.shape[1]):
            s.keys[at, c] = s.keys[position, c]
    for at in range(size, old):
        for c in range(s.keys.shape[1]):
            s.keys[at, c] = 0.0
    for node in range(w.counts[NODES]):
        s.place[POSITION, node] = renamed[s.place[POSITION, node]]
    for k in range(s.state[ACTIVE]):
        s.place[ACTIVE_POSITION, k] = renamed[s.place[ACTIVE_POSITION, k]]
    s.state[ADMITTED], s.state[COLD], s.state[RECORDS] = size, 0, size
    rehash(s)
    return size, least
