"""StreamingLLM: the first few keys and the last ones."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from svmem.baselines.selection.scene import Scene, check_budget
from svmem.errors import InvalidInput
from svmem.types import Ids

__all__ = ["StreamingLLM"]


@dataclass(frozen=True, slots=True)
class StreamingLLM:
    """Keep the first `sinks` keys and the most recent ones. [XiaoEtAl2024]

    Deviation: a budget of at most `sinks` keeps one recent key, and sinks for the rest.
    """

    sinks: int = 4
    name: ClassVar[str] = "StreamingLLM"

    def __post_init__(self) -> None:
        if self.sinks < 0:
            raise InvalidInput(f"sinks must be at least 0, got {self.sinks}")

    def select(self, scene: Scene, budget: int, rng: np.random.Generator) -> Ids:
        """Return the positions that stay."""
        check_budget(scene, budget)
        n, first = len(scene), min(self.sinks, budget - 1)
        return np.append(np.arange(first), np.arange(n - (budget - first), n))
