"""A gate inside torch's machinery: compiled graphs, automatic precision, second derivatives, operator checks."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from svmem.nn import gate
from svmem.nn.attention import hybrid_readout, rbf_readout

# What the tracer of torch.compile says of its own steps when it resumes after a graph break.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
]

T, CHUNK = 20, 8
ways = pytest.mark.parametrize(("backend", "fullgraph"), [("eager", False), ("eager", True), ("aot_eager", True)])


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape), dtype=dtype)


def support(keys: Tensor, sigma: Tensor, C: Tensor) -> tuple[Tensor, Tensor]:
    found = gate(keys, [5, 12, 20], C=C, sigma=sigma, ridge=1e-3)
    return found.dense(T), found.offset


def read(query: Tensor, key: Tensor, value: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
    found = gate(key, range(CHUNK, T, CHUNK), C=0.25, sigma=sigma, ridge=1e-3)
    hybrid = hybrid_readout(query, key, value, found, chunk=CHUNK)
    return hybrid, rbf_readout(query, key, value, found, chunk=CHUNK, sigma=sigma, C=0.25)


def run(function: Any, inputs: tuple[Tensor, ...]) -> list[Tensor]:
    """Return the outputs and the gradients of a sum of sines of them."""
    leaves = [x.clone().requires_grad_() for x in inputs]
    outputs = function(*leaves)
    loss = torch.stack([(x * torch.arange(x.numel()).view(x.shape).sin()).sum() for x in outputs]).sum()
    return [*(x.detach() for x in outputs), *torch.autograd.grad(loss, leaves)]


def assert_compiles(function: Any, inputs: tuple[Tensor, ...], backend: str, fullgraph: bool) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend, fullgraph=fullgraph)
    for turn in range(2):
        moved = (*(x + turn / 8 for x in inputs[:-1]), inputs[-1])
        for one, other in zip(run(compiled, moved), run(function, moved), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


@ways
def test_a_compiled_gate_gives_the_same_results_and_gradients(backend: str, fullgraph: bool) -> None:
    sigma, C = torch.tensor([1.2, 1.8], dtype=torch.float64), torch.tensor(0.25, dtype=torch.float64)
    assert_compiles(lambda x, s: support(x, s, C), (random(2, 2, T, 3), sigma), backend, fullgraph)


@ways
def test_a_compiled_readout_gives_the_same_results_and_gradients(backend: str, fullgraph: bool) -> None:
    inputs = (*(random(2, 2, T, 3, seed=seed) for seed in range(3)), torch.tensor(1.5, dtype=torch.float64))
    assert_compiles(read, inputs, backend, fullgraph)


@pytest.mark.parametrize("readout", ["gate", "hybrid"])
def test_a_second_derivative_is_refused_in_words(readout: str) -> None:
    keys = random(1, 1, T, 3).requires_grad_()
    found = gate(keys, [8, 16], C=0.25, sigma=1.5, ridge=1e-3)
    out = found.alpha if readout == "gate" else hybrid_readout(keys.detach(), keys, keys.detach(), found, chunk=8)
    with pytest.raises(RuntimeError, match=r"(?i)second|double|twice") as caught:
        torch.autograd.grad(torch.autograd.grad(out.square().sum(), keys, create_graph=True)[0].sum(), keys)
    assert len(str(caught.value).split()) >= 5


def test_a_backward_pass_can_be_repeated_where_the_graph_is_kept() -> None:
    keys = random(1, 2, T, 3).requires_grad_()
    found = gate(keys, [8, 16], C=0.25, sigma=1.5)
    loss = found.alpha.square().sum() + found.offset.sum()
    one = torch.autograd.grad(loss, keys, retain_graph=True)[0]
    assert torch.equal(one, torch.autograd.grad(loss, keys)[0])


def test_automatic_bfloat16_changes_no_bit_of_a_gate() -> None:
    keys = random(2, 2, T, 3, dtype=torch.float32)
    alone = gate(keys, [8, 16], C=0.25, sigma=1.5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        leaf = keys.clone().requires_grad_()
        found = gate(leaf, [8, 16], C=0.25, sigma=1.5)
        loss = found.alpha.square().sum()
    for name in ("indices", "alpha", "counts", "offset", "gap", "status"):
        assert torch.equal(getattr(found, name), getattr(alone, name))
    slope = torch.autograd.grad(loss, leaf)[0]
    assert slope.dtype == torch.float32
    other = keys.clone().requires_grad_()
    plain = torch.autograd.grad(gate(other, [8, 16], C=0.25, sigma=1.5).alpha.square().sum(), other)[0]
    assert torch.equal(slope, plain)


def read_at_a_fixed_width(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    return read(query, key, value, torch.tensor(1.5))


@pytest.mark.parametrize("automatic", [False, True])
def test_readouts_in_bfloat16_are_near_those_in_full_precision(automatic: bool) -> None:
    dtype = torch.float32 if automatic else torch.bfloat16
    inputs = tuple(random(2, 2, T, 3, seed=seed, dtype=dtype) for seed in range(3))
    expected = run(read_at_a_fixed_width, tuple(x.double() for x in inputs))
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=automatic):
        found = run(read_at_a_fixed_width, inputs)
    if not automatic:
        assert {x.dtype for x in found} == {torch.bfloat16}
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=0, atol=0.05 * float(other.abs().max()))


class Recorder(TorchDispatchMode):
    """Keeps the calls of svmem's own operators."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace == "svmem":
            self.calls.append((func, args, kwargs or {}))
        return func(*args, **(kwargs or {}))


def test_every_registered_operator_passes_torch_s_own_checks() -> None:
    keys = random(2, 2, T, 3).requires_grad_()
    sigma = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    with Recorder() as recorder:
        found = gate(keys, [5, 12, 20], C=0.25, sigma=sigma, ridge=1e-3)
        (found.alpha.square().sum() + found.offset.sum()).backward()
    seen: dict[Any, Any] = {func: (args, kwargs) for func, args, kwargs in recorder.calls}
    assert seen, "the gate calls no operator of the namespace svmem"
    for number, (func, (args, kwargs)) in enumerate(seen.items()):
        fresh = [x.detach().clone() if isinstance(x, Tensor) else x for x in args]
        for x in fresh:
            if number == 0 and isinstance(x, Tensor) and x.is_floating_point():
                x.requires_grad_()
        # The fourth of its checks adds all outputs up in place, which fails for any operator with whole numbers first.
        checks = ("test_schema", "test_autograd_registration", "test_faketensor")
        torch.library.opcheck(func, tuple(fresh), kwargs, test_utils=checks)
