"""The optimality certificate: its bounds against fifty digits, what it refuses, and its form as plain data."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import svmem
from svmem.core.certificate import CertificateStatus, OptimalityCertificate, certify
from svmem.core.residual import residuals
from svmem.errors import InvalidInput
from tests.cases import ALL, BY_NAME, Case, problem_of, truth
from tests.oracles import Setting, enumerate_optimum, fewest, float_gram
from tests.oracles.distance import Distance, distance, exact_residuals
from tests.oracles.exact import Optimum, ctx, gram_matrix, number
from tests.strategies import examples, problems

Array = np.ndarray
named = pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
feasible = pytest.mark.parametrize("case", [c for c in ALL if not c.collecting], ids=lambda case: case.name)
PROBES = np.array([0.0, 0.3, -2.0, 5.0, 1e3, -1e200])
CLOUD = 1.5 * np.random.default_rng(7).standard_normal((512, 6))
CLOUD_PROBLEM = svmem.Problem.from_nu(nu=0.4, n_ref=512, kernel=svmem.RBF(sigma=2.0))


def rounded(optimum: Optimum, setting: Setting) -> Array:
    """Return the optimum as the nearest floats inside the box, the caps exactly."""
    alpha = optimum.alpha64
    if len(alpha) < fewest(setting.C):
        return np.full(len(alpha), 1 / len(alpha))
    alpha = np.clip(alpha, 0, setting.C)
    alpha[list(optimum.bound)], alpha[list(optimum.reserve)] = setting.C, 0.0
    return alpha


def assert_sound(found: OptimalityCertificate, true: Distance, optimum: Optimum, setting: Setting) -> None:
    assert found.w_bound >= true.w
    assert found.alpha_bound >= true.alpha
    assert found.offset_bound >= abs(number(found.offset) - optimum.offset)
    if found.status is CertificateStatus.PROVEN:
        assert found.gap >= true.gap
        assert found.max_kkt >= true.kkt
        assert found.w_bound**2 <= found.gap * (1 + 1e-8)
    for i, moved in enumerate(true.f):
        assert found.w_bound * ctx.sqrt(optimum.gram[i][i]) >= moved
        if setting.kernel in ("rbf", "laplacian", "cosine"):
            assert found.score_bound >= 2 * (moved + abs(number(found.offset) - optimum.offset))


def moved_about(alpha: Array, cap: float, moves: list[tuple[int, int, float]]) -> Array:
    """Return the coefficients after moving mass between pairs, staying inside the box."""
    alpha = alpha.copy()
    for i, j, share in moves:
        mass = share * min(alpha[i], cap - alpha[j]) * (i != j)
        alpha[i] = max(0.0, alpha[i] - mass)
        alpha[j] = min(cap, alpha[j] + mass)
    return alpha


@named
def test_every_bound_holds_at_the_rounded_optimum(case: Case) -> None:
    optimum = truth(case)
    alpha = rounded(optimum, case.setting)
    found = certify(case.keys, alpha, case.problem, offset=float(optimum.offset))
    assert_sound(found, distance(alpha, found.offset, optimum, case.setting), optimum, case.setting)


@feasible
def test_every_bound_holds_far_from_the_optimum(case: Case) -> None:
    optimum, n = truth(case), len(case.keys)
    moves = [(i % n, (3 * i + 1) % n, 0.5) for i in range(n)]
    alpha = moved_about(rounded(optimum, case.setting), case.setting.C, moves)
    found = certify(case.keys, alpha, case.problem)
    assert_sound(found, distance(alpha, found.offset, optimum, case.setting), optimum, case.setting)


SHARES = st.sampled_from([1e-16, 1e-13, 1e-9, 1e-6, 1e-3, 0.1, 0.5, 1.0])
MOVES = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), SHARES), max_size=4)


@settings(max_examples=examples(100))
@given(problems(most=5), MOVES, st.sampled_from([0.0, 0.0, 1e-16, -3e-14, 9e-13]), st.sampled_from([0.0, 1e-9, -0.1]))
def test_every_bound_holds_for_any_coefficients_on_the_simplex(
    drawn: tuple[Array, Setting], moves: list[tuple[int, int, float]], slip: float, off: float
) -> None:
    keys, setting = drawn
    n, optimum = len(keys), enumerate_optimum(keys, setting)
    alpha = rounded(optimum, setting)
    if n >= fewest(setting.C):
        alpha = moved_about(alpha, setting.C, [(i % n, j % n, share) for i, j, share in moves])
        alpha[0] = min(max(alpha[0] + slip, 0.0), setting.C)
    found = certify(keys, alpha, problem_of(setting), offset=float(optimum.offset) + off)
    assert_sound(found, distance(alpha, found.offset, optimum, setting), optimum, setting)


@settings(max_examples=examples(50))
@given(problems(most=5))
def test_the_gap_is_close_to_the_true_gap_where_it_is_large(drawn: tuple[Array, Setting]) -> None:
    keys, setting = drawn
    if len(keys) < fewest(setting.C) or setting.C * len(keys) < 1.2:
        return
    alpha = np.full(len(keys), 1 / len(keys))
    found = certify(keys, alpha, problem_of(setting))
    true = distance(alpha, found.offset, enumerate_optimum(keys, setting), setting)
    assert true.gap <= found.gap <= 1.000001 * float(true.gap) + 1e-14 * (1 + setting.ridge)


@named
def test_residuals_are_within_their_stated_error(case: Case) -> None:
    alpha = rounded(truth(case), case.setting)
    found = residuals(case.keys, alpha, case.problem)
    exact = exact_residuals(alpha, gram_matrix(case.keys, case.setting), case.setting.ridge)
    for value, error, right in zip(found.value, found.error, exact, strict=True):
        high = float(value)
        assert abs(number(high) + number(float(value - np.longdouble(high))) - right) <= number(float(error)) * 1.0001


@named
def test_the_offset_is_the_n_min_th_smallest_residual(case: Case) -> None:
    optimum, setting = truth(case), case.setting
    alpha = rounded(optimum, setting)
    found = certify(case.keys, alpha, case.problem)
    assert abs(found.offset - float(optimum.offset)) <= found.offset_bound
    slopes = sorted(h + optimum.offset for h in optimum.h)
    rank = min(fewest(setting.C), len(slopes))
    scale = max(1, *(abs(row[i]) for i, row in enumerate(optimum.gram)))
    assert abs(slopes[rank - 1] - optimum.offset) < scale * ctx.mpf(10) ** -40


def readout(alpha: list, keys: Array, values: Array, query: Array, setting: Setting) -> list:
    """Return the weighted mean of the values in ninety digits, weights relative to the largest."""
    rows = gram_matrix(np.vstack([query[None], keys]), setting)[0][1:]
    weights = [a * k for a, k in zip(alpha, rows, strict=True)]
    whole = ctx.fsum(weights)
    return [ctx.fdot(weights, [number(v) for v in column]) / whole for column in values.T]


@pytest.mark.parametrize("name", ["paper_cloud", "grid_4", "walk", "near_twins_1e-9", "three_tenths_collecting"])
def test_no_readout_moves_by_more_than_the_bound(name: str) -> None:
    case = BY_NAME[name]
    optimum, setting = truth(case), case.setting
    alpha = rounded(optimum, setting)
    found = certify(case.keys, alpha, case.problem)
    values = np.random.default_rng(1).standard_normal((len(alpha), 2))
    largest = float(np.linalg.norm(values, axis=1).max())
    bound = found.readout_bound(largest)
    assert bound is not None
    assert bound < 1e-2
    for probe in (0.0, 1.0, -3.0, 60.0):
        query = np.full(case.keys.shape[1], probe)
        ours = readout([number(a) for a in alpha], case.keys, values, query, setting)
        true = readout(optimum.alpha, case.keys, values, query, setting)
        assert ctx.sqrt(ctx.fsum((a - b) ** 2 for a, b in zip(ours, true, strict=True))) <= bound


def test_a_readout_bound_is_absent_where_a_zero_may_be_none() -> None:
    keys = np.array([[-1.0], [1.0], [0.0]])
    alpha = np.array([0.5, 0.5, 0.0])  # not the optimum: the middle key is lower
    problem = svmem.Problem(kernel=svmem.RBF(sigma=0.5), C=1.0)
    assert certify(keys, alpha, problem).readout_bound(1.0) is None
    assert (
        certify(np.array([[1.0, 2.0], [2.0, 1.0]]), [0.5, 0.5], problem_of(Setting(C=1.0, kernel="cosine"))).gap < 1e-14
    )


@pytest.mark.usefixtures("compiled")
def test_the_solver_is_certified_ten_times_closer_than_what_is_asked() -> None:
    solution = svmem.solve(CLOUD, CLOUD_PROBLEM)
    found = certify(CLOUD, solution.alpha, CLOUD_PROBLEM, offset=solution.offset)
    assert found.score_bound <= 1e-8  # 3e-12 where long double has 64 bits
    assert found.max_kkt <= 1e-14
    assert found.readout_epsilon is not None
    assert found.readout_epsilon < 0.5


@pytest.mark.usefixtures("compiled")
def test_the_order_of_the_keys_changes_no_bound_by_more_than_rounding() -> None:
    keys = CLOUD[:96]
    alpha = svmem.solve(keys, CLOUD_PROBLEM).alpha
    one = certify(keys, alpha, CLOUD_PROBLEM)
    other = certify(keys[::-1], alpha[::-1], CLOUD_PROBLEM)
    for name in ("gap", "w_bound", "score_bound", "alpha_bound"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=0.2)
    assert one.sum_error == other.sum_error


def test_a_wrong_offset_is_certified_as_that_wrong() -> None:
    case = BY_NAME["paper_future_key"]
    optimum = truth(case)
    found = certify(case.keys, rounded(optimum, case.setting), case.problem, offset=float(optimum.offset) + 1e-3)
    assert 1e-3 <= found.offset_bound <= 1.001e-3
    assert 2e-3 <= found.score_bound <= 2.002e-3
    assert 1e-3 <= found.max_kkt <= 1.001e-3


def test_a_precomputed_gram_matrix_gives_the_bounds_of_its_kernel() -> None:
    case = BY_NAME["walk"]
    alpha = rounded(truth(case), case.setting)
    gram = float_gram(case.keys, case.setting)
    gram = (gram + gram.T) / 2
    found = certify(gram, alpha, replace(case.problem, kernel=svmem.Precomputed()))
    assert found.score_bound <= 1e-7
    assert found.readout_epsilon is None


def test_collecting_claims_nothing_of_an_optimum() -> None:
    found = certify(np.arange(3.0)[:, None], np.full(3, 1 / 3), problem_of(Setting(C=0.25)))
    assert found.status is CertificateStatus.COLLECTING
    assert found.gap == 0
    assert 0 < found.score_bound < 1e-14
    assert "nothing is claimed" in found.status


def test_an_empty_memory_has_a_certificate_that_claims_nothing() -> None:
    found = certify(np.empty((0, 3)), np.empty(0), problem_of(Setting(C=0.25)))
    assert (found.n, found.gap, found.score_bound, found.offset) == (0, 0.0, 0.0, 0.0)
    assert found.readout_epsilon is None


REFUSED = [
    ("alpha must lie in", np.eye(2), [1.0 + 2**-52, 0.0]),
    ("alpha must lie in", np.eye(2), [1.0, -1e-300]),
    ("alpha must sum to 1.0", np.eye(2), [0.5, 0.5 + 1e-11]),
    ("alpha must sum to 1.0", np.eye(2), [0.25, 0.5]),
    ("alpha must have shape", np.eye(2), [1.0]),
    ("alpha must have shape", np.eye(2), [[0.5, 0.5]]),
    ("alpha must be finite", np.eye(2), [np.nan, 0.5]),
    ("keys must be finite", np.array([[np.inf, 0.0], [0.0, 1.0]]), [0.5, 0.5]),
    ("keys must have shape", np.zeros(2), [0.5, 0.5]),
]


@pytest.mark.parametrize(("message", "keys", "alpha"), REFUSED)
def test_input_off_the_capped_simplex_is_refused_in_a_sentence(message: str, keys: Array, alpha: list) -> None:
    with pytest.raises(InvalidInput, match=message):
        certify(keys, alpha, problem_of(Setting(C=1.0)))


def test_collecting_coefficients_other_than_equal_shares_are_refused() -> None:
    with pytest.raises(InvalidInput, match="alpha must be 1/n with 2 keys, fewer than the 4"):
        certify(np.eye(2), [0.6, 0.4], problem_of(Setting(C=0.25)))


def test_an_infinite_offset_is_refused() -> None:
    with pytest.raises(InvalidInput, match="offset must be finite"):
        certify(np.eye(2), [0.5, 0.5], problem_of(Setting(C=1.0)), offset=-np.inf)


def test_an_indefinite_gram_matrix_is_refused() -> None:
    problem = problem_of(Setting(C=1.0, kernel="precomputed"))
    with pytest.raises(InvalidInput, match="positive semi-definite"):
        certify([[1.0, 2.0], [2.0, 1.0]], [0.5, 0.5], problem)


def test_a_gram_matrix_whose_convexity_drowns_in_rounding_is_refused() -> None:
    problem = problem_of(Setting(C=1.0, kernel="precomputed", ridge=1e-14))
    with pytest.raises(InvalidInput, match="ridge must exceed"):
        certify(np.full((30, 30), 100.0), np.full(30, 1 / 30), problem)


def test_keys_that_the_kernel_cannot_take_are_refused() -> None:
    with pytest.raises(InvalidInput, match="zero key"):
        certify(np.array([[0.0], [1.0]]), [0.5, 0.5], problem_of(Setting(C=1.0, kernel="cosine")))
    with pytest.raises(InvalidInput, match="finite"):
        certify(np.array([[1e200], [1.0]]), [0.5, 0.5], problem_of(Setting(C=1.0, kernel="linear")))


@named
def test_a_certificate_survives_strict_json_bit_for_bit(case: Case) -> None:
    found = certify(case.keys, rounded(truth(case), case.setting), case.problem)
    text = json.dumps(found.to_json(), allow_nan=False)
    assert OptimalityCertificate.from_json(json.loads(text)) == found


def test_damaged_json_is_refused() -> None:
    good = certify(np.eye(2), [0.5, 0.5], problem_of(Setting(C=1.0))).to_json()
    assert set(good) == {field.name for field in fields(OptimalityCertificate)}
    damaged = [{**good, "n": -1}, {**good, "gap": "0"}, {**good, "status": "fine"}, {**good, "w_bound": float("nan")}]
    damaged += [{**good, "more": 1}, {k: v for k, v in good.items() if k != "gap"}, {**good, "problem": {"C": 1.0}}]
    damaged += [{**good, "offset": True}, {**good, "offset": None}]
    for data in damaged:
        with pytest.raises(InvalidInput):
            OptimalityCertificate.from_json(data)
