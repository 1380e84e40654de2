"""The rules and measures against loops that follow their definition word by word."""

import math

import numpy as np
import pytest

from svmem.demo import selectors
from svmem.errors import InvalidInput
from svmem.kernels import RBF

KERNEL = RBF(1.7)


def keys_of(seed: int, n: int = 30) -> np.ndarray:
    rng = np.random.default_rng(seed)
    keys = rng.standard_normal((n, 3))
    keys[5] = keys[9]  # an equal pair
    return keys


def kernel(x: np.ndarray, y: np.ndarray) -> float:
    return math.exp(-sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) / KERNEL.sigma**2)


@pytest.mark.parametrize("seed", range(3))
def test_heavy_hitters_have_the_largest_summed_kernel_to_all_others(seed: int) -> None:
    keys = keys_of(seed)
    mass = [sum(kernel(x, y) for j, y in enumerate(keys) if j != i) for i, x in enumerate(keys)]
    np.testing.assert_allclose(selectors.summed_kernel(keys, KERNEL), mass, rtol=1e-12)
    best = sorted(sorted(range(len(keys)), key=lambda i: (-round(mass[i], 9), i))[:12])
    assert selectors.heavy_hitters(keys, KERNEL, 12).tolist() == best


def test_among_equals_the_earlier_key_is_the_heavy_hitter() -> None:
    assert selectors.heavy_hitters(np.zeros((6, 2)), KERNEL, 2).tolist() == [0, 1]


def test_last_keeps_the_most_recent() -> None:
    assert selectors.last(7, 3).tolist() == [4, 5, 6]


def test_random_draws_are_seeded_without_replacement_and_even() -> None:
    draws = selectors.random_draws(10, 3, 4000, np.random.default_rng(1))
    assert draws.shape == (4000, 3)
    assert all(len(set(draw.tolist())) == 3 for draw in draws)
    np.testing.assert_allclose(np.bincount(draws.ravel(), minlength=10) / 4000, 0.3, atol=0.03)
    np.testing.assert_array_equal(draws, selectors.random_draws(10, 3, 4000, np.random.default_rng(1)))


@pytest.mark.parametrize("seed", range(5))
def test_shares_follow_their_definition(seed: int) -> None:
    keys, rng = keys_of(seed), np.random.default_rng(seed)
    event = rng.random(len(keys)) < 0.3
    kept = np.sort(rng.choice(len(keys), 9, replace=False))
    events = np.flatnonzero(event).tolist()
    nearest = [min(kept.tolist(), key=lambda j: (sum((keys[i] - keys[j]) ** 2), j)) for i in events]
    assert selectors.kept_share(event, kept) == sum(i in kept for i in events) / len(events)
    assert selectors.answered_share(keys, event, kept) == sum(bool(event[j]) for j in nearest) / len(events)


@pytest.mark.parametrize("budget", [0, 5])
def test_a_budget_outside_the_keys_is_refused(budget: int) -> None:
    keys = np.zeros((4, 2))
    for attempt in (
        lambda: selectors.heavy_hitters(keys, KERNEL, budget),
        lambda: selectors.last(4, budget),
        lambda: selectors.random_draws(4, budget, 1, np.random.default_rng(0)),
    ):
        with pytest.raises(InvalidInput, match=r"1\.\.4"):
            attempt()


def test_a_share_of_no_event_hours_is_refused() -> None:
    none = np.zeros(4, bool)
    with pytest.raises(InvalidInput, match="at least one event"):
        selectors.kept_share(none, np.array([0]))
    with pytest.raises(InvalidInput, match="at least one event"):
        selectors.answered_share(np.zeros((4, 2)), none, np.array([0]))
