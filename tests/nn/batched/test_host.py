"""The batched gates run from end to end without the host: no number is read back, no shape depends on one."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from svmem.nn.batched import adjoint, solution
from svmem.nn.batched.gate import gate_on_device, gate_on_device_backward
from tests.nn.batched.on_device import DEVICE, one_thread  # noqa: F401

pytestmark = pytest.mark.usefixtures("one_thread")

READS = ("_local_scalar_dense", "item", "nonzero", "masked_select", "is_nonzero", "equal", "unique", "tolist")


class Recorder(TorchDispatchMode):
    """Note the operators that read numbers back, or whose output's shape depends on numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: set[str] = set()
        self.seen = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        self.seen += 1
        if any(name.startswith(read) for read in READS):
            self.reads.add(name)
        if name in ("index", "index_put", "index_put_") and any(
            i is not None and i.dtype == torch.bool for i in args[1]
        ):
            self.reads.add(f"{name} by a mask")
        if name == "_to_copy" and (kwargs or {}).get("device") not in (None, args[0].device):
            self.reads.add("copy between devices")
        return func(*args, **(kwargs or {}))


@contextmanager
def no_waiting() -> Iterator[None]:
    """Let any wait for a GPU raise."""
    if DEVICE.type != "cuda":
        yield
        return
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def run(device: torch.device | str, make: Any = torch.randn) -> tuple[Tensor, ...]:
    """Run the gate and its gradient with all inputs on the device."""
    keys = make(2, 3, 40, 4, device=device)
    valid, sigma = torch.ones(2, 40, dtype=torch.bool, device=device), torch.ones(3, device=device)
    stops = torch.arange(3, device=device) * 20
    with no_waiting():
        found = gate_on_device(keys, valid, stops, sigma, 0.25, 1.0, 4, 1e-6)
        up, off = torch.ones_like(found.alpha), torch.ones_like(found.offset)
        grads = gate_on_device_backward(up, off, keys, sigma, found.alpha, found.zone, found.status, 1e-6)
    return found.alpha, found.offset, found.gap, found.status, *grads


SHAPES = [(2, 3, 3, 40), (2, 3, 3), (2, 3, 3), (2, 3, 3), (2, 3, 40, 4), (3,), ()]


@pytest.mark.parametrize("width", [512, 16])
def test_no_operator_reads_a_number_back(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setattr(solution, "WIDTH", width)
    monkeypatch.setattr(adjoint, "WIDTH", width)
    monkeypatch.setattr(solution, "ROUNDS", 2)
    recorder = Recorder()
    with recorder:
        run(DEVICE)
    assert recorder.seen > 1000
    assert recorder.reads == set()


@pytest.mark.parametrize("width", [512, 16])
def test_tensors_without_data_go_all_the_way_through(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setattr(solution, "WIDTH", width)
    monkeypatch.setattr(adjoint, "WIDTH", width)
    monkeypatch.setattr(solution, "ROUNDS", 2)
    assert [tuple(x.shape) for x in run("meta", torch.empty)] == SHAPES


def test_fake_tensors_go_all_the_way_through() -> None:
    with FakeTensorMode():
        out = run(DEVICE, torch.empty)
    assert [tuple(x.shape) for x in out] == SHAPES
    assert all(x.device.type == DEVICE.type for x in out)


def test_without_keys_or_boundaries_there_is_nothing_to_solve() -> None:
    for t, count in ((0, 2), (5, 0)):
        keys = torch.randn(1, 2, t, 3, device=DEVICE)
        valid, sigma = torch.ones(1, t, dtype=torch.bool, device=DEVICE), torch.ones(2, device=DEVICE)
        found = gate_on_device(keys, valid, [0] * count, sigma, 0.25, 1.0, 4, 1e-6)
        assert found.alpha.shape == (1, 2, count, t)
        assert (found.status == solution.COLLECTING).all()
        assert not found.offset.any()
        up = (torch.ones_like(found.alpha), torch.ones_like(found.offset))
        grads = gate_on_device_backward(*up, keys, sigma, found.alpha, found.zone, found.status, 1e-6)
        assert [tuple(grad.shape) for grad in grads] == [(1, 2, t, 3), (2,), ()]
        assert not any(grad.any() for grad in grads)
