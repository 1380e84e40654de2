import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svmem._jit.exponential import exp_neg, exp_neg_inplace, exp_neg_single


def ulps(t, y):
    """Return the error of y as exp(-t), in units of the last place of the exact value."""
    with mpmath.workdps(50):
        exact = mpmath.exp(-mpmath.mpf(t))
        return float(abs(mpmath.mpf(y) - exact) / max(np.spacing(float(exact)), 5e-324))


@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 1e-12), (0, 0.35), (0.34, 0.36), (0, 3), (0, 40), (600, 708), (708, 746)],
)
def test_exp_is_within_one_ulp_of_fifty_digits(low, high):
    t = np.random.default_rng(0).uniform(low, high, 2000)
    y = t.copy()
    exp_neg_inplace(y)
    assert max(map(ulps, t.tolist(), y.tolist())) < 1


@given(st.floats(0, 746))
def test_exp_is_within_one_ulp_anywhere(t):
    assert ulps(t, float(exp_neg(t))) < 1


def test_the_ends_of_the_range_are_exact():
    t = np.array([0.0, 5e-324, 746.0, 1e300, math.inf])
    exp_neg_inplace(t)
    assert t.tolist() == [1.0, 1.0, 0.0, 0.0, 0.0]


def test_exp_never_rises_between_neighbouring_floats_near_where_the_exponent_changes():
    for k in range(1, 60):
        t = (k - 0.5) * math.log(2)
        around = t + np.spacing(t) * np.arange(-50, 51)
        y = around.copy()
        exp_neg_inplace(y)
        assert (np.diff(y) <= 2 * np.spacing(y[1:])).all()


def test_a_vector_has_the_bits_of_its_entries_alone_whatever_its_length():
    t = np.random.default_rng(1).exponential(5, 257)
    whole = t.copy()
    exp_neg_inplace(whole)
    alone = np.array([exp_neg(x) for x in t])
    assert np.array_equal(whole, alone)
    for start in range(1, 20):
        part = t[start:].copy()
        exp_neg_inplace(part)
        assert np.array_equal(part, whole[start:])


@given(st.floats(0, 87, width=32))
def test_the_short_exp_is_right_to_its_stated_error(t):
    with np.errstate(all="ignore"):
        found = exp_neg_single(np.float32(t))
    assert abs(float(found) / math.exp(-t) - 1) <= 4e-7


def test_the_short_exp_goes_no_further_than_its_range_and_keeps_what_is_no_number():
    assert 0 <= float(exp_neg_single(np.float32(1e30))) <= 2e-38
    assert 0 <= float(exp_neg_single(np.float32(math.inf))) <= 2e-38
    assert math.isnan(float(exp_neg_single(np.float32(math.nan))))
