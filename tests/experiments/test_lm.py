"""`python -m experiments.lm` from its command line: training, going on, sampling, drawing."""

import io
import json
import re
import shutil
import signal
import sys

import numpy as np
import pytest
import torch

import experiments.lm
from experiments import files
from experiments.language import checkpoint
from experiments.language.settings import MIXERS
from experiments.language.trainer import Trainer

SAME = ("step", "loss", "bits_per_byte", "grad_norm", "status", "seed")


def run(*argv):
    return experiments.lm.main([str(word) for word in argv])


def same(rows):
    return [{name: row[name] for name in SAME} for row in rows]


def rows_of(folder):
    return files.read_rows(folder / files.ROWS)


def assert_same_end(one, other):
    """Assert that two runs measured the same and ended with the same weights, bit for bit."""
    assert same(rows_of(one)) == same(rows_of(other))
    mine, theirs = (checkpoint.read_arrays(folder / files.CHECKPOINT) for folder in (one, other))
    assert set(mine) == set(theirs)
    assert [name for name in mine if name != "seconds" and not np.array_equal(mine[name], theirs[name])] == []


@pytest.fixture
def interrupted(tiny, tmp_path, monkeypatch):
    """The folder of a tiny run that Ctrl-C reached during its eighth step."""
    advance = Trainer.advance

    def struck(self, stop):
        if self.step == 7:
            signal.raise_signal(signal.SIGINT)
        return advance(self, stop)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "advance", struck)
        assert run("train", "--out", tmp_path / "run", *tiny) == 130
    return tmp_path / "run"


def test_a_run_leaves_a_row_every_few_steps_that_says_where_it_comes_from(finished):
    rows = rows_of(finished)
    assert [row["step"] for row in rows] == [5, 10, 15, 20]
    assert rows[0]["loss"] > rows[-1]["loss"]
    for row in rows:
        assert row["status"] == "ok"
        assert (row["mixer"], row["seed"], row["text"], row["processes"]) == ("softmax", 0, "README.md", 1)
        assert row["command"].startswith("python -m experiments.lm train --out ")
        assert row["grad_norm_max"] >= row["grad_norm"] > 0
        assert {"svmem", "torch", "numpy", "python", "seconds", "tokens_per_s", "parameters"} <= set(row)
        assert not any(isinstance(value, dict | list) for value in row.values())
    assert [row["seconds"] for row in rows] == sorted(row["seconds"] for row in rows)


@pytest.mark.parametrize("mixer", [name for name in MIXERS if name != "softmax"])
def test_every_mixer_learns(mixer, tiny, tmp_path):
    assert run("train", "--out", tmp_path, *tiny, "--mixer", mixer, "--chunk", 4, "--window", 5) == 0
    rows = rows_of(tmp_path)
    assert rows[-1]["bits_per_byte"] < rows[0]["bits_per_byte"] < 8.1
    assert ("mean_support" in rows[-1]) == (mixer in ("sv", "fista"))


def test_the_same_command_gives_the_same_run(finished, tiny, tmp_path):
    assert run("train", "--out", tmp_path, *tiny) == 0
    assert_same_end(tmp_path, finished)


def test_another_seed_gives_another_run(finished, tiny, tmp_path):
    assert run("train", "--out", tmp_path, *tiny, "--seed", 1) == 0
    assert rows_of(tmp_path)[0]["loss"] != rows_of(finished)[0]["loss"]


def test_ctrl_c_saves_the_step_at_hand_and_says_how_to_go_on(capsys, interrupted):
    assert "stopped after step 8 of 20; the same command goes on from there" in capsys.readouterr().err
    assert checkpoint.read_arrays(interrupted / files.CHECKPOINT)["step"] == 8
    assert [row["step"] for row in rows_of(interrupted)] == [5]


def test_a_stopped_run_ends_like_one_that_never_stopped(interrupted, finished, tiny):
    assert run("train", "--out", interrupted, *tiny) == 0
    assert_same_end(interrupted, finished)
    seconds = [row["seconds"] for row in rows_of(interrupted)]
    assert seconds == sorted(seconds)


def test_a_stopped_run_with_gates_ends_like_one_that_never_stopped(tiny, tmp_path, monkeypatch):
    options = [*tiny, "--mixer", "sv", "--chunk", "4", "--learn-sigma"]
    assert run("train", "--out", tmp_path / "whole", *options) == 0
    advance = Trainer.advance
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "advance", lambda self, _: advance(self, lambda: self.step == 12))
        assert run("train", "--out", tmp_path / "parts", *options) == 130
    assert run("train", "--out", tmp_path / "parts", *options) == 0
    assert_same_end(tmp_path / "parts", tmp_path / "whole")
    gates = [
        [(row["mean_support"], row["worst_gap"]) for row in rows_of(tmp_path / name)] for name in ("parts", "whole")
    ]
    assert gates[0] == gates[1]
    assert all(support > 0 for support, _ in gates[0])


