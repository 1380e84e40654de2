"""Horizons of the selection certificate: an adversary who knows everything chooses the changes, and wakes nothing."""

import numpy as np
import pytest
import quadprog

import svmem
from svmem.core.selection import certify_selection, movement
from tests.cases import problem_of
from tests.oracles import Setting, fewest, float_gram, quadratic

Array = np.ndarray
WIDE = Setting(C=1 / 70, sigma=2.5)
FUZZ = 1e-9  # of the general solver that stands for the memory after the changes


def above_offset(keys: Array, setting: Setting) -> Array:
    """Return f - K_ii/2 less the offset, (n,), for a radial kernel, by a general solver."""
    gram, alpha = float_gram(keys, setting), quadratic(keys, setting)
    f = gram @ alpha
    return f - np.sort(f + setting.ridge * alpha)[fewest(setting.C) - 1]


def cloud(seed: int) -> Array:
    """Return 210 keys of a plane, of which a third carries everything under the wide setting."""
    return np.random.default_rng(seed).standard_normal((210, 2))


def candidates(keys: Array, targets: Array, rng: np.random.Generator) -> list[Array]:
    """Return new keys worth trying: on and near certified keys, far beyond them, on other keys, anywhere, far away."""
    chosen = keys[rng.choice(targets, 3)]
    near = chosen + 0.05 * rng.standard_normal(chosen.shape)
    beyond = [scale * x for x in chosen for scale in (-1.5, 1.5, 3.0)]
    return [
        *chosen,
        *near,
        *beyond,
        *keys[rng.choice(len(keys), 3)],
        *(2 * rng.standard_normal((4, 2))),
        np.full(2, 1e4),
    ]


def quick_height(keys: Array, target: int) -> float:
    """Return what `above_offset` does for one key, by the fast solver: it only guides the adversary."""
    solution = svmem.solve(keys, problem_of(WIDE))
    f = float_gram(keys[[target]], WIDE, keys)[0] @ solution.alpha
    return float(f - 0.5 - solution.offset)


def worst_admission(keys: Array, target: int, options: list[Array]) -> Array:
    return min(options, key=lambda c: quick_height(np.vstack([keys, c]), target))


def worst_deletion(keys: Array, kept: list[int], target: int, options: list[int]) -> int:
    def height(c: int) -> float:
        rest = [i for i in kept if i != c]
        return quick_height(keys[rest], rest.index(target))

    return min(options, key=height)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(("admissions", "deletions"), [(1, 0), (3, 0), (0, 1), (2, 1)])
@pytest.mark.parametrize("seed", range(3))
def test_no_adversary_wakes_a_certified_record_or_spends_more_than_its_slack(
    admissions: int, deletions: int, seed: int
) -> None:
    keys, rng = cloud(seed), np.random.default_rng(seed)
    alpha = svmem.solve(keys, problem_of(WIDE)).alpha
    found = certify_selection(keys, alpha, problem_of(WIDE), admissions=admissions, deletions=deletions)
    assert len(found.droppable) > 0
    weakest = int(found.droppable[np.argmin(found.slack)])
    kept = list(range(len(keys)))
    for _ in range(deletions):
        others = [int(i) for i in np.flatnonzero(alpha) if i in kept]
        nearest = sorted(others, key=lambda i: float(np.linalg.norm(keys[i] - keys[weakest])))[:6]
        kept.remove(worst_deletion(keys, kept, weakest, [*nearest, *rng.choice(others, 4)]))
    grown = keys[kept]
    for _ in range(admissions):
        new = worst_admission(grown, kept.index(weakest), candidates(keys, found.droppable, rng))
        grown = np.vstack([grown, new])
    heights, carried = above_offset(grown, WIDE), quadratic(grown, WIDE)
    for j, slack in zip(found.droppable, found.slack, strict=True):
        if j in kept:
            assert heights[kept.index(int(j))] >= slack - FUZZ
            assert carried[kept.index(int(j))] < 1e-6 * WIDE.C
    without = [i for i in range(len(grown)) if i >= len(kept) or kept[i] not in set(found.droppable.tolist())]
    assert np.abs(quadratic(grown[without], WIDE) - carried[without]).max() < 1e-4 * WIDE.C


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("seed", range(2))
def test_copies_of_certified_records_wake_none(seed: int) -> None:
    keys = cloud(seed)
    found = certify_selection(keys, svmem.solve(keys, problem_of(WIDE)).alpha, problem_of(WIDE), admissions=4)
    assert len(found.droppable) > 0
    grown = np.vstack([keys, np.repeat(keys[found.droppable[:1]], 4, axis=0)])
    assert (above_offset(grown, WIDE)[found.droppable] > found.slack - FUZZ).all()


