"""ManifoldKV: the keys far from the centroid."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from svmem.baselines.selection.scene import Scene, check_budget, dist2, highest
from svmem.types import Ids

__all__ = ["ManifoldKV"]


@dataclass(frozen=True, slots=True)
class ManifoldKV:
    """Keep the keys with the largest Euclidean distance to the mean of all keys. [DattaEtAl2026]

    Its form with one centroid for all keys, not the one with a centroid a window.
    """

    name: ClassVar[str] = "ManifoldKV"

    def select(self, scene: Scene, budget: int, rng: np.random.Generator) -> Ids:
        """Return the positions that stay."""
        check_budget(scene, budget)
        return highest(dist2(scene.keys, scene.keys.mean(axis=0, keepdims=True))[:, 0], budget)
