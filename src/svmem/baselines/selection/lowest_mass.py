"""The keys in the thinnest places."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from svmem.baselines.selection.scene import Scene, check_budget, highest
from svmem.types import Ids

__all__ = ["LowestMass"]


@dataclass(frozen=True, slots=True)
class LowestMass:
    """Keep the keys with the smallest summed kernel to all keys: the lowest kernel density. [Parzen1962]

    No published selector as such: the plainest rule that favours rare keys, and KeyDiff where the keys are the kernel's
    features, since these have length 1 and their cosine to their mean is proportional to the summed kernel.
    """

    name: ClassVar[str] = "lowest kernel mass"

    def select(self, scene: Scene, budget: int, rng: np.random.Generator) -> Ids:
        """Return the positions that stay."""
        check_budget(scene, budget)
        return highest(-scene.gram.sum(axis=1), budget)
