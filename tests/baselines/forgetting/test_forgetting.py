"""Forgetting without solving again: one contract over all methods, and each against a naive or closed form."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from svmem import RBF, Laplacian, Linear, Problem, solve
from svmem.baselines.forgetting import Decay, Forgetting, GradientAscent, Scaling, State
from svmem.baselines.forgetting.gradient_ascent import capped, loss, slope
from svmem.baselines.forgetting.state import log_kernel
from svmem.errors import InvalidInput

METHODS = [Decay(0.1), Decay(0.01), Scaling(), GradientAscent(), GradientAscent(steps=1, rate=10.0)]


def state_of(kernel: Any) -> State:
    rng = np.random.default_rng(0)
    keys, values = rng.standard_normal((20, 3)), rng.standard_normal((20, 2))
    problem = Problem(kernel, 0.15)
    return State(keys, values, solve(keys, problem).alpha, problem)


STATE = state_of(RBF(1.5))
GONE = np.flatnonzero(STATE.alpha > 0)[:2]


@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize("kernel", [RBF(1.5), Laplacian(2.0)], ids=str)
def test_a_method_returns_new_coefficients_and_changes_nothing_given(method: Forgetting, kernel: Any) -> None:
    state = state_of(kernel)
    before, gone = state.alpha.copy(), np.flatnonzero(state.alpha > 0)[:2]
    found = method(state, gone)
    assert found.shape == before.shape
    assert (found >= 0).all()
    assert not np.array_equal(found, before)
    assert np.array_equal(state.alpha, before)
    assert np.array_equal(method(state, gone[::-1].tolist()), found)


@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize("gone", [[], [20], [-1], [0, 0], [0.5], [[0]], [True], range(20), "0", 3], ids=str)
def test_rows_that_cannot_be_forgotten_are_refused(method: Forgetting, gone: Any) -> None:
    with pytest.raises(InvalidInput, match=r"must (be distinct whole numbers|stay)"):
        method(STATE, gone)


def test_decay_damps_the_forgotten_and_no_other() -> None:
    assert Decay(0.1)(STATE, GONE).tolist() == [a * 0.1 if i in GONE else a for i, a in enumerate(STATE.alpha)]
    assert np.array_equal(Decay(1.0)(STATE, GONE), STATE.alpha)


def test_scaling_divides_the_others_by_what_they_sum_to() -> None:
    left = sum(a for i, a in enumerate(STATE.alpha) if i not in GONE)
    expected = [0.0 if i in GONE else a / left for i, a in enumerate(STATE.alpha)]
    assert Scaling()(STATE, GONE).tolist() == pytest.approx(expected, rel=1e-14)


def test_scaling_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="must have a coefficient"):
        Scaling()(STATE, np.flatnonzero(STATE.alpha > 0))


def test_ascent_makes_the_forgotten_readout_worse_within_the_capped_simplex() -> None:
    kernel = log_kernel(STATE.problem.kernel, STATE.keys[GONE], STATE.keys)
    before = loss(kernel, STATE.values, STATE.values[GONE], STATE.alpha)
    for steps in (1, 10, 50):
        found = GradientAscent(steps)(STATE, GONE)
        assert loss(kernel, STATE.values, STATE.values[GONE], found) > before
        assert found.sum() == pytest.approx(1, abs=1e-14)
        assert found.max() <= STATE.problem.C


def test_the_slope_is_that_of_differences() -> None:
    kernel = log_kernel(STATE.problem.kernel, STATE.keys[GONE], STATE.keys)
    alpha = STATE.alpha + 0.01
    step = 1e-6 * np.eye(len(alpha))
    given = kernel, STATE.values, STATE.values[GONE]
    naive = [(loss(*given, alpha + h) - loss(*given, alpha - h)) / 2e-6 for h in step]
    assert slope(*given, alpha) == pytest.approx(naive, abs=1e-8)


def test_one_step_between_two_records_has_a_closed_form() -> None:
    problem = Problem(RBF(1.0), 0.9)
    state = State(np.array([[0.0], [1.0]]), np.array([[0.0], [1.0]]), np.array([0.5, 0.5]), problem)
    # The first readout is 1 / (1 + e), its value 0. At equal coefficients the two slopes are opposite, so that a step
    # of a tenth of the cap needs no projection; many steps end at the cap of the second.
    assert GradientAscent(steps=1, rate=0.1)(state, [0]) == pytest.approx([0.41, 0.59], abs=1e-12)
    assert GradientAscent(steps=100)(state, [0]) == pytest.approx([0.1, 0.9], abs=1e-12)


def test_where_the_readout_is_exact_ascent_stays() -> None:
    alike = replace(STATE, values=np.zeros((20, 2)))
    assert np.array_equal(GradientAscent()(alike, GONE), STATE.alpha)


@pytest.mark.parametrize("seed", range(5))
def test_the_projection_meets_the_conditions_of_the_nearest_point(seed: int) -> None:
    point = np.random.default_rng(seed).standard_normal(12)
    found = capped(point, 0.2)
    assert found.sum() == pytest.approx(1, abs=1e-14)
    shift = (point - found)[(found > 0) & (found < 0.2)]
    if shift.size:
        assert np.ptp(shift) < 1e-12
        assert (point[found == 0] <= shift[0] + 1e-12).all()
        assert (point[found == 0.2] - 0.2 >= shift[0] - 1e-12).all()


def test_answers_of_a_state_are_those_of_naive_sums() -> None:
    queries = np.random.default_rng(3).standard_normal((4, 3))
    for m, query in enumerate(queries):
        kappa = [np.exp(-np.sum((query - key) ** 2) / 1.5**2) for key in STATE.keys]
        f = sum(a * k for a, k in zip(STATE.alpha, kappa, strict=True))
        mean = sum(a * k * v for a, k, v in zip(STATE.alpha, kappa, STATE.values, strict=True)) / f
        assert STATE.density(queries, STATE.alpha)[m] == pytest.approx(f, rel=1e-12)
        assert STATE.read(queries, STATE.alpha)[m] == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: Decay(-0.1), "factor"),
        (lambda: Decay(float("nan")), "factor"),
        (lambda: GradientAscent(steps=0), "steps"),
        (lambda: GradientAscent(steps=1.5), "steps"),  # pyright: ignore[reportArgumentType]
        (lambda: GradientAscent(rate=0.0), "rate"),
        (lambda: GradientAscent(rate=float("inf")), "rate"),
        (lambda: replace(STATE, alpha=STATE.alpha * 2), "alpha"),
        (lambda: replace(STATE, alpha=STATE.alpha[1:]), "one row a key"),
        (lambda: replace(STATE, values=STATE.values[1:]), "one row a key"),
        (lambda: replace(STATE, keys=np.full((20, 3), np.nan)), "keys"),
        (lambda: replace(STATE, problem=Problem(Linear(), 0.15)), "kernel"),
        (lambda: GradientAscent()(replace(STATE, problem=Problem(RBF(1.0), 0.01)), [0]), "100 records"),
        (lambda: GradientAscent()(FAR, [1]), "overflows"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make: Any, word: str) -> None:
    with pytest.raises(InvalidInput, match=word) as caught:
        make()
    assert "\n" not in str(caught.value)


FAR = State(np.array([[0.0], [1e3]]), np.eye(2), np.array([1.0, 0.0]), Problem(RBF(1.0), 1.0))
