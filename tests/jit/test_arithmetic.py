"""Doubled arithmetic against exact fractions, rows against plain loops, the factor against numpy."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from svmem._jit import doubled
from svmem._jit.factor import append, remove, solve_lower, solve_pair, solve_upper
from svmem._jit.refine import GRID, round_doubled
from svmem._jit.rows import LAPLACIAN, LINEAR, PRECOMPUTED, RBF, kernel_row, self_kernel, weighted_sums
from svmem._jit.work import doubled_cholesky

moderate = st.floats(-1e100, 1e100).filter(lambda x: x == 0 or abs(x) > 1e-100)
EPS2 = Fraction(1, 2**100)


def pair(rng):
    high = float(rng.standard_normal())
    return high, high * 2**-54 * float(rng.uniform(-1, 1))


def exact(pair_):
    return Fraction(pair_[0]) + Fraction(pair_[1])


@given(moderate, moderate)
def test_two_sum_and_two_product_lose_nothing(a, b):
    assert exact(doubled.two_sum(a, b)) == Fraction(a) + Fraction(b)
    assume(a == 0 or b == 0 or abs(a * b) > 1e-100)
    assert exact(doubled.two_product(a, b)) == Fraction(a) * Fraction(b)


@pytest.mark.parametrize("seed", range(50))
def test_doubled_operations_are_right_to_a_hundred_bits(seed):
    rng = np.random.default_rng(seed)
    a, b = pair(rng), pair(rng)
    for ours, truth in (
        (doubled.add(*a, *b), exact(a) + exact(b)),
        (doubled.multiply(*a, *b), exact(a) * exact(b)),
        (doubled.divide(*a, *b), exact(a) / exact(b)),
    ):
        assert abs(exact(ours) - truth) <= EPS2 * max(abs(exact(a)) + abs(exact(b)), abs(truth))


@pytest.mark.parametrize("seed", range(20))
def test_rounding_gives_the_nearest_multiple_of_the_spacing(seed):
    rng = np.random.default_rng(seed)
    high = float(rng.uniform(0, 1)) * 10.0 ** -int(rng.integers(0, 12))
    low = high * 2**-54 * float(rng.uniform(-1, 1))
    nearest, sure = round_doubled(high, low, 0.0)
    spacing = max(GRID, np.spacing(high))
    assert sure
    assert abs(Fraction(nearest) - exact((high, low))) <= Fraction(spacing) / 2
    assert nearest % GRID == 0


def test_rounding_near_a_midpoint_is_not_sure():
    spacing = np.spacing(0.3)
    assert not round_doubled(0.3, spacing / 2 - 1e-30, 1e-28)[1]
    assert round_doubled(0.3, spacing / 2 - 1e-26, 1e-28)[1]


def slow_kernel(code, scale, x, y):
    if code == RBF:
        return np.exp(-sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) / scale)
    if code == LAPLACIAN:
        return np.exp(-sum(abs(a - b) for a, b in zip(x, y, strict=True)) / scale)
    return sum(a * b for a, b in zip(x, y, strict=True))


@pytest.mark.parametrize("code", [RBF, LAPLACIAN, LINEAR])
@pytest.mark.parametrize("n", [1, 7, 1023, 1025, 2500])
def test_kernel_rows_are_those_of_a_plain_loop_whatever_the_block(code, n):
    rng = np.random.default_rng(n)
    keys = rng.standard_normal((n, 3))
    xt, out = np.zeros((3, n + 5)), np.full(n + 5, np.nan)
    xt[:, :n] = keys.T
    kernel_row(code, 1.7, keys[0], xt, n, out)
    np.testing.assert_allclose(out[:n], [slow_kernel(code, 1.7, keys[0], y) for y in keys], rtol=1e-14, atol=1e-15)
    assert np.isnan(out[n:]).all()
    assert out[0] == self_kernel(code, keys[0], 0)


def test_kernels_are_symmetric_to_the_bit():
    rng = np.random.default_rng(0)
    keys = rng.standard_normal((40, 5))
    for code in (RBF, LAPLACIAN, LINEAR):
        gram = np.empty((40, 40))
        for i in range(40):
            kernel_row(code, 0.9, keys[i], np.ascontiguousarray(keys.T), 40, gram[i])
        assert np.array_equal(gram, gram.T)


def test_a_precomputed_row_is_copied():
    gram, out = np.array([[2.0, 1.0], [1.0, 3.0]]), np.empty(2)
    kernel_row(PRECOMPUTED, 1.0, gram[1], gram, 2, out)
    assert out.tolist() == [1.0, 3.0]
    assert self_kernel(PRECOMPUTED, gram[1], 1) == 3.0


def test_overflowing_distances_give_zero():
    keys, out = np.array([[0.0, 1e200, -1e308, 1e308]]), np.empty(4)
    kernel_row(RBF, 1.0, keys[:, 3].copy(), keys, 4, out)
    assert out.tolist() == [0.0, 0.0, 0.0, 1.0]


def test_weighted_sums_are_those_of_a_plain_loop():
    rng = np.random.default_rng(3)
    keys, queries, weights = rng.standard_normal((30, 4)), rng.standard_normal((9, 4)), rng.random(30)
    out = np.empty(9)
    weighted_sums(RBF, 2.0, queries, np.ascontiguousarray(keys.T), weights, out)
    truth = [sum(w * slow_kernel(RBF, 2.0, q, x) for w, x in zip(weights, keys, strict=True)) for q in queries]
    np.testing.assert_allclose(out, truth, rtol=1e-13)


def gram_of(s, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((s, s + 3))
    return a @ a.T


@pytest.mark.parametrize("s", [1, 2, 9, 33])
def test_the_factor_solves_its_system_after_appending_and_removing(s):
    gram, chol, carry = gram_of(s + 4), np.zeros((s + 8, s + 8)), np.zeros(s + 8)
    kept: list[int] = []
    for i in range(s + 4):
        column = np.zeros(s + 8)
        column[: len(kept)] = gram[i, kept]
        assert append(chol, len(kept), column, gram[i, i], 0.0)
        kept.append(i)
    for position in (0, s // 2, -1):
        remove(chol, len(kept), position % len(kept), carry)
        kept.pop(position)
        truth = gram[np.ix_(kept, kept)]
        upper = np.triu(chol[: len(kept), : len(kept)])
        np.testing.assert_allclose(upper.T @ upper, truth, rtol=0, atol=1e-12 * truth.max())
        x = np.ones(s + 8)
        solve_lower(chol, len(kept), x)
        solve_upper(chol, len(kept), x)
        np.testing.assert_allclose(truth @ x[: len(kept)], 1, atol=1e-8)
        x, y = np.ones(s + 8), np.arange(s + 8.0)
        solve_pair(chol, len(kept), x, y)
        np.testing.assert_allclose(truth @ x[: len(kept)], 1, atol=1e-8)
        np.testing.assert_allclose(truth @ y[: len(kept)], np.arange(len(kept)), atol=1e-7)


def test_a_pivot_that_is_too_small_is_refused_and_the_factor_kept():
    chol = np.zeros((3, 3))
    assert append(chol, 0, np.zeros(3), 1.0, 0.0)
    before = chol.copy()
    assert not append(chol, 1, np.array([1.0, 0.0, 0.0]), 1.0, 1e-12)
    assert np.array_equal(chol, before)


def test_the_doubled_factor_holds_where_float64_fails():
    keys = np.array([0.0, 1e-7, 2e-7, 1.0])
    high = np.exp(-(np.subtract.outer(keys, keys) ** 2)) + 1e-15 * np.eye(4)
    low = np.zeros((4, 4))
    truth = high.copy()
    assert doubled_cholesky(high, low)
    for i in range(4):
        for j in range(i, 4):
            total = sum(exact((high[k, i], low[k, i])) * exact((high[k, j], low[k, j])) for k in range(i + 1))
            assert abs(total - Fraction(truth[i, j])) < Fraction(1, 10**28)


def test_an_indefinite_matrix_has_no_doubled_factor():
    assert not doubled_cholesky(np.array([[1.0, 2.0], [0.0, 1.0]]), np.zeros((2, 2)))
