"""`python -m experiments.latency` on two small memories."""

import json

import numpy as np
import pytest

import svmem
from experiments import latency, refits
from experiments.latency import Config, draw, run
from experiments.latency_claims import claim, table
from experiments.refits import REFITS, feasible
from svmem.errors import SolverError

TINY = Config(sizes=(40, 120), removals=3, most_quadprog=40)


@pytest.fixture(scope="module")
def rows():
    return list(run(TINY))


def test_each_size_has_a_row_of_deletions_and_one_of_each_refit(rows):
    assert [row["method"] for row in rows] == ["forget", *REFITS, "forget", *[name for name in REFITS][:-1]]
    assert [row["last"] for row in rows].count(True) == 2
    for row in rows:
        assert row["count"] == row["removals"] == 3
        assert 0 < row["seconds_low"] <= row["seconds_median"] <= row["seconds_high"]
        assert row["status"] == "ok"


def test_each_deletion_ends_in_the_digest_of_the_refit_and_the_other_methods_come_near_it(rows):
    for row in rows:
        if row["method"] == "forget":
            assert (row["same_digest"], row["repairs"]) == (3, 0)
        else:
            assert row["ratio_low"] <= row["ratio_median"] <= row["ratio_high"]
            assert row["deviation"] == 0 if row["method"] == "cold" else row["deviation"] < 1e-2
        assert row["gap"] < {"forget": 1e-15, "cold": 1e-15, "libsvm": 1e-3}.get(row["method"], 1e-7)


def test_active_and_reserve_records_are_told_apart(rows):
    (own, *_) = rows
    for name, count in (("active", own["active"]), ("reserve", own["removals"] - own["active"])):
        assert (own[f"{name}_s"] is None) == (count == 0)
    assert own["in_a_row_s"] > 0


def test_the_memory_is_the_same_after_each_removal():
    bench = latency._Bench(TINY, 40, 0)
    before = bench.memory.digest()
    bench.removal(3)
    bench.removal(3)
    assert bench.memory.digest() == before
    assert bench.keys[3].tolist() == bench.memory.keys[bench.memory.ids.index(bench.ids[3])].tolist()


def test_a_method_beyond_its_budget_is_refitted_three_times_and_the_cold_solve_always():
    found = run(Config(sizes=(40,), removals=5, budget=0.0))
    counts = {row["method"]: row["count"] for row in found}
    assert counts == {"forget": 5, "cold": 5} | {name: 3 for name in REFITS if name != "cold"}


def test_a_refit_that_fails_is_said_and_leaves_no_ratio(monkeypatch):
    def refuse(*_):
        raise SolverError("no optimum")

    monkeypatch.setitem(refits.REFITS, "clarabel", refuse)
    found = list(run(Config(sizes=(120,), removals=2)))
    (row,) = (row for row in found if row["method"] == "clarabel")
    assert (row["count"], row["ratio_median"], row["gap"]) == (0, None, None)
    assert row["status"] == "2 failed, first: no optimum"
    assert next(one.holds for one in claim(found)) is None
    assert len(draw(found).axes) == 2


def test_the_claims_hold_for_rows_that_bear_them_out_and_not_for_others(rows):
    quick = [
        row | {"seconds_median": 1e-5} if row["method"] == "forget" else row | {"ratio_median": 50} for row in rows
    ]
    assert [one.holds for one in claim(quick)] == [True] * 6
    assert [one.ours for one in claim(quick)] == [False, *[True] * 5]
    slow = [row | {"seconds_median": 1.0, "same_digest": 2} if row["method"] == "forget" else row for row in rows]
    slow = [row | {"ratio_median": 0.5} if row["method"] != "forget" else row for row in slow]
    assert [one.holds for one in claim(slow)] == [False] * 6
    late = [row | {"ratio_median": 25} if row["method"] == "clarabel" else row for row in quick]
    assert next(one.holds for one in claim(late)) is False
    assert claim([]) == []


def test_the_command_adds_rows_once_and_draws(tmp_path, capsys):
    out, figure = tmp_path / "rows.jsonl", tmp_path / "latency.svg"
    argv = ["--sizes", "40", "--removals", "2", "--out", str(out)]
    assert latency.main([*argv, "--figure", str(figure)]) == 0
    assert {json.loads(line)["arm"] for line in out.read_text().splitlines()} == {"40/0"}
    assert "2 of 2 deletions end in the digest" in capsys.readouterr().out
    assert figure.read_text().startswith("<svg")
    lines = out.read_text()
    assert latency.main(argv) == 0
    assert out.read_text() == lines


@pytest.mark.parametrize("wrong", [["--removals", "0"], ["--sizes", "2"], ["--budget", "-1"]], ids=str)
def test_a_config_that_makes_no_sense_ends_in_a_sentence(wrong, tmp_path, capsys):
    assert latency.main([*wrong, "--out", str(tmp_path / "rows.jsonl")]) == 1
    assert capsys.readouterr().err.count("\n") <= 2


@pytest.mark.parametrize("alpha", [[0.5, 0.5, 0.1], [0.2, 0.2, 0.2], [-1e-9, 0.6, 0.4], [0.0, 0.0, 0.0]])
def test_coefficients_are_brought_onto_the_capped_simplex(alpha):
    found = feasible(np.array(alpha), 0.5)
    assert found.min() >= 0
    assert found.max() <= 0.5
    assert found.sum() == pytest.approx(1, abs=1e-15)


def test_what_a_general_solver_leaves_undone_is_said(monkeypatch):
    class Nothing:
        x = None

    monkeypatch.setattr(refits.qpsolvers, "solve_problem", lambda *_: Nothing())
    with pytest.raises(SolverError, match="quadprog gave up on 3 keys"):
        REFITS["quadprog"](np.eye(3), svmem.Problem(svmem.RBF(1.0), C=0.5))


def test_the_table_has_a_line_for_each_size_and_the_paper_beside_those_it_has(rows):
    own = rows[0] | {"n": 120, "seconds_median": 2.5e-4}
    found = table([own, *rows[1:]])
    assert found.header[:3] == ("records", "deletion, ms", "paper, ms")
    assert found.rows[0][:3] == ("120", "0.25", "0.3")
    assert found.rows[0][-1] == "26 ×"
    assert table(rows).rows[0][2] == "–"
    named = {row["solver"].split()[0] for row in rows if row["method"] != "forget"}
    assert named == {"svmem", "scikit-learn", "clarabel", "quadprog"}
