"""What is true is borne out by the checker, and its own arithmetic is as exact as it says."""

import json

import numpy as np
import pytest

from svmem.checker import check
from svmem.checker.doubled import exp_of_minus
from svmem.checker.model import Model
from svmem.core.certificate import certify
from svmem.core.document import Commitment, build, seal
from tests.cases import BY_NAME, Case, problem_of
from tests.checker.documents import (
    CASE,
    DOCUMENT,
    VALUES,
    certificate,
    coefficients,
    deletion,
    named,
    record_values,
    replaced,
)
from tests.oracles import Setting
from tests.oracles.digests import records_root, state_digest
from tests.oracles.distance import exact_residuals
from tests.oracles.exact import ctx, gram_matrix, number


@named
def test_true_certificates_are_borne_out_in_any_order_of_the_records(case: Case) -> None:
    values, document = deletion(case)
    order = np.random.default_rng(0).permutation(len(values))
    assert check(case.keys, values, document) == []
    assert check(case.keys[order], values[order], json.loads(json.dumps(document))) == []


@pytest.mark.parametrize("horizon", [None, (1, 0), (0, 1), (5, 2)])
@pytest.mark.parametrize("name", ["stuck", "carried_forward", "paper_cloud", "collecting"])
def test_true_horizons_are_borne_out(name: str, horizon: tuple[int, int] | None) -> None:
    case = BY_NAME[name]
    values = record_values(case)
    document = certificate(case, values, horizon=horizon)
    assert document["kind"] == ("optimality" if horizon is None else "selection")
    assert check(case.keys, values, document) == []


def test_an_empty_memory_is_borne_out() -> None:
    keys, values, problem = np.empty((0, 3)), np.empty((0, 2)), problem_of(Setting(C=0.5))
    optimality = certify(keys, np.empty(0), problem)
    root = records_root(keys, values)
    assert root == "00" * 32
    state = state_digest(problem.to_json(), keys, 2, np.empty(0), 0.0, root)
    document = build(keys, np.empty(0), optimality, Commitment(2, root, state))
    assert check(keys, values, document) == []
    assert [finding.field for finding in check(np.zeros((1, 3)), np.zeros((1, 2)), document)] == ["n"]


def test_larger_bounds_are_accepted_since_they_are_true() -> None:
    for name, value in DOCUMENT["optimality"].items():
        if name not in ("sum_error", "w_bound"):  # the selection part repeats the latter
            assert check(CASE.keys, VALUES, seal(replaced(DOCUMENT, ("optimality", name), 1.5 * value))) == []


def test_minus_zero_is_zero() -> None:
    case = BY_NAME["zero_and_minus_zero"]
    values, document = deletion(case)
    assert check(np.abs(case.keys), values, document) == []


def test_the_checkers_exponential_is_right_to_76_bits() -> None:
    t = np.concatenate([np.linspace(0, 3, 200), np.linspace(3, 699, 200), [0.0, 1e-300, 1 / 3, 700.0, 1e9]])
    low = t * 1e-17
    high, rest = exp_of_minus((t, low))
    for a, b, value, tail in zip(t, low, high, rest, strict=True):
        right = ctx.exp(-(number(a) + number(b)))
        assert abs(number(value) + number(tail) - right) <= max(right * ctx.mpf(2) ** -76, ctx.mpf(10) ** -303)


@named
def test_the_checkers_residuals_are_within_their_error(case: Case) -> None:
    document = certificate(case, record_values(case), horizon=None)
    keys, size = np.unique(case.keys + 0.0, axis=0, return_counts=True)
    model = Model(keys, size, document)
    order = [int(np.flatnonzero((case.keys == key).all(axis=1))[0]) for key in keys]
    exact = exact_residuals(coefficients(case), gram_matrix(case.keys, case.setting), case.setting.ridge)
    for k, i in enumerate(order):
        assert abs(number(model.r[0][k]) + number(model.r[1][k]) - exact[i]) <= number(model.error[k])
