"""The paths on which other incremental solvers fail, through a memory."""

import pickle

import numpy as np
import pytest

import svmem
from svmem.core.solution import Status
from svmem.errors import InvalidInput, NotFitted
from tests.cases import ALL, BY_NAME, Case
from tests.cases.history import History, filled
from tests.oracles import Setting, fewest, float_gram, residuals
from tests.oracles.agreement import assert_feasible, assert_optimal

pytestmark = [pytest.mark.usefixtures("compiled_memory"), pytest.mark.timeout(120, func_only=True)]

named = pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)


def test_a_near_twin_comes_and_goes_a_hundred_times() -> None:
    case = BY_NAME["near_twin"]
    history = History(case.setting, 2)
    history.add(case.keys[[0, 2]])
    before, offset = history.memory.digest(), history.memory.solution.offset
    for _ in range(100):
        ids = history.add(case.keys[1])
        assert_optimal(history.memory.solution, history.keys, case.setting)
        history.forget(ids)
        assert history.memory.digest() == before
    assert history.memory.solution.offset == offset
    gram = float_gram(history.keys, case.setting)
    assert residuals(history.memory.solution.alpha, offset, gram, case.setting).kkt <= 4e-16


@pytest.mark.parametrize("name", [c.name for c in ALL if c.margin_empty])
@pytest.mark.timeout(30, func_only=True)
def test_all_keys_at_the_cap_and_still_every_step_ends(name: str) -> None:
    history = filled(BY_NAME[name])
    assert len(history.memory.solution.margin) == 0
    assert np.isfinite(history.memory.solution.offset)
    first = history.add(history.keys[0] + 0.25)
    history.check()
    history.forget(first)
    history.check()
    history.forget(sorted(history.records)[:1])
    history.check()
    history.add(history.keys.mean(axis=0) if len(history.records) else np.ones(history.d))
    history.check()


def test_the_offset_stays_finite_when_the_margin_empties() -> None:
    case = BY_NAME["four_on_a_line"]
    history = filled(case)
    for key in ([1.5], [4.0], [-1.0]):
        history.add(np.array(key))
        solution = history.memory.solution
        assert len(solution.margin) == 0
        assert np.isfinite(solution.offset)
        f = float_gram(history.keys, case.setting) @ solution.alpha + case.setting.ridge * solution.alpha - 0.5
        assert solution.offset == pytest.approx(f[np.isin(solution.ids, solution.bound)].max(), abs=1e-15)
        assert history.memory.score(np.array([[0.0], [1e3]]))[1] < 0
    history.check()


def test_too_few_keys_are_collected_and_none_is_evicted() -> None:
    history = History(Setting(C=0.3), 1)
    for number in range(1, 4):
        history.add(np.array([[float(number)]]))
        solution = history.memory.solution
        assert solution.status is Status.COLLECTING
        assert (solution.alpha == 1 / number).all()
        assert solution.bound.tolist() == solution.ids.tolist()
        history.memory.evict()
        assert len(history.memory) == number
        history.check()
    history.add(np.array([[4.0]]))
    assert history.memory.solution.status is Status.OPTIMAL
    history.check()


def test_forgetting_below_one_over_c_returns_to_collecting() -> None:
    case = BY_NAME["grid_4"]
    history = filled(case)
    least = fewest(case.setting.C)
    while history.records:
        collecting = len(history.records) < least
        assert (history.memory.solution.status is Status.COLLECTING) == collecting
        history.check(seed=1)
        history.forget(sorted(history.records)[-1:])
    history.add(case.keys)
    history.check()


@pytest.mark.parametrize("seed", range(6))
def test_two_hundred_adds_and_forgets_on_clustered_keys_stay_feasible(seed: int) -> None:
    random = np.random.default_rng(seed)
    centres = 2 * random.standard_normal((5, 3))
    history = History(Setting(C=1 / 12, sigma=2.0, ridge=1e-8), 3)
    history.add(centres[random.integers(5, size=40)] + 0.01 * random.standard_normal((40, 3)))
    for step in range(200):
        history.add(centres[random.integers(5)] + random.choice([0.0, 1e-9, 0.01]) * random.standard_normal(3))
        history.forget([int(random.choice(sorted(history.records)))])
        assert_feasible(history.memory.solution, history.setting)
        assert_optimal(history.memory.solution, history.keys, history.setting)
        if step % 20 == 0:
            history.check(seed=step + 1)
    history.check()


