"""Fast steps towards the optimum after many changes: whole blocks of nodes enter or leave the margin at once.

Each round goes straight to the optimum on the margin; every node that this takes beyond a bound is put on that bound,
and where there is none, the worst violators outside enter together. This primal-dual active set method usually needs
a few rounds where single steps need one for each node, but nothing keeps it from going in circles. So it gets a number
of rounds, and `settle`, which cannot go in circles, finishes from wherever it has come. [HintermullerItoKunisch2003]
"""

import numpy as np
from numba import njit

from svmem._jit.factor import copy, factorise
from svmem._jit.settle import PRICE_TOLERANCE, extremes, free_mass, price, settle, solve_margin
from svmem._jit.work import (
    BOUND,
    BOUND_RECORDS,
    CAP,
    FULL,
    GRAD,
    IN_MARGIN,
    MARGIN,
    MASS,
    MULT,
    NODE_AT,
    NODES,
    OFFSET,
    OK,
    PLACE,
    RESERVE,
    RIDGE,
    SINGULAR,
    SIZE,
    SLOT,
    TARGET,
    ZONE,
    add_to_sums,
    enter_margin,
    leave_margin,
    list_in_margin,
    refactor,
)

BLOCK_ROUNDS = 40
ROUNDING = 1e-10  # of a cap: masses so near to a bound may as well lie on it, since single steps come next
MOST = 64  # nodes that may enter at once
SPARE = 8  # nor more than this beyond those in the margin: one that has shrunk puts its offset anywhere
FEW = 8  # changes of fewer nodes than this part of the margin are made one by one, since a new factor costs more
SHARE = 0.1  # of the worst violation: nodes that break their inequality by less wait for the next pricing


@njit(cache=True, nogil=True)
def violation(w, node):
    """Return by how much a node outside the margin breaks its inequality; negative where it holds."""
    if w.tag[ZONE, node] == RESERVE:
        return w.real[OFFSET] - w.node[GRAD, node]
    if w.tag[ZONE, node] == BOUND:
        return w.node[GRAD, node] - w.real[OFFSET]
    return -1.0


@njit(cache=True, nogil=True)
def rebuild(w):
    """Factorise the margin's matrix from nothing. Return OK or SINGULAR."""
    s = w.counts[IN_MARGIN]
    ridge = w.real[RIDGE]
    floor = ridge
    for i in range(s):
        copy(w.chol[i, i:s], w.gram[i, i:s])
        own = ridge / w.node[MULT, w.order[NODE_AT, i]]
        w.chol[i, i] += own
        floor = min(floor, own)
    return OK if factorise(w.chol, s, 0.5 * floor) or refactor(w) else SINGULAR


@njit(cache=True, nogil=True)
def enter_block(w):
    """Move the nodes that break their inequalities most into the margin. Return how many, or minus a failure code."""
    worst, count = 0.0, 0
    for node in range(w.counts[NODES]):
        worst = max(worst, violation(w, node))
    if worst <= PRICE_TOLERANCE * w.real[SIZE]:
        return 0
    for node in range(w.counts[NODES]):
        count += 1 if violation(w, node) >= SHARE * worst else 0
    most = min(MOST, w.counts[IN_MARGIN] + SPARE)
    share = SHARE if count <= most else 0.5  # too many for once: the worst first
    if w.counts[IN_MARGIN] + min(count, most) > w.order.shape[1]:
        return -FULL
    whole = FEW * count > w.counts[IN_MARGIN]
    entered = 0
    for node in range(w.counts[NODES]):
        if entered < most and violation(w, node) >= share * worst:
            entered += 1
            if whole:
                list_in_margin(w, node)
            elif enter_margin(w, node) != OK:
                return -SINGULAR
    return entered if not whole or rebuild(w) == OK else -SINGULAR


@njit(cache=True, nogil=True)
def exit_of(w, position):
    """Return where the target of a margin node leads: out to the reserve or the bound, or nowhere (MARGIN)."""
    target = w.small[TARGET, position]
    if target < 0.0:
        return RESERVE
    node = w.order[NODE_AT, position]
    return BOUND if target > w.node[MULT, node] * w.real[CAP] else MARGIN