def features(array: Array) -> Array:
    """Return a Gram matrix with entries in [0, 1] and a diagonal of ones."""
    vectors = np.abs(array) + 1e-9
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors @ vectors.T


def heights(gram: Array, cap: float, ridge: float, rank: int) -> tuple[Array, float]:
    """Return f (n,) and the rank-th smallest f + ridge alpha at the optimum, by a dual active-set method."""
    n = len(gram)
    sides = np.vstack([np.ones(n), np.eye(n), -np.eye(n)]).T
    limits = np.r_[1.0, np.zeros(n), np.full(n, -cap)]
    alpha = quadprog.solve_qp(gram + ridge * np.eye(n), np.zeros(n), sides, limits, 1)[0]
    return gram @ alpha, float(np.sort(gram @ alpha + ridge * alpha)[rank - 1])


def spent_on_admission(array: Array, cap: float, ridge: float) -> float:
    """Return by how much the last record brings the first closer to the offset."""
    gram, least = features(array), fewest(cap)
    f, level = heights(gram[:-1, :-1], cap, ridge, least)
    after, new_level = heights(gram, cap, ridge, least)
    return float((new_level - after[0]) - (level - f[0]))


def spent_on_deletion(array: Array, cap: float, ridge: float) -> float:
    """Return by how much the loss of the last record brings the first closer to the offset, beyond reordering."""
    gram, least = features(array), fewest(cap)
    f, level = heights(gram, cap, ridge, least + 1)
    after, new_level = heights(gram[:-1, :-1], cap, ridge, least)
    return float((new_level - after[0]) - (level - f[0]))


CLIMBS = [
    (spent_on_admission, (1, 0), 0.4, 1e-7),
    (spent_on_deletion, (0, 1), 1.0, 1e-7),
    (spent_on_admission, (1, 0), 0.3, 0.3),
    (spent_on_deletion, (0, 1), 1.0, 3.0),
]


@pytest.mark.parametrize(("spent", "horizon", "reached", "ridge"), CLIMBS)
def test_a_search_over_feature_vectors_comes_near_the_cost_but_not_beyond(
    spent, horizon: tuple[int, int], reached: float, ridge: float
) -> None:
    cap, best = 0.2, 0.0
    for seed in (1, 2, 3):
        rng = np.random.default_rng(seed)
        array, step = rng.standard_normal((7, 5)), 0.5
        value = spent(array, cap, ridge)
        for _ in range(500):
            trial = array + step * rng.standard_normal(array.shape) * (rng.random(array.shape) < 0.3)
            found = spent(trial, cap, ridge)
            if found > value:
                array, value = trial, found
            else:
                step = max(0.995 * step, 0.01)
        best = max(best, value)
    cost = movement(svmem.Problem(kernel=svmem.RBF(1.0), C=cap, ridge=ridge), *horizon)
    assert best <= cost + 1e-9
    assert best >= reached * cap


def test_small_ridges_cost_half_a_cap_an_admission_and_two_a_deletion() -> None:
    problem = svmem.Problem(kernel=svmem.RBF(1.0), C=0.25, ridge=1e-12)
    assert movement(problem, 3, 0) == pytest.approx(3 * 0.125, rel=1e-9)
    assert movement(problem, 0, 2) == pytest.approx(2 * 0.5, rel=1e-9)
    assert movement(problem, 0, 0) == 0


@pytest.mark.usefixtures("compiled")
def test_a_longer_horizon_certifies_fewer_records_with_less_slack() -> None:
    keys, problem = cloud(0), problem_of(WIDE)
    alpha = svmem.solve(keys, problem).alpha
    steps = [(0, 0), (1, 0), (3, 0), (3, 1), (4, 2)]
    found = [certify_selection(keys, alpha, problem, admissions=m, deletions=r) for m, r in steps]
    for less, more in zip(found[1:], found[:-1], strict=True):
        assert set(less.droppable) < set(more.droppable)
        slack = dict(zip(more.droppable.tolist(), more.slack, strict=True))
        assert all(s < slack[j] for j, s in zip(less.droppable.tolist(), less.slack, strict=True))
