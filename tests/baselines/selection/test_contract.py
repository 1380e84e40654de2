"""What every selector keeps to."""

import numpy as np
import pytest

from svmem import RBF, Problem
from svmem.baselines.selection import KEY_ONLY, QUERY_AWARE, Scene
from svmem.errors import InvalidInput

pytestmark = pytest.mark.usefixtures("compiled")
SELECTORS = (*KEY_ONLY, *QUERY_AWARE)


def scene_of(keys: np.ndarray) -> Scene:
    queries = np.random.default_rng(7).standard_normal((6, keys.shape[1]))
    return Scene(keys, Problem(RBF(1.3), C=min(1.0, 1 / (0.4 * len(keys)))), seen=queries[:3], asked=queries)


def spread() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((20, 3))


KEYS = {
    "spread": spread(),
    "pairs of equal keys": np.repeat(spread()[:8], 2, axis=0),
    "all equal": np.ones((9, 2)),
    "all zero": np.zeros((9, 2)),
    "three keys, the rest copies": spread()[[0, 1, 2] * 5],
    "one key": np.ones((1, 2)),
    "far apart": 1e6 * spread(),
    "with an offset": 1e8 + spread(),
}


@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("selector", SELECTORS, ids=lambda one: one.name)
def test_any_budget_gives_as_many_distinct_rising_positions(selector, keys):
    scene = scene_of(keys)
    for budget in range(1, len(scene) + 1):
        kept = selector.select(scene, budget, np.random.default_rng(budget))
        assert kept.shape == (budget,)
        assert kept.dtype == np.int64
        assert kept[0] >= 0
        assert kept[-1] < len(scene)
        assert (np.diff(kept) > 0).all()


@pytest.mark.parametrize("selector", SELECTORS, ids=lambda one: one.name)
def test_the_same_seed_gives_the_same_choice_and_leaves_the_scene_as_it_was(selector):
    keys = spread()
    first, again = (selector.select(scene_of(keys), 7, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(keys, spread())


@pytest.mark.parametrize("budget", [0, -1, 21, 2.0, True, "3", None])
@pytest.mark.parametrize("selector", SELECTORS, ids=lambda one: one.name)
def test_a_budget_that_is_none_is_refused_in_one_sentence(selector, budget):
    with pytest.raises(InvalidInput, match=r"^the budget must be a whole number in 1\.\.20, [^\n]*$"):
        selector.select(scene_of(spread()), budget, np.random.default_rng(0))


@pytest.mark.parametrize("selector", QUERY_AWARE, ids=lambda one: one.name)
def test_a_selector_that_needs_queries_says_so(selector):
    scene = Scene(spread(), Problem(RBF(1.0), C=0.2))
    with pytest.raises(InvalidInput, match=r"give the scene `(seen|asked)`$"):
        selector.select(scene, 3, np.random.default_rng(0))


@pytest.mark.parametrize("selector", KEY_ONLY, ids=lambda one: one.name)
def test_a_selector_of_keys_does_not_look_at_queries(selector):
    with_queries = scene_of(spread())
    alone = Scene(with_queries.keys, with_queries.problem)
    chosen = [selector.select(scene, 6, np.random.default_rng(3)).tolist() for scene in (with_queries, alone)]
    assert chosen[0] == chosen[1]


def test_names_are_all_different():
    assert len({selector.name for selector in SELECTORS}) == len(SELECTORS) == 16


def test_a_scene_refuses_what_no_selector_could_use():
    problem = Problem(RBF(1.0), C=0.5)
    with pytest.raises(InvalidInput, match="at least one key"):
        Scene(np.empty((0, 2)), problem)
    with pytest.raises(InvalidInput, match="seen must have 2 columns"):
        Scene(np.ones((3, 2)), problem, seen=np.ones((2, 3)))
    with pytest.raises(InvalidInput, match="asked must hold at least one query"):
        Scene(np.ones((3, 2)), problem, asked=np.empty((0, 2)))
    with pytest.raises(InvalidInput, match="keys must be finite"):
        Scene(np.full((3, 2), np.nan), problem)
