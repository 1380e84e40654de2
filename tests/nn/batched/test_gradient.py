"""The gradient of the batched gates: against differences, against a dense solve, against the compiled gate."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import svmem
from svmem.nn import gate
from svmem.nn.batched.adjoint import adjoint_batched
from svmem.nn.batched.gate import gate_on_device, gate_on_device_backward
from svmem.nn.batched.gram import gram_batched
from svmem.nn.batched.solution import solve_batched
from tests.nn.batched.on_device import DEVICE, numbers, one_thread  # noqa: F401

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.timeout(240, func_only=True)]


class Gated(torch.autograd.Function):
    """alpha and offset over prefixes, differentiable in keys, sigma and C."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> tuple[Tensor, Tensor]:
        keys, sigma, C, stops, ridge = args
        problem = svmem.Problem(kernel=svmem.RBF(1.0), C=C.item(), ridge=ridge)
        valid = torch.ones(keys.shape[0], keys.shape[2], dtype=torch.bool, device=keys.device)
        found = gate_on_device(keys, valid, stops, sigma, problem.C, problem.total[0], problem.n_min, ridge)
        ctx.save_for_backward(keys, sigma, found.alpha, found.zone, found.status)
        ctx.ridge = ridge
        return found.alpha, found.offset

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        keys, sigma, alpha, zone, status = ctx.saved_tensors
        found = gate_on_device_backward(grads[0], grads[1], keys, sigma, alpha, zone, status, ctx.ridge)
        return *found, None, None


def leaves(shape: tuple[int, ...], seed: int, sigma: float, C: float) -> tuple[Tensor, Tensor, Tensor]:
    keys = torch.tensor(np.random.default_rng(seed).standard_normal(shape), device=DEVICE)
    width = torch.linspace(sigma, 1.3 * sigma, shape[1], dtype=torch.float64, device=DEVICE)
    cap = torch.tensor(C, dtype=torch.float64, device=DEVICE)
    return keys.requires_grad_(), width.requires_grad_(), cap.requires_grad_()


@pytest.mark.parametrize(("C", "ridge"), [(0.3, 1e-2), (0.9, 1e-3), (0.15, 1e-2)])
def test_the_gradient_is_what_differences_say(C: float, ridge: float) -> None:
    keys, sigma, cap = leaves((1, 1, 8, 2), 3, 1.4, C)
    stops = torch.tensor([2, 5, 8], device=DEVICE)
    torch.autograd.gradcheck(lambda *x: Gated.apply(*x, stops, ridge), (keys, sigma, cap), eps=1e-6, atol=1e-5)


def test_equal_keys_that_part_have_the_gradient_that_differences_say() -> None:
    keys, sigma, cap = leaves((1, 1, 6, 2), 4, 1.4, 0.3)
    with torch.no_grad():
        keys[:, :, 4:] = keys[:, :, :2]
    torch.autograd.gradcheck(lambda *x: Gated.apply(*x, [6], 1e-2), (keys, sigma, cap), eps=1e-6, atol=1e-5)


def test_the_offset_of_an_empty_margin_has_the_gradient_at_its_largest_slope() -> None:
    keys, sigma, _ = leaves((1, 1, 4, 2), 5, 1.4, 0.25)
    cap = torch.tensor(0.25, dtype=torch.float64, device=DEVICE)  # C = 1/n cannot move by itself
    alpha, _ = Gated.apply(keys, sigma, cap, [4], 1e-3)
    assert (alpha == 0.25).all()
    torch.autograd.gradcheck(lambda *x: Gated.apply(*x, cap, [4], 1e-3)[1], (keys, sigma), eps=1e-6, atol=1e-6)


def dense(keys: Tensor, sigma: Tensor, C: Tensor, zone: Tensor, ridge: float) -> tuple[Tensor, Tensor]:
    """Solve the conditions of optimality for one partition by a dense linear solve that autograd sees through."""
    kernel = torch.exp(-((keys[:, None] - keys[None]) ** 2).sum(-1) / sigma**2)
    margin, bound = zone == 1, (zone == 2).double()
    size = int(margin.sum())
    system = torch.zeros(size + 1, size + 1, dtype=torch.float64, device=keys.device)
    system[:size, :size] = kernel[margin][:, margin] + ridge * torch.eye(size, dtype=torch.float64, device=keys.device)
    system[:size, size], system[size, :size] = -1.0, 1.0
    right = torch.cat([0.5 - C * (kernel[margin] @ bound), (1 - C * bound.sum()).reshape(1)])
    solution = torch.linalg.solve(system, right)
    alpha = (C * bound).masked_scatter(margin, solution[:size])
    return alpha, solution[size]


