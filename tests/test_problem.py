from typing import Any

import numpy as np
import pytest

import svmem
from svmem.errors import InvalidInput


@pytest.mark.parametrize("n", [49, 98, 103, 107, 161])
def test_nu_of_one_over_n_makes_the_cap_one(n):
    assert svmem.Problem.from_nu(1 / n, n, svmem.RBF(1.0)).C == 1.0


def test_nu_too_small_for_the_number_of_keys_is_refused():
    with pytest.raises(InvalidInput, match="at least 1"):
        svmem.Problem.from_nu(0.01, 99, svmem.RBF(1.0))


@pytest.mark.parametrize("bad", ["median", None, True, [1.0], 0.0, -1.0, float("nan"), float("inf"), 1e-200, 1e200])
def test_a_width_that_is_no_positive_number_is_refused_in_one_sentence(bad):
    for kernel in (svmem.RBF, svmem.Laplacian):
        if kernel is svmem.RBF or bad not in (1e-200, 1e200):
            with pytest.raises(InvalidInput, match="sigma"):
                kernel(bad)


@pytest.mark.parametrize("bad", ["0.1", None, True, 0.0, 1.5, float("nan")])
def test_a_cap_or_ridge_that_is_no_number_in_range_is_refused(bad):
    with pytest.raises(InvalidInput, match="C must"):
        svmem.Problem(svmem.RBF(1.0), bad)
    if bad != 1.5:
        with pytest.raises(InvalidInput, match="ridge must"):
            svmem.Problem(svmem.RBF(1.0), 0.5, bad)


def test_numpy_numbers_mean_the_same_in_a_file(tmp_path):
    narrow: Any = np.float32
    problem = svmem.Problem(svmem.RBF(narrow(2.5)), narrow(0.25), np.float64(1e-6))
    assert problem == svmem.Problem(svmem.RBF(2.5), 0.25, 1e-6)
    memory = svmem.Memory(problem, 1, 1)
    memory.add([[0.0], [1.0], [2.0], [3.0], [4.0]], np.zeros((5, 1)))
    memory.save(tmp_path / "m.svmem")
    assert svmem.Memory.load(tmp_path / "m.svmem").problem == problem
    assert svmem.Problem.from_json(problem.to_json()) == problem


@pytest.mark.parametrize("k", [1, 3, 7, 24, 48, 49, 161, 1000])
def test_the_reciprocal_of_an_integer_lets_that_many_keys_carry_everything(k):
    problem = svmem.Problem(svmem.RBF(1.0), 1 / k)
    assert problem.n_min == k
    assert abs(sum(problem.total) - 1) < 1e-15


def test_other_caps_round_the_count_up_and_sum_to_one():
    problem = svmem.Problem(svmem.RBF(1.0), 0.3)
    assert problem.n_min == 4
    assert problem.total == (1.0, 0.0)


def test_the_median_width_is_the_median_distance_of_distinct_keys():
    assert svmem.median_sigma(np.array([[0.0], [0.0], [3.0]])) == 3.0
    keys = np.random.default_rng(0).standard_normal((40, 3))
    distances = [np.linalg.norm(a - b) for i, a in enumerate(keys) for b in keys[:i]]
    assert svmem.median_sigma(keys) == pytest.approx(np.median(distances))
    for bad in ([[1.0], [1.0]], ["a"], [[np.nan], [1.0]], [1.0, 2.0]):
        with pytest.raises(InvalidInput):
            svmem.median_sigma(bad)  # pyright: ignore[reportArgumentType]


def test_a_huge_key_that_left_does_not_blur_what_stays():
    keys = np.random.default_rng(1).standard_normal((30, 2))
    problem = svmem.Problem(svmem.Linear(), 0.1, 1e-4)
    memory, never = svmem.Memory(problem, 2, 1), svmem.Memory(problem, 2, 1)
    memory.add(keys, np.zeros((30, 1)))
    gone = memory.add([[1e5, 1e5]], [[0.0]])
    memory.forget(ids=gone)
    never.add(keys, np.zeros((30, 1)))
    assert memory.digest() == never.digest()
