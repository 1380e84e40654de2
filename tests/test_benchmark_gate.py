"""The comparison of the two gates runs, and finds at a small size what is claimed at the full one."""

import json

import pytest

from benchmarks import gate


def test_the_exact_gate_has_proven_gaps_and_true_gradients_beside_the_paper_s_path(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert gate.main(["--pairs", "1", "--batch", "1", "--steps", "2", "--seeds", "1", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    compared = [row for row in rows if row["measure"] == "gate"]
    assert [row["keys"] for row in compared] == list(gate.KEYS)
    for row in compared:
        assert row["ours_gap"] <= 1e-12
        assert row["ours_outside"] == 0
        assert row["ours_gradient_error"] <= 1e-10
        assert row["fista_gap"] > 1e3 * row["ours_gap"]
    trained = [row for row in rows if row["measure"] == "training"]
    assert [(row["tokens"], row["gate"]) for row in trained] == [
        (tokens, way) for tokens in ("random", "redundant") for way in ("ours", "fista")
    ]
    assert all(row["finite"] and len(row["curve"]) == 2 for row in trained)
