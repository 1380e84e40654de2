"""The paper's approximate gate: near the optimum on easy keys, differentiable, and not to be trusted on hard ones."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from svmem.baselines import FistaAttention
from svmem.baselines.fista_gate import _descend, _gram, fista_gate
from svmem.errors import InvalidInput
from svmem.nn import SVCache
from tests.cases.gates import KEY_SETS
from tests.oracles.gate_derivatives import dense_jacobian
from tests.oracles.gates import reference_gate

RIDGE = 1e-3


def keys_of(family: str, t: int, d: int, seed: int = 0) -> np.ndarray:
    return KEY_SETS[family](np.random.default_rng([seed, t, d]), t, d)


@pytest.mark.parametrize("family", ["random", "unit sphere", "grid", "few distinct", "walk"])
def test_it_is_near_the_optimum_on_keys_that_differ(family: str) -> None:
    keys = keys_of(family, 48, 8)
    found = fista_gate(torch.tensor(keys)[None, None], [16, 32, 48], C=0.1, sigma=1.5)
    assert found.dtype == torch.float32
    for k, n in enumerate([16, 32, 48]):
        expected = reference_gate(keys, n, float(np.float32(0.1)), 1.5, RIDGE).alpha
        assert found[0, 0, k, :n].numpy() == pytest.approx(expected, abs=2e-3)
        assert (found[0, 0, k, n:] == 0).all()


@pytest.mark.parametrize("family", list(KEY_SETS))
def test_coefficients_sum_to_one_or_are_none(family: str) -> None:
    keys = torch.tensor(keys_of(family, 40, 4))[None, None]
    found = fista_gate(keys, [0, 1, 5, 10, 23, 40], C=0.1, sigma=1.5)
    sums = found.sum(-1)[0, 0]
    assert sums[0] == 0
    assert sums[1:].numpy() == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("iterations", [0, 1, 80])
def test_without_the_last_solve_the_steps_end_in_the_capped_simplex_for_any_number_of_them(iterations: int) -> None:
    gram = _gram(torch.tensor(keys_of("redundant", 24, 4)).float()[None, None], torch.tensor(1.5))
    for n, both in zip((12, 24), _descend([gram[..., :12, :12], gram], 0.2, iterations), strict=True):
        found = both[0, 0]
        assert found.shape == (n,)
        assert found.min() >= 0
        assert found.max() <= 0.2
        assert float(found.sum()) == pytest.approx(1.0, abs=1e-5)


def test_fewer_keys_than_one_over_c_share_the_mass_equally() -> None:
    found = fista_gate(torch.tensor(keys_of("random", 24, 3)).view(1, 2, 12, 3), [1, 9, 10, 12], C=0.1, sigma=1.5)
    assert (found[:, :, 1, :9] == 1 / 9).all()
    assert found[:, :, 2, :10].numpy() == pytest.approx(0.1, abs=1e-6)


def test_on_redundant_keys_80_steps_leave_the_capped_simplex() -> None:
    keys = keys_of("redundant", 64, 8)
    found = fista_gate(torch.tensor(keys)[None, None], [64], C=0.1, sigma=2.0)[0, 0, 0].double().numpy()
    expected = reference_gate(keys, 64, 0.1, 2.0, RIDGE).alpha
    assert np.abs(found - expected).max() > 1e-2
    assert found.min() < 0


def test_where_its_partition_is_right_its_gradient_is_that_of_the_optimum() -> None:
    raw, weight = keys_of("random", 16, 4, seed=3), np.sin(np.arange(16.0))
    assert reference_gate(raw, 16, 0.2, 1.5, RIDGE).slack > 1e-3
    keys = torch.tensor(raw[None, None], requires_grad=True)
    numbers = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (1.5, 0.2)]
    found = fista_gate(keys, [16], C=numbers[1], sigma=numbers[0])
    loss = (found[0, 0, 0] * torch.tensor(weight)).sum()
    by_keys, by_sigma, by_C = torch.autograd.grad(loss, (keys, *numbers))
    expected = dense_jacobian(raw, 16, 0.2, 1.5, RIDGE)
    assert by_keys[0, 0].numpy() == pytest.approx(np.einsum("i,ijd->jd", weight, expected.alpha_keys), abs=1e-3)
    assert by_sigma.item() == pytest.approx(weight @ expected.alpha_sigma, abs=1e-3)
    assert by_C.item() == pytest.approx(weight @ expected.alpha_C, abs=1e-3)


def test_each_head_may_have_its_own_width() -> None:
    keys, sigma = torch.tensor(keys_of("random", 48, 3)).view(2, 2, 12, 3), torch.tensor([1.0, 2.0])
    found = fista_gate(keys, [8, 12], C=0.3, sigma=sigma)
    for j in range(2):
        alone = fista_gate(keys[:, j : j + 1], [8, 12], C=0.3, sigma=float(sigma[j]))
        torch.testing.assert_close(found[:, j : j + 1], alone, rtol=0, atol=1e-5)


KEYS = torch.zeros(1, 2, 8, 3)


@pytest.mark.parametrize(
    ("keys", "boundaries", "C", "sigma", "word"),
    [
        (KEYS[0], [4], 0.3, 1.0, "keys"),
        (KEYS.long(), [4], 0.3, 1.0, "keys"),
        (KEYS, [4, 9], 0.3, 1.0, "boundaries"),
        (KEYS, [4, 2], 0.3, 1.0, "boundaries"),
        (KEYS, [4], 0.0, 1.0, "C"),
        (KEYS, [4], float("nan"), 1.0, "C"),
        (KEYS, [4], 0.3, -1.0, "sigma"),
        (KEYS, [4], 0.3, torch.ones(3), "sigma"),
    ],
    ids=str,
)
def test_bad_arguments_are_refused_in_one_sentence(
    keys: Tensor, boundaries: list[int], C: Any, sigma: Any, word: str
) -> None:
    with pytest.raises(InvalidInput, match=word):
        fista_gate(keys, boundaries, C=C, sigma=sigma)


def test_no_boundaries_give_no_coefficients() -> None:
    assert fista_gate(KEYS, [], C=0.3, sigma=1.0).shape == (1, 2, 0, 8)


def test_the_layer_refuses_what_the_papers_gate_has_no_rule_for():
    layer, x = FistaAttention(8, 2), torch.zeros(1, 4, 8)
    for padding, cache in ((torch.zeros(1, 4, dtype=torch.bool), None), (None, SVCache(layer))):
        with pytest.raises(InvalidInput, match="FistaAttention takes neither key_padding_mask nor cache"):
            layer(x, padding, cache=cache)
