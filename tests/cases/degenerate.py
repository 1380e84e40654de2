"""Cases with equal keys, ties, keys on a line or a grid, and caps near 1/n."""

from itertools import product
from math import nextafter, ulp

from tests.cases.case import Case, rows
from tests.oracles.setting import Setting

__all__ = ["DEGENERATE"]

CROSS = [tuple(s * float(i == j) for j in range(3)) for i in range(3) for s in (-1, 1)]  # the six unit steps
TENTH = 0.1


def _grid(side: int, dimensions: int = 2) -> list[tuple[float, ...]]:
    return [tuple(map(float, p)) for p in product(range(side), repeat=dimensions)]


_EQUAL = (
    Case("one_key_collecting", "one key is fewer than 1/C", rows([7.0]), Setting(C=1 / 3), (1.0,), collecting=True),
    Case("two_equal_keys", "one node of two records", rows([(2, 3)] * 2), Setting(C=1.0), (0.5, 0.5), 1.0),
    Case(
        "two_equal_keys_at_cap",
        "one node, n C = 1",
        rows([2.5] * 2),
        Setting(C=0.5),
        (0.5, 0.5),
        1.0,
        margin_empty=True,
    ),
    Case(
        "all_equal_at_cap", "equal, n C = 1", rows([(0, 0)] * 4), Setting(C=0.25), (0.25,) * 4, 1.0, margin_empty=True
    ),
    Case("all_equal_but_one", "a node of nine against one key", rows([0] * 9 + [1]), Setting(C=0.2)),
    Case("all_equal_with_capped_one", "the lone key wants more than C", rows([0] * 9 + [2]), Setting(C=0.15)),
    Case("node_between_caps", "a node that carries between C and 2 C", rows([5, 5, 0, 0.1, 0.2, 0.3]), Setting(C=0.3)),
    Case("node_at_cap", "a far node of four, all at the cap", rows([9] * 4 + [0, 1, 2, 3, 4, 5]), Setting(C=0.1)),
    Case("twins_everywhere", "a grid with every key three times", rows(_grid(3) * 3), Setting(C=1 / 7)),
    Case("reserve_node", "equal keys in the middle carry nothing", rows([-1, 1, 0, 0, 0]), Setting(C=0.5, sigma=3.0)),
    Case("zero_and_minus_zero", "-0 is 0", rows([0.0, -0.0, 1.0]), Setting(C=0.6), (0.25, 0.25, 0.5)),
)

_TIES = (
    Case("cross", "six keys, all alike", rows(CROSS), Setting(C=0.5), (1 / 6,) * 6),
    Case(
        "cross_at_cap", "six keys, all alike, n C = 1", rows(CROSS), Setting(C=1 / 6), (1 / 6,) * 6, margin_empty=True
    ),
    Case("cross_with_centre", "the centre ties with nothing", rows([*CROSS, (0, 0, 0)]), Setting(C=0.25, sigma=2.0)),
    Case("cube", "eight keys, all alike", rows(_grid(2, 3)), Setting(C=0.25, sigma=2.0), (0.125,) * 8),
    Case("cube_at_cap", "all alike, n C = 1", rows(_grid(2, 3)), Setting(C=0.125), (0.125,) * 8, margin_empty=True),
    Case("grid_3", "nine keys of an integer grid", rows(_grid(3)), Setting(C=0.25)),
    Case("grid_3_corners", "corners carry all: four at the cap", rows(_grid(3)), Setting(C=0.25, sigma=8.0)),
    Case("grid_4", "sixteen keys of an integer grid", rows(_grid(4)), Setting(C=0.1, sigma=2.0)),
    Case("grid_5_at_cap", "n C = 1", rows(_grid(5)), Setting(C=0.04), (0.04,) * 25, margin_empty=True),
    Case("grid_5_eighth", "C a power of two", rows(_grid(5)), Setting(C=0.125, sigma=4.0)),
    Case("grid_laplacian", "ties under the Laplacian kernel", rows(_grid(4)), Setting(C=0.1, kernel="laplacian")),
    Case("grid_linear", "more keys than dimensions", rows(_grid(3)), Setting(C=0.3, kernel="linear")),
    Case(
        "ball_linear",
        "smallest ball around three keys",
        rows([-1, 0, 1]),
        Setting(C=1.0, kernel="linear"),
        (0.5, 0, 0.5),
    ),
    Case("grid_cosine", "keys of equal direction", rows(_grid(4)[1:]), Setting(C=0.2, kernel="cosine")),
)

_LINES = (
    Case(
        "collinear",
        "keys on a line in three dimensions",
        rows((t, 2 * t, -t) for t in (0, 1, 3, 4, 8, 9)),
        Setting(C=0.4, sigma=4.0),
    ),
    Case("collinear_even", "equal steps", rows((0.5 * t, 0.25 * t) for t in range(12)), Setting(C=0.2, sigma=2.0)),
    Case("long_line", "forty equal steps", rows(range(40)), Setting(C=0.1, sigma=3.0)),
    Case("line_wide_kernel", "a kernel far wider than the keys", rows(range(20)), Setting(C=0.15, sigma=200.0)),
)

_CAPS = (
    Case(
        "cap_is_1_over_n",
        "C = 1/7 for seven keys",
        rows([0, 1, 2.5, 3, 7, 8, 9]),
        Setting(C=1 / 7),
        (1 / 7,) * 7,
        margin_empty=True,
    ),
    Case(
        "cap_below_1_over_n",
        "1e-12 too little: collecting",
        rows(range(10)),
        Setting(C=TENTH * (1 - 1e-12)),
        (0.1,) * 10,
        collecting=True,
    ),
    Case("cap_above_1_over_n", "1e-12 to spare", rows(range(10)), Setting(C=TENTH * (1 + 1e-12))),
    Case(
        "cap_a_float_below",
        "still means 1/10",
        rows(range(10)),
        Setting(C=nextafter(TENTH, 0)),
        (0.1,) * 10,
        margin_empty=True,
    ),
    Case(
        "cap_a_float_above",
        "still means 1/10",
        rows(range(10)),
        Setting(C=nextafter(TENTH, 1)),
        (0.1,) * 10,
        margin_empty=True,
    ),
    Case(
        "cap_just_above",
        "four floats above 1/10 no longer means 1/10",
        rows(range(10)),
        Setting(C=TENTH + 4 * ulp(TENTH)),
    ),
    Case(
        "cap_just_below",
        "four floats below 1/10 no longer means 1/10",
        rows(range(10)),
        Setting(C=TENTH - 4 * ulp(TENTH)),
        (0.1,) * 10,
        collecting=True,
    ),
    Case("cap_leaves_a_crumb", "ten caps leave 5e-16 for the rest", rows(range(13)), Setting(C=TENTH - 4 * ulp(TENTH))),
    Case("cap_below_one_more_key", "1e-12 below 1/10, eleven keys", rows(range(11)), Setting(C=TENTH * (1 - 1e-12))),
    Case("three_tenths_collecting", "3 * 0.3 < 1", rows([0, 1, 2]), Setting(C=0.3), (1 / 3,) * 3, collecting=True),
    Case("three_tenths", "4 * 0.3 > 1", rows([0, 1, 2, 3]), Setting(C=0.3)),
    Case("cap_a_third", "three keys of nine at the cap", rows(t * t for t in range(9)), Setting(C=1 / 3, sigma=40.0)),
    Case("middle_ties", "an even row whose middle is tied", rows(range(6)), Setting(C=1 / 3, sigma=3.0)),
)

DEGENERATE = (*_EQUAL, *_TIES, *_LINES, *_CAPS)