def test_a_run_that_died_between_row_and_checkpoint_ends_like_one_that_did_not(interrupted, finished, tiny):
    rows = (finished / files.ROWS).read_text().splitlines(keepends=True)
    (interrupted / files.ROWS).write_text("".join(rows[:3]) + rows[3][:50])
    assert run("train", "--out", interrupted, *tiny) == 0
    assert_same_end(interrupted, finished)


def test_a_finished_run_is_not_run_again(finished, tiny, capsys):
    before = (finished / files.ROWS).read_bytes()
    assert run("train", "--out", finished, *tiny) == 0
    assert (finished / files.ROWS).read_bytes() == before
    assert "held-out bits per byte, at step" in capsys.readouterr().out


def test_a_checkpoint_that_cannot_be_written_leaves_the_one_before(interrupted, tiny, monkeypatch, capsys):
    before = (interrupted / files.CHECKPOINT).read_bytes()

    def full(file, **_):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    assert run("train", "--out", interrupted, *tiny) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert (interrupted / files.CHECKPOINT).read_bytes() == before
    assert sorted(path.name for path in interrupted.iterdir()) == ["checkpoint.npz", "rows.jsonl", "run.json"]


def test_a_folder_with_another_run_is_left_alone(finished, tiny, capsys):
    before = (finished / files.ROWS).read_bytes()
    assert run("train", "--out", finished, *tiny, "--lr", 0.5, "--seed", 3) == 1
    assert "holds a run with another lr, another seed: name another folder" in capsys.readouterr().err
    assert run("train", "--out", finished, *tiny, "--data", __file__) == 1
    assert "holds a run with another text" in capsys.readouterr().err
    assert (finished / files.ROWS).read_bytes() == before


def test_a_run_whose_loss_explodes_ends_with_a_row_that_says_so(tiny, tmp_path, capsys):
    assert run("train", "--out", tmp_path, *tiny, "--lr", 1e30, "--every", 100) == 1
    assert "diverged: the loss or its gradient is no number" in capsys.readouterr().err
    (row,) = rows_of(tmp_path)
    assert row["bits_per_byte"] is None
    assert None in (row["loss"], row["grad_norm"])
    assert not (tmp_path / files.CHECKPOINT).exists()


def test_the_matched_window_is_the_mean_support_and_the_chunk(finished, tiny, tmp_path):
    shutil.copytree(finished, tmp_path / "sv")
    files.write_rows(tmp_path / "sv" / files.ROWS, [{"mean_support": 9.0}, {"mean_support": 3.6}])
    assert run("train", "--out", tmp_path / "run", *tiny, "--mixer", "window", "--match", tmp_path / "sv") == 0
    assert files.read_json(tmp_path / "run" / files.RUN)["settings"]["window"] == 64 + 4


def test_a_sample_begins_with_its_prompt_and_comes_again_with_its_seed(finished, capsys):
    drawn = []
    for seed in (1, 1, 2):
        assert run("sample", finished, "--prompt", "svmem ", "--bytes", 30, "--seed", seed) == 0
        drawn.append(capsys.readouterr().out)
    assert drawn[0] == drawn[1] != drawn[2]
    assert all(text.startswith("svmem ") for text in drawn)


