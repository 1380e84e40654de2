"""`python -m experiments.deletion` on a few trials."""

import json

import numpy as np
import pytest

from experiments import deletion
from experiments.deletion import REGIMES, Config, claim, draw, run

TINY = Config(trials=3, model_steps=3)


@pytest.fixture(scope="module")
def rows():
    return list(run(TINY))


def test_each_regime_has_a_row_whose_deletions_end_in_the_refit(rows):
    assert [row["regime"] for row in rows] == list(REGIMES)
    for row in rows:
        assert (row["completed"], row["same_partition"], row["same_digest"], row["feasible"]) == (3, 1, 1, 1)
        assert row["score_worst"] == row["readout_worst"] == row["alpha_worst"] == 0
        assert 0 < row["score_bound_worst"] < 1e-9
        # The keys of a model of three steps are so near each other that most records are reserve.
        assert row["decay_worst"] > 1e-3 or row["regime"] == "learned"
        assert row["last"]


def test_hours_that_are_alike_are_dropped(rows):
    hours = next(row for row in rows if row["regime"] == "icu")
    assert 0 < hours["n"] <= TINY.hours
    assert hours["stays"] > 1


def test_the_command_adds_rows_once_and_draws(tmp_path, capsys):
    out, figure = tmp_path / "rows.jsonl", tmp_path / "deletion.svg"
    argv = ["--regimes", "gaussian", "grid", "--trials", "2", "--out", str(out)]
    assert deletion.main([*argv, "--figure", str(figure)]) == 0
    assert [json.loads(line)["arm"] for line in out.read_text().splitlines()] == ["gaussian/0", "grid/0"]
    assert "gaussian/0: 2 of 2 completed" in capsys.readouterr().out
    assert figure.read_text().startswith("<svg")
    assert deletion.main(argv) == 0
    assert len(out.read_text().splitlines()) == 2


def test_a_trial_that_fails_is_counted_and_said(monkeypatch):
    def refuse(*_):
        raise deletion.InvalidInput("no")

    monkeypatch.setattr(deletion, "filled", refuse)
    (row,) = run(Config(regimes=("gaussian",), trials=2))
    assert (row["completed"], row["status"]) == (0, "2 failed, first: no")
    assert [one.holds for one in claim([row])] == [False]
    assert len(draw([row]).axes) == 2


@pytest.mark.parametrize("regime", ["gaussian", "grid"])
def test_the_claims_hold_for_rows_that_bear_them_out_and_not_for_others(rows, regime):
    def verdict(**changed):
        return claim([row | changed])[0].holds

    row = next(row for row in rows if row["regime"] == regime)
    assert verdict()
    assert claim([row])[0].ours is (regime == "grid")
    # As little as a last bit, or one trial that failed, is no exact deletion, however far the paper's numbers are.
    for name in ("score_worst", "readout_worst", "alpha_worst"):
        assert not verdict(**{name: 1e-17})
    for name in ("same_partition", "same_digest", "feasible"):
        assert not verdict(**{name: 0.99})
    assert not verdict(completed=2)
    assert not verdict(score_bound_count=2)
    assert claim([]) == []


def test_the_decay_is_reproduced_within_a_factor_of_one_and_a_half(rows):
    assert [one.holds for one in claim([rows[0] | {"decay_median": 8.3e-2}])] == [True, True]
    assert [one.holds for one in claim([rows[0] | {"decay_median": 1e-2}])] == [True, False]


@pytest.mark.parametrize("wrong", [["--trials", "0"], ["--regimes", "moon"], ["--n", "2"]], ids=str)
def test_a_config_that_makes_no_sense_ends_in_a_sentence(wrong, tmp_path, capsys):
    assert deletion.main([*wrong, "--out", str(tmp_path / "rows.jsonl")]) == 1
    assert capsys.readouterr().err.count("\n") <= 2


def test_coefficients_beyond_the_cap_are_not_feasible():
    problem = deletion.Problem(deletion.RBF(1.0), 0.5)
    assert deletion._feasible(np.array([0.5, 0.5]), problem)
    assert not deletion._feasible(np.array([0.6, 0.4]), problem)
    assert deletion._feasible(np.array([1.0]), problem)  # collecting: each is 1/n


def test_all_kinds_of_keys_together_are_as_exact_as_the_worst(rows):
    both = [rows[0], rows[0] | {"score_worst": 1e-17}]
    first, *_ = claim([rows[0], rows[0]])
    assert first.holds
    assert first.text.startswith(f"all kinds of keys: {2 * rows[0]['trials']} of {2 * rows[0]['trials']} deletions")
    assert claim(both)[0].holds is False
    assert "off by 1.0e-17 at worst" in claim(both)[0].text
