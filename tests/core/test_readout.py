"""Readout, weights and score of a view, against sums in sixty and more digits that know nothing of the code."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath.ctx_mp import MPContext
from numpy.typing import NDArray

from svmem.core.problem import Problem
from svmem.core.readout import View, canonical_order, heaviest, read, score, view_of
from svmem.errors import InvalidInput
from svmem.kernels import RBF, Cosine, Kernel, Laplacian, Linear
from tests.strategies import examples, key_sets

Array = NDArray[np.float64]
ctx: Any = MPContext()
KERNELS = [RBF(2.0), RBF(0.3), Laplacian(1.5)]
kernels = pytest.mark.parametrize("kernel", KERNELS, ids=str)


def view(keys: Array, values: Array, alpha: Array, kernel: Kernel, offset: float = -0.2) -> View:
    """Return a view with ids 10, 11, ..., owner = id as text."""
    ids = 10 + np.arange(len(keys))
    owners: list[str | None] = [str(i) for i in ids]
    return view_of(Problem(kernel, C=1.0), len(keys), offset, ids, owners, keys + 0.0, values + 0.0, alpha)


def made(kernel: Kernel = KERNELS[0], n: int = 40, d: int = 3, v: int = 2, seed: int = 0) -> tuple[View, Array]:
    """Return a view of random records with uneven coefficients, and queries among them."""
    random = np.random.default_rng(seed)
    alpha = random.exponential(size=n) ** 3
    keys, values = random.standard_normal((n, d)), random.standard_normal((n, v))
    return view(keys, values, alpha / alpha.sum(), kernel), 1.5 * random.standard_normal((60, d))


def exponents(query: Array, keys: Array, kernel: Kernel) -> list[Any]:
    """Return -log kappa(query, key) for each key, with sixty digits behind the point however large the numbers are."""
    ctx.dps = 60 + 2 * int(np.log10(max(1.0, np.abs(query).max(), np.abs(keys).max())))
    width = ctx.mpf(float(getattr(kernel, "sigma", 1.0)))
    gaps = [[ctx.mpf(float(a)) - ctx.mpf(float(b)) for a, b in zip(query, key, strict=True)] for key in keys]
    if isinstance(kernel, RBF):
        return [ctx.fsum(x * x for x in gap) / width**2 for gap in gaps]
    return [ctx.fsum(abs(x) for x in gap) / width for gap in gaps]


def exact_weights(query: Array, shown: View) -> list[Any]:
    """Return the weights of the records of a view, in its order."""
    t = exponents(query, shown.keys, shown.problem.kernel)
    least = min(t)
    raw = [
        ctx.mpf(float(a)) * (ctx.exp(least - x) if x - least < 1000 else 0) for a, x in zip(shown.alpha, t, strict=True)
    ]
    whole = ctx.fsum(raw)
    return [w / whole for w in raw]


def exact_answer(query: Array, shown: View) -> Array:
    weights = exact_weights(query, shown)
    return np.array([float(ctx.fdot(weights, map(ctx.mpf, map(float, column)))) for column in shown.rows[:-1]])


@kernels
def test_the_readout_is_the_weighted_mean(kernel: Kernel) -> None:
    shown, queries = made(kernel)
    expected = np.array([exact_answer(query, shown) for query in queries])
    np.testing.assert_allclose(read(shown, queries), expected, rtol=0, atol=3e-14)


@kernels
def test_the_score_is_twice_the_height_above_the_offset(kernel: Kernel) -> None:
    shown, queries = made(kernel)
    for query, got in zip(queries, score(shown, queries), strict=True):
        f = ctx.fsum(
            a * ctx.exp(-t) for a, t in zip(map(float, shown.alpha), exponents(query, shown.keys, kernel), strict=True)
        )
        assert got == pytest.approx(float(2 * (f - ctx.mpf(0.5) - ctx.mpf(shown.offset))), rel=0, abs=1e-15)


@pytest.mark.parametrize("kernel", [Linear(), Cosine()], ids=str)
def test_a_kernel_that_can_be_negative_has_a_score_and_no_readout(kernel: Kernel) -> None:
    shown, queries = made(kernel)
    scaled = shown.keys, queries
    if isinstance(kernel, Cosine):
        scaled = tuple(x / np.linalg.norm(x, axis=1, keepdims=True) for x in scaled)
    keys, points = scaled
    expected = 2 * (points @ keys.T @ shown.alpha - 0.5 * (points * points).sum(axis=1) + 0.2)
    np.testing.assert_allclose(score(shown, queries), expected, atol=1e-13)
    for ask in (lambda: read(shown, queries), lambda: heaviest(shown, queries, 2)):
        with pytest.raises(InvalidInput, match="never negative"):
            ask()


@kernels
@pytest.mark.parametrize("far", [10.0, 1e3, 1e5])
def test_far_away_the_weights_are_still_those_of_the_formula(kernel: Kernel, far: float) -> None:
    shown, queries = made(kernel, n=12)
    queries = far * queries[:20] / np.abs(queries[:20]).max(axis=1, keepdims=True)
    _, places, weights = heaviest(shown, queries, 12)
    # float64 sees the exponents' differences to a few units of |x_i - x_r| |q|, times its unit
    error = 100 * 2.0**-52 * (far / kernel.scale if isinstance(kernel, RBF) else 1.0) * 8 + 1e-14
    for query, place, weight in zip(queries, places, weights, strict=True):
        exact = exact_weights(query, shown)
        np.testing.assert_allclose(weight, [float(exact[i]) for i in place], rtol=0, atol=error)


@kernels
@pytest.mark.parametrize("far", [1e8, 1e17, 1e153, 1e160, 1e200, 1e300, 1.7e308])
def test_very_far_away_the_nearest_record_answers_alone(kernel: Kernel, far: float) -> None:
    shown, _ = made(kernel, n=12, d=2)
    directions = np.array([[1.0, 0.0], [0.0, -1.0], [1.0, 1.0], [-1.0, 0.5]])
    for query in far * directions:
        t = exponents(query, shown.keys, kernel)
        if isinstance(kernel, RBF):  # the Laplacian only ever sees differences of the order of the keys
            winner = min(range(12), key=lambda i: t[i])
            assert read(shown, query[None])[0].tolist() == shown.rows[:-1, winner].tolist()
        np.testing.assert_allclose(read(shown, query[None])[0], exact_answer(query, shown), atol=1e-13)


def test_among_close_records_a_far_query_is_as_exact_as_a_near_one() -> None:
    keys = np.array([[-0.5e-4], [0.0], [4e-13]])  # seen from 1e12, all distances round to the same number
    shown = view(keys, np.array([[0.0], [0.0], [1.0]]), np.full(3, 1 / 3), RBF(1.0))
    query = np.array([1e12])
    assert read(shown, query[None])[0, 0] == pytest.approx(exact_answer(query, shown)[0], rel=1e-15)


@kernels
def test_far_from_two_records_at_the_same_distance_their_coefficients_decide(kernel: Kernel) -> None:
    shown = view(np.array([[-1.0], [1.0]]), np.array([[0.0], [1.0]]), np.array([0.25, 0.75]), kernel)
    for query in (0.0, 1e-300):
        assert read(shown, np.array([[query]]))[0, 0] == pytest.approx(0.75, abs=1e-15)
    above = view(np.array([[-1.0, 0.0], [1.0, 0.0]]), np.array([[0.0], [1.0]]), np.array([0.25, 0.75]), kernel)
    for height in (10.0, 1e9, 1e200, -1e308):
        assert read(above, np.array([[0.0, height]]))[0, 0] == 0.75


@kernels
def test_keys_that_are_infinitely_far_from_each_other_do_not_disturb(kernel: Kernel) -> None:
    keys = np.array([[-1.7e308, 1.7e308], [0.0, 0.0], [1.7e308, 1.7e308], [1.0, 0.0]])
    values = np.array([[1.0], [2.0], [3.0], [4.0]])
    shown = view(keys, values, np.full(4, 0.25), kernel)
    at = np.array([[-1.7e308, 1.7e308], [1.7e308, 1.7e308], [1e308, 1.6e308], [-1e308, 1e308], [0.0, 0.0]])
    assert read(shown, at)[:4, 0].tolist() == [1.0, 3.0, 3.0, 1.0]
    assert 2.0 <= read(shown, at)[4, 0] <= 4.0


@pytest.mark.parametrize("kernel", [RBF(1e-100), RBF(1e100), Laplacian(1e-150), Laplacian(1e150)], ids=str)
def test_a_width_of_any_size_gives_a_mean(kernel: Kernel) -> None:
    shown, queries = made(kernel, n=12)
    queries = np.vstack([queries, shown.keys, 1e50 * queries, 1e250 * queries])
    for query, got in zip(queries, read(shown, queries), strict=True):
        np.testing.assert_allclose(got, exact_answer(query, shown), rtol=0, atol=1e-13)


@kernels
def test_equal_values_are_read_back_to_the_last_bit(kernel: Kernel) -> None:
    shown, queries = made(kernel)
    constant = view(shown.keys, np.full((40, 2), [0.1, -1.7e308]), shown.alpha, kernel)
    assert read(constant, queries).tolist() == [[0.1, -1.7e308]] * 60


@given(keys=key_sets(most=7), data=st.data())
@settings(max_examples=examples(150))
def test_a_readout_is_a_mean_whatever_the_keys_and_the_query(keys: Array, data: st.DataObject) -> None:
    n, d = keys.shape
    kernel = data.draw(st.sampled_from([*KERNELS, RBF(1e-3), Laplacian(100.0)]))
    numbers = st.floats(allow_nan=False, allow_infinity=False, width=64)
    values = np.array([[data.draw(numbers)] for _ in range(n)])
    alpha = np.array([data.draw(st.floats(1e-17, 1.0)) for _ in range(n)])
    queries = np.array([[data.draw(numbers | st.floats(-3, 3)) for _ in range(d)] for _ in range(3)])
    shown = view(keys, values, alpha / alpha.sum(), kernel)
    k = data.draw(st.integers(1, n))
    out, places, weights = heaviest(shown, queries, k)
    for answer in (read(shown, queries), out):
        assert (answer >= values.min()).all()
        assert (answer <= values.max()).all()
    assert weights.sum(axis=1) == pytest.approx(1.0, abs=1e-14)
    assert (weights >= 0).all()
    assert (np.diff(weights, axis=1) <= 0).all()
    assert all(len(set(row)) == k for row in places.tolist())
    assert (weights[:, 0] >= 0.999999 / n).all()
    for row in range(3):
        assert read(shown, queries[row : row + 1]).tobytes() == read(shown, queries)[row].tobytes()
    assert np.isfinite(score(shown, queries)).all()


@kernels
def test_one_query_has_the_bits_it_has_in_a_batch(kernel: Kernel) -> None:
    shown, queries = made(kernel, n=2500)
    together, scores = read(shown, queries), score(shown, queries)
    out, places, weights = heaviest(shown, queries, 5)
    for row in range(60):
        alone = queries[row : row + 1]
        assert read(shown, alone).tobytes() == together[row].tobytes()
        assert score(shown, alone)[0] == scores[row]
        for one, many in zip(heaviest(shown, alone, 5), (out, places, weights), strict=True):
            assert one.tobytes() == many[row].tobytes()


@kernels
def test_the_order_of_the_records_leaves_no_trace(kernel: Kernel) -> None:
    random = np.random.default_rng(1)
    keys = random.integers(0, 3, (60, 2)).astype(float)  # many equal keys
    values = random.integers(0, 2, (60, 2)).astype(float)
    alpha = np.array([0.1 + 0.01 * (3 * x + y) for x, y in keys])  # equal keys carry equal coefficients
    queries = random.standard_normal((20, 2))
    shown = view(keys, values, alpha, kernel)
    for _ in range(5):
        order = random.permutation(60)
        other = view(keys[order], values[order], alpha[order], kernel)
        assert read(other, queries).tobytes() == read(shown, queries).tobytes()
        assert score(other, queries).tobytes() == score(shown, queries).tobytes()


def test_with_all_records_the_heaviest_are_the_readout() -> None:
    shown, queries = made()
    assert heaviest(shown, queries, 40)[0].tobytes() == read(shown, queries).tobytes()


def test_the_heaviest_are_those_of_a_full_sort_and_rescaled() -> None:
    shown, queries = made(n=30)
    out, places, weights = heaviest(shown, queries, 4)
    for query, answer, place, weight in zip(queries, out, places, weights, strict=True):
        exact = [float(w) for w in exact_weights(query, shown)]
        best = sorted(range(30), key=lambda i: -exact[i])[:4]
        assert place.tolist() == best
        share = np.array([exact[i] for i in best]) / sum(exact[i] for i in best)
        np.testing.assert_allclose(weight, share, atol=1e-14)
        np.testing.assert_allclose(answer, shown.rows[:-1, best] @ share, atol=1e-14)


def test_ties_among_the_heaviest_go_in_canonical_order() -> None:
    random = np.random.default_rng(3)
    keys, values = random.choice([-1.0, 1.0], (50, 1)), random.permutation(50.0 * np.arange(1, 51))[:, None]
    shown = view(keys, values, np.full(50, 0.02), RBF(1.0))
    by_bytes = sorted(range(50), key=lambda i: (keys[i, 0], values[i].tobytes()))
    for k in (1, 7, 26, 50):
        assert shown.ids[heaviest(shown, np.zeros((1, 1)), k)[1][0]].tolist() == [10 + i for i in by_bytes[:k]]


def test_many_queries_are_taken_in_blocks_without_a_seam() -> None:
    shown, _ = made(n=300, d=1, v=1)
    queries = np.linspace(-4, 4, 9000)[:, None]
    out, places, weights = heaviest(shown, queries, 2)
    for row in (0, 3494, 3495, 3496, 6990, 8999):
        one = heaviest(shown, queries[row : row + 1], 2)
        assert one[0].tobytes() == out[row].tobytes()
        assert one[1].tobytes() == places[row].tobytes()
        assert one[2].tobytes() == weights[row].tobytes()


@given(key_sets(most=8), st.data())
@settings(max_examples=examples(200))
def test_the_canonical_order_is_that_of_tuples_and_bytes(keys: Array, data: st.DataObject) -> None:
    numbers = st.sampled_from([0.0, 1.0, -1.0, 2.5, 5e-324, -5e-324, 1e300, 1 + 2**-52])
    values = np.array([[data.draw(numbers), data.draw(numbers)] for _ in keys])
    keys = keys + 0.0
    expected = sorted(range(len(keys)), key=lambda i: (tuple(keys[i]), values[i].tobytes(), i))
    assert canonical_order(keys, values).tolist() == expected


def test_no_queries_give_no_answers() -> None:
    shown, _ = made()
    assert read(shown, np.empty((0, 3))).shape == (0, 2)
    assert score(shown, np.empty((0, 3))).shape == (0,)
    assert [part.shape for part in heaviest(shown, np.empty((0, 3)), 2)] == [(0, 2), (0, 2), (0, 2)]


def _bits() -> str:
    """Return the bits of answers near and far, over both kernels."""
    parts = []
    for kernel in (RBF(2.0), Laplacian(1.5)):
        shown, queries = made(kernel, n=11)
        queries = np.vstack([queries[:4], 1e3 * queries[:2], 1e200 * queries[:2], 1.1e308 * np.sign(queries[:2])])
        parts += [read(shown, queries), score(shown, queries), *heaviest(shown, queries, 3)]
    return b"".join(part.tobytes() for part in parts).hex()


def test_uncompiled_code_gives_the_same_bits() -> None:
    script = "from tests.core.test_readout import _bits; print(_bits())"
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
    )
    assert ran.stdout.strip() == _bits()
