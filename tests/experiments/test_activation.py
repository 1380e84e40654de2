"""`python -m experiments.activation` on a coarse square."""

import json

import pytest

from experiments import activation
from experiments.activation import COEFFICIENT, SLEEPER, Config, claim, draw, run


@pytest.fixture(scope="module")
def rows():
    return list(run(Config(steps=6, grid=21)))


def test_the_example_has_the_numbers_of_the_paper(rows):
    (row,) = (row for row in rows if row["arm"] == "example")
    assert row["reserve"] == [SLEEPER]
    assert row["coefficient"] == pytest.approx(COEFFICIENT, abs=1e-8)
    assert row["readout_moved"] == 0
    assert row["score_difference"] > row["score_difference_at_keys"] > 4.08e-3
    assert row["score_bound"] < 1e-9


def test_the_certificate_drops_the_record_for_now_only(rows):
    (row,) = (row for row in rows if row["arm"] == "example")
    assert row["droppable_now"] == [SLEEPER]
    assert row["droppable_after_one"] == []
    assert row["slack_now"][0] < row["cost_of_one"]


def test_the_exact_cache_stays_equal_and_the_bounded_one_says_that_it_may_not(rows):
    exact, bounded = (row for row in rows if row["arm"] == "cache")
    assert exact["alpha_difference"] < 1e-12
    assert exact["output_difference"] < 1e-12
    assert exact["proved"]
    assert bounded["alpha_difference"] > 0.03
    assert not bounded["proved"]


def test_the_third_record_wakes_and_falls_asleep_again_as_the_fourth_goes_down(rows):
    found = [row["coefficient"] for row in rows if row["arm"] == "depths"]
    assert [row["last"] for row in rows].count(True) == 3
    assert found[0] == found[-1] == 0 < max(found)


def test_the_command_adds_rows_once_and_draws(tmp_path, capsys):
    out, figure = tmp_path / "rows.jsonl", tmp_path / "activation.svg"
    argv = ["--steps", "4", "--grid", "9", "--out", str(out)]
    assert activation.main([*argv, "--figure", str(figure)]) == 0
    said = capsys.readouterr().out
    assert said.count("reproduced: ") == 3
    assert said.count("hold") == 3
    assert figure.read_text().startswith("<svg")
    count = len([json.loads(line) for line in out.read_text().splitlines()])
    assert activation.main(argv) == 0
    assert len(out.read_text().splitlines()) == count == 1 + 2 + 5


def test_the_claims_fail_for_rows_that_do_not_bear_them_out(rows):
    assert [one.holds for one in claim(rows)] == [True, True, False, True, True, True]
    foul = [row | {"coefficient": 0.0, "readout_moved": 1.0, "droppable_after_one": [2]} for row in rows]
    assert [one.holds for one in claim(foul)][:4] == [False, False, False, False]
    foul = [row | {"alpha_difference": 1.0, "proved": True} for row in rows]
    assert [one.holds for one in claim(foul)][4:] == [False, False]
    assert claim([]) == []
    assert len(draw([]).axes) == 3


def test_a_config_that_makes_no_sense_ends_in_a_sentence(tmp_path, capsys):
    assert activation.main(["--steps", "1", "--out", str(tmp_path / "rows.jsonl")]) == 1
    assert "steps and grid must be at least 2" in capsys.readouterr().err
