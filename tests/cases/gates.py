"""Sets of keys for gates, and one prefix of a gate in the form that the checks of a solution read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.cases import ALL, Case
from tests.oracles import float_gram
from tests.oracles.gates import groups_of
from tests.oracles.setting import Setting

__all__ = ["KEY_SETS", "RBF_CASES", "Prefix", "prefix_of", "reach"]

Array = NDArray[np.float64]
Places = NDArray[np.int64]


def _sphere(rng: np.random.Generator, t: int, d: int) -> Array:
    keys = rng.standard_normal((t, d))
    return keys / np.linalg.norm(keys, axis=1, keepdims=True)


def _redundant(rng: np.random.Generator, t: int, d: int) -> Array:
    """Three centres and noise of a fiftieth: hardly any cap is reached by one key alone."""
    return 2 * rng.standard_normal((3, d))[rng.integers(3, size=t)] + 0.02 * rng.standard_normal((t, d))


def _twins(rng: np.random.Generator, t: int, d: int) -> Array:
    keys = rng.standard_normal((t, d))
    keys[1::2] = keys[: 2 * (t // 2) : 2] + 1e-9
    return keys


KEY_SETS: dict[str, Callable[[np.random.Generator, int, int], Array]] = {
    "random": lambda rng, t, d: rng.standard_normal((t, d)),
    "redundant": _redundant,
    "unit sphere": _sphere,
    "few distinct": lambda rng, t, d: rng.standard_normal((5, d))[rng.integers(5, size=t)],
    "all equal": lambda rng, t, d: np.repeat(rng.standard_normal((1, d)), t, axis=0),
    "collinear": lambda rng, t, d: np.arange(t)[:, None] * rng.standard_normal(d) / 8,
    "grid": lambda rng, t, d: rng.integers(0, 4, size=(t, d)).astype(np.float64),
    "near twins": _twins,
    "far away": lambda rng, t, d: 1e8 + rng.integers(-4, 5, size=(t, d)) / 2,
    "walk": lambda rng, t, d: np.cumsum(0.3 * rng.standard_normal((t, d)), axis=0),
}

RBF_CASES = tuple(case for case in ALL if case.setting.kernel == "rbf") + tuple(
    Case(name, "keys of an attention head", make(np.random.default_rng(5), 40, d), Setting(C, sigma=sigma, ridge=ridge))
    for name, make, d, C, sigma, ridge in (
        ("head_of_64_dimensions", KEY_SETS["random"], 64, 0.0625, 8.0, 1e-6),
        ("head_on_the_unit_sphere", KEY_SETS["unit sphere"], 16, 0.25, 1.0, 1e-6),
        ("head_of_redundant_clusters", KEY_SETS["redundant"], 4, 0.25, 2.0, 1e-6),
        ("head_with_a_small_cap", KEY_SETS["random"], 4, 0.03, 2.0, 1e-3),
    )
)


@dataclass(frozen=True, slots=True, eq=False)
class Prefix:
    """The answer of a gate for one item, head and boundary, over n keys; `ids` are key positions."""

    ids: Places
    alpha: Array
    offset: float
    margin: Places
    bound: Places
    reserve: Places
    gap: float


def prefix_of(gate: Any, place: tuple[int, int, int], n: int, C: float) -> Prefix:
    """Unpack the gate at (item, head, boundary), and check the packing on the way."""
    assert int(gate.status[place]) in (0, 1), "neither optimal nor collecting"
    count = int(gate.counts[place])
    indices, packed = gate.indices[place].tolist(), gate.alpha[place].detach().double().numpy()
    support = np.array(indices[:count], dtype=np.int64)
    assert 0 <= count <= min(n, len(indices))
    assert (np.diff(support) > 0).all()
    assert count == 0 or (support[0] >= 0 and support[-1] < n)
    assert indices[count:] == [0] * (len(indices) - count)
    assert (packed[count:] == 0).all()
    assert (packed[:count] > 0).all()
    alpha = np.zeros(n)
    alpha[support] = packed[:count]
    collecting = int(gate.status[place]) == 1
    bound = np.flatnonzero((alpha == C) | collecting)
    margin = np.flatnonzero((alpha > 0) & (alpha != C) & (not collecting))
    reserve = np.flatnonzero((alpha == 0) & (not collecting))
    return Prefix(
        np.arange(n), alpha, float(gate.offset[place].detach()), margin, bound, reserve, float(gate.gap[place])
    )


def reach(keys: Array, margin: Places, setting: Setting) -> float:
    """Return how far rounding of the kernel can move a coefficient: 1e-12, or more on a nearly singular margin."""
    if len(margin) == 0:
        return 1e-12
    inside = keys[margin]
    group = groups_of(inside)
    first = np.unique(group, return_index=True)[1]
    block = float_gram(inside[first], setting) + setting.ridge * np.diag(1 / np.bincount(group))
    rounding = 64 * np.finfo(np.float64).eps * max(1.0, setting.ridge * setting.C) * len(margin) ** 0.5
    return max(1e-12, rounding / float(np.linalg.eigvalsh(block)[0]))
