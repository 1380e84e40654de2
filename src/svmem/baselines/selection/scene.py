"""What a selector is given, and what several of them compute from it."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from svmem.core.inputs import as_matrix
from svmem.core.problem import Problem
from svmem.core.solution import Solution
from svmem.core.solve import solve
from svmem.errors import InvalidInput
from svmem.kernels import RBF
from svmem.types import Ids, Keys, Queries, Vector

__all__ = ["Scene", "Selector", "attention", "check_budget", "dist2", "highest"]


@dataclass(frozen=True, eq=False)
class Scene:
    """Keys (n, d) in the order they came, under a problem with an RBF kernel. Nothing in it ever changes.

    seen: queries (m, d) that have come by, in order. asked: all queries that will be judged, for oracles only.
    """

    keys: Keys
    problem: Problem
    seen: Queries | None = None
    asked: Queries | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", as_matrix(self.keys, "keys"))
        if len(self.keys) == 0:
            raise InvalidInput("a scene needs at least one key, got none")
        if not isinstance(self.problem.kernel, RBF):
            raise InvalidInput(f"the selectors are written for the RBF kernel, got {self.problem.kernel!r}")
        for name in ("seen", "asked"):
            given = getattr(self, name)
            if given is None:
                continue
            queries = as_matrix(given, name, self.keys.shape[1])
            if not len(queries):
                raise InvalidInput(f"{name} must hold at least one query, got none: leave it out instead")
            object.__setattr__(self, name, queries)

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def dist2(self) -> NDArray[np.float64]:
        """Squared distances (n, n) between the keys."""
        return dist2(self.keys, self.keys)

    @cached_property
    def gram(self) -> NDArray[np.float64]:
        """Kernel values (n, n) between the keys."""
        return np.exp(-self.dist2 / self.problem.kernel.scale)

    @cached_property
    def solution(self) -> Solution:
        """The optimum of the problem."""
        return solve(self.keys, self.problem)


class Selector(Protocol):
    """A rule that says which keys stay."""

    name: ClassVar[str]

    def select(self, scene: Scene, budget: int, rng: np.random.Generator) -> Ids:
        """Return `budget` rising positions of keys; where it must draw, from `rng`.

        Raises InvalidInput for a budget outside 1..n, and where the rule needs queries that the scene does not have.
        """
        ...


def check_budget(scene: Scene, budget: int) -> None:
    """Raise InvalidInput for a budget that is no whole number in 1..n."""
    whole = isinstance(budget, int | np.integer) and not isinstance(budget, bool)
    if not whole or not 1 <= budget <= len(scene):
        raise InvalidInput(f"the budget must be a whole number in 1..{len(scene)}, the number of keys; got {budget!r}")


def highest(scores: Vector, budget: int) -> Ids:
    """Return the rising positions of the highest scores, the earlier key first among equals."""
    return np.sort(np.argsort(-scores, kind="stable")[:budget])


def dist2(left: Keys, right: Keys) -> NDArray[np.float64]:
    """Return the squared distances (n, m) between keys (n, d) and (m, d)."""
    out = np.zeros((len(left), len(right)))
    for column in range(left.shape[1]):  # by differences: equal keys are at distance exactly 0
        out += (left[:, column, None] - right[None, :, column]) ** 2
    return out


def attention(scene: Scene, queries: Queries) -> NDArray[np.float64]:
    """Return the weights (m, n) with which queries read the keys: kernel values whose sum over the keys is 1."""
    far = dist2(queries, scene.keys) / scene.problem.kernel.scale
    weight = np.exp(far.min(axis=1, keepdims=True) - far)  # the largest is 1, however far the nearest key is
    return weight / weight.sum(axis=1, keepdims=True)
