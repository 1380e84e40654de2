"""Sets of keys on which deletions are audited, easy and degenerate, by name."""

from collections.abc import Callable
from functools import cache

import numpy as np

from svmem.demo.clif import load_clif
from svmem.types import Keys

__all__ = ["CONTEXTS", "clustered"]

Context = Callable[[np.random.Generator, int], Keys]


def gaussian(rng: np.random.Generator, n: int) -> Keys:
    """Independent normal keys in six dimensions."""
    return rng.standard_normal((n, 6))


def redundant(rng: np.random.Generator, n: int) -> Keys:
    """Four centres, each with near copies of itself."""
    centres = 2 * rng.standard_normal((4, 6))
    return centres[np.arange(n) % 4] + 0.02 * rng.standard_normal((n, 6))


def hours(rng: np.random.Generator, n: int) -> Keys:
    """Consecutive hours of real intensive-care patients: stays in a random order, from a random hour on."""
    keys, stays = _vitals()
    start = int(rng.integers(len(stays)))
    picked = np.concatenate([stays[(start + i) % len(stays)] for i in range(len(stays))])
    begin = int(rng.integers(max(1, len(stays[start]) - n)))
    return keys[picked[begin : begin + n]]


@cache
def _vitals() -> tuple[Keys, list[np.ndarray]]:
    cohort = load_clif()
    starts = np.flatnonzero(np.append(True, cohort.stay[1:] != cohort.stay[:-1]))
    return cohort.keys, np.split(np.arange(len(cohort)), starts[1:])


def duplicates(rng: np.random.Generator, n: int) -> Keys:
    """Ten distinct keys, drawn again and again."""
    return rng.standard_normal((10, 3))[rng.integers(10, size=n)]


def grid(rng: np.random.Generator, n: int) -> Keys:
    """Integer points: distances tie everywhere, and points repeat."""
    return rng.integers(0, 8, size=(n, 2)).astype(np.float64)


def filled(rng: np.random.Generator, n: int) -> Keys:
    """A slow stream with gaps filled forward: runs of equal rows."""
    walk = np.cumsum(0.5 * rng.standard_normal((n, 6)), axis=0)
    last = np.maximum.accumulate(np.where(rng.random(n) < 0.4, np.arange(n), 0))
    return walk[last]


def rounded(rng: np.random.Generator, n: int) -> Keys:
    """A slow stream read to one decimal."""
    return np.round(np.cumsum(0.1 * rng.standard_normal((n, 3)), axis=0), 1)


CONTEXTS: dict[str, Context] = {
    "gaussian": gaussian,
    "redundant": redundant,
    "icu hours": hours,
    "duplicates": duplicates,
    "grid": grid,
    "filled": filled,
    "rounded": rounded,
}


def clustered(rng: np.random.Generator, n: int) -> Keys:
    """Three tight clusters, on which coefficients go wrong first."""
    centres = 2 * np.random.default_rng(7).standard_normal((3, 4))
    return centres[rng.integers(3, size=n)] + 0.05 * rng.standard_normal((n, 4))
