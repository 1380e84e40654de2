"""Knowing without looking that most keys stay silent.

A cold key x is a reserve key whose h = f - 1/2 - offset was computed once. When w moves by D to a new optimum, h(x)
changes by D . phi(x) - (change of offset). Of an anchor a, a node near x, the same change is known exactly, and
    D . phi(x) = D . phi(a) + D . (phi(x) - phi(a)) >= D . phi(a) - |D| rho,    rho = |phi(x) - phi(a)|.
So after a path of length P, the sum of the |D|, h(x) is at least  h_0(x) - h_0(a) + h(a) - rho P:  a cold key is looked
at again only when that is used up, or when its anchor is no node any more. Nearest active nodes are anchors: their own
h hardly changes. |D|^2 = sum of dm_i df_i over the nodes whose mass changed.

Of keys dropped for good `HeadMemory` knows less: there the anchor is w itself. r = |phi(x) - w| grows by |D| at most,
so h is at least  h_0 + (sum of drifts) - r_0 P - P^2 / 2  with drift = D . w - (change of offset).
"""

import numpy as np
from numba import njit

from svmem._jit.exponential import exp_neg_single
from svmem._jit.rows import GRAM, add_squares
from svmem._jit.stream import (
    ACTIVE,
    ACTIVE_POSITION,
    ADMITTED,
    ANCHOR,
    COLD,
    COUNT,
    DISTANCE,
    DRIFT,
    F_BEFORE,
    FLOOR,
    KEPT,
    LARGEST,
    MASS_BEFORE,
    MOVED,
    NODE_OF,
    NORM2,
    NOWHERE,
    OFFSET_BEFORE,
    PACE,
    PATH,
    POSITION,
    RECORDS,
    START,
    TOUCHED,
    TWIN,
    drop_node,
    heat,
    rehash,
)
from svmem._jit.work import CODE, GRAD, IN_MARGIN, MASS, MULT, NODE_AT, NODES, OFFSET, RESERVE, RIDGE, SCALE, SLOT, ZONE

SINGLE_EPS = 2.0**-24
HOT = 192  # nodes that are kept at hand in any case: fewer cost less than keeping track of cold ones
GROWN = 1.2  # how much more nodes there have to be before some are cooled again: looking at all costs a pricing
STEPS_AHEAD = 8.0  # a hot key is cooled if it stays silent through that many moves at the present pace
STEPS_AGAIN = 4.0  # a cold key that was looked at stays cold if through that many
SMOOTH = 0.2  # weight of the last move in the pace
SMALLEST_MOVE = 1e-7  # added to each length: a squared length is only known to 1e-15
SMALLEST_DISTANCE = 1e-14  # added to each squared distance from an anchor, likewise
SAFE = 1e-9  # reserve inequalities with less to spare belong to hot keys, whose ties are decided exactly


@njit(cache=True, nogil=True)
def level(s, position):
    """Return h of a hot key as of the end of the path."""
    return s.trace[F_BEFORE, position] - 0.5 - s.way[OFFSET_BEFORE]


@njit(cache=True, nogil=True)
def thin_view(s):
    """Return the active nodes' features in float32, (d, ACTIVE)."""
    d, size = s.keys.shape[1], s.state[ACTIVE]
    return s.thin[: d * size].reshape(d, size)


@njit(cache=True, nogil=True)
def look(key, thin_key, thin, scale, row):
    """Write the kernel of a key with the columns of thin (d, n) into row, in float32.

    Where coordinates are too large for float32 the values are no numbers, and the key counts as not silent.
    """
    for c in range(key.shape[0]):
        thin_key[c] = np.float32(key[c])
    for k in range(row.shape[0]):
        row[k] = np.float32(0.0)
    add_squares(thin_key, thin, 0, row)
    factor = np.float32(1.0 / scale)
    for k in range(row.shape[0]):
        row[k] = exp_neg_single(row[k] * factor)


@njit(cache=True, nogil=True)
def weigh(s, w, thin, position):
    """Look at a key that has no node: leave it cold if it stays silent for a while, else make it a node.

    thin: `thin_view`. Return whether there was room for it.
    """
    row, d, scale = s.thin_row[: thin.shape[1]], thin.shape[0], w.real[SCALE]
    look(s.keys[position], s.thin_key, thin, scale, row)
    # Of t = |x - y|^2 / sigma^2, by the sum and by the coordinates: t exp(-t) < 0.4 and 4 sqrt(t) exp(-t) < 2.
    error = SINGLE_EPS * (0.4 * (d + 8) + 2.0 * s.way[LARGEST] / np.sqrt(scale) + 16.0)
    f, near, nearest = 0.0, row[0], 0
    for k in range(row.shape[0]):
        f += s.masses[k] * row[k]
        if row[k] > near:
            near, nearest = row[k], k
    h = f - 0.5 - s.way[OFFSET_BEFORE] - error
    if lay_down(s, position, h, s.place[ACTIVE_POSITION, nearest], near - error, STEPS_AGAIN):
        return True
    if w.counts[NODES] == w.node.shape[1]:
        return False
    if s.trace[FLOOR, position] != np.inf:
        s.state[COLD] -= 1
    heat(s, w, position)
    return True


