"""Tiny runs: of the experiment that a module of tests names EXPERIMENT and TINY, and of a language model."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from experiments import lm
from experiments.ledger import conduct

README = Path(__file__).parents[2] / "README.md"
SIZES = ["--width", "16", "--layers", "2", "--heads", "2", "--block", "16", "--batch", "4", "--windows", "4"]
STEPS = ["--steps", "20", "--every", "5"]


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread in the block: on a busy machine several wait for each other at every tiny product."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    with one_thread():
        yield


@pytest.fixture(scope="module")
def path(request, tmp_path_factory):
    """Where the rows of the module's experiment are."""
    return tmp_path_factory.mktemp(request.module.EXPERIMENT.name) / "rows.jsonl"


@pytest.fixture(scope="module")
def rows(request, path):
    """The rows of the module's experiment at its tiny size."""
    return conduct(request.module.EXPERIMENT, request.module.TINY, path, "a command")


@pytest.fixture(scope="session")
def tiny():
    """The options of a tiny run of 20 steps, with a row every 5."""
    return ["--data", str(README), "--mixer", "softmax", *SIZES, *STEPS]


@pytest.fixture(scope="session")
def finished(tiny, tmp_path_factory):
    """The folder of a tiny run that has ended."""
    folder = tmp_path_factory.mktemp("runs") / "finished"
    with one_thread():
        assert lm.main(["train", "--out", str(folder), *tiny]) == 0
    return folder
