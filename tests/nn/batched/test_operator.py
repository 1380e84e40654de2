"""What keys on another device get: the operators without their kernel for the host, against those with it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from svmem.errors import InvalidInput
from svmem.nn import Gate, HybridSVAttention, SVAttention, gate
from svmem.nn.batched import solution
from svmem.nn.gate import gate_over
from svmem.nn.operator import gate_backward_operator, gate_operator
from tests.nn.batched.on_device import one_thread  # noqa: F401

pytestmark = pytest.mark.usefixtures("compiled", "one_thread")

SETTING: dict[str, Any] = {"C": 0.2, "sigma": 1.5, "ridge": 1e-4}


@contextmanager
def elsewhere() -> Iterator[None]:
    """Let keys on the host be treated like those on a device that has no kernel of its own."""
    with ExitStack() as stack:
        for operator in (gate_operator, gate_backward_operator):
            stack.enter_context(operator.set_kernel_enabled("cpu", enabled=False))
        yield


def keys_of(*shape: int, kind: torch.dtype = torch.float64) -> Tensor:
    centres = torch.randn(*shape[:2], 4, shape[3], generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    noise = torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return (centres.repeat(1, 1, -(-shape[2] // 4), 1)[:, :, : shape[2]] + 0.3 * noise).to(kind)


def assert_same(found: Gate, expected: Gate, atol: float = 1e-12) -> None:
    assert found.counts.tolist() == expected.counts.tolist()
    assert found.status.tolist() == expected.status.tolist()
    assert found.indices.tolist() == expected.indices.tolist()
    for one, other in ((found.alpha, expected.alpha), (found.offset, expected.offset), (found.gap, expected.gap)):
        assert_close(one, other, rtol=0, atol=atol, equal_nan=True)


@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.bfloat16])
def test_gates_and_gradients_are_those_of_the_host(kind: torch.dtype) -> None:
    found = []
    for place in (ExitStack, elsewhere):
        keys = keys_of(2, 3, 37, 4, kind=kind).requires_grad_()
        sigma = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64, requires_grad=True)
        cap = torch.tensor(0.21, dtype=torch.float64, requires_grad=True)
        with place():
            out = gate(keys, [3, 9, 20, 37], C=cap, sigma=sigma, ridge=1e-4, lengths=[37, 15])
            pull = torch.linspace(-1, 1, out.alpha.numel(), dtype=out.alpha.dtype).reshape(out.alpha.shape)
            ((out.alpha * pull).sum() + out.offset.sum()).backward()
        found.append((out, keys.grad, sigma.grad, cap.grad))
    (expected, *grads), (other, *others) = found
    assert_same(other, expected, atol=1e-12 if kind == torch.float64 else 1e-6)
    for one, two in zip(others, grads, strict=True):
        assert one is not None
        assert two is not None
        assert one.dtype == two.dtype
        digits = {torch.float64: 1e-9, torch.float32: 1e-5, torch.bfloat16: 1e-2}[one.dtype]
        assert_close(one, two, rtol=digits, atol=digits * float(two.abs().max()))


def test_keys_of_length_1_and_a_warm_up_are_those_of_the_host() -> None:
    valid = torch.arange(24) < torch.tensor([[24], [9]])
    found = []
    for place in (ExitStack, elsewhere):
        keys = keys_of(2, 1, 24, 3).requires_grad_()
        with torch.no_grad():
            keys[0, 0, 5] = 0.0
        with place():
            out = gate_over(keys, valid, [6, 7, 12, 24], C=0.2, sigma=0.8, ridge=1e-4, extra=2, unit=True)
            (out.alpha * torch.arange(out.alpha.shape[-1])).sum().backward()
        found.append((out, keys.grad))
    assert found[1][0].status[0, 0].tolist() == [1, 0, 0, 0]
    assert_same(found[1][0], found[0][0])
    assert_close(found[1][1], found[0][1], rtol=1e-9, atol=1e-9)


def test_an_item_that_is_not_finite_touches_no_other() -> None:
    keys = keys_of(3, 2, 20, 3)
    keys[1, 0, 11, 2] = torch.inf
    with elsewhere():
        found = gate(keys, [8, 20], **SETTING)
    assert_same(found, gate(keys, [8, 20], **SETTING))
    assert found.status[1, 0].tolist() == [0, 2]


@pytest.mark.parametrize(("t", "stops"), [(0, [0, 0]), (5, []), (5, [0, 2]), (1, [1])])
def test_without_keys_or_boundaries_there_is_nothing_to_solve(t: int, stops: list[int]) -> None:
    keys = torch.randn(2, 1, t, 3, dtype=torch.float64, requires_grad=True)
    with elsewhere():
        found = gate(keys, stops, **SETTING)
        found.alpha.sum().backward()
    assert_same(found, gate(keys, stops, **SETTING))
    assert keys.grad is not None
    assert not keys.grad.any()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", [SVAttention, HybridSVAttention])
def test_a_layer_is_that_of_the_host(kind: type[SVAttention]) -> None:
    torch.manual_seed(0)
    layer, x = kind(24, 4, num_kv_heads=2, chunk=8, ridge=1e-3).double(), torch.randn(2, 29, 24, dtype=torch.float64)
    found = []
    for place in (ExitStack, elsewhere):
        layer.zero_grad()
        with place():
            out = layer(x)
            out.square().sum().backward()
        found.append([out.detach(), *(p.grad.clone() for p in layer.parameters() if p.grad is not None)])
    for one, other in zip(*found, strict=True):
        assert_close(one, other, rtol=1e-9, atol=1e-9 * float(other.abs().max()))


@pytest.mark.parametrize("ridge", [1e-4, 1e-10])
def test_what_is_beyond_the_batched_solver_is_solved_on_the_host_and_said(
    monkeypatch: pytest.MonkeyPatch, ridge: float
) -> None:
    monkeypatch.setattr(solution, "WIDTH", 8)
    random = torch.randn(1, 1, 30, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    one, other = random.clone().requires_grad_(), random.clone().requires_grad_()
    with elsewhere():
        with pytest.warns(UserWarning, match="beyond the batched solver"):
            found = gate(one, [30], C=0.05, sigma=2.0, ridge=ridge)
        found.alpha[..., ::2].sum().backward()
    expected = gate(other, [30], C=0.05, sigma=2.0, ridge=ridge)
    expected.alpha[..., ::2].sum().backward()
    assert_same(found, expected, atol=0.0)
    assert_close(one.grad, other.grad, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("change", "says"),
    [({"C": 2.0}, "C must lie in"), ({"sigma": -1.0}, "sigma must be positive"), ({"ridge": 0.0}, "ridge must lie in")],
)
def test_numbers_that_make_no_problem_are_refused(change: dict[str, Any], says: str) -> None:
    with elsewhere(), pytest.raises(InvalidInput, match=says):
        gate(keys_of(1, 1, 8, 2), [8], **(SETTING | change))


def test_boundaries_that_fall_are_refused() -> None:
    with elsewhere(), pytest.raises(InvalidInput, match="boundaries must rise"):
        gate(keys_of(1, 1, 8, 2), [8, 4], **SETTING)
