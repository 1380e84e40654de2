"""The gradient of a gate: the derivative of the optimum with the partition held fixed, against three references."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

from svmem.nn import gate
from tests.cases.gates import KEY_SETS
from tests.oracles.gate_derivatives import Jacobian, dense_jacobian, difference_jacobian
from tests.oracles.gates import reference_gate
from tests.oracles.naive_attention import naive_gate


@dataclass(frozen=True, slots=True, eq=False)
class Fixture:
    """A batch of problems, far from any change of sets."""

    name: str
    seed: int
    shape: tuple[int, int, int, int]
    boundaries: tuple[int, ...]
    C: float
    sigma: tuple[float, ...]
    ridge: float
    lengths: tuple[int, ...] | None = None

    def keys(self) -> Tensor:
        return torch.tensor(np.random.default_rng(self.seed).standard_normal(self.shape))

    def leaves(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return keys, sigma and C that ask for gradients."""
        sigma, C = torch.tensor(self.sigma, dtype=torch.float64), torch.tensor(self.C, dtype=torch.float64)
        return self.keys().requires_grad_(), sigma.requires_grad_(), C.requires_grad_()

    def problems(self):
        """Yield (item, head, boundary's number, number of keys) of each problem that has keys."""
        b, h, _, _ = self.shape
        for i, j, (k, s) in product(range(b), range(h), enumerate(self.boundaries)):
            n = s if self.lengths is None else min(s, self.lengths[i])
            if n:
                yield i, j, k, n

    def gate(self, keys: Tensor, sigma: Tensor, C: Tensor):
        return gate(keys, self.boundaries, C=C, sigma=sigma, ridge=self.ridge, lengths=self.lengths)


FIXTURES = (
    Fixture("bound keys", 53, (2, 2, 9, 2), (3, 6, 9), 0.3, (1.3, 2.0), 1e-2),
    Fixture("no cap", 55, (2, 2, 9, 3), (2, 5, 9), 1.0, (1.3, 2.0), 1e-3),
    Fixture("ragged", 102, (2, 2, 10, 2), (0, 4, 7, 10), 0.4, (1.0, 1.6), 1e-3, (6, 10)),
    Fixture("small ridge", 8, (1, 2, 8, 3), (5, 8), 0.3, (1.5, 1.5), 1e-6),
    Fixture("all at the cap", 50, (2, 1, 4, 2), (3, 4), 0.25, (1.5,), 1e-3),
)
SMALL = Fixture("small", 54, (1, 1, 8, 2), (3, 8), 0.3, (1.5,), 1e-2)
fixtures = pytest.mark.parametrize("case", FIXTURES, ids=lambda case: case.name)


