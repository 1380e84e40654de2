"""A memory filled as hours arrive, with the sizes of its three sets noted on the way."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from svmem.core.problem import Problem
from svmem.demo.hours import Hours
from svmem.kernels import RBF
from svmem.memory import Memory

__all__ = ["Growth", "compile_once", "grow"]


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


def compile_once(advance: Callable[[int], None] = lambda _: None) -> None:
    """Have all compiled that the demo uses, by a memory of nothing much, so that times later are not the compiler's.

    The compiled code is kept on disk: later this takes a second. `advance` is called 4 times.
    """
    keys = np.random.default_rng(0).standard_normal((60, 6))
    memory = Memory(Problem.from_nu(0.5, 60, RBF(1.0)), key_dim=6, value_dim=6)
    memory.add(keys[:50], keys[:50])  # solved from nothing
    advance(1)
    memory.add(keys[50:], keys[50:])  # step by step
    advance(1)
    memory.forget(ids=[0, 1])
    advance(1)
    memory.read(keys[:1])
    memory.score(keys[:1])
    memory.certificate()
    advance(1)