@pytest.mark.parametrize(
    ("d", "sigma", "C", "ridge"), [(3, 2.0, 0.12, 1e-6), (16, 5.0, 0.07, 1e-3), (2, 1.0, 1.0, 1e-4)]
)
def test_the_gradient_is_that_of_a_dense_solve_on_the_same_partition(
    d: int, sigma: float, C: float, ridge: float
) -> None:
    keys, width, cap = leaves((2, 2, 40, d), 6, sigma, C)
    stops = [25, 40]
    alpha, offset = Gated.apply(keys, width, cap, stops, ridge)
    up = torch.randn(alpha.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(DEVICE)
    grads = torch.autograd.grad((up * alpha).sum() + up[..., 0].mul(offset).sum(), (keys, width, cap))
    loss = torch.zeros((), dtype=torch.float64, device=DEVICE)
    for i, j, k in np.ndindex(2, 2, 2):
        s = stops[k]
        zone = torch.where(alpha[i, j, k] == cap, 2, (alpha[i, j, k] > 0).long())[:s]
        share, level = dense(keys[i, j, :s], width[j], cap, zone, ridge)
        loss = loss + (up[i, j, k, :s] * share).sum() + up[i, j, k, 0] * level
    expected = torch.autograd.grad(loss, (keys, width, cap))
    for one, other in zip(grads, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-9 * float(other.abs().max()))


@pytest.fixture
def compiled_gate() -> None:
    """Compile the gate and its gradient, so that the timeout does not measure the compiler."""
    keys = torch.randn(1, 1, 5, 2, dtype=torch.float64, requires_grad=True)
    gate(keys, [5], C=0.3, sigma=1.0).alpha[..., 0].sum().backward()


@pytest.mark.usefixtures("compiled_gate")
def test_the_compiled_gate_has_the_same_numbers_and_gradients() -> None:
    keys, sigma, cap = leaves((2, 2, 48, 4), 7, 2.0, 0.1)
    with torch.no_grad():
        keys[:, :, 40:] = keys[:, :, :8]
    stops = [4, 16, 33, 48]
    alpha, offset = Gated.apply(keys, sigma, cap, stops, 1e-4)
    up = torch.randn(alpha.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(DEVICE)
    grads = torch.autograd.grad((up * alpha).sum() + up[..., 1].mul(offset).sum(), (keys, sigma, cap))
    host = [x.detach().cpu().requires_grad_() for x in (keys, sigma, cap)]
    found = gate(host[0], stops, sigma=host[1], C=host[2], ridge=1e-4)
    there = found.dense(48)
    torch.testing.assert_close(alpha.cpu(), there, rtol=0, atol=1e-13)
    torch.testing.assert_close(offset.cpu(), found.offset, rtol=0, atol=1e-13)
    expected = torch.autograd.grad((up.cpu() * there).sum() + up[..., 1].cpu().mul(found.offset).sum(), host)
    for one, other in zip(grads, expected, strict=True):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-9, atol=1e-10 * float(other.abs().max()))


def test_the_sum_of_the_coefficients_has_gradient_exactly_zero() -> None:
    keys, sigma, cap = leaves((2, 2, 30, 3), 8, 2.0, 0.1)
    alpha, _ = Gated.apply(keys, sigma, cap, [7, 20, 30], 1e-6)
    for grad in torch.autograd.grad(0.37 * alpha.sum(), (keys, sigma, cap)):
        assert not grad.any()


def test_equal_keys_pull_each_other_nowhere() -> None:
    _, sigma, cap = leaves((1, 1, 8, 3), 9, 2.0, 0.3)
    keys = torch.full((1, 1, 8, 3), 0.1, dtype=torch.float64, device=DEVICE, requires_grad=True)
    alpha, offset = Gated.apply(keys, sigma, cap, [2, 8], 1e-6)
    up = torch.arange(8, dtype=torch.float64, device=DEVICE)
    for grad in torch.autograd.grad((up * alpha).sum() + offset.sum(), (keys, sigma)):
        assert not grad.any()


def test_a_key_that_is_not_finite_changes_no_bit_of_other_gradients() -> None:
    keys, sigma, cap = leaves((2, 2, 20, 3), 10, 2.0, 0.2)
    up = torch.randn(2, 2, 2, 20, generator=torch.Generator().manual_seed(2), dtype=torch.float64).to(DEVICE)

    def grads(at: Tensor) -> Tensor:
        alpha, offset = Gated.apply(at, sigma, cap, [10, 20], 1e-6)
        sound = torch.isfinite(offset)
        loss = (up * alpha)[sound].sum() + offset[sound].sum()
        return torch.autograd.grad(loss, at)[0]

    spoilt = keys.detach().clone()
    spoilt[1, 0, 15, 2] = torch.nan
    before, after = grads(keys), grads(spoilt.requires_grad_())
    others = torch.ones(2, 2, dtype=torch.bool, device=DEVICE)
    others[1, 0] = False
    assert torch.equal(before[others], after[others])
    assert after.isfinite().all()
    assert after[1, 0, :10].any()
    assert not after[1, 0, 10:].any()


def test_margins_picked_out_of_many_keys_have_the_gradient_of_all_keys_at_once() -> None:
    keys, sigma, _ = leaves((1, 1, 50, 3), 11, 3.0, 0.2)
    gram = gram_batched(keys.detach()[0], sigma.detach())
    valid = torch.arange(50, device=DEVICE) < torch.tensor([[30], [50]], device=DEVICE)
    problem = svmem.Problem(kernel=svmem.RBF(1.0), C=0.2, ridge=1e-6)
    found = solve_batched(gram, valid[None], **numbers(problem))
    up = torch.linspace(-1, 1, 100, dtype=torch.float64, device=DEVICE).reshape(1, 2, 50)
    assert (found.zone == 1).sum(-1).amax() < 20
    whole = adjoint_batched(gram, found, up, up[..., 0], ridge=1e-6)
    packed = adjoint_batched(gram, found, up, up[..., 0], ridge=1e-6, width=20)
    for one, other in zip(packed, whole, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)
