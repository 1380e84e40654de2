"""KeyDiff: the keys that point elsewhere than most."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from svmem.baselines.selection.scene import Scene, check_budget, highest
from svmem.types import Ids

__all__ = ["KeyDiff"]


@dataclass(frozen=True, slots=True)
class KeyDiff:
    """Keep the keys with the lowest cosine to the mean of all keys scaled to length 1. [ParkEtAl2025]

    The zero key points nowhere: its cosine counts as 0. Deviation: all keys are judged at once, not block by block.
    """

    name: ClassVar[str] = "KeyDiff"

    def select(self, scene: Scene, budget: int, rng: np.random.Generator) -> Ids:
        """Return the positions that stay."""
        check_budget(scene, budget)
        length = np.linalg.norm(scene.keys, axis=1, keepdims=True)
        unit = scene.keys / np.where(length > 0, length, 1.0)
        return highest(-(unit @ unit.mean(axis=0)), budget)  # the length of the mean does not change the order
