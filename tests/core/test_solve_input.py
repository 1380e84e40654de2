"""What `solve` refuses, what it accepts, and what it leaves alone."""

from typing import Any

import numpy as np
import pytest

import svmem
from svmem.core.solution import Solution
from svmem.errors import InvalidInput

pytestmark = [pytest.mark.usefixtures("compiled"), pytest.mark.timeout(60, func_only=True)]

NAN, INF = float("nan"), float("inf")
PROBLEM = svmem.Problem(kernel=svmem.RBF(sigma=2.0), C=0.5)


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        ([[0.0, NAN]], "finite"),
        ([[0.0, INF]], "finite"),
        ([[-INF, 1.0], [0.0, 0.0]], "finite"),
        ([0.0, 1.0, 2.0], "shape"),
        (3.0, "shape"),
        (np.zeros((2, 2, 2)), "shape"),
        (np.zeros((3, 0)), "column"),
        ([[0.0, 1.0], [2.0]], "rectangular"),
        ([["a", "b"]], "number"),
        ([[1 + 2j]], "number"),
        ([[None]], "number"),
        (np.array([["1.0"]], dtype=object), "number"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), "number"),
        (np.empty((0, 2)), "key"),
        ([], "key"),
    ],
    ids=str,
)
def test_bad_keys_are_refused_in_one_sentence(keys: Any, word: str) -> None:
    with pytest.raises(InvalidInput, match=word) as caught:
        svmem.solve(keys, PROBLEM)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("C", [0.0, -0.5, 1.5, NAN, INF, 1e-12])
def test_a_cap_outside_its_range_is_refused(C: float) -> None:
    with pytest.raises(InvalidInput, match="C must"):
        svmem.Problem(kernel=svmem.RBF(1.0), C=C)


@pytest.mark.parametrize("ridge", [0.0, -1e-8, NAN, INF])
def test_a_ridge_that_is_not_positive_is_refused(ridge: float) -> None:
    with pytest.raises(InvalidInput, match="ridge must"):
        svmem.Problem(kernel=svmem.RBF(1.0), C=0.5, ridge=ridge)


@pytest.mark.parametrize("sigma", [0.0, -1.0, NAN, INF, 1e-200, 1e200])
@pytest.mark.parametrize("kernel", [svmem.RBF, svmem.Laplacian])
def test_a_width_without_a_finite_square_is_refused(kernel: Any, sigma: float) -> None:
    with pytest.raises(InvalidInput, match="sigma must"):
        kernel(sigma)


@pytest.mark.parametrize("kernel", ["rbf", None, svmem.RBF])
def test_something_that_is_no_kernel_is_refused(kernel: Any) -> None:
    with pytest.raises(InvalidInput, match="kernel must"):
        svmem.Problem(kernel=kernel, C=0.5)


@pytest.mark.parametrize(("nu", "n_ref"), [(0.0, 10), (1.5, 10), (NAN, 10), (0.05, 10), (0.5, 0), (0.5, -4)])
def test_a_share_without_a_cap_is_refused(nu: float, n_ref: int) -> None:
    with pytest.raises(InvalidInput):
        svmem.Problem.from_nu(nu=nu, n_ref=n_ref, kernel=svmem.RBF(1.0))


def test_nu_chooses_the_cap_once() -> None:
    assert pytest.approx(1 / 48, rel=1e-15) == svmem.Problem.from_nu(nu=0.4, n_ref=120, kernel=svmem.RBF(2.0)).C


@pytest.mark.parametrize(
    ("gram", "word"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], "positive semi-definite"),
        ([[-1.0]], "positive semi-definite"),
        ([[1.0, 0.2], [0.1, 1.0]], "symmetric"),
        ([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], "square"),
        ([[1.0, NAN], [NAN, 1.0]], "finite"),
    ],
)
def test_a_bad_gram_matrix_is_refused(gram: Any, word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        svmem.solve(gram, svmem.Problem(kernel=svmem.Precomputed(), C=0.5))


def test_the_cosine_kernel_refuses_the_zero_key() -> None:
    with pytest.raises(InvalidInput, match="zero"):
        svmem.solve([[1.0, 0.0], [0.0, 0.0]], svmem.Problem(kernel=svmem.Cosine(), C=0.5))


def test_the_linear_kernel_refuses_keys_whose_square_overflows() -> None:
    with pytest.raises(InvalidInput, match="finite"):
        svmem.solve([[1e200], [0.0]], svmem.Problem(kernel=svmem.Linear(), C=0.5))


def _same(one: Solution, other: Solution) -> bool:
    return one.alpha.tobytes() == other.alpha.tobytes() and one.offset == other.offset


def test_lists_integers_booleans_and_small_floats_are_taken_by_their_values() -> None:
    keys = np.array([[0, 1], [1, 1], [1, 0], [0, 0]])
    answer = svmem.solve(keys.astype(np.float64), PROBLEM)
    for form in (keys.tolist(), keys, keys.astype(np.int8), keys.astype(bool), keys.astype(np.float32)):
        assert _same(svmem.solve(form, PROBLEM), answer)
    for form in (np.asfortranarray(keys), keys.repeat(2, axis=0)[::2]):
        assert _same(svmem.solve(form, PROBLEM), answer)


def test_the_caller_s_keys_are_not_changed() -> None:
    keys = np.array([[0.0, -0.0], [1.0, 2.0], [0.5, 0.5]])
    before = keys.tobytes()
    solution = svmem.solve(keys, PROBLEM)
    solution.alpha[:] = 7.0
    assert keys.tobytes() == before
    assert svmem.solve(keys, PROBLEM).alpha.max() <= PROBLEM.C


def test_ids_of_a_cold_solve_are_the_row_numbers() -> None:
    assert svmem.solve([[3.0], [1.0], [2.0]], PROBLEM).ids.tolist() == [0, 1, 2]
