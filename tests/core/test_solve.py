"""The cold solve on every named case, against fifty digits, known values, libsvm and general programmes."""

from dataclasses import replace

import numpy as np
import pytest

import svmem
from svmem.core.solution import Status
from tests.cases import ALL, BY_NAME, KNOWN, Case, problem_of, truth
from tests.cases.truth import VANISHING, enumerated
from tests.oracles import duality_gap, fewest, float_gram, libsvm, objective, quadratic
from tests.oracles.agreement import assert_agrees, assert_optimal

pytestmark = [pytest.mark.usefixtures("compiled"), pytest.mark.timeout(60, func_only=True)]

FLOAT_FUZZ = 2e-13
named = pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
feasible = pytest.mark.parametrize("case", [c for c in ALL if not c.collecting], ids=lambda case: case.name)


def energy(delta: np.ndarray, gram: np.ndarray, ridge: float) -> float:
    return float(delta @ (gram @ delta) + ridge * (delta @ delta))


@named
@pytest.mark.parametrize("ridge", [None, 1e-6, 1e-8, 1e-12])
def test_the_answer_is_feasible_and_optimal(case: Case, ridge: float | None) -> None:
    setting = case.setting if ridge is None else replace(case.setting, ridge=ridge)
    assert_optimal(svmem.solve(case.keys, problem_of(setting)), case.keys, setting)


@named
def test_the_answer_is_the_fifty_digit_optimum_to_rounding(case: Case) -> None:
    assert_agrees(svmem.solve(case.keys, case.problem), truth(case), case.keys, case.setting)


@pytest.mark.parametrize("ridge", [1e-4, 1e-12])
@named
def test_the_answer_is_the_fifty_digit_optimum_at_other_ridges(case: Case, ridge: float) -> None:
    setting = replace(case.setting, ridge=ridge)
    assert_agrees(svmem.solve(case.keys, problem_of(setting)), truth(case, ridge), case.keys, setting)


@pytest.mark.parametrize("case", [c for c in ALL if len(c.keys) <= 8], ids=lambda case: case.name)
def test_enumerating_all_partitions_finds_the_same_answer(case: Case) -> None:
    solution = svmem.solve(case.keys, case.problem)
    assert_agrees(solution, enumerated(case), case.keys, case.setting)


@pytest.mark.parametrize("case", KNOWN, ids=lambda case: case.name)
def test_known_values_hold_but_for_the_ridge(case: Case) -> None:
    solution = svmem.solve(case.keys, case.problem)
    with_ridge, without = truth(case), truth(case, VANISHING)
    explained = np.abs(with_ridge.alpha64 - without.alpha64)
    if case.alpha is not None:
        assert (np.abs(solution.alpha - np.array(case.alpha)) <= 1e-9 + explained).all()
    if case.level is not None:
        f = float_gram(case.keys, case.setting) @ solution.alpha
        level = f[np.isin(solution.ids, solution.margin if len(solution.margin) else solution.bound)].max()
        assert abs(level - case.level) <= 1e-9 + abs(with_ridge.level - without.level)
    assert (len(solution.margin) == 0) == (case.margin_empty or case.collecting)


def test_the_offset_without_a_margin_is_the_lower_end_of_its_interval() -> None:
    case = BY_NAME["four_on_a_line"]
    assert case.level_interval is not None
    solution = svmem.solve(case.keys, case.problem)
    low, high = (level - 0.5 + case.setting.ridge * case.setting.C * (level < 0.96) for level in case.level_interval)
    assert solution.offset == pytest.approx(low, abs=1e-14)
    assert solution.offset < high


def test_no_margin_key_scores_below_zero_by_more_than_the_ridge() -> None:
    case = BY_NAME["three_near_points"]
    solution = svmem.solve(case.keys, case.problem)
    score = 2 * (float_gram(case.keys, case.setting) @ solution.alpha - 0.5 - solution.offset)
    assert (score >= -2 * case.setting.ridge - 1e-14).all()


@named
def test_status_says_collecting_exactly_below_one_over_c(case: Case) -> None:
    solution = svmem.solve(case.keys, case.problem)
    assert (solution.status is Status.COLLECTING) == (len(case.keys) < fewest(case.setting.C))
    assert solution.status in (Status.COLLECTING, Status.OPTIMAL)
    assert (solution.status is Status.COLLECTING) == case.collecting


@named
def test_the_order_of_the_keys_changes_no_bit(case: Case) -> None:
    solution = svmem.solve(case.keys, case.problem)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(case.keys))
        shuffled = svmem.solve(case.keys[order], case.problem)
        assert shuffled.alpha.tobytes() == solution.alpha[order].tobytes()
        assert shuffled.offset == solution.offset
        for one, other in zip(
            (solution.margin, solution.bound, solution.reserve),
            (shuffled.margin, shuffled.bound, shuffled.reserve),
            strict=True,
        ):
            assert sorted(order[other]) == one.tolist()


@named
def test_the_order_of_the_keys_changes_no_bit_of_the_gap(case: Case) -> None:
    order = np.random.default_rng(0).permutation(len(case.keys))
    assert svmem.solve(case.keys[order], case.problem).gap == svmem.solve(case.keys, case.problem).gap


@named
def test_solving_again_changes_no_bit(case: Case) -> None:
    first, second = svmem.solve(case.keys, case.problem), svmem.solve(case.keys.copy(), case.problem)
    assert first.alpha.tobytes() == second.alpha.tobytes()
    assert (first.offset, first.gap) == (second.offset, second.gap)


@feasible
@pytest.mark.parametrize("solver", ["clarabel", "quadprog"])
def test_no_general_programme_finds_a_lower_objective(case: Case, solver: str) -> None:
    gram, ridge, cap = float_gram(case.keys, case.setting), case.setting.ridge, case.setting.C
    other = quadratic(case.keys, case.setting, solver)
    ours = svmem.solve(case.keys, case.problem).alpha
    slack = abs(other.sum() - ours.sum()) + max(0.0, -other.min(), other.max() - cap)
    fuzz = (1 + np.abs(gram).max() + ridge) * (FLOAT_FUZZ + 2 * slack)
    assert objective(ours, gram, ridge) <= objective(other, gram, ridge) + fuzz
    if slack <= 1e-13:
        assert energy(other - ours, gram, ridge) <= duality_gap(other, gram, case.setting) + fuzz


@pytest.mark.parametrize(
    "case", [c for c in ALL if c.setting.kernel != "linear" and len(c.keys) > fewest(c.setting.C)], ids=lambda c: c.name
)
def test_libsvm_lies_within_its_own_gap(case: Case) -> None:
    other, gram = libsvm(case.keys, case.setting), float_gram(case.keys, case.setting)
    ours = svmem.solve(case.keys, case.problem).alpha
    gap = duality_gap(other.alpha, gram, case.setting)
    assert energy(other.alpha - ours, gram, case.setting.ridge) <= gap + 1e-12


def test_a_larger_problem_agrees_with_libsvm_and_meets_the_conditions() -> None:
    keys = 1.5 * np.random.default_rng(7).standard_normal((600, 6))
    case = Case("large", "nu = 0.4", keys, replace(BY_NAME["paper_cloud"].setting, C=1 / 240))
    solution = svmem.solve(keys, case.problem)
    assert_optimal(solution, keys, case.setting)
    other, gram = libsvm(keys, case.setting), float_gram(keys, case.setting)
    assert energy(other.alpha - solution.alpha, gram, case.setting.ridge) <= duality_gap(
        other.alpha, gram, case.setting
    )
