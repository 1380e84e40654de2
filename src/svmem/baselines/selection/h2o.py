"""H2O: a cache that evicts, whenever it is full, the key that drew least attention so far."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from svmem.baselines.selection.scene import Scene, check_budget
from svmem.types import Ids

__all__ = ["H2O"]


@dataclass(frozen=True, slots=True)
class H2O:
    """Keep what the greedy eviction of H2O leaves: half of the budget heavy, half recent. [ZhangEtAl2023, algorithm 1]

    Deviations: a key is its own query, and attends to the cache and itself with RBF weights that sum to 1; one head.
    Queries that come after the last key change nothing, since only a new key evicts. An odd budget has one more recent.
    """

    name: ClassVar[str] = "H2O"

    def select(self, scene: Scene, budget: int, rng: np.random.Generator) -> Ids:
        """Return the positions that stay."""
        check_budget(scene, budget)
        recent = budget - budget // 2
        drawn = np.zeros(len(scene))
        cache = np.empty(0, np.int64)
        for position, weight in enumerate(scene.gram):
            cache = np.append(cache, position)
            drawn[cache] += weight[cache] / weight[cache].sum()  # its own weight is 1: the sum is never 0
            if len(cache) > budget:
                cache = np.delete(cache, drawn[cache[:-recent]].argmin())
        return cache
