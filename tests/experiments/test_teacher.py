"""`python -m experiments.teacher` from its command line."""

import json

from experiments import teacher
from experiments.teacher import Config, claim, draw, run


def test_a_student_gets_nearer_to_its_teacher():
    rows = list(run(Config(seeds=(0,), width=8, heads=1, tokens=24, chunk=8, steps=30)))
    for kind in ("hybrid", "rbf"):
        mine = [row for row in rows if row["readout"] == kind]
        assert [row["step"] for row in mine] == [0, 10, 20, 30]
        assert mine[-1]["loss"] < 0.7 * mine[0]["loss"]
        assert all(row["gate_grad"] > 0 and row["worst_gap"] < 1e-9 for row in mine)
        assert [row["last"] for row in mine] == [False, False, False, True]


def test_the_command_adds_rows_once_and_says_whether_the_sentence_holds(tmp_path, capsys):
    out, figure = tmp_path / "rows.jsonl", tmp_path / "teacher.svg"
    sizes = ["--every", "1", "--width", "8", "--tokens", "16", "--chunk", "8"]
    argv = ["--steps", "2", "--seeds", "0", *sizes, "--out", str(out)]
    assert teacher.main([*argv, "--figure", str(figure)]) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 2 * 3
    assert all(row["torch"] for row in rows)
    assert all(row["command"].startswith("python -m experiments.teacher --steps 2 --seeds 0") for row in rows)
    assert capsys.readouterr().out.count("not reproduced: ") == 2
    assert figure.read_text().startswith("<svg")
    assert teacher.main(argv) == 0
    assert len(out.read_text().splitlines()) == len(rows)


def test_a_config_that_makes_no_sense_ends_in_a_sentence(tmp_path, capsys):
    assert teacher.main(["--steps", "0", "--out", str(tmp_path / "rows.jsonl")]) == 1
    assert "steps, batch, tokens and every must be at least 1" in capsys.readouterr().err


def test_the_sentence_holds_at_a_hundredth_of_the_loss_and_not_after_divergence():
    row = {"arm": "rbf/0", "readout": "rbf", "step": 0, "loss": 1.0}
    assert claim([row, row | {"loss": 0.009}])[0].holds
    assert not claim([row, row | {"loss": 0.011}])[0].holds
    assert not claim([row, row | {"loss": None}])[0].holds
    assert len(draw([]).axes) == 3
