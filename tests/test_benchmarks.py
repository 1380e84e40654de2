"""The commands behind the published figures run, and find at a small size what is claimed at the full one."""

import json

import pytest

from benchmarks import audit, deletion
from benchmarks.contexts import CONTEXTS

pytestmark = pytest.mark.usefixtures("compiled_memory")


def lines(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_the_audit_finds_no_difference_between_forgetting_and_refitting(capsys, tmp_path):
    kept = tmp_path / "rows.jsonl"
    assert audit.main(["--trials", "3", "--runs", "1", "--steps", "60", "--json", "--save", str(kept)]) == 0
    rows = lines(capsys)
    assert [json.loads(line) for line in kept.read_text().splitlines()] == rows
    deletions = [row for row in rows if row["measure"] == "deletions"]
    assert {row["context"] for row in deletions} == set(CONTEXTS)
    for row in deletions:
        assert row["completed"] == row["same_digest"] == row["same_partition"] == row["trials"] == 3
        assert row["worst_deviation"] == row["worst_alpha_deviation"] == row["infeasible"] == 0
        assert row["worst_score_bound"] <= 1e-7
        assert row["worst_kkt"] <= 1e-12
    churn, long_run = rows[-2:]
    assert churn["infeasible"] == churn["outside"] == 0
    assert long_run["same_digest"]
    assert max(long_run["worst_kkt_first_half"], long_run["worst_kkt_second_half"]) <= 1e-12


def test_the_timings_come_with_proven_gaps_and_in_order(capsys):
    assert deletion.main(["--sizes", "64", "--json"]) == 0
    rows = lines(capsys)
    assert [row["measure"] for row in rows] == ["forget", "forget", "add", "add", "add", "cold solve"]
    assert all(row["forget_ms"] > 0 for row in rows[:2])
    assert rows[-1]["our_gap"] < 1e-6 * rows[-1]["libsvm_gap"]
