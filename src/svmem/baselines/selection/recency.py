"""The last keys."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from svmem.baselines.selection.scene import Scene, check_budget
from svmem.types import Ids

__all__ = ["Recency"]


@dataclass(frozen=True, slots=True)
class Recency:
    """Keep the most recent keys: a sliding window. [BeltagyPetersCohan2020]"""

    name: ClassVar[str] = "recency"

    def select(self, scene: Scene, budget: int, rng: np.random.Generator) -> Ids:
        """Return the positions that stay."""
        check_budget(scene, budget)
        return np.arange(len(scene) - budget, len(scene))
