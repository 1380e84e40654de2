"""SnapKV: the last queries vote for keys, and votes are shared with neighbours in time."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from svmem.baselines.selection.scene import Scene, attention, check_budget, highest
from svmem.errors import InvalidInput
from svmem.types import Ids

__all__ = ["SnapKV"]


@dataclass(frozen=True, slots=True)
class SnapKV:
    """Keep the keys with the most attention of the last `window` queries seen, averaged over `pool` neighbours.

    Window and average pooling as in the released code; beyond the ends the votes are 0. [LiEtAl2024, listing 1]
    Deviations: RBF weights that sum to 1; one head; the window's own keys are not kept, since queries bring none here.
    """

    window: int = 32
    pool: int = 5
    name: ClassVar[str] = "SnapKV"

    def __post_init__(self) -> None:
        if self.window < 1 or self.pool < 1 or self.pool % 2 == 0:
            raise InvalidInput(f"window must be at least 1 and pool odd, got {self.window} and {self.pool}")

    def select(self, scene: Scene, budget: int, rng: np.random.Generator) -> Ids:
        """Return the positions that stay."""
        check_budget(scene, budget)
        if scene.seen is None:
            raise InvalidInput("SnapKV is told by queries that were seen: give the scene `seen`")
        votes = attention(scene, scene.seen[-self.window :]).sum(axis=0)
        half = self.pool // 2
        pooled = np.convolve(votes, np.full(self.pool, 1 / self.pool))[half : half + len(votes)]
        return highest(pooled, budget)
