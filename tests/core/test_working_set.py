"""The working set: handles, multiplicities, growth of its buffers, and what happens when the steps fail."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import svmem
from svmem._jit import work as jit
from svmem.core import incremental
from svmem.core.incremental import WorkingSet
from svmem.demo.clif import load_clif
from svmem.errors import SolverError


def problem(C=0.2, kernel=None, ridge=1e-8):
    return svmem.Problem(kernel or svmem.RBF(1.5), C, ridge)


def cloud(n, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def state(working, handles):
    return working.alpha_of(handles).tobytes(), working.offset, working.zone_of(handles).tolist()


def fresh(keys, of):
    working = WorkingSet(of, keys.shape[1])
    return state(working, working.insert(keys))


def test_equal_keys_share_a_handle_and_minus_zero_is_zero():
    working = WorkingSet(problem(), 2)
    handles = working.insert(np.array([[0.0, 1.0], [-0.0, 1.0], [2.0, 1.0]]))
    assert handles[0] == handles[1] != handles[2]
    assert working.records == 3


def test_keys_that_a_kernel_cannot_tell_apart_share_a_handle():
    working = WorkingSet(problem(kernel=svmem.Cosine()), 1)
    assert len(set(working.insert(np.array([[1.0], [2.0], [-3.0]])).tolist())) == 2


def test_taking_copies_away_one_by_one_passes_through_every_refit():
    keys = np.repeat(cloud(6), 4, axis=0)
    working = WorkingSet(problem(0.15), 3)
    handles = working.insert(keys)
    for left in range(len(keys) - 1, 0, -1):
        working.remove(handles[left : left + 1])
        assert state(working, handles[:left]) == fresh(keys[:left], problem(0.15))


def test_a_handle_given_twice_loses_two_records():
    keys = np.repeat(cloud(5), 3, axis=0)
    working = WorkingSet(problem(), 3)
    handles = working.insert(keys)
    working.remove(handles[:2])
    assert state(working, handles[2:]) == fresh(keys[2:], problem())


def test_a_group_leaves_in_one_call_as_it_would_one_by_one():
    keys = cloud(60, seed=1)
    together, single = WorkingSet(problem(0.05), 3), WorkingSet(problem(0.05), 3)
    a, b = together.insert(keys), single.insert(keys)
    together.remove(a[:35])
    for handle in b[:35]:
        single.remove(np.array([handle]))
    assert state(together, a[35:]) == state(single, b[35:]) == fresh(keys[35:], problem(0.05))


@pytest.mark.parametrize("batch", [1, 7, 17, 40, 200])
def test_the_size_of_the_batches_leaves_no_trace(batch):
    keys = cloud(200, seed=2)
    working = WorkingSet(problem(0.02), 3)
    handles = np.concatenate([working.insert(keys[i : i + batch]) for i in range(0, 200, batch)])
    assert state(working, handles) == fresh(keys, problem(0.02))
    assert working.repairs == 0


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=40), st.randoms())
def test_any_order_and_any_detour_give_the_same_state(points, random):
    keys = np.array(points, dtype=np.float64)
    working = WorkingSet(problem(0.21), 2)
    detour = working.insert(keys[::-1] + 0.5)
    shuffled = list(range(len(keys)))
    random.shuffle(shuffled)
    handles = np.empty(len(keys), np.int64)
    handles[shuffled] = working.insert(keys[shuffled])
    working.remove(detour)
    assert state(working, handles) == fresh(keys, problem(0.21))


def test_a_failure_of_the_steps_is_repaired_by_a_cold_solve_and_counted(monkeypatch):
    keys = cloud(40, seed=3)
    working = WorkingSet(problem(0.05), 3)
    handles = working.insert(keys)
    settle, calls = incremental.settle, []

    def failing(work, limit):
        calls.append(limit)
        return jit.STALLED if len(calls) == 1 else settle(work, limit)

    monkeypatch.setattr(incremental, "settle", failing)
    active = np.flatnonzero(working.alpha_of(handles) > 0)[0]
    working.remove(handles[active : active + 1])
    assert working.repairs == 1
    assert state(working, np.delete(handles, active)) == fresh(np.delete(keys, active, axis=0), problem(0.05))


def test_an_insertion_that_cannot_be_solved_changes_nothing(monkeypatch):
    keys = cloud(40, seed=4)
    working = WorkingSet(problem(0.05), 3)
    handles = working.insert(keys)
    before, settle, calls = state(working, handles), incremental.settle, []

    def failing(work, limit):
        calls.append(limit)
        return jit.SINGULAR if len(calls) <= 2 else settle(work, limit)

    monkeypatch.setattr(incremental, "settle", failing)
    with pytest.raises(SolverError, match="raise the ridge"):
        working.insert(np.vstack([10 * cloud(2, seed=5), keys[:1]]))
    assert working.records == 40
    assert state(working, handles) == before


def test_the_doubled_sums_are_taken_anew_before_their_rounding_adds_up(monkeypatch):
    monkeypatch.setattr(incremental, "STALE", 5)
    keys = cloud(50, seed=6)
    working = WorkingSet(problem(0.04), 3)
    handles = list(working.insert(keys))
    for i in range(50):
        working.remove(np.array([handles[i]]))
        handles[i] = int(working.insert(keys[i : i + 1])[0])
        assert working._work.counts[jit.SUM_UPDATES] < 100
    assert state(working, np.array(handles)) == fresh(keys, problem(0.04))


def test_forgotten_keys_are_overwritten_in_the_buffers():
    keys = cloud(30, seed=7)
    working = WorkingSet(problem(0.05), 3)
    handles = working.insert(keys)
    working.remove(handles[[0, 12, 29]])
    for gone in keys[[0, 12, 29]]:
        assert not np.isin(gone, working._work.xt).any()
        assert gone.tobytes() not in working._keys


def test_on_real_hours_a_small_margin_stays_small_on_the_way_too():
    keys = load_clif().keys
    of = svmem.Problem.from_nu(0.3, len(keys), svmem.RBF(3.0))
    working = WorkingSet(of, keys.shape[1])
    working.insert(keys[:5000])
    for key in keys[5000:5008]:
        working.insert(key[None])
    assert working._work.order.shape[1] < 300  # thousands of nodes break their inequality at once on the way
    assert working.repairs == 0
