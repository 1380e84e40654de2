"""Two processes train as one does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from experiments import files
from experiments.language import checkpoint
from experiments.language.trainer import Trainer
from experiments.language.world import World
from svmem.errors import InvalidInput

ROOT = Path(__file__).parents[2]


def two_processes(folder, options):
    """Run the training command under torchrun, on the CPU."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    command = [*launcher, "-m", "experiments.lm", "train", "--out", str(folder), *options]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=120
    )


def test_two_processes_learn_what_one_does_from_the_same_batches(finished, tiny, tmp_path):
    ran = two_processes(tmp_path / "run", tiny)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("held-out bits per byte, at step") == 1  # one of the two speaks
    mine, theirs = files.read_rows(tmp_path / "run" / files.ROWS), files.read_rows(finished / files.ROWS)
    assert [row["step"] for row in mine] == [row["step"] for row in theirs]
    for row, expected in zip(mine, theirs, strict=True):
        assert row["processes"] == 2
        for name in ("loss", "bits_per_byte", "grad_norm"):
            assert row[name] == pytest.approx(expected[name], rel=1e-4)
    assert checkpoint.read_arrays(tmp_path / "run" / files.CHECKPOINT)["step"] == 20


def test_a_batch_that_does_not_split_is_refused(finished):
    import torch

    from experiments.language.settings import Settings
    from experiments.language.text import read_text

    text = read_text(ROOT / "README.md", limit_bytes=10_000, block=16)
    with pytest.raises(InvalidInput, match="batch must be a multiple of the number of processes, got 5 and 2"):
        Trainer(Settings(batch=5, block=16), text, World(0, 2, torch.device("cpu")))
