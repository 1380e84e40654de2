"""Farthest-point traversal: a 2-approximation of the k-centre problem."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from svmem.baselines.selection.scene import Scene, check_budget
from svmem.types import Ids

__all__ = ["FarthestPoint"]


@dataclass(frozen=True, slots=True)
class FarthestPoint:
    """Keep a drawn key, then again and again the key farthest from those kept. [Gonzalez1985]

    Euclidean distances, which the RBF kernel orders the same way. The earlier key is taken among equals.
    """

    name: ClassVar[str] = "farthest-point"

    def select(self, scene: Scene, budget: int, rng: np.random.Generator) -> Ids:
        """Return the positions that stay."""
        check_budget(scene, budget)
        kept = [int(rng.integers(len(scene)))]
        away = scene.dist2[kept[0]].copy()
        while len(kept) < budget:
            away[kept[-1]] = -1.0  # what is kept is never taken again, though its twin is
            kept.append(int(away.argmax()))
            np.minimum(away, scene.dist2[kept[-1]], out=away)
        return np.sort(np.array(kept, np.int64))
