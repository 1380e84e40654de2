"""The cold solve on random degenerate problems, seeded in CI."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import svmem
from tests.cases import problem_of
from tests.oracles import Setting, enumerate_optimum, fewest, precise
from tests.oracles.agreement import assert_agrees, assert_optimal
from tests.strategies import examples, key_sets, problems, settings_for

pytestmark = [pytest.mark.usefixtures("compiled"), pytest.mark.timeout(240, func_only=True)]

Drawn = tuple[np.ndarray, Setting]


@settings(max_examples=examples(100))
@given(problems(most=6))
def test_small_degenerate_problems_agree_with_the_enumeration(drawn: Drawn) -> None:
    keys, setting = drawn
    solution = svmem.solve(keys, problem_of(setting))
    assert_optimal(solution, keys, setting)
    assert_agrees(solution, enumerate_optimum(keys, setting), keys, setting)


@settings(max_examples=examples(100))
@given(problems(most=20))
def test_degenerate_problems_agree_with_fifty_digits(drawn: Drawn) -> None:
    keys, setting = drawn
    solution = svmem.solve(keys, problem_of(setting))
    assert_optimal(solution, keys, setting)
    assert_agrees(solution, precise(keys, setting), keys, setting)


@settings(max_examples=examples(200))
@given(problems(most=40))
def test_degenerate_problems_are_solved_to_rounding(drawn: Drawn) -> None:
    keys, setting = drawn
    assert_optimal(svmem.solve(keys, problem_of(setting)), keys, setting)


@settings(max_examples=examples(150))
@given(problems(most=16), st.randoms(use_true_random=False))
def test_shuffled_keys_give_the_same_bits(drawn: Drawn, random: Random) -> None:
    keys, setting = drawn
    order = np.array(random.sample(range(len(keys)), len(keys)))
    one, other = svmem.solve(keys, problem_of(setting)), svmem.solve(keys[order], problem_of(setting))
    assert other.alpha.tobytes() == one.alpha[order].tobytes()
    assert other.offset == one.offset


@settings(max_examples=examples(100))
@given(st.data())
def test_moving_a_grid_by_whole_numbers_changes_no_bit(data: st.DataObject) -> None:
    keys = data.draw(key_sets(most=12, d=2)).round()
    keys = np.clip(keys, -(2.0**20), 2.0**20)
    setting = data.draw(settings_for(len(keys)))
    shift = np.array(data.draw(st.sampled_from([(1e5, 0.0), (-3.0, 2.0**30), (1e8, -1e8)])))
    one, other = svmem.solve(keys, problem_of(setting)), svmem.solve(keys + shift, problem_of(setting))
    assert other.alpha.tobytes() == one.alpha.tobytes()
    assert other.offset == one.offset


@settings(max_examples=examples(100))
@given(problems(most=12), st.sampled_from([2.0, 0.25, 2.0**20]))
def test_a_power_of_two_on_keys_and_width_changes_no_bit(drawn: Drawn, factor: float) -> None:
    keys, setting = drawn
    keys = keys[np.abs(keys).max(axis=1) < 1e100]
    keys = np.where(np.abs(keys) < 1e-100, 0.0, keys)  # no squared difference may leave the normal range
    if len(keys) == 0:
        return
    wider = Setting(setting.C, setting.kernel, setting.sigma * factor, setting.ridge)
    one, other = svmem.solve(keys, problem_of(setting)), svmem.solve(keys * factor, problem_of(wider))
    assert other.alpha.tobytes() == one.alpha.tobytes()
    assert other.offset == one.offset


@pytest.mark.parametrize("seed", range(40))
def test_seeded_clouds_with_twins_and_repeats_agree_with_fifty_digits(seed: int) -> None:
    random = np.random.default_rng(seed)
    n, d = int(random.integers(5, 25)), int(random.integers(1, 5))
    keys = 1.5 * random.standard_normal((n, d))
    keys = np.concatenate([keys, keys[: n // 3], keys[n // 3 : n // 2] + 1e-9, np.rint(keys[n // 2 :])])
    least = int(random.integers(1, len(keys) + 1))
    setting = Setting(C=float(random.choice([1 / least, 1 / (least - 0.3)])) if least > 1 else 1.0, sigma=2.0)
    solution = svmem.solve(keys, problem_of(setting))
    assert len(keys) >= fewest(setting.C)
    assert_optimal(solution, keys, setting)
    assert_agrees(solution, precise(keys, setting), keys, setting)
