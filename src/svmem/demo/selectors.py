"""Which hours to keep at a given budget: the usual rules, and two measures of what they keep of the rare hours."""

import numpy as np
from numpy.typing import NDArray

from svmem.baselines.selection.scene import dist2
from svmem.errors import InvalidInput
from svmem.kernels import RBF
from svmem.types import Keys, Vector

__all__ = ["answered_share", "heavy_hitters", "kept_share", "last", "random_draws", "summed_kernel"]

Rows = NDArray[np.int64]  # rising row numbers of the hours that are kept
Flags = NDArray[np.bool_]


def summed_kernel(keys: Keys, kernel: RBF) -> Vector:
    """Return, for each key, the sum of its kernel values with all other keys."""
    return np.exp(-dist2(keys, keys) / kernel.scale).sum(axis=1) - 1.0  # its own kernel value is 1


def heavy_hitters(keys: Keys, kernel: RBF, budget: int) -> Rows:
    """Keep the keys with the largest summed kernel to all others, the earlier key first among equals."""
    _check_budget(len(keys), budget)
    return np.sort(np.argsort(-summed_kernel(keys, kernel), kind="stable")[:budget])


def last(n: int, budget: int) -> Rows:
    """Keep the most recent keys."""
    _check_budget(n, budget)
    return np.arange(n - budget, n)


def random_draws(n: int, budget: int, draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return `draws` independent choices of `budget` keys, each without replacement, as a (draws, budget) array."""
    _check_budget(n, budget)
    return np.array([np.sort(rng.choice(n, budget, replace=False)) for _ in range(draws)])


def kept_share(event: Flags, kept: Rows) -> float:
    """Return the share of event hours that are kept."""
    _check_events(event)
    return float(event[kept].sum() / event.sum())


def answered_share(keys: Keys, event: Flags, kept: Rows) -> float:
    """Return the share of event hours whose nearest kept hour is an event hour, the earlier hour first among equals."""
    _check_events(event)
    nearest = dist2(keys[event], keys[kept]).argmin(axis=1)
    return float(event[kept][nearest].mean())


def _check_budget(n: int, budget: int) -> None:
    if not 1 <= budget <= n:
        raise InvalidInput(f"the budget must lie in 1..{n}, the number of keys; got {budget}")


def _check_events(event: Flags) -> None:
    if not event.any():
        raise InvalidInput("a share of event hours needs at least one event hour")
