"""The support set: the keys that the optimum gives weight."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from svmem.baselines.selection.scene import Scene, check_budget
from svmem.types import Ids

__all__ = ["Support"]


@dataclass(frozen=True, slots=True)
class Support:
    """Keep the keys with alpha > 0 of an exact solve when the budget is their number. [Ramesh2026]

    Ours, since the paper has no other budgets: keys are ranked by alpha, and among equal ones by h = f - 1/2 - offset,
    the lowest first. So of keys at the cap the outermost stay, and of the reserve those nearest to the margin come in.
    """

    name: ClassVar[str] = "support"

    def select(self, scene: Scene, budget: int, rng: np.random.Generator) -> Ids:
        """Return the positions that stay."""
        check_budget(scene, budget)
        alpha = scene.solution.alpha
        h = scene.gram @ alpha - 0.5 - scene.solution.offset
        return np.sort(np.lexsort((h, -alpha))[:budget])
