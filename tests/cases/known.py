"""Cases with known values, most of them from faults that users of other solvers reported. Fifty digits, ridge -> 0."""

from math import sqrt

from tests.cases.case import Case, Step, rows
from tests.oracles.setting import Setting

__all__ = ["KNOWN"]

PAIR_LEVEL = 0.6839397205857212  # (1 + 1/e) / 2: two keys with kernel 1/e between them
THIRD = sqrt(3.0)  # the width for gamma = 1/3

LINE = Case(
    "four_on_a_line",
    "libsvm #69: no key on the margin, the offset is only an interval",
    rows([0, 1, 2, 3]),
    Setting(C=0.5, sigma=10.0),
    alpha=(0.5, 0, 0, 0.5),
    level=0.9569655926356141,
    level_interval=(0.9569655926356141, 0.9754196364507456),
    margin_empty=True,
    steps=(
        Step(add=rows([1.5]), alpha=(0.5, 0, 0, 0.5, 0)),
        Step(add=rows([4]), alpha=(0.5, 0, 0, 0, 0.5), level=0.9260718944831057),
        Step(forget=rows([0]), alpha=(0.5, 0, 0.5), level=0.9803947195761616),
        Step(forget=rows([0, 3]), alpha=(0.5, 0.5)),  # n C = 1: both at the cap
        Step(forget=rows([0, 3, 1]), alpha=(1.0,)),  # n C < 1: collecting
    ),
)

FUTURE = Case(
    "paper_future_key",
    "arXiv 2607.12204, example 1: a reserve key that a later key wakes",
    rows([(-1, 0), (1, 0), (0, 0.9)]),
    Setting(C=1.0, sigma=5.0),
    alpha=(0.5, 0.5, 0),
    steps=(Step(add=rows([(0, -10)]), alpha_at=(2, 0.03327001), digits=1e-8),),
)

KNOWN = (
    Case(
        "three_near_points",
        "scikit-learn #4195: a stopping rule scaled by nu n ends before the first step",
        rows([(1, 2, 3.0), (1, 2, 3.1), (1, 2, 3.2)]),
        Setting(C=1.0, sigma=THIRD),
        alpha=(0.5, 0, 0.5),
        level=0.9933775809035978,
    ),
    Case(
        "two_points_all_at_cap",
        "scikit-learn #17925: no finite offset when n C = 1",
        rows([(1, 1, 1), (0, 0, 0)]),
        Setting(C=0.5, sigma=THIRD),
        alpha=(0.5, 0.5),
        level=PAIR_LEVEL,
        margin_empty=True,
    ),
    LINE,
    Case(
        "five_equal_points",
        "skordinal #83, cuml #1353: keys without any spread",
        rows([(1, 1)] * 5),
        Setting(C=0.4),
        alpha=(0.2,) * 5,
        level=1.0,
    ),
    Case(
        "fifty_points_within_1e-4",
        "libsvm #225, scikit-learn #30353: the choice of pairs goes round for ever",
        rows(i * (1e-4 / 49) for i in range(50)),
        Setting(C=0.2),
        level=0.9999999955497709,
    ),
    Case(
        "offset_1e5",
        "scikit-learn #4648: hangs on a large offset",
        rows([(1, 99999), (2, 99999)]),
        Setting(C=1.0),
        alpha=(0.5, 0.5),
        level=PAIR_LEVEL,
    ),
    Case(
        "offset_1e8",
        "scikit-learn #9354: |x|^2 + |y|^2 - 2 x.y cancels",
        rows([1e8, 100000001.0]),
        Setting(C=1.0),
        alpha=(0.5, 0.5),
        level=PAIR_LEVEL,
    ),
    Case(
        "overflow_1e200",
        "a square overflows, and no NaN may come of it",
        rows([0, 1, 2, 1e200]),
        Setting(C=0.5),
        alpha=(0.275500665536343, 0.123148303583787, 0.275500665536343, 0.325850365343527),
        level=0.32585036534352724,
    ),
    Case(
        "exact_twin",
        "qpth #22: a singular Gram matrix; equal keys share their mass equally",
        rows([(0, 0), (0, 0), (1, 0)]),
        Setting(C=0.6),
        alpha=(0.25, 0.25, 0.5),
        level=PAIR_LEVEL,
    ),
    Case(
        "near_twin",
        "a twin 1e-9 away that comes and goes",
        rows([(0, 0), (1e-9, 0), (1, 0)]),
        Setting(C=0.6),
        level=PAIR_LEVEL,
    ),
    Case(
        "sixty_six_far_points",
        "quadprog PR 10: off-diagonals of 1e-20 give NaN",
        rows(10.0 * i for i in range(66)),
        Setting(C=0.1, sigma=1 / sqrt(0.46)),
        alpha=(1 / 66,) * 66,
        level=1 / 66,
    ),
    Case(
        "square",
        "exact ties everywhere",
        rows([(0, 0), (0, 1), (1, 0), (1, 1)]),
        Setting(C=0.5),
        alpha=(0.25,) * 4,
        level=0.4677735413948743,
    ),
    Case(
        "cap_is_1_over_49",
        "49 * (1/49) < 1 in floating point, and yet there is a feasible point",
        rows(range(49)),
        Setting(C=1 / 49),
        alpha=(1 / 49,) * 49,
        margin_empty=True,
    ),
    Case(
        "collecting",
        "n C < 1",
        rows([0, 1]),
        Setting(C=0.4),
        alpha=(0.5, 0.5),
        collecting=True,
    ),
    Case(
        "one_point",
        "qpth #47: NaN on a problem of one variable",
        rows([(3, 4)]),
        Setting(C=1.0),
        alpha=(1.0,),
        level=1.0,
        margin_empty=True,
    ),
    FUTURE,
)
