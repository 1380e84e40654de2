"""Rows of results: where they come from, how they are printed, how they are kept."""

import json
import platform
from pathlib import Path

import numba
import numpy as np
from rich.console import Console
from rich.table import Table

import svmem
from svmem.types import Json

__all__ = ["print_table", "provenance", "write_rows"]


def provenance(command: str = "") -> Json:
    """Return the command and versions that a row was measured with; random numbers are seeded in the command's code."""
    return {
        "command": command,
        "seed": "fixed in the command",
        "svmem": svmem.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


def print_table(rows: list[Json]) -> None:
    """Print rows with the same fields, without their provenance, one line each."""
    names = [name for name in rows[0] if name not in provenance()]
    table = Table(*names, box=None, header_style="bold")
    for row in rows:
        table.add_row(*(f"{row[name]:.3g}" if isinstance(row[name], float) else str(row[name]) for name in names))
    Console(width=200).print(table)


def write_rows(path: Path, rows: list[Json]) -> None:
    """Write rows as JSON lines, replacing what was there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
