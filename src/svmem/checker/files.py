"""Records and certificates from files."""

import csv
import json
import zipfile
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

__all__ = ["Unreadable", "read_certificate", "read_records"]


class Unreadable(Exception):
    """A file that is not what it should be; the message says what is wrong with it."""


def read_records(path: str) -> tuple[Any, Any]:
    """Return keys (n, d) and values (n, v) from an .npz of these arrays, or a .csv with key... and value... columns."""
    try:
        arrays = _read_csv(path) if path.lower().endswith(".csv") else _read_npz(path)
    except (OSError, EOFError, ValueError, KeyError, StopIteration, zipfile.BadZipFile) as error:
        raise Unreadable(f"{path} holds no records: {error or type(error).__name__}") from None
    for name, array in arrays.items():
        if array.ndim != 2 or array.dtype.kind not in "fiub" or not np.isfinite(array.astype(np.float64)).all():
            raise Unreadable(f"{path}: {name} must be finite numbers in rows and columns, got shape {array.shape}")
    if len(arrays["keys"]) != len(arrays["values"]) or not arrays["keys"].shape[1]:
        raise Unreadable(f"{path}: needs as many values as keys, and at least one key column")
    return arrays["keys"].astype(np.float64), arrays["values"].astype(np.float64)


def read_certificate(path: str) -> Any:
    """Return the certificate in a JSON file. Refuses NaN, infinity and fields given twice."""
    try:
        return json.loads(Path(path).read_text("utf-8"), parse_constant=_refuse, object_pairs_hook=_unique)
    except (OSError, ValueError, RecursionError) as error:
        raise Unreadable(f"{path} holds no certificate: {error}") from None


def _read_npz(path: str) -> dict[str, Any]:
    with open(path, "rb") as file:
        archive = np.load(file, allow_pickle=False)
        if not hasattr(archive, "files"):
            raise ValueError("it must be an .npz archive")
        return {name: archive[name] for name in ("keys", "values")}


def _read_csv(path: str) -> dict[str, Any]:
    with open(path, newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        header = next(lines)
        rows = [[float(cell) for cell in line] for line in lines if line]
    if any(len(row) != len(header) for row in rows):
        raise ValueError("each row must have as many cells as the header")
    table = np.array(rows, dtype=np.float64).reshape(len(rows), len(header))
    names = {"keys": "key", "values": "value"}
    return {name: table[:, [c for c, h in enumerate(header) if h.startswith(start)]] for name, start in names.items()}


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        raise ValueError("a field is given twice")
    return data
