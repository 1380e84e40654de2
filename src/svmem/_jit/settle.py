"""Exact active-set steps in float64: from any masses within their caps to the optimum, up to rounding.

The masses may sum to less than the total, as after a removal: each step heads for the optimum on the margin that
restores the sum, and is cut at the first node that reaches zero or its cap. [CauwenberghsPoggio2000]
"""

import numpy as np
from numba import njit

from svmem._jit import doubled
from svmem._jit.factor import add_multiple, solve_lower, solve_pair, solve_upper, total
from svmem._jit.work import (
    BOUND,
    BOUND_RECORDS,
    CAP,
    FULL,
    GRAD,
    HALF,
    IN_MARGIN,
    MASS,
    MULT,
    NODE_AT,
    NODES,
    OFFSET,
    OK,
    ONES,
    RESERVE,
    RIDGE,
    SIZE,
    SLOT,
    STALLED,
    SUM_HIGH,
    TARGET,
    TOTAL,
    TOTAL_LOW,
    ZONE,
    enter_margin,
    leave_margin,
)

# Violations above this, relative to the largest kernel value, are settled here; smaller ones in doubled arithmetic.
PRICE_TOLERANCE = 1e-12
BEYOND = 1.0 + 2.0**-50  # a cap is a rounded product; whether a mass this near it has reached it, `finish` decides
CANCELLATIONS, HARMLESS = 4, 1e4  # how often a solution is corrected, and by what factor its parts may cancel


@njit(cache=True, nogil=True)
def free_mass(w):
    """Return the doubled mass that the bound set leaves to the margin: exactly zero where the caps use up the total."""
    p, e = doubled.two_product(w.real[CAP], np.float64(w.counts[BOUND_RECORDS]))
    return doubled.add(w.real[TOTAL], w.real[TOTAL_LOW], -p, -e)


@njit(cache=True, nogil=True)
def solve_margin(w):
    """Write the masses that are optimal on the margin into small[TARGET] and their offset into real[OFFSET].

    Solves (K + ridge) x - offset 1 = b, sum x = free mass, b = diag(K)/2 - C sum over the bound set. The last offset
    is added to b beforehand: where (K + ridge)^-1 1 is huge, as for keys around their centre under a linear kernel, the
    two parts of x would cancel otherwise. Where they still do, the better offset is used once more.
    """
    s = w.counts[IN_MARGIN]
    x, ones = w.small[TARGET, :s], w.small[ONES, :s]
    free, _ = free_mass(w)
    for attempt in range(CANCELLATIONS):
        for k in range(s):
            node = w.order[NODE_AT, k]
            x[k] = w.node[HALF, node] - w.real[CAP] * w.node[SUM_HIGH, node] + w.real[OFFSET]
        if attempt == 0:
            for k in range(s):
                ones[k] = 1.0
            solve_pair(w.chol, s, x, ones)
        else:
            solve_lower(w.chol, s, x)
            solve_upper(w.chol, s, x)
        offset = (free - total(x)) / total(ones)
        add_multiple(x, offset, ones)
        w.real[OFFSET] += offset
        if abs(offset) * largest(ones) <= HARMLESS * largest(x):
            return


@njit(cache=True, nogil=True)
def largest(x):
    """Return the largest absolute value."""
    out = 0.0
    for k in range(x.shape[0]):
        out = max(out, abs(x[k]))
    return out


@njit(cache=True, nogil=True)
def step(w):
    """Go to the optimum on the margin, or to the first bound on the way. Return whether it got there."""
    s = w.counts[IN_MARGIN]
    target = w.small[TARGET]
    length, blocking, zone = 1.0, -1, RESERVE
    for k in range(s):
        node = w.order[NODE_AT, k]
        mass, cap = w.node[MASS, node], w.node[MULT, node] * w.real[CAP]
        way = target[k] - mass
        if target[k] < 0.0 and way < 0.0 and mass < -way * length:
            length, blocking, zone = mass / -way, k, RESERVE
        elif target[k] > cap * BEYOND and way > 0.0 and cap - mass < way * length:
            length, blocking, zone = (cap - mass) / way, k, BOUND
    for k in range(s):
        node = w.order[NODE_AT, k]
        mass = target[k]
        if blocking >= 0:
            mass = min(
                max(w.node[MASS, node] + length * (mass - w.node[MASS, node]), 0.0), w.node[MULT, node] * w.real[CAP]
            )
        w.node[MASS, node] = mass
    if blocking >= 0:
        leave_margin(w, blocking, zone)
    return blocking < 0