@njit(cache=True, nogil=True)
def lay_down(s, position, h, anchor, near, steps):
    """Note a reserve key's h as of now, if it should stay silent for so many moves. Return whether it does.

    anchor: position of an active node, of kernel value `near` with the key.
    """
    distance = np.sqrt(max(2.0 - 2.0 * near, 0.0) + SMALLEST_DISTANCE)
    if not h > max(steps * s.way[PACE] * distance, SAFE):
        return False
    if s.trace[FLOOR, position] == np.inf:
        s.state[COLD] += 1
    s.place[ANCHOR, position] = anchor
    s.trace[FLOOR, position] = h - level(s, anchor)
    s.trace[DISTANCE, position] = distance
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
            size += 1
    gather_active(s, size)
    s.way[NORM2] = norm2
    s.way[MOVED] = np.sqrt(max(square, 0.0)) + SMALLEST_MOVE if moved else 0.0
    s.way[PATH] += s.way[MOVED]
    s.way[PACE] += SMOOTH * (s.way[MOVED] - s.way[PACE])
    s.way[DRIFT] += turn - (w.real[OFFSET] - s.way[OFFSET_BEFORE])
    s.way[OFFSET_BEFORE] = w.real[OFFSET]


@njit(cache=True, nogil=True)
def gather_active(s, size):
    """Lay the features of the first `size` active positions out side by side."""
    s.state[ACTIVE] = size
    d = s.keys.shape[1]
    points, thin = s.active[: d * size].reshape(d, size), thin_view(s)
    for k in range(size):
        key = s.keys[s.place[ACTIVE_POSITION, k]]
        for c in range(d):
            points[c, k] = key[c]
            thin[c, k] = np.float32(key[c])


@njit(cache=True, nogil=True)
def rest(s):
    """Note that nothing has moved."""
    s.way[MOVED] = 0.0
    s.way[PACE] *= 1.0 - SMOOTH


@njit(cache=True, nogil=True)
def least_h(s, position):
    """Return what the h of a cold key is at least; of a hot key infinity."""
    if s.trace[FLOOR, position] == np.inf:
        return np.inf
    anchor = s.place[ANCHOR, position]
    if s.place[NODE_OF, anchor] == NOWHERE:
        return -np.inf
    way = s.way[PATH] - s.trace[START, position]
    return s.trace[FLOOR, position] + level(s, anchor) - s.trace[DISTANCE, position] * way


@njit(cache=True, nogil=True)
def wake(s, w):
    """Look at each cold key whose bound is used up. Return whether there was room for all that became hot."""
    if s.state[COLD] == 0:
        return True
    thin = thin_view(s)
    for position in range(s.state[ADMITTED]):
        if least_h(s, position) < SAFE and not weigh(s, w, thin, position):
            s.state[TOUCHED] = 1  # so that the next call looks again
            return False
    return True


@njit(cache=True, nogil=True)
def cool(s, w):
    """Let go of the nodes that stay silent for a while, if there are many, and more than when this was done last."""
    n, margin = w.counts[NODES], w.counts[IN_MARGIN]
    if n <= max(HOT, int(s.state[KEPT] * GROWN)) or margin == 0 or w.counts[CODE] == GRAM:
        return
    near, nearest = np.zeros(n), np.zeros(n, np.int64)
    for k in range(margin):
        row, position = w.rows[w.order[SLOT, k]], s.place[POSITION, w.order[NODE_AT, k]]
        for node in range(n):
            if row[node] > near[node]:
                near[node], nearest[node] = row[node], position
    for node in range(n - 1, -1, -1):
        if w.tag[ZONE, node] == RESERVE and near[node] > 0.0:
            position = s.place[POSITION, node]
            if lay_down(s, position, level(s, position), nearest[node], near[node], STEPS_AHEAD):
                drop_node(s, w, node)
    s.state[KEPT] = w.counts[NODES]


@njit(cache=True, nogil=True)
def prune(s, w, kept):
    """Drop all but the support for good, and number the rest anew, in order; write into kept the old positions.

    Return (how many were kept, what the h of those dropped is at least).
    """
    least, size = np.inf, 0
    old = s.state[ADMITTED]
    for position in range(old):
        least = min(least, least_h(s, position))  # of cold keys, while their anchors are at hand
    for node in range(w.counts[NODES] - 1, -1, -1):
        if w.tag[ZONE, node] == RESERVE:
            least = min(least, w.node[GRAD, node] - w.real[OFFSET])
            drop_node(s, w, node)
    renamed = np.empty(old, np.int64)
    for position in range(old):
        first = s.place[TWIN, position]
        renamed[position] = NOWHERE
        if first == NOWHERE or s.place[NODE_OF, first] == NOWHERE:
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
