"""Groups of keys, half of them with a single key, and who is still answered after a selection."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from svmem.baselines.selection import Scene
from svmem.core.problem import Problem
from svmem.kernels import RBF
from svmem.types import Ids, Vector

__all__ = ["Groups", "Trial", "answered", "draw_trial"]


@dataclass(frozen=True, slots=True)
class Groups:
    """The paper's sizes. [Ramesh2026]"""

    dim: int = 4
    rare: int = 6  # groups with one key
    dense: int = 6
    copies: int = 10  # keys of a dense group
    spread: float = 1.5  # of the centres
    within: float = 0.15
    query_noise: float = 0.05
    sigma: float = 1.2
    nu: float = 0.45

    @property
    def count(self) -> int:
        """The number of groups."""
        return self.rare + self.dense


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """A scene; `gram` (groups, n) of the held-out queries, one a group; `one_hot` (n, groups): values of the keys."""

    scene: Scene
    gram: NDArray[np.float64]
    one_hot: NDArray[np.float64]


def draw_trial(groups: Groups, rng: np.random.Generator, shuffled: bool = False) -> Trial:
    """Draw centres, keys and two queries a group, of which the second is held out.

    The keys of rare groups come first, as [Ramesh2026] has them; shuffled: the same trial with its keys in any order.
    """
    count = groups.count
    of_key = np.repeat(np.arange(count), [1] * groups.rare + [groups.copies] * groups.dense)
    centre = groups.spread * rng.standard_normal((count, groups.dim))
    keys = centre[of_key] + groups.within * rng.standard_normal((len(of_key), groups.dim))
    queries = np.repeat(centre, 2, axis=0)
    queries = queries + groups.query_noise * rng.standard_normal(queries.shape)
    if shuffled:
        order = rng.permutation(len(keys))
        keys, of_key = keys[order], of_key[order]
    held_out, kernel = queries[1::2], RBF(groups.sigma)
    problem = Problem.from_nu(groups.nu, len(keys), kernel)
    dist2 = np.square(held_out[:, None] - keys[None]).sum(axis=2)
    return Trial(
        scene=Scene(keys, problem, seen=queries[::2], asked=queries),
        gram=np.exp(-dist2 / kernel.scale),
        one_hot=np.eye(count)[of_key],
    )


def answered(trial: Trial, kept: Ids, weight: Vector | None = None) -> NDArray[np.bool_]:
    """Return for each held-out query whether its group has most of the kernel mass of the keys kept."""
    mass = trial.gram[:, kept] if weight is None else trial.gram[:, kept] * weight[kept]
    votes = mass @ trial.one_hot[kept]
    # A group without a key has no mass, so it cannot win, not even where all masses underflow to 0.
    return (votes.argmax(axis=1) == np.arange(len(votes))) & (votes.max(axis=1) > 0)
