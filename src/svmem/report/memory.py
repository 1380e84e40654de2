"""The report of a memory: from the memory to the page."""

from pathlib import Path

import numpy as np

from svmem.core.solution import Status
from svmem.memory import Memory
from svmem.report.contents import Contents
from svmem.report.overview import overview_page

__all__ = ["contents_of", "write_report"]

DRAWN = 4000  # records in a scatter plot; more would only be ink, and cost a score each


def write_report(memory: Memory, path: Path, *, title: str = "A support-vector memory") -> None:
    """Write the report of a memory to one HTML file that loads nothing from elsewhere."""
    path.write_text(overview_page(contents_of(memory), title), encoding="utf-8")


def contents_of(memory: Memory) -> Contents:
    """Return what the report shows. The drawn records are all, or 4,000 of them chosen with a fixed seed."""
    state, keys, n = memory.solution, memory.keys, len(memory)
    drawn = np.arange(n) if n <= DRAWN else np.sort(np.random.default_rng(0).choice(n, DRAWN, replace=False))
    return Contents(
        problem=memory.problem,
        keys=keys,
        value_dim=memory.value_dim,
        alpha=state.alpha,
        drawn=drawn,
        score=memory.score(keys[drawn]) if n else np.empty(0),
        sets={name: np.isin(state.ids, getattr(state, name)) for name in ("margin", "bound", "reserve")},
        owner=np.array([owner or "" for owner in memory.owners], dtype=np.str_),
        digest=memory.digest(),
        collecting=state.status is Status.COLLECTING,
        optimality=memory.certify().to_json(),
    )
