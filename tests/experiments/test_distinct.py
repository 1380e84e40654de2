"""Pairs that are all distinct, read with and without a gate: the layers, and what the numbers have to bear out."""

import numpy as np
import pytest
import torch

from experiments import distinct
from experiments.selection import claim
from svmem import RBF, Problem, solve

pytestmark = pytest.mark.usefixtures("compiled")


def test_the_gate_recalls_the_same_unless_its_lead_is_beyond_the_spread_over_seeds():
    def first(*gated, ungated=(0.99, 1.0, 0.99), softmax=0.5):
        numbers = {"gated": gated, "ungated": ungated[: len(gated)], "softmax": [softmax] * len(gated)}
        pairs = [(mixer, seed, one) for mixer, some in numbers.items() for seed, one in enumerate(some)]
        rows = [{"part": "pairs", "mixer": m, "seed": s, "recall": one, "support": 1.0} for m, s, one in pairs]
        return claim(rows)

    assert "the same within the spread" in first(1.0, 0.99, 1.0)[0].text
    assert first(1.0, 0.99, 1.0)[0].holds
    assert first(0.9, 0.9, 0.9)[0].holds
    assert "the same" not in first(0.9, 0.91, 0.9)[0].text
    assert first(1.0, 1.0, 1.0, ungated=(0.9, 0.91, 0.9))[0].holds is False
    assert first(1.0)[0].holds is None
    assert first(1.0, 1.0, softmax=0.6)[2].holds
    assert first(1.0, 1.0, ungated=(0.8, 0.8), softmax=0.6)[2].holds is False


def test_without_a_gate_the_nearest_projected_key_answers():
    keys, values, queries = distinct._draw(np.random.default_rng(0), 2)
    model = distinct.Pairs("ungated")
    with torch.no_grad():
        answer, k, q = model(keys, values, queries), model.key(keys).numpy(), model.key(queries).numpy()
        v = model.value(values).numpy()
    weight = np.exp(-np.square(q[0, 3] - k[0]).sum(axis=1) / distinct.SIGMA**2)
    np.testing.assert_allclose(answer[0, 3], weight @ v[0] / weight.sum(), rtol=1e-4)


def test_the_gate_weighs_pairs_by_their_coefficients():
    keys, values, queries = distinct._draw(np.random.default_rng(0), 1)
    model = distinct.Pairs("gated")
    with torch.no_grad():
        answer, k, q = (
            model(keys, values, queries)[0],
            model.key(keys)[0].double().numpy(),
            model.key(queries)[0].numpy(),
        )
        v = model.value(values)[0].numpy()
    alpha = solve(k, Problem(RBF(distinct.SIGMA), C=distinct.C, ridge=1e-6)).alpha
    weight = alpha * np.exp(-np.square(q[:, None] - k[None]).sum(axis=2) / distinct.SIGMA**2)
    np.testing.assert_allclose(answer, weight @ v / weight.sum(axis=1, keepdims=True), rtol=1e-3, atol=1e-4)
