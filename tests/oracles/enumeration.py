"""Every partition into margin, bound and reserve, tried in turn, for at most ten keys."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

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
from tests.oracles.setting import Setting, fewest, total

__all__ = ["enumerate_optimum"]

MOST_KEYS = 10


def enumerate_optimum(keys: Any, setting: Setting) -> Optimum:
    """Return the optimum as the one partition whose stationary point meets all conditions.

    The ridge makes the problem strictly convex, so whichever partition passes first is the optimum; where several
    pass (a coefficient of exactly 0 or C, or a tie), they hold the same point.
    """
    gram = gram_matrix(keys, setting)
    n = len(gram)
    if not 1 <= n <= MOST_KEYS:
        raise ValueError(f"enumeration is for 1 to {MOST_KEYS} keys, got {n}")
    if n < fewest(setting.C):
        return collecting(gram, setting)
    for alpha in _stationary_points(gram, setting):
        try:
            return classify(alpha, gram, setting)
        except ValueError:
            continue
    raise ValueError("no partition meets the conditions")


def _stationary_points(gram: Matrix, setting: Setting) -> Iterator[list[Number]]:
    """Yield the stationary point of every partition where it lies in the box."""
    everyone = range(len(gram))
    for size in range(len(gram) + 1):
        for margin in combinations(everyone, size):
            yield from _points_with_margin(margin, gram, setting)


def _points_with_margin(margin: tuple[int, ...], gram: Matrix, setting: Setting) -> Iterator[list[Number]]:
    """Yield, for one margin and each bound set, the point that solves the equations, if it lies in the box.

    On the margin (K + ridge I) a = diag/2 + offset - C sum of bound columns, linear in the offset and in the columns:
    one factorisation serves every bound set.
    """
    cap, whole = number(setting.C), number(total(setting.C))
    rest = [i for i in range(len(gram)) if i not in margin]
    half, ones, *columns = _parts(margin, rest, gram, setting)
    for size in range(len(rest) + 1):
        left = whole - size * cap
        if not -ZERO <= left <= len(margin) * cap + ZERO:
            continue
        for chosen in combinations(range(len(rest)), size):
            base = [a - cap * ctx.fsum(columns[c][k] for c in chosen) for k, a in enumerate(half)]
            offset = (left - ctx.fsum(base)) / ctx.fsum(ones) if margin else ctx.zero
            inner = [b + offset * u for b, u in zip(base, ones, strict=True)]
            if all(-ZERO <= a <= cap + ZERO for a in inner):
                alpha = [ctx.zero] * len(gram)
                for i, a in zip(margin, inner, strict=True):
                    alpha[i] = a
                for c in chosen:
                    alpha[rest[c]] = cap
                yield alpha


def _parts(margin: tuple[int, ...], rest: list[int], gram: Matrix, setting: Setting) -> Matrix:
    """Return the inverse of the margin block applied to diag/2, to the ones and to each column outside the margin."""
    ridge = number(setting.ridge)
    block = [[gram[i][j] + (ridge if i == j else 0) for j in margin] for i in margin]
    sides = [[gram[i][i] / 2 for i in margin], [ctx.one for _ in margin]]
    return solve_many(block, sides + [[gram[i][j] for i in margin] for j in rest])
