"""How what is left of a secret is measured."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.audit import attack, duality_gap, wilson
from experiments.removal import gaussian, solved_all
from svmem import RBF, Problem, certify


def test_the_gap_is_that_of_the_certificate_and_grows_off_the_optimum():
    rng = np.random.default_rng(0)
    keys, problem = rng.standard_normal((12, 3)), Problem(RBF(1.5), C=0.2)
    kernel, state = gaussian(keys, keys, 1.5), solved_all(keys, keys, problem)
    assert duality_gap(state, kernel, problem) < 1e-15
    flat = replace(state, alpha=np.full(12, 1 / 12))
    # An offset other than the best one can only widen it.
    best = certify(keys, flat.alpha, problem)
    ours = duality_gap(replace(flat, offset=best.offset), kernel, problem)
    assert ours == pytest.approx(best.gap, rel=1e-9)
    assert duality_gap(replace(flat, offset=best.offset + 0.5), kernel, problem) > ours > 1e-4
    without = solved_all(keys[1:], keys[1:], problem)
    alpha = np.append(0.0, without.alpha)
    assert duality_gap(replace(without, alpha=alpha), kernel, problem, without=0) < 1e-15
    few = solved_all(keys[:3], keys[:3], problem)  # it still collects: 1/3 each is all there is
    assert duality_gap(few, kernel[:3, :3], problem) < 1e-15


def test_equal_numbers_are_half_a_win_and_intervals_hold_their_share():
    assert attack(np.zeros(6), np.zeros(6)) == (1.5, 3)
    assert attack(np.full(6, -1.0), np.zeros(6)) == (3.0, 3)
    low, high = wilson(50, 100)
    assert low == pytest.approx(0.4038, abs=1e-4)
    assert high == pytest.approx(0.5962, abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)
