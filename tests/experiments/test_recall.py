"""`python -m experiments.recall` on two steps."""

import json

import pytest

from experiments import recall
from experiments.ledger import conduct
from experiments.reader import GATED
from experiments.recall import EXPERIMENT, Config, arms, claim, draw
from svmem.report.style import svg

TINY = Config(
    seeds=(0,),
    pairs=(8,),
    facts=8,
    trained_filler=(4,),
    filler=(4, 8),
    distinct_filler=6,
    width=8,
    chunk=8,
    steps=2,
    batch=2,
    held_out=2,
)
FIELDS = {"task", "mixer", "seed", "accuracy", "mean_support", "worst_gap", "seconds", "status", "config", "command",
          "svmem", "torch", "numpy", "numba", "python"}  # fmt: skip


def test_each_mixer_has_a_row_for_each_asked_task_that_says_where_it_comes_from(rows):
    assert len(rows) == 9 * 5
    assert all(row.keys() >= FIELDS for row in rows)
    assert {row["arm"] for row in rows} == set(arms(TINY))


def test_only_gates_have_a_support_and_theirs_are_certified(rows):
    for row in rows:
        assert (row["support"] is not None) == (row["mixer"] in GATED) == (row["certified"] is not None)
    assert max(row["worst_gap"] for row in rows if row["mixer"] in GATED and row["worst_gap"] is not None) < 1e-9


def test_the_window_is_as_wide_as_the_support_and_a_chunk(rows):
    for row in rows:
        if row["mixer"] == "window":
            like = [r for r in rows if r["arm"] == row["arm"].replace("window", "sv")]
            assert row["window"] == round(max(r["support"] for r in like)) + like[0]["chunk"]


def test_finished_rows_are_not_run_again_and_an_arm_cut_short_is(rows, path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(recall, "_train", lambda *_: pytest.fail("trained again"))
        assert conduct(EXPERIMENT, TINY, path, "a command") == rows
    short = path.with_name("short.jsonl")
    short.write_text("".join(json.dumps(row) + "\n" for row in rows[:-1]))
    again = conduct(EXPERIMENT, TINY, short, "a command")
    assert [row["accuracy"] for row in again] == [row["accuracy"] for row in rows]
    assert conduct(EXPERIMENT, TINY, short, "a command") == again  # and its first rows do not come back


FAIR = {"sv": 0.99, "rbf": 0.99, "ungated": 0.98, "softmax": 0.985}


def test_the_claims_hold_for_rows_that_bear_them_out_and_not_for_others(rows):
    late = {row["filler"] for row in rows if row["task"] == "copy"} - {4}
    fair = [row | {"accuracy": FAIR.get(row["mixer"], 0.06), "support": 12.0} for row in rows]
    fair = [row | {"accuracy_kept": 1.0, "accuracy_deleted": 1.0} for row in fair]
    fair = [row | {"state": 300 if row["mixer"] == "softmax" else 20} for row in fair]
    fair = [row | {"accuracy": 0.9} if row["filler"] not in late and row["accuracy"] < 0.1 else row for row in fair]
    fair = [row | {"accuracy": 0.1} if row["task"] == "distinct" and row["mixer"] == "sv" else row for row in fair]
    assert [one.holds for one in claim(fair)] == [True] * 9
    never = [row | {"accuracy": 0.06} if row["mixer"] == "linear" else row for row in fair]
    assert [one.holds for one in claim(never)][2] is None  # what was never learned was not lost
    foul = [row | {"accuracy": 0.1 if row["mixer"] == "ungated" else 0.5, "support": 99.0} for row in rows]
    foul = [row | {"accuracy_kept": 0.5, "accuracy_deleted": 1.0} for row in foul]
    assert [one.holds for one in claim(foul)] == [False] * 9
    assert [one.holds for one in claim([])] == [None] * 9


def test_the_state_of_a_layer_is_what_it_keeps_between_tokens(rows):
    def state(mixer, **where):
        (found,) = [r for r in rows if r["mixer"] == mixer and all(r[name] == v for name, v in where.items())]
        return found["state"]

    width, head = TINY.width, TINY.width // TINY.heads
    tokens = 2 * TINY.facts + 8  # facts, filler, questions
    longest = {"task": "copy", "filler": 8}
    assert state("softmax", **longest) == state("ungated", **longest) == 2 * width * tokens
    assert state("linear", **longest) == state("linear", task="pairs") == TINY.heads * (head * head + head)
    assert state("delta", **longest) == TINY.heads * head * head
    assert state("delta-conv", **longest) == TINY.heads * head * head + 3 * 3 * width
    assert state("ssm", **longest) == 16 * 2 * width
    assert state("window", **longest) < state("softmax", **longest)


def test_the_figure_can_be_drawn_from_any_rows(rows):
    pairs = [row for row in rows if row["task"] == "pairs"]
    for some in (rows, pairs, []):
        assert svg(draw(some)).startswith("<svg")
