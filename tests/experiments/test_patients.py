"""`python -m experiments.patients` on a few patients."""

from itertools import product

import numpy as np
import pytest

from experiments import patients
from experiments.ledger import conduct
from experiments.patients import EXPERIMENT, METHODS, Config, arms, claim, draw
from experiments.patients_picture import ZERO
from svmem.errors import SolverError
from svmem.report.style import ink

TINY = Config(trials=3, few=3, patients=9, hours=10, withdrawals=2, every=2, chain_nu=(0.5, 0.05), probes=20)
PARTS = ("five", "hundred", "chain0.5", "chain0.05")


def test_every_withdrawal_ends_in_the_memory_that_never_held_the_patient(rows):
    assert list(dict.fromkeys(row["arm"] for row in rows)) == arms(TINY)
    for row in rows:
        assert row["same_digest"]
        assert row["score"] == row["readout"] == 0
        assert row["kkt"] <= row["score_bound"] < 1e-9


def test_the_other_methods_leave_something(rows):
    for row in rows:
        for name in METHODS:
            left = row[f"{name}_score"]
            assert left > 1e-4 if left is not None else name in ("ascent", "scaling")


def test_a_chain_ends_with_the_few_and_collects_where_the_cap_asks_for_more(rows):
    tight, loose = ([row for row in rows if row["part"] == part] for part in ("chain0.5", "chain0.05"))
    assert tight[-1]["patients_left"] == loose[-1]["patients_left"] == 3
    assert tight[-1]["collecting"]
    assert not loose[-1]["collecting"]
    assert [row["last"] for row in tight] == [False, False, True]


def test_patients_of_the_large_memory_come_back(rows):
    sizes = {row["n"] for row in rows if row["part"] == "hundred"}
    assert len(sizes) == 1


def test_finished_rows_are_not_run_again(rows, path, monkeypatch):
    monkeypatch.setattr(patients, "load_clif", lambda: pytest.fail("read again"))
    assert conduct(EXPERIMENT, TINY, path, "a command") == rows


def test_a_withdrawal_that_fails_is_a_row(tmp_path, monkeypatch):
    def refuse(*_):
        raise SolverError("no optimum")

    monkeypatch.setattr(patients, "_withdrawal", refuse)
    failed = conduct(EXPERIMENT, TINY, tmp_path / "rows.jsonl", "a command")
    assert {row["status"] for row in failed} == {"no optimum"}
    assert [one.holds for one in claim(failed)] == [False] * 4
    assert len(draw(failed).axes) == 8


def test_the_claims_hold_for_rows_that_bear_them_out_and_not_for_others(rows):
    kinds = ("score", "readout")
    fair = [row | {f"{name}_{kind}": 0.1 for name in METHODS for kind in kinds} for row in rows]
    assert [one.holds for one in claim(fair)] == [True] * 12
    foul = [row | {f"{name}_{kind}": 0.0 for name in METHODS for kind in kinds} for row in rows]
    assert [one.holds for one in claim(foul)] == [True, False, False] * 4
    for wrong in ({"same_digest": False}, {"kkt": 1e-8}, {"score": 1e-17}, {"readout": 1e-17}):
        assert [one.holds for one in claim([row | wrong for row in fair])] == [False, True, True] * 4
    none = [row | {f"{name}_{kind}": None for name in METHODS for kind in kinds} for row in rows]
    assert [one.holds for one in claim(none)] == [True, None, None] * 4
    assert claim([]) == []


def test_one_check_point_where_another_method_is_the_refit_is_said(rows):
    chain = [row | {"scaling_score": 0.1, "scaling_readout": 0.1} for row in rows if row["part"] == "chain0.5"]
    chain[1] |= {"scaling_readout": 1e-15}
    _, score, readout = claim(chain)
    assert score.holds
    assert not readout.holds
    assert "scaling at 1 of 3" in readout.text


def test_a_chain_counts_check_points_and_withdrawals(rows):
    said = {one.text.split(":")[0]: one.text for one in claim(rows)[::3]}
    assert "3 of 3 withdrawals completed" in said["five/0"]
    assert "3 of 3 check points along 6 withdrawals completed" in said["chain0.5/0"]
    assert "of 1 check points completed" in claim([row for row in rows if row["part"] == "chain0.5"][:1])[0].text


def test_the_figure_can_be_drawn_from_any_rows(rows):
    assert len(draw(rows).axes) == 8
    assert len(draw([]).axes) == 4


def test_the_figure_shows_score_and_readout_of_every_withdrawal_and_exact_ones_at_0(rows):
    for ax, (kind, part) in zip(draw(rows).axes, product(("score", "readout"), PARTS), strict=True):
        mine = [row for row in rows if row["part"] == part]
        drawn = {line.get_color(): line.get_ydata() for line in ax.lines if np.size(line.get_xdata()) == len(mine)}
        np.testing.assert_array_equal(drawn[ink("blue")], ZERO)
        away = [np.nan if row[f"ascent_{kind}"] is None else row[f"ascent_{kind}"] for row in mine]
        np.testing.assert_array_equal(drawn[ink("green")], away)


def test_a_config_that_makes_no_sense_ends_in_a_sentence(tmp_path, capsys):
    for wrong in (["--trials", "0"], ["--few", "1"], ["--few", "5", "--patients", "4"]):
        assert patients.main([*wrong, "--out", str(tmp_path / "rows.jsonl")]) == 1
        assert "must be at least" in capsys.readouterr().err
