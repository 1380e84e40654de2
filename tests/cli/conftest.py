"""A small table, a memory made of it by the command line, and a way to call the command line."""

import csv
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from svmem.cli import main

CANARY = "Canary-7f3a9"  # an owner whose name must not appear in errors
N = 24


@dataclass(frozen=True, slots=True)
class Result:
    """What one command left: exit code, stdout and stderr."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Return stdout as strict JSON."""

        def refuse(constant: str) -> None:
            raise AssertionError(f"{constant} is no strict JSON")

        return json.loads(self.out, parse_constant=refuse)


Run = Callable[..., Result]


def write_csv(path: Path, header: list[str], rows: list[list[Any]]) -> Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def write_npz(path: Path, arrays: Mapping[str, Any]) -> None:
    savez: Any = np.savez  # its types know no arrays by names from a dict
    savez(path, **{name: np.array(array) for name, array in arrays.items()})


def records() -> tuple[np.ndarray, np.ndarray, list[str]]:
    keys = np.random.default_rng(7).standard_normal((N, 2)).round(3)
    owners = [CANARY if i % 6 == 0 else f"P-{i % 4}" for i in range(N)]
    return keys, keys.sum(axis=1, keepdims=True).round(3), owners


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> Result:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return Result(code, said.out, said.err)

    return call


@pytest.fixture
def table(tmp_path: Path) -> Path:
    keys, values, owners = records()
    rows = [[*key, *value, owner] for key, value, owner in zip(keys.tolist(), values.tolist(), owners, strict=True)]
    return write_csv(tmp_path / "hours.csv", ["hr", "sbp", "next", "patient"], rows)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory, compiled_memory: None) -> Path:
    import svmem

    path = tmp_path_factory.mktemp("made") / "hours.svmem"
    keys, values, owners = records()
    memory = svmem.Memory(svmem.Problem(svmem.RBF(1.5), C=0.125), key_dim=2, value_dim=1)
    memory.add(keys, values, owners=owners)
    memory.save(path)
    return path


@pytest.fixture
def memory(tmp_path: Path, made: Path) -> Path:
    return Path(shutil.copy(made, tmp_path / "hours.svmem"))
