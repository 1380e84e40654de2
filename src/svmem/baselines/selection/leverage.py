"""Ridge leverage scores: how much of the kernel matrix depends on each key."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from svmem.baselines.selection.scene import Scene, check_budget, highest
from svmem.types import Ids, Vector

__all__ = ["Leverage"]

_HALVINGS = 60  # of an interval of at most 37 in log lambda


@dataclass(frozen=True, slots=True)
class Leverage:
    """Keep the keys with the highest ridge leverage scores diag(K (K + lambda I)^-1). [AlaouiMahoney2015]

    They are ranked, not drawn [PapailiopoulosKyrillidisBoutsidis2014]. Ours: lambda is where the scores add up to the
    budget, so that it needs no choosing; as near to 0 as rounding allows where they never do.
    """

    name: ClassVar[str] = "leverage"

    def select(self, scene: Scene, budget: int, rng: np.random.Generator) -> Ids:
        """Return the positions that stay."""
        check_budget(scene, budget)
        values, vectors = np.linalg.eigh(scene.gram)
        values = np.maximum(values, 0.0)  # K is positive semi-definite up to rounding
        return highest(np.square(vectors) @ (values / (values + _ridge(values, budget))), budget)


def _ridge(values: Vector, budget: int) -> float:
    """Return lambda with sum values / (values + lambda) = budget, by bisection of its logarithm."""
    n = len(values)
    low, high = np.log(n * np.finfo(np.float64).eps), np.log(float(n))  # the sum is below 1 at the upper end
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if (values / (values + np.exp(middle))).sum() > budget:
            low = middle
        else:
            high = middle
    return float(np.exp(high))
