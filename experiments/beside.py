"""How far answers are from those of a memory that never held what was forgotten."""

from dataclasses import dataclass

import numpy as np

from svmem import Memory, Problem
from svmem.baselines.forgetting import Forgetting, State
from svmem.types import Ids, Keys, Queries, Values, Vector

__all__ = ["Refit", "filled", "probes_of"]


def filled(problem: Problem, keys: Keys, values: Values, owners: list[str | None] | None = None) -> Memory:
    """Return a memory of these records."""
    memory = Memory(problem, keys.shape[1], values.shape[1])
    memory.add(keys, values, owners=owners)
    return memory


def probes_of(rng: np.random.Generator, kept: Keys, gone: Keys) -> Queries:
    """Return the probes of [Ramesh2026]: what is retained, what was removed, and the former with noise of 0.1."""
    return np.vstack([kept, gone, kept + 0.1 * rng.standard_normal(kept.shape)])


@dataclass(frozen=True, slots=True)
class Refit:
    """What a refit answers at probes (m, d), and the range (v,) of the values before."""

    probes: Queries
    score: Vector
    read: Values
    spread: Vector

    @classmethod
    def of(cls, refit: Memory, probes: Queries, values: Values) -> "Refit":
        """Return the answers of a refit; `values` are all there were."""
        spread = np.ptp(values, axis=0)
        return cls(probes, refit.score(probes), refit.read(probes), np.where(spread > 0, spread, 1.0))

    def away(self, score: Vector, read: Values) -> tuple[float, float]:
        """Return the largest deviation of a gate score, and of a readout as a share of its range."""
        return float(np.abs(score - self.score).max()), float((np.abs(read - self.read) / self.spread).max())

    def away_with(self, method: Forgetting, state: State, offset: float, gone: Ids) -> tuple[float, float]:
        """Return the deviations after a method that solves nothing again: the offset stays as it was."""
        alpha = method(state, gone)
        score = 2 * (state.density(self.probes, alpha) - 0.5 - offset)
        return self.away(score, state.read(self.probes, alpha))