@njit(cache=True, nogil=True)
def leave_block(w):
    """Move every margin node to its target, or out to the bound beyond which that lies. Return how many left, or -1.

    -1: the factor of those that stay could not be had.
    """
    left = 0
    for position in range(w.counts[IN_MARGIN]):
        if exit_of(w, position) != MARGIN:
            left += 1
    whole = FEW * left > w.counts[IN_MARGIN]
    for position in range(w.counts[IN_MARGIN] - 1, -1, -1):
        zone = exit_of(w, position)
        if zone == MARGIN:
            w.node[MASS, w.order[NODE_AT, position]] = w.small[TARGET, position]
        elif not whole:
            leave_margin(w, position, zone)  # targets behind it are no longer needed
    if not whole:
        return left
    keep_the_rest(w)
    return left if rebuild(w) == OK else -1


@njit(cache=True, nogil=True)
def keep_the_rest(w):
    """Take all nodes that leave out of the margin's lists, all but its factor."""
    s = w.counts[IN_MARGIN]
    stay, freed = np.empty(s, np.int64), np.empty(s, np.int64)
    size, out = 0, 0
    for position in range(s):
        node, zone = w.order[NODE_AT, position], exit_of(w, position)
        if zone == MARGIN:
            stay[size] = position
            size += 1
            continue
        freed[out] = w.order[SLOT, position]
        w.tag[ZONE, node], w.tag[PLACE, node] = zone, -1
        w.node[MASS, node] = 0.0
        if zone == BOUND:
            w.node[MASS, node] = w.node[MULT, node] * w.real[CAP]
            add_to_sums(w, w.rows[freed[out]], w.node[MULT, node])
            w.counts[BOUND_RECORDS] += np.int64(w.node[MULT, node])
        out += 1
    for i in range(size):
        for j in range(size):
            w.gram[i, j] = w.gram[stay[i], stay[j]]
        w.order[NODE_AT, i] = w.order[NODE_AT, stay[i]]
        w.order[SLOT, i] = w.order[SLOT, stay[i]]
        w.tag[PLACE, w.order[NODE_AT, i]] = i
    for i in range(out):
        w.order[SLOT, size + i] = freed[i]
    w.counts[IN_MARGIN] = size


@njit(cache=True, nogil=True)
def restore(w):
    """Let bound nodes back into the margin, of largest f first, while the caps use up more than the total.

    Return OK, FULL or SINGULAR.
    """
    free, _ = free_mass(w)
    if free < 0.0:
        price(w)
    while free < 0.0:
        _, highest = extremes(w)
        code = enter_margin(w, highest)
        if code != OK:
            return code
        free, _ = free_mass(w)
    return OK


@njit(cache=True, nogil=True)
def put_on_bounds(w):
    """Let margin nodes go whose mass lies within rounding of a bound: between them the rounds can go in circles."""
    for position in range(w.counts[IN_MARGIN] - 1, -1, -1):
        node = w.order[NODE_AT, position]
        cap = w.node[MULT, node] * w.real[CAP]
        if w.node[MASS, node] >= cap * (1.0 - ROUNDING):
            leave_margin(w, position, BOUND)
        elif w.node[MASS, node] <= cap * ROUNDING:
            leave_margin(w, position, RESERVE)


@njit(cache=True, nogil=True)
def settle_blocks(w, limit):
    """Step and price until no inequality is broken by more than rounding. Return OK, FULL, STALLED or SINGULAR."""
    for _ in range(BLOCK_ROUNDS):
        code = restore(w)
        if code != OK:
            return code
        if w.counts[IN_MARGIN] == 0:
            break
        solve_margin(w)
        left = leave_block(w)
        if left < 0:
            return SINGULAR
        if left > 0:
            continue
        price(w)
        entered = enter_block(w)
        if entered == 0:
            return OK
        if entered < 0:
            return -entered
    put_on_bounds(w)
    code = restore(w)
    return settle(w, limit) if code == OK else code