def pulled_back(case: Fixture, g: Tensor, o: Tensor, jacobian=dense_jacobian) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients that a reference Jacobian makes of the gradients g of alpha (dense) and o of the offset."""
    keys = case.keys().numpy()
    by_keys, by_sigma, by_C = np.zeros(case.shape), np.zeros(len(case.sigma)), 0.0
    for i, j, k, n in case.problems():
        found: Jacobian = jacobian(keys[i, j], n, case.C, case.sigma[j], case.ridge)
        up, off = g[i, j, k, :n].numpy(), float(o[i, j, k])
        by_keys[i, j, :n] += np.einsum("i,ijd->jd", up, found.alpha_keys) + off * found.offset_keys
        by_sigma[j] += up @ found.alpha_sigma + off * found.offset_sigma
        by_C += float(up @ found.alpha_C + off * found.offset_C)
    return torch.tensor(by_keys), torch.tensor(by_sigma), torch.tensor(by_C, dtype=torch.float64)


def upstream(case: Fixture) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(case.seed)
    b, h, t, _ = case.shape
    shape = (b, h, len(case.boundaries))
    o = torch.randn(shape, generator=rng, dtype=torch.float64)
    for k, s in enumerate(case.boundaries):
        o[:, :, k] *= s > 0  # the offset of no keys means nothing
    return torch.randn(*shape, t, generator=rng, dtype=torch.float64), o


def assert_close(found, expected, tolerance: float = 1e-9) -> None:
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance * max(1.0, float(other.abs().max())))


@pytest.mark.parametrize("case", [*FIXTURES, SMALL], ids=lambda case: case.name)
def test_the_fixtures_are_far_from_any_change_of_sets(case: Fixture) -> None:
    keys = case.keys().numpy()
    for i, j, _, n in case.problems():
        assert reference_gate(keys[i, j], n, case.C, case.sigma[j], case.ridge).slack > 5e-3


@fixtures
def test_gradients_are_those_of_the_dense_system(case: Fixture) -> None:
    leaves, (g, o) = case.leaves(), upstream(case)
    found = case.gate(*leaves)
    loss = (found.dense(case.shape[2]) * g).sum() + torch.where(o != 0, found.offset * o, 0).sum()
    assert_close(torch.autograd.grad(loss, leaves), pulled_back(case, g, o))


def test_gradients_are_differences_of_the_fifty_digit_optimum() -> None:
    leaves, (g, o) = SMALL.leaves(), upstream(SMALL)
    found = SMALL.gate(*leaves)
    loss = (found.dense(8) * g).sum() + (found.offset * o).sum()
    assert_close(torch.autograd.grad(loss, leaves), pulled_back(SMALL, g, o, difference_jacobian))


@fixtures
def test_autograd_through_a_solve_on_the_margin_gives_the_same(case: Fixture) -> None:
    leaves, others, (g, o) = case.leaves(), case.leaves(), upstream(case)
    found = case.gate(*leaves)
    alpha, offset = naive_gate(
        others[0], case.boundaries, C=others[2], sigma=others[1], ridge=case.ridge, lengths=case.lengths
    )
    ours = (found.dense(case.shape[2]) * g).sum() + torch.where(o != 0, found.offset * o, 0).sum()
    theirs = (alpha * g).sum() + torch.where(o != 0, offset * o, 0).sum()
    assert_close(torch.autograd.grad(ours, leaves), torch.autograd.grad(theirs, others))


def test_gradcheck_passes_for_coefficients_offset_and_score() -> None:
    points = torch.randn(1, 1, 4, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()

    def everything(keys: Tensor, sigma: Tensor, C: Tensor, points: Tensor):
        found = SMALL.gate(keys, sigma, C)
        return found.alpha, found.dense(8), found.offset, found.score(points)

    assert torch.autograd.gradcheck(everything, (*SMALL.leaves(), points), atol=1e-7, rtol=1e-6)


def test_gradcheck_passes_for_one_sigma_of_all_heads() -> None:
    case = Fixture("heads", 43, (1, 2, 8, 3), (4, 8), 0.3, (1.5, 1.5), 1e-3)
    keys, _, C = case.leaves()
    sigma = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, s, c: case.gate(x, s, c).alpha, (keys, sigma, C), atol=1e-7, rtol=1e-6)


@pytest.mark.parametrize("family", list(KEY_SETS))
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_sum_of_the_coefficients_has_exactly_zero_gradient(family: str, dtype: torch.dtype) -> None:
    keys = np.stack([KEY_SETS[family](np.random.default_rng(seed), 24, 3) for seed in range(2)])[:, None]
    for C, packed in product((0.02, 0.0625, 0.3, 1.0), (True, False)):
        x = torch.tensor(keys, dtype=dtype, requires_grad=True)
        sigma = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
        found = gate(x, [3, 16, 24], C=C, sigma=sigma)
        total = (found.alpha if packed else found.dense(24)).sum() * 3
        by_keys, by_sigma = torch.autograd.grad(total, (x, sigma))
        assert (by_keys == 0).all()
        assert by_sigma == 0


def test_the_sum_of_the_coefficients_follows_the_cap_only_where_all_are_at_it() -> None:
    keys, _, C = FIXTURES[4].leaves()
    by_C = torch.autograd.grad(gate(keys[:1], [4], C=C, sigma=1.5, ridge=1e-3).alpha.sum(), C)[0]
    assert by_C.item() == 4
    keys, _, C = SMALL.leaves()
    by_C = torch.autograd.grad(gate(keys, [8], C=C, sigma=1.5, ridge=1e-2).alpha.sum(), C)[0]
    assert abs(by_C.item()) <= 1e-12


@fixtures
def test_coefficients_at_a_bound_and_silent_keys_have_no_gradient(case: Fixture) -> None:
    raw, (g, o) = case.keys().numpy(), upstream(case)
    for i, j, k, n in case.problems():
        leaves = case.leaves()
        found = case.gate(*leaves)
        answer = reference_gate(raw[i, j], n, case.C, case.sigma[j], case.ridge)
        alpha = found.dense(case.shape[2])[i, j, k]
        fixed = [*answer.bound, *answer.reserve]
        by_keys, by_sigma, by_C = torch.autograd.grad((alpha * g[i, j, k])[fixed].sum(), leaves, retain_graph=True)
        assert (by_keys == 0).all()
        assert (by_sigma == 0).all()
        expected = 0.0 if answer.collecting else float(g[i, j, k][list(answer.bound)].sum())
        assert by_C.item() == pytest.approx(expected, abs=1e-13)
        both = (alpha * g[i, j, k]).sum() + found.offset[i, j, k] * o[i, j, k]
        by_keys = torch.autograd.grad(both, leaves)[0]
        assert (by_keys[i, j, list(answer.reserve)] == 0).all()
        assert (by_keys[i, j, n:] == 0).all()
        by_keys[i, j] = 0
        assert (by_keys == 0).all()


def test_a_number_shared_by_heads_and_items_gets_the_sum_of_their_gradients() -> None:
    case, (g, o) = FIXTURES[0], upstream(FIXTURES[0])
    keys = case.keys().requires_grad_()
    shared = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (1.5, 0.3)]
    every = [
        [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (1.5, 0.3)] for _ in range(4)
    ]  # one pair for each item and head

    def loss(found, i, j):
        return (found.dense(9) * g[i, j]).sum() + (found.offset * o[i, j]).sum()

    joint = gate(keys, case.boundaries, C=shared[1], sigma=shared[0], ridge=1e-2)
    whole = (joint.dense(9) * g).sum() + (joint.offset * o).sum()
    parts = [
        loss(gate(keys[i : i + 1, j : j + 1], case.boundaries, C=pair[1], sigma=pair[0], ridge=1e-2), i, j)
        for (i, j), pair in zip(product(range(2), range(2)), every, strict=True)
    ]
    together = torch.autograd.grad(whole, [keys, *shared])
    apart = torch.autograd.grad(torch.stack(parts).sum(), [keys, *(x for pair in every for x in pair)])
    assert_close(together, [apart[0], torch.stack(apart[1::2]).sum(), torch.stack(apart[2::2]).sum()], 1e-12)


def test_the_gradient_of_a_sum_is_the_sum_of_the_gradients() -> None:
    case, (g, o) = FIXTURES[0], upstream(FIXTURES[0])
    leaves = case.leaves()
    found = case.gate(*leaves)
    one, other = (found.alpha[..., 0] * o).sum() + (found.dense(9) * g).sum(), found.offset.square().sum()
    parts = [torch.autograd.grad(loss, leaves, retain_graph=True) for loss in (one, other)]
    assert_close(torch.autograd.grad(one + other, leaves), [a + b for a, b in zip(*parts, strict=True)], 1e-12)


def test_equal_keys_have_the_derivative_of_the_optimum_and_nothing_is_infinite() -> None:
    rng = np.random.default_rng(3)
    raw, g, o = rng.standard_normal((4, 2))[[0, 1, 2, 0, 3, 1, 0]], rng.standard_normal(7), 0.7
    for C, ridge in product((0.2, 0.35, 1.0), (1e-2, 1e-4)):
        keys = torch.tensor(raw[None, None], requires_grad=True)
        found = gate(keys, [7], C=C, sigma=1.5, ridge=ridge)
        (found.dense(7)[0, 0, 0] @ torch.tensor(g) + o * found.offset.sum()).backward()
        assert keys.grad is not None
        references = [dense_jacobian(raw, 7, C, 1.5, ridge)]
        if ridge == 1e-2:
            references.append(difference_jacobian(raw, 7, C, 1.5, ridge))
        for reference in references:
            expected = np.einsum("i,ijd->jd", g, reference.alpha_keys) + o * reference.offset_keys
            assert keys.grad[0, 0].numpy() == pytest.approx(expected, abs=1e-9 / ridge)


def test_equal_keys_that_a_loss_treats_alike_have_equal_and_moderate_gradients() -> None:
    raw = np.random.default_rng(3).standard_normal((4, 2))[[0, 1, 2, 0, 3, 1, 0]]
    for C, ridge in product((0.2, 0.35, 1.0), (1e-2, 1e-6, 1e-10)):
        keys = torch.tensor(raw[None, None], requires_grad=True)
        found = gate(keys, [7], C=C, sigma=1.5, ridge=ridge)
        by_keys = torch.autograd.grad(found.alpha.square().sum() + found.offset.sum(), keys)[0][0, 0]
        assert by_keys.abs().max() < 10
        for group in ([0, 3, 6], [1, 5]):
            torch.testing.assert_close(by_keys[group], by_keys[group[:1]].expand(len(group), 2), rtol=0, atol=1e-12)


def test_keys_that_are_all_equal_have_zero_gradient_to_keys_and_sigma() -> None:
    for C, d in product((0.125, 0.2, 1.0), (1, 5)):
        keys = torch.full((1, 1, 8, d), 0.3, dtype=torch.float64, requires_grad=True)
        sigma = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
        found = gate(keys, [3, 8], C=C, sigma=sigma)
        loss = (found.alpha * torch.arange(found.alpha.numel()).view(found.alpha.shape)).sum() + found.offset.sum()
        for gradient in torch.autograd.grad(loss + found.score(keys.detach()).sum(), (keys, sigma)):
            assert (gradient == 0).all()


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_at_a_change_of_sets_the_derivative_is_that_of_the_side_where_the_sets_stay(side: float) -> None:
    raw = np.random.default_rng(1).standard_normal((6, 2))
    low, high = 0.0, 3.0  # the last key is silent in the middle of the others, and not far outside

    def at(place: float) -> np.ndarray:
        return np.vstack([raw, [place, 0.1]])

    def silent(place: float) -> bool:
        return 6 in reference_gate(at(place), 7, 0.4, 2.0, 1e-3).reserve

    assert silent(low)
    assert not silent(high)
    while high - low > 1e-11:
        middle = (low + high) / 2
        low, high = (middle, high) if silent(middle) else (low, middle)
    here = low if side < 0 else high
    keys = torch.tensor(at(here)[None, None], requires_grad=True)
    found = gate(keys, [7], C=0.4, sigma=2.0, ridge=1e-3)
    slope = torch.autograd.grad(found.dense(7)[0, 0, 0, 1] + found.offset.sum(), keys)[0][0, 0, 6, 0].item()
    one, other = (reference_gate(at(here + side * step), 7, 0.4, 2.0, 1e-3) for step in (2e-7, 1e-7))
    rise = side * (one.alpha[1] + one.offset - other.alpha[1] - other.offset) / 1e-7
    assert slope == pytest.approx(rise, abs=1e-5)
    assert (abs(slope) > 1e-3) == (side > 0)
