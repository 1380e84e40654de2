"""The optimum over each prefix of a sequence of keys, one sequence after the other."""

from typing import NamedTuple

import numpy as np
from numba import njit

from svmem._jit.admission import admit
from svmem._jit.blocks import rebuild, settle_blocks
from svmem._jit.cold import add_to_grad, forget_zones, reconcile, sum_bound
from svmem._jit.cold_tier import cool, follow, rest, wake
from svmem._jit.finish import finish
from svmem._jit.gate_output import blank, write_gate
from svmem._jit.settle import settle
from svmem._jit.smo import smo
from svmem._jit.stream import (
    ADMITTED,
    CAREFUL,
    CROWDED,
    RECORDS,
    SOLVED,
    TOUCHED,
    Stream,
    reset,
)
from svmem._jit.work import (
    AGAIN,
    CAP,
    FULL,
    GRAD,
    HALF,
    MASS,
    MULT,
    NODES,
    OFFSET,
    OK,
    SCALE,
    STALLED,
    SUM_UPDATES,
    TOTAL,
    list_in_margin,
)

ROOM = 6  # said by `run` where an output is too small; the solver's own codes end at 4
ROUNDS = 100  # of settling and finishing
COARSE, FINE = 1e-3, 1e-6  # violations at which pair selection hands over to exact steps; with care
ALL_IN = 128  # nodes that all start in the margin, since a factor of that size costs less than choosing
PAIRS_CACHE = 192  # kernel rows that pair selection keeps
STALE = 10_000  # updates after which the doubled sums over the bound are taken anew

# Places in `cursor`: sequence, boundary, support to make room for, factor written, whether it is a second attempt, and
# how long the factors of the sequence would be together.
ITEM, STEP, NEED, USED, AGAIN_COLD, LENGTH = 0, 1, 2, 3, 4, 5


class Sequences(NamedTuple):
    """What to solve: keys of n sequences, and the boundaries of the prefixes."""

    keys: np.ndarray  # (n, t, d)
    valid: np.ndarray  # (n, t) bool
    first_bad: np.ndarray  # (n,) first position that is not finite, beyond t where there is none
    scales: np.ndarray  # (n,) sigma^2
    boundaries: np.ndarray  # (B,) int64, rising


@njit(cache=True, nogil=True)
def begin(w, careful):
    """Choose masses from nothing and build the margin. Return OK, FULL or SINGULAR.

    Few nodes all start in the margin, unless with care: then pairs are exchanged until little is left to do.
    """
    n = w.counts[NODES]
    forget_zones(w)
    if n <= ALL_IN and not careful:
        if n > w.order.shape[1]:
            return FULL
        for node in range(n):
            w.node[MASS, node] = 0.0
            list_in_margin(w, node)
        return rebuild(w)
    left = w.real[TOTAL]
    nodes, masses, size = np.empty(n, np.int64), np.empty(n), 0
    for node in range(n):
        w.node[MASS, node] = 0.0
        w.node[GRAD, node] = -w.node[HALF, node]
        if left > 0.0:
            masses[size] = min(left, w.node[MULT, node] * w.real[CAP])
            nodes[size] = node
            left -= masses[size]
            size += 1
    add_to_grad(w, nodes[:size], masses[:size])
    smo(w, FINE if careful else COARSE, (100 if careful else 20) * n + 100, np.empty((max(2, min(n, PAIRS_CACHE)), n)))
    margin = 0
    for node in range(n):
        if w.node[MASS, node] > 0.0 and w.node[MASS, node] < w.node[MULT, node] * w.real[CAP]:
            margin += 1
    if margin + 8 > w.order.shape[1]:
        return FULL
    return reconcile(w)


@njit(cache=True, nogil=True)
def optimise(w, careful):
    """Return to the canonical optimum over the nodes; with care by single steps alone, which cannot go in circles."""
    code = AGAIN
    for _ in range(ROUNDS):
        limit = 1000 + 20 * w.counts[NODES]
        code = settle(w, limit) if careful else settle_blocks(w, limit)
        if code != OK:
            return code
        code, offset = finish(w)
        if code == OK:
            w.real[OFFSET] = offset + 0.0
        if code != AGAIN:
            return code
    return STALLED


@njit(cache=True, nogil=True)
def advance(s, w, valid, upto, least):
    """Bring the stream to the optimum over the keys before position `upto`, once there are `least` records.

    Return OK; FULL or CROWDED (make room in the margin or for nodes, and call again); STALLED or SINGULAR.
    """
    code = admit(s, w, valid, upto)
    if code != OK or s.state[RECORDS] < least:
        return code
    if s.state[SOLVED] == 0:
        code = begin(w, s.state[CAREFUL] == 1)
        if code != OK:
            return code
        s.state[SOLVED] = s.state[TOUCHED] = 1
    if w.counts[SUM_UPDATES] > STALE:
        sum_bound(w)
    if s.state[TOUCHED] == 0:
        rest(s)
    for _ in range(ROUNDS):
        if s.state[TOUCHED] == 0:
            cool(s, w)
            return OK
        code = optimise(w, s.state[CAREFUL] == 1)
        if code != OK:
            return code
        s.state[TOUCHED] = 0
        follow(s, w)
        if not wake(s, w):
            return CROWDED
    return STALLED


@njit(cache=True, nogil=True)
def solve_step(s, w, todo, which, k, least):
    """Bring the stream to boundary k of a sequence. Return the solver's code, OK where the keys are not finite."""
    if s.state[ADMITTED] == 0:
        reset(s, w)
        w.real[SCALE] = todo.scales[which]
    if todo.boundaries[k] > todo.first_bad[which]:
        return OK
    one = Stream(
        todo.keys[which],
        s.place,
        s.trace,
        s.active,
        s.masses,
        s.thin,
        s.row,
        s.thin_row,
        s.thin_key,
        s.table,
        s.state,
        s.way,
    )
    return advance(one, w, todo.valid[which], todo.boundaries[k], least)


@njit(cache=True, nogil=True)
def run(s, w, cursor, todo, out, least, budget):
    """Solve sequences from the cursor on, and write each gate. Return OK, FULL, CROWDED or ROOM.

    After one of the last three the caller makes room in the margin, for nodes or in `out`, and the same call goes on.
    Where that fails, the prefix is solved once more from nothing, with care. budget: numbers in the factors of a
    sequence beyond which they are not kept.
    """
    while cursor[ITEM] < todo.keys.shape[0]:
        which, k = cursor[ITEM], cursor[STEP]
        if k == todo.boundaries.shape[0]:
            cursor[ITEM], cursor[STEP], cursor[LENGTH] = which + 1, 0, 0
            s.state[ADMITTED] = 0
            continue
        s.state[CAREFUL] = cursor[AGAIN_COLD]
        code = solve_step(s, w, todo, which, k, least)
        if code in (FULL, CROWDED):
            return code
        if code != OK:
            s.state[ADMITTED] = 0
            if cursor[AGAIN_COLD] == 0:
                cursor[AGAIN_COLD] = 1
                continue
            blank(out, which, k, -1)
        elif todo.boundaries[k] > todo.first_bad[which]:
            blank(out, which, k, todo.first_bad[which])
        else:
            free = out.factor[cursor[USED] :]
            size, length = write_gate(s, w, least, out, which, k, free)
            kept = cursor[LENGTH] + length <= budget
            if size > out.position.shape[2] or (kept and length > free.shape[0]):
                cursor[NEED] = size
                return ROOM
            cursor[LENGTH] += length
            cursor[USED] += length if kept else 0
        cursor[STEP], cursor[AGAIN_COLD] = k + 1, 0
    return OK
