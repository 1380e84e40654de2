"""The oracles agree with each other and with every known value."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as draw_settings

from tests.cases import ALL, BY_NAME, KNOWN, Case, Step, truth
from tests.cases.truth import VANISHING, enumerated
from tests.oracles import (
    Optimum,
    Setting,
    duality_gap,
    enumerate_optimum,
    fewest,
    float_gram,
    libsvm,
    objective,
    precise,
    quadratic,
    residuals,
    total,
)
from tests.oracles.exact import ZERO, ctx
from tests.strategies import examples, problems

FLOAT_FUZZ = 2e-13  # rounding of an objective of order 1 in plain float64 sums, with room
SINGLE = 2e-7  # libsvm keeps its kernel entries in float32
named = pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
known = pytest.mark.parametrize("case", KNOWN, ids=lambda case: case.name)
steps = pytest.mark.parametrize(
    ("case", "number"), [(case, i) for case in KNOWN for i in range(len(case.steps))], ids=lambda x: str(x)
)


def assert_same_point(one: Optimum, other: Optimum) -> None:
    assert (one.margin, one.bound, one.reserve) == (other.margin, other.bound, other.reserve)
    assert max(abs(a - b) for a, b in zip(one.alpha, other.alpha, strict=True)) < ZERO * 10**3
    assert abs(one.offset - other.offset) < ZERO * 10**3


def keys_after(case: Case, step: Step) -> np.ndarray:
    keys = case.keys
    if step.forget is not None:
        keys = np.array([row for row in keys if not (row == step.forget).all(axis=1).any()])
    return keys if step.add is None else np.concatenate([keys, step.add])


@known
def test_the_precise_oracle_finds_every_known_value(case: Case) -> None:
    answer = truth(case, VANISHING)
    if case.alpha is not None:
        assert answer.alpha64 == pytest.approx(case.alpha, abs=1e-9, rel=0)
    if case.level is not None:
        assert answer.level == pytest.approx(case.level, abs=1e-9, rel=0)
    assert (not answer.margin) == (case.margin_empty or case.collecting)
    if case.level_interval is not None:
        low, high = case.level_interval
        assert answer.level == pytest.approx(low, abs=1e-9, rel=0)
        assert float(min(answer.f(i) for i in answer.reserve)) == pytest.approx(high, abs=1e-9, rel=0)


@steps
def test_the_precise_oracle_finds_every_known_step(case: Case, number: int) -> None:
    step = case.steps[number]
    answer = precise(keys_after(case, step), replace(case.setting, ridge=VANISHING))
    if step.alpha is not None:
        assert answer.alpha64 == pytest.approx(step.alpha, abs=step.digits, rel=0)
    if step.alpha_at is not None:
        index, value = step.alpha_at
        assert answer.alpha64[index] == pytest.approx(value, abs=step.digits, rel=0)
    if step.level is not None:
        assert answer.level == pytest.approx(step.level, abs=step.digits, rel=0)


@named
def test_cases_state_what_the_precise_oracle_finds(case: Case) -> None:
    answer = truth(case, VANISHING if case in KNOWN else None)
    assert case.collecting == (len(case.keys) < fewest(case.setting.C))
    if case.alpha is not None:
        assert answer.alpha64 == pytest.approx(case.alpha, abs=1e-8, rel=0)
    if not case.collecting:
        assert case.margin_empty <= (not answer.margin)


@pytest.mark.parametrize("case", [c for c in ALL if len(c.keys) <= 8], ids=lambda case: case.name)
def test_enumeration_and_active_set_steps_give_the_same_fifty_digits(case: Case) -> None:
    assert_same_point(enumerated(case), truth(case))


@draw_settings(max_examples=examples(60))
@given(problems(most=6))
def test_enumeration_and_active_set_steps_agree_on_degenerate_problems(drawn: tuple[np.ndarray, Setting]) -> None:
    keys, setting = drawn
    assert_same_point(enumerate_optimum(keys, setting), precise(keys, setting))


@named
def test_the_rounded_truth_meets_the_float_conditions(case: Case) -> None:
    answer, gram = truth(case), float_gram(case.keys, case.setting)
    found = residuals(answer.alpha64, float(answer.offset), gram, case.setting)
    assert found.box <= 1e-17
    assert found.sum <= 1e-14
    # A large ridge rounds too: its term is ridge * alpha.
    assert found.kkt <= 1e-14 * (1 + case.setting.ridge)


@pytest.mark.parametrize("case", [c for c in ALL if not c.collecting], ids=lambda case: case.name)
@pytest.mark.parametrize("solver", ["clarabel", "quadprog"])
def test_no_general_solver_finds_a_lower_objective(case: Case, solver: str) -> None:
    gram, ridge = float_gram(case.keys, case.setting), case.setting.ridge
    answer = quadratic(case.keys, case.setting, solver)
    slack = abs(answer.sum() - float(total(case.setting.C))) + max(0.0, -answer.min(), answer.max() - case.setting.C)
    best = truth(case).alpha64
    scale = 1 + np.abs(gram).max() + ridge
    fuzz = scale * (FLOAT_FUZZ + 2 * slack)
    assert objective(best, gram, ridge) <= objective(answer, gram, ridge) + fuzz
    if slack <= 1e-13:
        assert energy(answer - best, gram, ridge) <= duality_gap(answer, gram, case.setting) + fuzz


@pytest.mark.parametrize(
    "case", [c for c in ALL if c.setting.kernel != "linear" and len(c.keys) > fewest(c.setting.C)], ids=lambda c: c.name
)
def test_libsvm_scaled_to_our_units_lies_within_its_own_gap(case: Case) -> None:
    answer, gram = libsvm(case.keys, case.setting), float_gram(case.keys, case.setting)
    best, ridge = truth(case), case.setting.ridge
    assert answer.alpha.sum() == pytest.approx(1, abs=1e-9)
    gap = duality_gap(answer.alpha, gram, case.setting)
    assert energy(answer.alpha - best.alpha64, gram, ridge) <= gap + 1e-12
    assert gap <= SINGLE
    if best.margin:
        ours = float(best.offset) + 0.5
        assert abs(answer.level - ours) <= 2 * max(0.0, gap) ** 0.5 + SINGLE * (1 + ridge)


def energy(delta: np.ndarray, gram: np.ndarray, ridge: float) -> float:
    return float(delta @ (gram @ delta) + ridge * (delta @ delta))


def test_libsvm_has_no_answer_where_all_are_at_the_cap() -> None:
    case = BY_NAME["two_points_all_at_cap"]
    with pytest.raises(ValueError, match="not finite"):
        libsvm(case.keys, case.setting)


@pytest.mark.parametrize(
    ("cap", "least", "whole"),
    [
        (1.0, 1, True),
        (0.5, 2, True),
        (1 / 3, 3, True),
        (1 / 49, 49, True),
        (0.4, 3, False),
        (0.1 * (1 - 1e-12), 11, False),
    ],
)
def test_fewest_and_total_follow_the_cap(cap: float, least: int, whole: bool) -> None:
    assert fewest(cap) == least
    assert total(cap) == (least * Fraction(cap) if whole else 1)


def test_the_exact_kernel_is_the_float_kernel_to_rounding() -> None:
    keys = np.random.default_rng(3).standard_normal((6, 3))
    for kernel in ("rbf", "laplacian", "linear", "cosine"):
        setting = Setting(C=1.0, kernel=kernel, sigma=1.7)
        exact = np.array([[float(x) for x in row] for row in precise(keys, setting).gram])
        assert exact == pytest.approx(float_gram(keys, setting), abs=1e-14, rel=0)


def test_ninety_digits_are_in_use() -> None:
    assert ctx.dps == 90
