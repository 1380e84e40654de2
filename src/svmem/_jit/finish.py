"""From an optimum up to rounding to the canonical state: exact decisions at ties, refined and rounded coefficients.

The optimum is unique, so the partition {0 < alpha < C}, {alpha = C}, {alpha = 0} is too. A margin node whose value
rounds to 0 or C belongs to the reserve or the bound; a node outside that would get a coefficient off its bound belongs
to the margin. Both are decided with doubled arithmetic, far below the rounding of float64, until nothing changes.
"""

import math

import numpy as np
from numba import njit

from svmem._jit import doubled
from svmem._jit.canonical import solve_canonically
from svmem._jit.factor import dot, solve_lower, total
from svmem._jit.refine import GRID, refine, round_doubled
from svmem._jit.settle import free_mass, price, solve_margin, step
from svmem._jit.work import (
    AGAIN,
    ALPHA,
    BOUND,
    CAP,
    FULL,
    GRAD,
    HALF,
    HALF_STEP,
    HIGH,
    IN_MARGIN,
    LOW,
    MARGIN,
    MASS,
    MULT,
    NEAR,
    NODE_AT,
    NODES,
    OFFSET,
    OFFSET_LOW,
    OK,
    ONES,
    RESERVE,
    RIDGE,
    SINGULAR,
    SIZE,
    SLOT,
    STALLED,
    SUM_HIGH,
    SUM_LOW,
    TARGET,
    TEMP,
    ZONE,
    enter_margin,
    leave_margin,
    node_row,
)

REPRICE = 1e-13  # masses that refinement moved by more are priced again, before inequalities are judged
LIMIT = 200  # changes of the partition at ties before the solver gives up


@njit(cache=True, nogil=True)
def slack(w, node):
    """Return the doubled f + ridge alpha - kappa/2 outside the margin, less the offset if a margin is there."""
    a, a_low = doubled.multiply(w.node[SUM_HIGH, node], w.node[SUM_LOW, node], w.real[CAP], 0.0)
    a, a_low = doubled.add(a, a_low, -w.node[HALF, node], 0.0)
    p, e = doubled.two_product(w.real[RIDGE] / w.node[MULT, node], w.node[MASS, node])
    a, a_low = doubled.add(a, a_low, p, e)
    s = w.counts[IN_MARGIN]
    if s == 0:
        return a, a_low
    for k in range(s):
        p, e = doubled.multiply(w.small[HIGH, k], w.small[LOW, k], w.rows[w.order[SLOT, k], node], 0.0)
        a, a_low = doubled.add(a, a_low, p, e)
    return doubled.add(a, a_low, -w.real[OFFSET], -w.real[OFFSET_LOW])


@njit(cache=True, nogil=True)
def curvature(w, node):
    """Return the second derivative of half the objective in a node's mass, the margin keeping to its optimum."""
    s = w.counts[IN_MARGIN]
    column = w.small[TEMP]
    drift = 1.0
    for k in range(s):
        column[k] = w.rows[w.order[SLOT, k], node]
        drift -= column[k] * w.small[ONES, k]
    solve_lower(w.chol, s, column)
    pivot = 2.0 * w.node[HALF, node] + w.real[RIDGE] / w.node[MULT, node] - dot(column[:s], column[:s])
    return max(pivot, w.real[RIDGE] / w.node[MULT, node]) + drift * drift / total(w.small[ONES, :s])


@njit(cache=True, nogil=True)
def leaves_its_bound(w, zone, move):
    """Return whether a coefficient that moves this far off 0 (reserve) or off C (bound) belongs to the margin."""
    return move > (0.5 * GRID if zone == RESERVE else w.real[HALF_STEP])


@njit(cache=True, nogil=True)
def worst_outside(w):
    """Return the node outside the margin whose coefficient would move farthest off its bound, -1 if none visibly."""
    worst, node = 0.0, -1
    near = NEAR * w.real[SIZE]
    for i in range(w.counts[NODES]):
        sign = 1.0 if w.tag[ZONE, i] == RESERVE else -1.0
        if w.tag[ZONE, i] != MARGIN and sign * (w.node[GRAD, i] - w.real[OFFSET]) < near:
            h, _ = slack(w, i)
            if sign * h < 0.0:
                move = -sign * h / (curvature(w, i) * w.node[MULT, i])
                if move > worst and leaves_its_bound(w, w.tag[ZONE, i], move):
                    worst, node = move, i
    return node