def test_equal_keys_are_neither_dropped_nor_merged() -> None:
    history = History(Setting(C=0.3), 1)
    ids = history.add(np.array([[0.0], [0.0], [2.0], [2.0], [2.0]]))
    assert len(history.memory) == 5
    alpha = history.memory.solution.alpha
    assert alpha[0] == alpha[1]
    assert alpha[2] == alpha[3] == alpha[4]
    history.forget([ids[1]])
    history.check()
    history.forget([ids[3], ids[4]])
    history.check()


def test_far_keys_are_not_skipped() -> None:
    history = History(Setting(C=0.2), 1)
    history.add(np.linspace(0, 2, 9)[:, None])
    far = history.add(np.array([[1e6], [-1e9], [1e200]]))
    solution = history.memory.solution
    assert (solution.alpha[np.isin(solution.ids, far)] > 0).all()
    history.check()


@named
def test_one_row_scored_or_read_alone_has_the_bits_it_has_in_a_batch(case: Case) -> None:
    history = filled(case)
    random = np.random.default_rng(8)
    near = case.keys[random.integers(len(case.keys), size=300)]
    queries = np.where(np.abs(near) < 1e100, near + random.standard_normal(near.shape), near)
    scores = history.memory.score(queries)
    assert scores.shape == (300,)
    assert np.isfinite(scores).all()
    for row in (0, 1, 7, 150, 299):
        assert history.memory.score(queries[row : row + 1])[0] == scores[row]
    if case.setting.kernel in ("rbf", "laplacian"):
        answers = history.memory.read(queries)
        for row in (0, 1, 7, 150, 299):
            assert history.memory.read(queries[row : row + 1])[0].tobytes() == answers[row].tobytes()


@named
def test_the_score_is_twice_the_height_above_the_offset(case: Case) -> None:
    history = filled(case)
    solution = history.memory.solution
    scores = history.memory.score(case.keys)
    gram = float_gram(case.keys, case.setting)
    expected = 2 * (gram @ solution.alpha - np.diag(gram) / 2 - solution.offset)
    assert scores == pytest.approx(expected, abs=1e-12 * max(1.0, np.abs(gram).max()))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_bad_number_changes_nothing(bad: float) -> None:
    history = filled(BY_NAME["grid_3"])
    before, ids = history.memory.digest(), list(history.memory.ids)
    with pytest.raises(InvalidInput, match="finite"):
        history.memory.add([[0.0, 1.0], [bad, 0.0]], [[0.0], [0.0]])
    with pytest.raises(InvalidInput, match="finite"):
        history.memory.add([[0.0, 1.0], [1.0, 0.0]], [[0.0], [bad]])
    assert history.memory.digest() == before
    assert list(history.memory.ids) == ids
    history.check()


def test_adding_after_unpickling_is_adding() -> None:
    history = filled(BY_NAME["rounded"])
    history.memory = pickle.loads(pickle.dumps(history.memory))
    history.add(np.array([[9.0, 9.0, 9.0], [0.5, 0.5, 0.5]]))
    history.check()


def test_an_empty_memory_has_nothing_to_score() -> None:
    memory = svmem.Memory(svmem.Problem(kernel=svmem.RBF(1.0), C=0.5), key_dim=2, value_dim=1)
    with pytest.raises(NotFitted):
        memory.score([[0.0, 0.0]])
    with pytest.raises(NotFitted):
        memory.read([[0.0, 0.0]])


def test_the_future_key_of_the_paper_wakes_a_reserve_key_and_forgetting_it_puts_it_back_to_sleep() -> None:
    case = BY_NAME["paper_future_key"]
    history = filled(case)
    assert history.memory.solution.reserve.tolist() == sorted(history.records)[2:]
    before = history.memory.digest()
    ids = history.add(np.array([0.0, -10.0]))
    assert len(history.memory.solution.reserve) == 0
    history.forget(ids)
    assert history.memory.digest() == before
