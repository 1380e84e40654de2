"""Caps of exactly 1/k, and nodes of equal keys at the cap: where n C = 1 and m C must be exact."""

import numpy as np
import pytest

import svmem
from svmem.core.solution import Status
from tests.oracles import Setting, fewest
from tests.oracles.agreement import assert_optimal

pytestmark = [pytest.mark.usefixtures("compiled"), pytest.mark.timeout(240, func_only=True)]


def problem(cap: float) -> svmem.Problem:
    return svmem.Problem(kernel=svmem.RBF(2.0), C=cap)


@pytest.mark.parametrize("first", range(1, 400, 50))
def test_k_keys_at_a_cap_of_one_over_k_are_all_at_the_cap(first: int) -> None:
    for k in range(first, first + 50):
        keys = np.arange(float(k))[:, None]
        solution = svmem.solve(keys, problem(1 / k))
        assert solution.status is Status.OPTIMAL
        assert solution.bound.tolist() == list(range(k))
        assert (solution.alpha == 1 / k).all()
        assert_optimal(solution, keys, Setting(C=1 / k, sigma=2.0))


@pytest.mark.parametrize("first", range(2, 200, 50))
def test_one_key_fewer_than_k_is_collecting_and_one_more_is_not_all_at_the_cap(first: int) -> None:
    for k in range(first, first + 50):
        fewer = svmem.solve(np.arange(float(k - 1))[:, None], problem(1 / k))
        assert fewer.status is Status.COLLECTING
        more = svmem.solve(np.arange(float(k + 1))[:, None], problem(1 / k))
        assert more.status is Status.OPTIMAL
        assert len(more.bound) < k + 1
        assert_optimal(more, np.arange(float(k + 1))[:, None], Setting(C=1 / k, sigma=2.0))


@pytest.mark.parametrize("m", [*range(1, 60), 97, 200])
@pytest.mark.parametrize("cap", [1 / 3, 1 / 49, 0.1, 0.013, 1 / 200])
def test_equal_keys_at_the_cap_carry_exactly_c_each(m: int, cap: float) -> None:
    # The m equal keys lie far away: they want more than the cap if they are few.
    keys = np.concatenate([np.full((m, 1), 50.0), np.linspace(0.0, 1.0, 2 * fewest(cap))[:, None]])
    solution = svmem.solve(keys, problem(cap))
    assert_optimal(solution, keys, Setting(C=cap, sigma=2.0))


@pytest.mark.parametrize("m", [*range(2, 60), 97, 200])
def test_nothing_but_equal_keys_share_everything_equally(m: int) -> None:
    keys = np.full((m, 2), 0.75)
    for cap in (1.0, 1 / m, min(1.0, 1.5 / m), 1 / (m - 0.5)):
        solution = svmem.solve(keys, problem(cap))
        assert_optimal(solution, keys, Setting(C=cap, sigma=2.0))
        assert np.abs(solution.alpha * m - 1).max() <= 1e-15


@pytest.mark.parametrize("k", [3, 7, 10, 41, 49, 56, 98])
@pytest.mark.parametrize("repeats", [1, 2, 3, 7])
def test_repeated_keys_fill_the_caps_in_any_grouping(k: int, repeats: int) -> None:
    keys = np.arange(float(k))[:, None] // repeats
    for cap in (1 / k, 1 / (k - 0.5), 1 / (k - 1)):
        assert_optimal(svmem.solve(keys, problem(cap)), keys, Setting(C=cap, sigma=2.0))
