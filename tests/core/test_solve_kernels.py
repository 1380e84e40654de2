"""The cold solve under kernels other than the Gaussian, and under a Gram matrix of the caller."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

import svmem
from svmem.errors import SolverError
from tests.cases import ALL, BY_NAME, Case, problem_of
from tests.oracles import Setting, float_gram, precise
from tests.oracles.agreement import assert_agrees, assert_optimal

pytestmark = [pytest.mark.usefixtures("compiled"), pytest.mark.timeout(60, func_only=True)]

named = pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
moderate = pytest.mark.parametrize(
    "case", [c for c in ALL if len(c.keys) <= 40 and np.abs(c.keys).max() <= 100], ids=lambda case: case.name
)
AWAY_FROM_ZERO = 0.4375  # no case has a key at minus this


@named
def test_a_precomputed_gram_matrix_gives_the_answer_of_its_kernel(case: Case) -> None:
    gram = float_gram(case.keys, case.setting)
    gram = (gram + gram.T) / 2  # a product of matrices need not be symmetric to the bit
    setting = replace(case.setting, kernel="precomputed")
    solution = svmem.solve(gram, problem_of(setting))
    assert_optimal(solution, gram, setting, gram)
    assert_agrees(solution, precise(gram, setting), gram, setting)
    ours = svmem.solve(case.keys, case.problem)
    difference = solution.alpha - ours.alpha
    scale = max(1.0, np.abs(gram).max())
    assert np.abs(gram @ difference).max() <= 1e-10 * scale
    assert solution.offset == pytest.approx(ours.offset, abs=1e-10 * scale)


def test_the_order_of_a_gram_matrix_changes_the_answer_by_rounding_only() -> None:
    gram = float_gram(BY_NAME["rounded"].keys, BY_NAME["rounded"].setting)
    problem = svmem.Problem(kernel=svmem.Precomputed(), C=0.1)
    order = np.random.default_rng(1).permutation(len(gram))
    one, other = svmem.solve(gram, problem), svmem.solve(gram[np.ix_(order, order)], problem)
    assert np.abs(gram @ (one.alpha - other.alpha[np.argsort(order)])).max() <= 1e-12


@moderate
@pytest.mark.parametrize("kernel", ["laplacian", "linear", "cosine"])
def test_every_case_of_moderate_size_is_solved_under_every_kernel(case: Case, kernel: str) -> None:
    keys = case.keys if kernel != "cosine" else case.keys + AWAY_FROM_ZERO
    setting = replace(case.setting, kernel=kernel)
    solution = svmem.solve(keys, problem_of(setting))
    assert_optimal(solution, keys, setting)
    assert_agrees(solution, precise(keys, setting), keys, setting)


@pytest.mark.parametrize("name", ["offset_1e5", "offset_1e8", "offset_1e8_grid", "offset_1e5_cloud"])
def test_a_gram_matrix_too_large_for_the_ridge_is_solved_or_refused_in_words(name: str) -> None:
    # Its entries are rounded by more than the ridge, so that float64 need not hold the optimum.
    setting = replace(BY_NAME[name].setting, kernel="linear")
    with suppress(SolverError):
        assert_optimal(svmem.solve(BY_NAME[name].keys, problem_of(setting)), BY_NAME[name].keys, setting)


def test_the_smallest_ball_has_its_centre_at_the_weighted_mean() -> None:
    keys = np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 1.0], [2.0, -1.5], [1.0, 0.5]])
    solution = svmem.solve(keys, svmem.Problem(kernel=svmem.Linear(), C=1.0, ridge=1e-12))
    assert solution.alpha @ keys == pytest.approx([2.0, 0.0], abs=1e-9)
    assert solution.reserve.tolist() == [2, 3, 4]


def test_the_cosine_kernel_sees_directions_only() -> None:
    keys = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [-1.0, 0.5]])
    problem = svmem.Problem(kernel=svmem.Cosine(), C=0.4)
    scaled = keys * np.array([[2.0], [0.125], [2.0**40], [2.0**-40]])
    one, other = svmem.solve(keys, problem), svmem.solve(scaled, problem)
    assert np.abs(one.alpha - other.alpha).max() <= 1e-12
    assert one.offset == pytest.approx(other.offset, abs=1e-14)


def test_the_linear_kernel_does_not_care_where_the_origin_is() -> None:
    # |w - x|^2 is unchanged by a shift, so the coefficients are too, though the Gram matrix is another.
    keys = np.array([[0.0, 0.0], [3.0, 1.0], [1.0, 4.0], [2.0, 2.0], [5.0, 5.0]])
    problem = svmem.Problem(kernel=svmem.Linear(), C=0.5, ridge=1e-6)
    one, other = svmem.solve(keys, problem), svmem.solve(keys + 16.0, problem)
    assert np.abs(one.alpha - other.alpha).max() <= 1e-8


def test_two_far_pairs_share_the_mass_by_symmetry() -> None:
    setting = Setting(C=0.4, kernel="laplacian", sigma=2.0)
    keys = np.array([[0.0], [1.0], [500.0], [501.0]])
    solution = svmem.solve(keys, problem_of(setting))
    assert solution.alpha == pytest.approx([0.25] * 4, abs=1e-15)
