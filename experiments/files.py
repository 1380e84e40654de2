"""What an experiment writes: rows, one JSON object a line, with the versions of what computed them.

A run with a folder of its own has run.json, what it is, rows.jsonl, what it measured, and checkpoint.npz, where it is.
"""

import json
import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numba
import numpy as np
import torch

import svmem
from svmem.errors import FileRefused
from svmem.types import Json

__all__ = [
    "CHECKPOINT",
    "ROWS",
    "RUN",
    "add_row",
    "read_json",
    "read_rows",
    "replaced",
    "versions",
    "write_json",
    "write_rows",
]

RUN, ROWS, CHECKPOINT = "run.json", "rows.jsonl", "checkpoint.npz"


@contextmanager
def replaced(path: Path) -> Iterator[IO[bytes]]:
    """Give a file to write that takes the place of `path` when the block ends well: whole or not at all."""
    beside = path.with_name(path.name + ".part")
    try:
        with beside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)  # the new name itself has to reach the disk too
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_json(path: Path, data: Json) -> None:
    """Write a JSON object, whole or not at all."""
    with replaced(path) as file:
        file.write(json.dumps(data, indent=2, allow_nan=False).encode() + b"\n")


def read_json(path: Path) -> Json:
    """Return the JSON object in a file. Raises FileRefused when there is none."""
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise FileRefused(f"{path} cannot be read: {error}") from None
    if not isinstance(data, dict):
        raise FileRefused(f"{path} must hold a JSON object, not {type(data).__name__}")
    return data


def read_rows(path: Path) -> list[Json]:
    """Return the rows of a run; none where there is no file.

    A last line without its end is left out: writing it was cut short. Raises FileRefused for other lines that are none.
    """
    if not path.exists():
        return []
    try:
        return [json.loads(line) for line in path.read_text().split("\n")[:-1]]
    except (OSError, ValueError) as error:
        raise FileRefused(f"{path} must hold one JSON object a line: {error}") from None


def write_rows(path: Path, rows: Sequence[Json]) -> None:
    """Write the rows of a run, whole or not at all."""
    with replaced(path) as file:
        file.writelines(json.dumps(row, allow_nan=False).encode() + b"\n" for row in rows)


def add_row(path: Path, row: Json) -> None:
    """Add one row."""
    with path.open("a") as file:
        file.write(json.dumps(row, allow_nan=False) + "\n")


def versions() -> Json:
    """Return the versions of what computes."""
    return {
        "svmem": svmem.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "numba": numba.__version__,
    }