@njit(cache=True, nogil=True)
def without_margin(w):
    """Set the offset of an empty margin; return the pair (reserve, bound) that should exchange mass, or (-1, -1)."""
    lowest, low, low_rest = -1, math.inf, 0.0
    highest, high, high_rest = -1, -math.inf, 0.0
    for i in range(w.counts[NODES]):
        a, b = slack(w, i)
        if w.tag[ZONE, i] == RESERVE and (a < low or (a == low and b < low_rest)):
            lowest, low, low_rest = i, a, b
        elif w.tag[ZONE, i] == BOUND and (a > high or (a == high and b > high_rest)):
            highest, high, high_rest = i, a, b
    w.real[OFFSET], w.real[OFFSET_LOW] = high, high_rest
    if lowest < 0:
        return -1, -1
    gain, _ = doubled.add(high, high_rest, -low, -low_rest)
    if not gain > 0.0:
        return -1, -1
    row = np.empty(w.counts[NODES])
    node_row(w, lowest, row)
    bend = 2.0 * (w.node[HALF, lowest] + w.node[HALF, highest] - row[highest])
    bend += w.real[RIDGE] * (1.0 / w.node[MULT, lowest] + 1.0 / w.node[MULT, highest])
    move = gain / bend
    visible = leaves_its_bound(w, RESERVE, move / w.node[MULT, lowest]) or leaves_its_bound(
        w, BOUND, move / w.node[MULT, highest]
    )
    return (lowest, highest) if visible else (-1, -1)


@njit(cache=True, nogil=True)
def per_record(w, position):
    """Return the doubled coefficient of one record of the margin node at a position."""
    mult = w.node[MULT, w.order[NODE_AT, position]]
    if mult == 1.0:
        return w.small[HIGH, position], w.small[LOW, position]
    return doubled.divide(w.small[HIGH, position], w.small[LOW, position], mult, 0.0)


@njit(cache=True, nogil=True)
def snap(w):
    """Move the margin node whose coefficient lies farthest beyond 0 or C, or would round to it, out. Return whether."""
    cap = w.real[CAP]
    worst, position, zone = 0.0, -1, RESERVE
    for k in range(w.counts[IN_MARGIN]):
        a, a_low = per_record(w, k)
        below = 0.5 * GRID - a
        above = w.real[HALF_STEP] + ((a - cap) + a_low)
        if below >= 0.0 and (position < 0 or below > worst):
            worst, position, zone = below, k, RESERVE
        elif above >= 0.0 and (position < 0 or above > worst):
            worst, position, zone = above, k, BOUND
    if position >= 0:
        leave_margin(w, position, zone)
    return position >= 0


@njit(cache=True, nogil=True)
def write_alpha(w, error):
    """Write the rounded coefficients of all nodes and return the rounded offset and whether every rounding is sure."""
    alpha = w.node[ALPHA]
    for i in range(w.counts[NODES]):
        alpha[i] = w.real[CAP] if w.tag[ZONE, i] == BOUND else 0.0
    offset, certain = round_doubled(w.real[OFFSET], w.real[OFFSET_LOW], error)
    for k in range(w.counts[IN_MARGIN]):
        node = w.order[NODE_AT, k]
        a, a_low = per_record(w, k)
        alpha[node], sure = round_doubled(a, a_low, error)
        certain = certain and sure
        w.node[MASS, node] = alpha[node] * w.node[MULT, node]
    return offset, certain


@njit(cache=True, nogil=True)
def refined(w):
    """Find the doubled masses of the margin. Return their error: 0 from the canonical order, infinity if singular."""
    error = refine(w)
    if error < GRID / 64:  # otherwise ties could not be told, and hardly a rounding would be sure
        return error
    return 0.0 if solve_canonically(w) else math.inf


@njit(cache=True, nogil=True)
def step_refined(w):
    """Step to the refined masses. Return (arrived, whether a mass moved too far for the last pricing to hold)."""
    far = False
    for k in range(w.counts[IN_MARGIN]):
        w.small[TARGET, k] = w.small[HIGH, k]
        far = far or abs(w.small[HIGH, k] - w.node[MASS, w.order[NODE_AT, k]]) > REPRICE
    return step(w), far


@njit(cache=True, nogil=True)
def finish_margin(w, changed):
    """Refine, step and snap. Return (code, error, node outside the margin that should enter or -1); AGAIN: not done."""
    if changed:
        solve_margin(w)
    error = refined(w)
    if error == math.inf:
        return SINGULAR, error, -1
    arrived, far = step_refined(w)
    if not arrived:
        return AGAIN, error, -1
    if changed or far:
        price(w)
    if snap(w):
        return AGAIN, error, -1
    return OK, error, worst_outside(w)


@njit(cache=True, nogil=True)
def finish(w):
    """Bring a settled working set to its canonical state. Return (code, offset); AGAIN: settle once more."""
    changed = False
    for _ in range(LIMIT):
        error, second = 0.0, -1
        if w.counts[IN_MARGIN] > 0:
            code, error, first = finish_margin(w, changed)
            if code == AGAIN:
                changed = True
                continue
            if code != OK:
                return code, 0.0
        else:
            free, _ = free_mass(w)
            if abs(free) > GRID:  # the margin ran empty with mass left over
                return AGAIN, 0.0
            first, second = without_margin(w)
        if first < 0:
            offset, certain = write_alpha(w, error)
            if not certain and w.counts[IN_MARGIN] > 0:
                if not solve_canonically(w):
                    return SINGULAR, 0.0
                offset, _ = write_alpha(w, 0.0)
            return OK, offset
        changed = True
        if w.counts[IN_MARGIN] + 2 > w.order.shape[1]:
            return FULL, 0.0
        code = enter_margin(w, first)
        if second >= 0:
            code = max(code, enter_margin(w, second))
        if code != OK:
            return code, 0.0
    return STALLED, 0.0