def test_a_sample_sends_no_control_characters_to_the_terminal(finished, capsys):
    assert run("sample", finished, "--bytes", 300, "--temperature", 50, "--top-k", 256) == 0
    assert all(c.isprintable() or c == "\n" for c in capsys.readouterr().out)


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_the_figure_shows_each_run(finished, tiny, tmp_path, capsys, ending):
    assert run("train", "--out", tmp_path / "other", *tiny, "--mixer", "linear") == 0
    capsys.readouterr()
    picture = tmp_path / "figures" / f"curves.{ending}"
    assert run("figure", finished, tmp_path / "other", "--out", picture) == 0
    assert capsys.readouterr().out.strip() == str(picture)
    start = {"svg": b"<svg", "png": b"\x89PNG"}[ending]
    assert picture.read_bytes().startswith(start)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_said_to_be_missing(tiny, tmp_path, capsys):
    assert run("train", "--out", tmp_path / "run", *tiny, "--device", "cuda") == 1
    assert "--device cuda needs a GPU that this torch can use" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_two_mixers_are_compared_over_the_seeds_that_both_have(finished, tiny, tmp_path, capsys):
    assert run("train", "--out", tmp_path, *tiny, "--mixer", "linear") == 0
    capsys.readouterr()
    assert run("compare", finished, tmp_path, "--mixers", "softmax", "linear") == 0
    assert re.match(r"softmax has fewer bits per byte than linear in [01] of 1 seeds \(", capsys.readouterr().out)
    assert run("compare", finished, tmp_path) == 1
    assert "to compare sv with window, both need a run of the same seed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["train", "--out", "{}/r", "--data", "{}/none"], "cannot be read: .*No such file"),
        (["train", "--out", "{}/r", "--mixer", "mean"], "mixer must be one of sv, softmax, window, linear, delta"),
        (["train", "--out", "{}/r", "--heads", "3"], "width must be a multiple of heads"),
        (["train", "--out", "{}/r", "--steps", "0"], "steps must be at least 1"),
        (["train", "--out", "{}/r", "--lr", "nan"], "lr must be positive"),
        (["train", "--out", "{}/r", "--seed", "-1"], "seed must be at least 0"),
        (["train", "--out", "{}/r", "--match", "{}"], "--match sets the width of --mixer window"),
        (["sample", "{}"], r"run\.json cannot be read"),
        (["figure", "{}", "--out", "{}/f.svg"], r"run\.json cannot be read"),
    ],
)
def test_a_mistake_is_one_line_and_code_1(argv, says, tmp_path, capsys):
    assert run(*(word.format(tmp_path) for word in argv)) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert err.startswith("experiments.lm: ")
    assert list(tmp_path.iterdir()) == []
    assert re.search(says, err)


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["sample", "--prompt", ""], "the prompt must hold at least one byte"),
        (["sample", "--top-k", "0"], "top_k must be from 1 to the vocabulary"),
        (["figure", "--out", "curves.exe"], r"a figure's name must end in one of .*\.svg.*got curves\.exe"),
    ],
)
def test_a_wrong_wish_of_a_finished_run_is_one_line_and_code_1(argv, says, finished, capsys):
    assert run(argv[0], finished, *argv[1:]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert re.search(says, err)


def test_a_command_typed_wrongly_is_code_2(capsys):
    for argv in ([], ["train"], ["train", "--out", "x", "--steps", "many"], ["dance"]):
        with pytest.raises(SystemExit, match="2"):
            run(*argv)
    assert "invalid int value: 'many'" in capsys.readouterr().err


def test_no_pickle_is_opened(finished, tmp_path, capsys):
    shutil.copytree(finished, tmp_path / "run")
    np.savez(tmp_path / "run" / files.CHECKPOINT, rng=np.array([Trap()], dtype=object))
    assert run("sample", tmp_path / "run") == 1
    assert "checkpoint.npz is not a checkpoint: Object arrays cannot be loaded" in capsys.readouterr().err


class Trap:
    def __reduce__(self):
        return sys.exit, (99,)


def test_a_damaged_checkpoint_is_refused(finished, tiny, tmp_path, capsys):
    shutil.copytree(finished, tmp_path / "run")
    whole, one_array = (finished / files.CHECKPOINT).read_bytes(), io.BytesIO()
    np.save(one_array, np.zeros(3))
    for damaged in (b"", whole[:1000], b"no zip" * 50, one_array.getvalue()):
        (tmp_path / "run" / files.CHECKPOINT).write_bytes(damaged)
        assert run("train", "--out", tmp_path / "run", *tiny) == 1
        assert "checkpoint.npz is not a checkpoint" in capsys.readouterr().err


def test_damaged_settings_are_refused(finished, tmp_path, capsys):
    shutil.copytree(finished, tmp_path / "run")
    for damaged in ("{", "[]", json.dumps({"settings": {"mixer": "sv"}})):
        (tmp_path / "run" / files.RUN).write_text(damaged)
        assert run("sample", tmp_path / "run") == 1
        assert "run.json" in capsys.readouterr().err


def test_a_run_without_rows_cannot_be_drawn(finished, tmp_path, capsys):
    shutil.copytree(finished, tmp_path / "run")
    (tmp_path / "run" / files.ROWS).unlink()
    assert run("figure", tmp_path / "run", "--out", tmp_path / "f.svg") == 1
    assert "holds a run that has no row yet: one comes every 5 steps" in capsys.readouterr().err
