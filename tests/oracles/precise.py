"""Fifty-digit optimum for up to about fifty keys: a float guess of the partition, then exact active-set steps."""

from typing import Any

import numpy as np

from tests.oracles.exact import (
    ZERO,
    Matrix,
    Number,
    Optimum,
    classify,
    collecting,
    ctx,
    gram_matrix,
    number,
    solve_many,
)
from tests.oracles.quadratic import quadratic
from tests.oracles.setting import Setting, fewest, total

__all__ = ["precise"]

_GUESS = 1e-4  # coefficients of the guess within this share of the cap from 0 or C start at that end
_MOST_STEPS = 2000


def precise(keys: Any, setting: Setting) -> Optimum:
    """Return the optimum by a primal active-set method in 90-digit arithmetic.

    The guess only shortens the way: every step keeps the point feasible, lowers the objective or changes the working
    set, and the end is checked against all conditions. Raises ValueError if the steps run out.
    """
    gram = gram_matrix(keys, setting)
    if len(gram) < fewest(setting.C):
        return collecting(gram, setting)
    alpha, free = _start(keys, gram, setting)
    for step in range(_MOST_STEPS):
        target, offset = _stationary(alpha, free, gram, setting)
        length, stop = _first_wall(alpha, target, free, number(setting.C))
        alpha = [a + length * (t - a) for a, t in zip(alpha, target, strict=True)]
        if stop is not None:
            free.remove(stop)
            alpha[stop] = ctx.zero if target[stop] < 0 else number(setting.C)
            continue
        entering = _violating(alpha, free, offset, gram, setting, by_index=step > _MOST_STEPS // 2)
        if not entering:
            return classify(alpha, gram, setting)
        free |= set(entering)
    raise ValueError(f"no optimum after {_MOST_STEPS} active-set steps")


def _start(keys: Any, gram: Matrix, setting: Setting) -> tuple[list[Number], set[int]]:
    """Return a feasible point near a float solution, and the set of its coefficients strictly between the ends."""
    cap, whole = number(setting.C), number(total(setting.C))
    try:
        guess = quadratic(keys, setting) / setting.C
    except (ValueError, ArithmeticError):  # no float solver copes: start from a corner
        guess = np.zeros(len(gram))
    order = sorted(range(len(gram)), key=lambda i: -guess[i])
    alpha = [ctx.zero] * len(gram)
    rounded = [cap if g > 1 - _GUESS else number(g) * cap if g > _GUESS else ctx.zero for g in guess]
    left = whole
    for i in order:  # largest first, never more than is left
        alpha[i] = min(rounded[i], left)
        left -= alpha[i]
    for i in order:  # whatever rounding left over
        more = min(cap - alpha[i], left)
        alpha[i] += more
        left -= more
    return alpha, {i for i, a in enumerate(alpha) if ZERO < a < cap - ZERO}


def _stationary(
    alpha: list[Number], free: set[int], gram: Matrix, setting: Setting
) -> tuple[list[Number], Number | None]:
    """Return the point with the same fixed coefficients that is stationary on the free ones, and its multiplier."""
    if not free:
        return alpha, None
    inside, ridge = sorted(free), number(setting.ridge)
    fixed = [(j, a) for j, a in enumerate(alpha) if j not in free and a != 0]
    block = [[gram[i][j] + (ridge if i == j else 0) for j in inside] for i in inside]
    side = [gram[i][i] / 2 - ctx.fsum(gram[i][j] * a for j, a in fixed) for i in inside]
    base, ones = solve_many(block, [side, [ctx.one] * len(inside)])
    offset = (number(total(setting.C)) - ctx.fsum(a for _, a in fixed) - ctx.fsum(base)) / ctx.fsum(ones)
    target = list(alpha)
    for i, b, u in zip(inside, base, ones, strict=True):
        target[i] = b + offset * u
    return target, offset


def _first_wall(alpha: list[Number], target: list[Number], free: set[int], cap: Number) -> tuple[Number, int | None]:
    """Return how far along the way to the target all stay in the box, and the coefficient that stops it, if any."""
    length, stop = ctx.one, None
    for i in sorted(free):
        if -ZERO <= target[i] <= cap + ZERO:
            continue
        wall = ctx.zero if target[i] < 0 else cap
        reach = (wall - alpha[i]) / (target[i] - alpha[i])
        if reach < length:
            length, stop = max(reach, ctx.zero), i
    return length, stop


def _violating(
    alpha: list[Number], free: set[int], offset: Number | None, gram: Matrix, setting: Setting, *, by_index: bool
) -> list[int]:
    """Return what has to become free: the worst fixed coefficient, a pair where none is free, nothing at the optimum.

    `by_index` takes the first instead of the worst (Bland), which cannot go round in a circle.
    """
    ridge, cap = number(setting.ridge), number(setting.C)
    slopes = {
        i: ctx.fdot(gram[i], alpha) + ridge * alpha[i] - gram[i][i] / 2 for i in range(len(alpha)) if i not in free
    }
    scale = ZERO * max([ctx.one, *(abs(row[i]) for i, row in enumerate(gram))])
    low = [i for i in slopes if alpha[i] < cap / 2]
    high = [i for i in slopes if alpha[i] >= cap / 2]
    if offset is None:
        if not low or not high:
            return []
        up, down = min(low, key=lambda i: slopes[i]), max(high, key=lambda i: slopes[i])
        return [up, down] if slopes[up] < slopes[down] - scale else []
    worst = {i: offset - slopes[i] for i in low} | {i: slopes[i] - offset for i in high}
    bad = [i for i, v in worst.items() if v > scale]
    return [min(bad) if by_index else max(bad, key=lambda i: worst[i])] if bad else []
