"""Heavy hitters: the keys on which most of the kernel mass of some points falls."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from svmem.baselines.selection.scene import Scene, check_budget, dist2, highest
from svmem.errors import InvalidInput
from svmem.types import Ids, Queries, Vector

__all__ = ["HeavyHitter", "OracleHeavyHitter", "SelfMass"]


def _mass(scene: Scene, queries: Queries) -> Vector:
    return np.exp(-dist2(scene.keys, queries) / scene.problem.kernel.scale).sum(axis=1)


@dataclass(frozen=True, slots=True)
class OracleHeavyHitter:
    """Keep the keys with the largest summed kernel to all queries that will be asked. [ZhangEtAl2023, section 3]

    As in [Ramesh2026] the kernel values are not normalised over the keys, and nothing is kept for being recent.
    """

    name: ClassVar[str] = "heavy-hitter oracle"

    def select(self, scene: Scene, budget: int, rng: np.random.Generator) -> Ids:
        """Return the positions that stay."""
        check_budget(scene, budget)
        if scene.asked is None:
            raise InvalidInput("the oracle needs the queries that will be asked: give the scene `asked`")
        return highest(_mass(scene, scene.asked), budget)


@dataclass(frozen=True, slots=True)
class HeavyHitter:
    """Keep the keys with the largest summed kernel to the queries seen so far; else like OracleHeavyHitter."""

    name: ClassVar[str] = "heavy-hitter warm"

    def select(self, scene: Scene, budget: int, rng: np.random.Generator) -> Ids:
        """Return the positions that stay."""
        check_budget(scene, budget)
        if scene.seen is None:
            raise InvalidInput("a heavy hitter is told by queries that were seen: give the scene `seen`")
        return highest(_mass(scene, scene.seen), budget)


@dataclass(frozen=True, slots=True)
class SelfMass:
    """Keep the keys with the largest summed kernel to all other keys, each key being taken as a query. [Ramesh2026]"""

    name: ClassVar[str] = "heavy-hitter of keys"

    def select(self, scene: Scene, budget: int, rng: np.random.Generator) -> Ids:
        """Return the positions that stay."""
        check_budget(scene, budget)
        return highest(scene.gram.sum(axis=1), budget)  # its own kernel value is 1 for every key
