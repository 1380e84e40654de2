"""A memory filled as hours arrive, with the sizes of its three sets noted on the way."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from svmem.core.problem import Problem
from svmem.demo.hours import Hours
from svmem.memory import Memory

__all__ = ["Growth", "grow"]


@dataclass(frozen=True, slots=True, eq=False)
class Growth:
    """Sizes of margin, bound and reserve after `seen` hours; selection starts at `needed` hours."""

    seen: NDArray[np.int64]
    margin: NDArray[np.int64]
    bound: NDArray[np.int64]
    reserve: NDArray[np.int64]
    needed: int


def grow(
    hours: Hours, problem: Problem, batch: int, advance: Callable[[int], None] = lambda _: None
) -> tuple[Memory, Growth]:
    """Return a memory of these hours, each owned by its patient, added `batch` at a time, and how it grew.

    Ids are the row numbers. `advance` is called with the number of hours after each batch.
    """
    memory = Memory(problem, key_dim=hours.keys.shape[1], value_dim=hours.values.shape[1])
    counts = []
    for start in range(0, len(hours), batch):
        rows = slice(start, min(start + batch, len(hours)))
        memory.add(hours.keys[rows], hours.values[rows], owners=hours.patient[rows].tolist())
        state = memory.solution
        counts.append((rows.stop, len(state.margin), len(state.bound), len(state.reserve)))
        advance(rows.stop - rows.start)
    seen, margin, bound, reserve = np.array(counts, dtype=np.int64).T
    return memory, Growth(seen, margin, bound, reserve, problem.n_min)
