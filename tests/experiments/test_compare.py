"""Paired comparisons of runs, against numbers worked out by hand."""

import pytest

from experiments.language.compare import compared
from experiments.language.figure import Curve
from experiments.language.settings import Settings
from svmem.errors import InvalidInput


def curve(mixer: str, seed: int, *values: float) -> Curve:
    rows = [{"bits_per_byte": value, "step": step} for step, value in enumerate(values)]
    return Curve(Settings(mixer=mixer, seed=seed), rows)


CURVES = [
    curve("sv", 0, 3.0, 2.0, 2.1),
    curve("sv", 1, 1.8),
    curve("sv", 2, 9.0),
    curve("window", 0, 2.5),
    curve("window", 1, 1.6),
    curve("window", 3, 0.1),
]


def test_the_best_rows_of_the_seeds_that_both_have_are_compared():
    found = compared(CURVES, "sv", "window")
    assert (found.seeds, found.ours, found.theirs) == ((0, 1), (2.0, 1.8), (2.5, 1.6))
    assert found.better == 1
    assert found.gain == pytest.approx(((1 - 2.0 / 2.5) + (1 - 1.8 / 1.6)) / 2)
    # Differences -0.5 and 0.2: mean -0.15, standard error 0.35; with one degree of freedom p = 1 - 2 atan(t) / pi.
    assert found.t_test == pytest.approx(0.7423, abs=1e-4)
    assert "1 of 2 seeds" in str(found)


def test_one_seed_says_nothing_of_chance():
    found = compared(CURVES[:1] + CURVES[3:4], "sv", "window")
    assert found.t_test is None
    assert found.wilcoxon is None
    assert str(found).endswith("20.0% on average")


def test_runs_without_a_common_seed_are_refused():
    with pytest.raises(InvalidInput, match="a run of the same seed"):
        compared(CURVES[2:4], "sv", "window")
