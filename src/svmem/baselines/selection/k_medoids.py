"""k-medoids: the centres of clusters that are keys themselves."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from svmem.baselines.selection.scene import Scene, check_budget
from svmem.types import Ids

__all__ = ["KMedoids"]

_ROUNDS = 100  # the cost falls in each, so only rounding could need an end


@dataclass(frozen=True, slots=True)
class KMedoids:
    """Keep the medoids of `budget` clusters, to whose medoids the summed distance is a local minimum. [ParkJun2009]

    Deviation: the first medoids are drawn by squared distance [ArthurVassilvitskii2007], as the central ones of the
    source may all be copies of one key.
    """

    name: ClassVar[str] = "k-medoids"

    def select(self, scene: Scene, budget: int, rng: np.random.Generator) -> Ids:
        """Return the positions that stay."""
        check_budget(scene, budget)
        distance = np.sqrt(scene.dist2)
        chosen = _spread(scene.dist2, budget, rng)
        for _ in range(_ROUNDS):
            moved = _moved(distance, chosen)
            if np.array_equal(moved, chosen):
                break
            chosen = moved
        return np.sort(chosen)


def _spread(dist2: NDArray[np.float64], budget: int, rng: np.random.Generator) -> Ids:
    """Return distinct keys, each drawn with the probability of its squared distance to those before it."""
    chosen = [int(rng.integers(len(dist2)))]
    away = dist2[chosen[0]].copy()
    while len(chosen) < budget:
        if not away.any():  # only copies are left
            away[:] = 1.0
            away[chosen] = 0.0
        chosen.append(int(rng.choice(len(away), p=away / away.sum())))
        np.minimum(away, dist2[chosen[-1]], out=away)
    return np.array(chosen, np.int64)


def _moved(distance: NDArray[np.float64], chosen: Ids) -> Ids:
    """Return the key of each cluster with the smallest summed distance to it, the old medoid among equals."""
    label = distance[:, chosen].argmin(axis=1)
    label[chosen] = np.arange(len(chosen))  # copies of one key may be medoids of several clusters
    within = np.where(label[:, None] == label[None, :], distance, 0.0).sum(axis=1)
    other = np.ones(len(distance), bool)
    other[chosen] = False
    order = np.lexsort((other, within, label))
    return order[np.unique(label[order], return_index=True)[1]]
