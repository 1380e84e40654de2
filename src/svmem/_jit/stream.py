"""A sequence of keys on its way through a working set: which are nodes of it, and which are kept cold.

Positions name keys in the order in which they came. Equal keys share the first one's node. A hot key is a node of
`Work`; a cold one is a reserve key of which `cold_tier` knows that it stays silent.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from svmem._jit import doubled
from svmem._jit.rows import GRAM, RBF, kernel_row
from svmem._jit.update import attach, detach
from svmem._jit.work import (
    ALPHA,
    BOUND,
    BOUND_RECORDS,
    CAP,
    CODE,
    GRAD,
    HALF,
    IN_MARGIN,
    MARGIN,
    MASS,
    MULT,
    NEAR,
    NODES,
    OFFSET,
    PLACE,
    RESERVE,
    SCALE,
    SIZE,
    SLOT,
    SUM_HIGH,
    SUM_LOW,
    SUM_UPDATES,
    ZONE,
)

# Places in `state`. KEPT: nodes that the last cooling left. CAREFUL is the caller's: to go by single steps alone.
ADMITTED, RECORDS, ACTIVE, TOUCHED, SOLVED, COLD, KEPT, CAREFUL = 0, 1, 2, 3, 4, 5, 6, 7
# Places in `way`; PATH and DRIFT are sums, LARGEST is the length of the longest key.
PATH, MOVED, DRIFT, NORM2, OFFSET_BEFORE, PACE, LARGEST = 0, 1, 2, 3, 4, 5, 6
# Rows of `place`. By position: first equal position, records, node, and of a cold key its anchor's position. By node:
# position. Among the active: position.
TWIN, COUNT, NODE_OF, POSITION, ACTIVE_POSITION, ANCHOR = 0, 1, 2, 3, 4, 5
# Rows of `trace`: of a cold key h_0 less that of its anchor (infinite if it is hot), its distance from the anchor, and
# the path by then; of a hot key its mass and f before the last move.
FLOOR, DISTANCE, START, MASS_BEFORE, F_BEFORE = 0, 1, 2, 3, 4

NOWHERE = -1  # a twin that is padding or gone; a node that is cold
CROWDED = 5  # said where there are more hot keys than nodes; the solver's own codes end at 4


class Stream(NamedTuple):
    """Arrays over positions (capacity t) of one sequence of keys."""

    keys: np.ndarray  # (t, d) features
    place: np.ndarray  # (6, t) int64
    trace: np.ndarray  # (5, t)
    # (d t,) features of nodes with mass, as (d, ACTIVE) without gaps: rows a power of two apart would share a few
    # places in the cache. Where `Work` holds a Gram matrix: those of all nodes, as (d, t).
    active: np.ndarray
    masses: np.ndarray  # (t,) masses of the active nodes
    thin: np.ndarray  # (d t,) float32: `active` again, for a first look at a key
    row: np.ndarray  # (t,) scratch
    thin_row: np.ndarray  # (t,) float32 scratch
    thin_key: np.ndarray  # (d,) float32 scratch
    table: np.ndarray  # int64 hash table of first positions, a power of two long
    state: np.ndarray  # int64
    way: np.ndarray  # float64


@njit(cache=True, nogil=True)
def reset(s, w):
    """Forget everything: no key was admitted."""
    for i in range(s.table.shape[0]):
        s.table[i] = NOWHERE
    for i in range(CAREFUL):
        s.state[i] = 0
    for i in range(s.way.shape[0]):
        s.way[i] = 0.0
    w.counts[NODES] = w.counts[IN_MARGIN] = w.counts[BOUND_RECORDS] = w.counts[SUM_UPDATES] = 0
    w.real[OFFSET], w.real[SIZE] = 0.0, 1.0
    for k in range(w.order.shape[1]):
        w.order[SLOT, k] = k


@njit(cache=True, nogil=True)
def first_equal(s, position):
    """Return the first admitted position with this key, which is entered into the table if it is new."""
    key, square = s.keys[position], 0.0
    mixed = np.uint64(1469598103934665603)
    for c in range(key.shape[0]):
        mixed = (mixed ^ np.float64(key[c]).view(np.uint64)) * np.uint64(1099511628211)
        mixed ^= mixed >> np.uint64(29)
        square += key[c] * key[c]
    s.way[LARGEST] = max(s.way[LARGEST], np.sqrt(square))
    mask = s.table.shape[0] - 1
    at = np.int64(mixed & np.uint64(mask))
    while s.table[at] != NOWHERE:
        other = s.keys[s.table[at]]
        same = True
        for c in range(key.shape[0]):
            if key[c] != other[c]:
                same = False
                break
        if same:
            return s.table[at]
        at = (at + 1) & mask
    s.table[at] = position
    return position


@njit(cache=True, nogil=True)
def rehash(s):
    """Fill the hash table anew."""
    for i in range(s.table.shape[0]):
        s.table[i] = NOWHERE
    for position in range(s.state[ADMITTED]):
        if s.place[TWIN, position] == position:
            first_equal(s, position)


@njit(cache=True, nogil=True)
def heat(s, w, position):
    """Make the key at a position a reserve node behind the present ones."""
    node = w.counts[NODES]
    w.node[HALF, node] = 0.5
    w.node[MULT, node] = s.place[COUNT, position]
    if w.counts[CODE] == GRAM:
        points = s.active.reshape(s.keys.shape[1], s.keys.shape[0])
        for c in range(s.keys.shape[1]):
            points[c, node] = s.keys[position, c]
        kernel_row(RBF, w.real[SCALE], s.keys[position], points, node + 1, w.xt[node])
        for k in range(node):
            w.xt[k, node] = w.xt[node, k]
        attach(w, node)
    else:
        for c in range(s.keys.shape[1]):
            w.xt[c, node] = s.keys[position, c]
        attach_to_active(s, w, node, position)
    s.place[NODE_OF, position] = node
    s.place[POSITION, node] = position
    s.trace[FLOOR, position] = np.inf
    s.trace[MASS_BEFORE, position] = 0.0
    s.trace[F_BEFORE, position] = w.node[GRAD, node] + 0.5
    if w.node[GRAD, node] - w.real[OFFSET] < NEAR:
        s.state[TOUCHED] = 1


@njit(cache=True, nogil=True)
def attach_to_active(s, w, node, position):
    """Do what `attach` does, with the kernel values of the active nodes alone."""
    size = s.state[ACTIVE]
    d = s.keys.shape[1]
    points = s.active[: d * size].reshape(d, size)
    kernel_row(w.counts[CODE], w.real[SCALE], s.keys[position], points, size, s.row)
    a, a_low, margin = 0.0, 0.0, 0.0
    for k in range(size):
        active = s.place[NODE_OF, s.place[ACTIVE_POSITION, k]]
        if w.tag[ZONE, active] == BOUND:
            p, e = doubled.two_product(w.node[MULT, active], s.row[k])
            a, a_low = doubled.add(a, a_low, p, e)
        elif w.tag[ZONE, active] == MARGIN:
            w.rows[w.order[SLOT, w.tag[PLACE, active]], node] = s.row[k]
            margin += w.node[MASS, active] * s.row[k]
    w.node[SUM_HIGH, node], w.node[SUM_LOW, node] = a, a_low
    w.node[GRAD, node] = (w.real[CAP] * a - 0.5) + margin
    w.node[MASS, node] = w.node[ALPHA, node] = 0.0
    w.tag[ZONE, node], w.tag[PLACE, node] = RESERVE, -1
    w.counts[NODES] = node + 1


@njit(cache=True, nogil=True)
def drop_node(s, w, node):
    """Take a reserve node out; the last one takes its number."""
    last = w.counts[NODES] - 1
    s.place[NODE_OF, s.place[POSITION, node]] = NOWHERE
    detach(w, node)
    if node != last:
        s.place[POSITION, node] = s.place[POSITION, last]
        s.place[NODE_OF, s.place[POSITION, node]] = node
