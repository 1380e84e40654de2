"""The selection certificate: what it lets go now, and what no admission or deletion within its horizon can wake."""

import json

import numpy as np
import pytest
import quadprog
from hypothesis import given, settings
from hypothesis import strategies as st

import svmem
from svmem.core.selection import SelectionCertificate, certify_selection, movement
from svmem.errors import InvalidInput
from tests.cases import ALL, BY_NAME, Case, problem_of, truth
from tests.oracles import Setting, enumerate_optimum, fewest, float_gram, precise, quadratic
from tests.oracles.exact import Optimum
from tests.strategies import examples, problems

Array = np.ndarray
named = pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
WIDE = Setting(C=1 / 70, sigma=2.5)
FUZZ = 1e-9  # of the general solver that stands for the memory after the changes


def rounded(optimum: Optimum, setting: Setting) -> Array:
    """Return the optimum as the nearest floats inside the box, the caps exactly."""
    alpha = optimum.alpha64
    if len(alpha) < fewest(setting.C):
        return np.full(len(alpha), 1 / len(alpha))
    alpha = np.clip(alpha, 0, setting.C)
    alpha[list(optimum.bound)], alpha[list(optimum.reserve)] = setting.C, 0.0
    return alpha


def above_offset(keys: Array, setting: Setting) -> Array:
    """Return f - K_ii/2 less the offset, (n,), for a radial kernel, by a general solver."""
    gram, alpha = float_gram(keys, setting), quadratic(keys, setting)
    f = gram @ alpha
    return f - np.sort(f + setting.ridge * alpha)[fewest(setting.C) - 1]


@named
def test_what_is_droppable_now_is_what_is_reserve_beyond_rounding(case: Case) -> None:
    optimum = truth(case)
    found = certify_selection(case.keys, rounded(optimum, case.setting), case.problem)
    assert set(found.droppable) <= set(optimum.reserve)
    clear = {
        j for j in optimum.reserve if optimum.h[j] > 5 * (found.w_bound + 1e-16) * max(1, float(optimum.gram[j][j]))
    }
    assert clear <= set(found.droppable)
    assert found.reserve == len(optimum.reserve)
    for j, slack in zip(found.droppable, found.slack, strict=True):
        assert 0 < slack <= optimum.h[j]


@named
def test_dropping_all_of_them_leaves_the_optimum_as_it_is(case: Case) -> None:
    optimum = truth(case)
    found = certify_selection(case.keys, rounded(optimum, case.setting), case.problem)
    kept = np.setdiff1d(np.arange(len(case.keys)), found.droppable)
    keys = case.keys[np.ix_(kept, kept)] if case.setting.kernel == "precomputed" else case.keys[kept]
    pruned = precise(keys, case.setting)
    assert abs(pruned.offset - optimum.offset) < 1e-30
    assert all(abs(pruned.alpha[k] - optimum.alpha[i]) < 1e-30 for k, i in enumerate(kept))


@settings(max_examples=examples(60))
@given(problems(most=6))
def test_no_record_of_the_optimum_is_ever_droppable(drawn: tuple[Array, Setting]) -> None:
    keys, setting = drawn
    optimum = enumerate_optimum(keys, setting)
    found = certify_selection(keys, rounded(optimum, setting), problem_of(setting))
    assert set(found.droppable) <= set(optimum.reserve)


@settings(max_examples=examples(60))
@given(problems(most=6), st.data())
def test_coefficients_away_from_the_optimum_certify_no_more(drawn: tuple[Array, Setting], data: st.DataObject) -> None:
    keys, setting = drawn
    optimum, n = enumerate_optimum(keys, setting), len(keys)
    alpha = rounded(optimum, setting)
    i, j = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, n - 1))
    mass = data.draw(st.sampled_from([1e-9, 1e-5, 0.1, 1.0])) * min(alpha[i], max(0.0, setting.C - alpha[j])) * (i != j)
    alpha[i], alpha[j] = max(0.0, alpha[i] - mass), alpha[j] + mass
    if n < fewest(setting.C) or alpha[j] > setting.C:
        return
    found = certify_selection(keys, alpha, problem_of(setting))
    assert set(found.droppable) <= set(optimum.reserve)


# Horizon: an adversary who knows everything chooses the changes.


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


def test_the_papers_future_key_may_go_now_but_not_before_one_more_admission() -> None:
    case = BY_NAME["paper_future_key"]
    alpha = rounded(truth(case), case.setting)
    now = certify_selection(case.keys, alpha, case.problem)
    assert now.droppable.tolist() == [2]
    assert now.slack[0] == pytest.approx(0.00408686, abs=1e-8)
    assert now.status == "1 of 1 reserve records certified to stay silent, now"
    later = certify_selection(case.keys, alpha, case.problem, admissions=1)
    assert later.droppable.tolist() == []
    assert later.level is not None
    assert later.level > 0.5  # of 0.93 - 0.5 at the third key
    woken = precise(np.vstack([case.keys, [0, -10]]), case.setting)
    assert float(woken.alpha[2]) == pytest.approx(0.03327001, abs=1e-6)


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


def test_deletions_that_could_lead_back_to_collecting_certify_nothing() -> None:
    keys = np.array([[0.0], [1.0], [2.0], [3.0]])
    setting = Setting(C=0.5, sigma=10.0)
    alpha = rounded(precise(keys, setting), setting)
    assert certify_selection(keys, alpha, problem_of(setting)).droppable.tolist() == [1, 2]
    found = certify_selection(keys, alpha, problem_of(setting), deletions=3)
    assert (found.droppable.tolist(), found.level) == ([], None)
    assert "could leave fewer than the 2 keys" in found.status


def test_collecting_certifies_nothing() -> None:
    found = certify_selection(np.zeros((2, 1)), [0.5, 0.5], problem_of(Setting(C=0.25)))
    assert (found.reserve, found.droppable.tolist(), found.level) == (0, [], None)
    assert "collecting" in found.status


@pytest.mark.parametrize("kernel", ["linear", "cosine"])
def test_a_horizon_is_refused_to_kernels_that_are_not_bounded(kernel: str) -> None:
    keys, alpha = np.array([[1.0], [2.0], [4.0]]), [0.5, 0.0, 0.5]
    problem = problem_of(Setting(C=0.5, kernel=kernel))
    assert certify_selection(keys, alpha, problem).horizon == (0, 0)
    for horizon in ({"admissions": 1}, {"deletions": 1}):
        with pytest.raises(InvalidInput, match="a horizon needs a kernel with 0 <= kappa <= 1"):
            certify_selection(keys, alpha, problem, **horizon)


@pytest.mark.parametrize("count", [-1, 1.0, True, "2", None])
def test_a_horizon_that_is_no_count_is_refused(count: object) -> None:
    with pytest.raises(InvalidInput, match="must be a count"):
        certify_selection(np.eye(2), [0.5, 0.5], problem_of(Setting(C=1.0)), admissions=count)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["walk", "paper_future_key", "collecting", "grid_linear"])
def test_a_certificate_survives_strict_json_bit_for_bit(name: str) -> None:
    case = BY_NAME[name]
    found = certify_selection(case.keys, rounded(truth(case), case.setting), case.problem)
    data = json.loads(json.dumps(found.to_json(), allow_nan=False))
    again = SelectionCertificate.from_json(data)
    assert again.to_json() == found.to_json()
    assert again.slack.tobytes() == found.slack.tobytes()
    for damage in ({"n": -1}, {"slack": [1.0] * 99}, {"movement": None}, {"more": 0}, {"droppable": [0.5]}):
        with pytest.raises(InvalidInput):
            SelectionCertificate.from_json(data | damage)
