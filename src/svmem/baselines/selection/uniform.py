"""Chance."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from svmem.baselines.selection.scene import Scene, check_budget
from svmem.types import Ids

__all__ = ["Uniform"]


@dataclass(frozen=True, slots=True)
class Uniform:
    """Keep keys drawn without replacement, all sets of that size being equally likely."""

    name: ClassVar[str] = "random"

    def select(self, scene: Scene, budget: int, rng: np.random.Generator) -> Ids:
        """Return the positions that stay."""
        check_budget(scene, budget)
        return np.sort(rng.choice(len(scene), budget, replace=False))
