"""Chance, for a stream whose end is not known."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from svmem.baselines.selection.scene import Scene, check_budget
from svmem.types import Ids

__all__ = ["Reservoir"]


@dataclass(frozen=True, slots=True)
class Reservoir:
    """Keep a reservoir: key i takes a random place with probability budget / (i + 1). [Vitter1985, algorithm R]

    The same distribution as Uniform, in one pass with a memory of the size of the budget.
    """

    name: ClassVar[str] = "reservoir"

    def select(self, scene: Scene, budget: int, rng: np.random.Generator) -> Ids:
        """Return the positions that stay."""
        check_budget(scene, budget)
        kept = np.arange(budget)
        late = np.arange(budget, len(scene))
        for position, place in zip(late, rng.integers(late + 1), strict=True):
            if place < budget:
                kept[place] = position
        return np.sort(kept)