@njit(cache=True, nogil=True)
def margin_row(w, position):
    """Return the kernel row of a margin node."""
    return w.rows[w.order[SLOT, position], : w.counts[NODES]]


@njit(cache=True, nogil=True)
def margin_mass(w, position):
    """Return the mass of a margin node."""
    return w.node[MASS, w.order[NODE_AT, position]]


@njit(cache=True, nogil=True)
def price(w):
    """Write f + ridge alpha - kappa(x, x)/2 of every node into grad."""
    n = w.counts[NODES]
    grad = w.node[GRAD, :n]
    high = w.node[SUM_HIGH, :n]
    half = w.node[HALF, :n]
    cap = w.real[CAP]
    for i in range(n):
        grad[i] = cap * high[i] - half[i]
    s = w.counts[IN_MARGIN]
    whole = s - s % 4
    for k in range(0, whole, 4):  # four rows a pass, since loading and storing grad takes most of the time
        a, b, c, d = margin_row(w, k), margin_row(w, k + 1), margin_row(w, k + 2), margin_row(w, k + 3)
        p, q, r, t = margin_mass(w, k), margin_mass(w, k + 1), margin_mass(w, k + 2), margin_mass(w, k + 3)
        for i in range(n):
            grad[i] += (p * a[i] + q * b[i]) + (r * c[i] + t * d[i])
    for k in range(whole, s):
        add_multiple(grad, margin_mass(w, k), margin_row(w, k))
    for i in range(n):
        grad[i] += w.real[RIDGE] * (w.node[MASS, i] / w.node[MULT, i])


@njit(cache=True, nogil=True)
def extremes(w):
    """Return the reserve node of smallest and the bound node of largest grad, -1 where there is none."""
    lowest, highest = -1, -1
    for i in range(w.counts[NODES]):
        if w.tag[ZONE, i] == RESERVE:
            if lowest < 0 or w.node[GRAD, i] < w.node[GRAD, lowest]:
                lowest = i
        elif w.tag[ZONE, i] == BOUND and (highest < 0 or w.node[GRAD, i] > w.node[GRAD, highest]):
            highest = i
    return lowest, highest


@njit(cache=True, nogil=True)
def enter_worst(w):
    """Move the node that breaks its inequality most into the margin. Return how many moved, or minus a failure code.

    One at a time: where margins are small, an offset on its way can leave thousands in breach that need not move.
    """
    lowest, highest = extremes(w)
    tolerance = PRICE_TOLERANCE * w.real[SIZE]
    if w.counts[IN_MARGIN] == 0:  # the sum can only be kept by a pair
        if lowest < 0 or highest < 0 or w.node[GRAD, highest] - w.node[GRAD, lowest] <= tolerance:
            return 0
        if w.order.shape[1] < 2:
            return -FULL
        code = max(enter_margin(w, highest), enter_margin(w, lowest))
        return 2 if code == OK else -code
    below = w.real[OFFSET] - w.node[GRAD, lowest] if lowest >= 0 else 0.0
    above = w.node[GRAD, highest] - w.real[OFFSET] if highest >= 0 else 0.0
    if max(below, above) <= tolerance:
        return 0
    code = enter_margin(w, lowest if below >= above else highest)
    return 1 if code == OK else -code


@njit(cache=True, nogil=True)
def settle(w, limit):
    """Step and price until no inequality is broken by more than rounding. Return OK, FULL, STALLED or SINGULAR."""
    for _ in range(limit):
        if w.counts[IN_MARGIN] > 0:
            solve_margin(w)
            if not step(w):
                continue
            price(w)
        else:
            price(w)
            free, _ = free_mass(w)
            if free > 0.0:  # mass is left over: the reserve node that gains most takes it up
                lowest, _ = extremes(w)
                code = enter_margin(w, lowest) if lowest >= 0 else STALLED
                if code != OK:
                    return code
                continue
        entered = enter_worst(w)
        if entered <= 0:
            return -entered
    return STALLED
