"""The selection certificate: what it lets go now, what it never lets go, and what it refuses."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svmem.core.selection import SelectionCertificate, certify_selection
from svmem.errors import InvalidInput
from tests.cases import ALL, BY_NAME, Case, problem_of, truth
from tests.oracles import Setting, enumerate_optimum, fewest, precise
from tests.oracles.exact import Optimum
from tests.strategies import examples, problems

Array = np.ndarray
named = pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)


def rounded(optimum: Optimum, setting: Setting) -> Array:
    """Return the optimum as the nearest floats inside the box, the caps exactly."""
    alpha = optimum.alpha64
    if len(alpha) < fewest(setting.C):
        return np.full(len(alpha), 1 / len(alpha))
    alpha = np.clip(alpha, 0, setting.C)
    alpha[list(optimum.bound)], alpha[list(optimum.reserve)] = setting.C, 0.0
    return alpha


@named
def test_what_is_droppable_now_is_what_is_reserve_beyond_rounding(case: Case) -> None:
    optimum = truth(case)
    found = certify_selection(case.keys, rounded(optimum, case.setting), case.problem)
    assert set(found.droppable) <= set(optimum.reserve)
    clear = {
        j for j in optimum.reserve if optimum.h[j] > 5 * (found.w_bound + 1e-16) * max(1, float(optimum.gram[j][j]))
    }
    assert clear <= set(found.droppable)
    assert found.reserve == len(optimum.reserve)
    for j, slack in zip(found.droppable, found.slack, strict=True):
        assert 0 < slack <= optimum.h[j]


@named
def test_dropping_all_of_them_leaves_the_optimum_as_it_is(case: Case) -> None:
    optimum = truth(case)
    found = certify_selection(case.keys, rounded(optimum, case.setting), case.problem)
    kept = np.setdiff1d(np.arange(len(case.keys)), found.droppable)
    keys = case.keys[np.ix_(kept, kept)] if case.setting.kernel == "precomputed" else case.keys[kept]
    pruned = precise(keys, case.setting)
    assert abs(pruned.offset - optimum.offset) < 1e-30
    assert all(abs(pruned.alpha[k] - optimum.alpha[i]) < 1e-30 for k, i in enumerate(kept))


@settings(max_examples=examples(60))
@given(problems(most=6))
def test_no_record_of_the_optimum_is_ever_droppable(drawn: tuple[Array, Setting]) -> None:
    keys, setting = drawn
    optimum = enumerate_optimum(keys, setting)
    found = certify_selection(keys, rounded(optimum, setting), problem_of(setting))
    assert set(found.droppable) <= set(optimum.reserve)


@settings(max_examples=examples(60))
@given(problems(most=6), st.data())
def test_coefficients_away_from_the_optimum_certify_no_more(drawn: tuple[Array, Setting], data: st.DataObject) -> None:
    keys, setting = drawn
    optimum, n = enumerate_optimum(keys, setting), len(keys)
    alpha = rounded(optimum, setting)
    i, j = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, n - 1))
    mass = data.draw(st.sampled_from([1e-9, 1e-5, 0.1, 1.0])) * min(alpha[i], max(0.0, setting.C - alpha[j])) * (i != j)
    alpha[i], alpha[j] = max(0.0, alpha[i] - mass), alpha[j] + mass
    if n < fewest(setting.C) or alpha[j] > setting.C:
        return
    found = certify_selection(keys, alpha, problem_of(setting))
    assert set(found.droppable) <= set(optimum.reserve)


def test_the_papers_future_key_may_go_now_but_not_before_one_more_admission() -> None:
    case = BY_NAME["paper_future_key"]
    alpha = rounded(truth(case), case.setting)
    now = certify_selection(case.keys, alpha, case.problem)
    assert now.droppable.tolist() == [2]
    assert now.slack[0] == pytest.approx(0.00408686, abs=1e-8)
    assert now.status == "1 of 1 reserve records certified to stay silent, now"
    later = certify_selection(case.keys, alpha, case.problem, admissions=1)
    assert later.droppable.tolist() == []
    assert later.level is not None
    assert later.level > 0.5  # of 0.93 - 0.5 at the third key
    woken = precise(np.vstack([case.keys, [0, -10]]), case.setting)
    assert float(woken.alpha[2]) == pytest.approx(0.03327001, abs=1e-6)


def test_deletions_that_could_lead_back_to_collecting_certify_nothing() -> None:
    keys = np.array([[0.0], [1.0], [2.0], [3.0]])
    setting = Setting(C=0.5, sigma=10.0)
    alpha = rounded(precise(keys, setting), setting)
    assert certify_selection(keys, alpha, problem_of(setting)).droppable.tolist() == [1, 2]
    found = certify_selection(keys, alpha, problem_of(setting), deletions=3)
    assert (found.droppable.tolist(), found.level) == ([], None)
    assert "could leave fewer than the 2 keys" in found.status


def test_collecting_certifies_nothing() -> None:
    found = certify_selection(np.zeros((2, 1)), [0.5, 0.5], problem_of(Setting(C=0.25)))
    assert (found.reserve, found.droppable.tolist(), found.level) == (0, [], None)
    assert "collecting" in found.status


@pytest.mark.parametrize("kernel", ["linear", "cosine"])
def test_a_horizon_is_refused_to_kernels_that_are_not_bounded(kernel: str) -> None:
    keys, alpha = np.array([[1.0], [2.0], [4.0]]), [0.5, 0.0, 0.5]
    problem = problem_of(Setting(C=0.5, kernel=kernel))
    assert certify_selection(keys, alpha, problem).horizon == (0, 0)
    for horizon in ({"admissions": 1}, {"deletions": 1}):
        with pytest.raises(InvalidInput, match="a horizon needs a kernel with 0 <= kappa <= 1"):
            certify_selection(keys, alpha, problem, **horizon)


@pytest.mark.parametrize("count", [-1, 1.0, True, "2", None])
def test_a_horizon_that_is_no_count_is_refused(count: object) -> None:
    with pytest.raises(InvalidInput, match="must be a count"):
        certify_selection(np.eye(2), [0.5, 0.5], problem_of(Setting(C=1.0)), admissions=count)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["walk", "paper_future_key", "collecting", "grid_linear"])
def test_a_certificate_survives_strict_json_bit_for_bit(name: str) -> None:
    case = BY_NAME[name]
    found = certify_selection(case.keys, rounded(truth(case), case.setting), case.problem)
    data = json.loads(json.dumps(found.to_json(), allow_nan=False))
    again = SelectionCertificate.from_json(data)
    assert again.to_json() == found.to_json()
    assert again.slack.tobytes() == found.slack.tobytes()
    for damage in ({"n": -1}, {"slack": [1.0] * 99}, {"movement": None}, {"more": 0}, {"droppable": [0.5]}):
        with pytest.raises(InvalidInput):
            SelectionCertificate.from_json(data | damage)
