"""Where the batched gates are tested, and how their answers are held against the cold solve."""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import svmem
from svmem.nn.batched.gram import gram_batched
from svmem.nn.batched.solution import BatchedSolution, solve_batched

__all__ = ["DEVICE", "assert_same", "batched", "numbers", "one_thread", "padded"]

DEVICE = torch.device(os.environ.get("SVMEM_TEST_DEVICE", "cpu"))


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Run torch on one thread: thousands of small operations gain nothing from more, and suffer on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def numbers(problem: svmem.Problem) -> dict[str, Any]:
    """Return what the batched solver wants to know of a problem."""
    return {"C": problem.C, "total": problem.total[0], "n_min": problem.n_min, "ridge": problem.ridge}


def padded(key_sets: list[np.ndarray]) -> tuple[Tensor, Tensor]:
    """Return key sets side by side (p, n, d), and which rows are keys (p, n)."""
    n, d = max(len(keys) for keys in key_sets), key_sets[0].shape[1]
    out, valid = np.zeros((len(key_sets), n, d)), np.zeros((len(key_sets), n), bool)
    for k, keys in enumerate(key_sets):
        out[k, : len(keys)] = keys
        valid[k, : len(keys)] = True
    return torch.tensor(out, device=DEVICE), torch.tensor(valid, device=DEVICE)


def batched(key_sets: list[np.ndarray], sigma: list[float], problem: svmem.Problem, **options: int) -> BatchedSolution:
    """Solve key sets of different widths as one batch."""
    keys, valid = padded(key_sets)
    gram = gram_batched(keys, torch.tensor(sigma, dtype=torch.float64, device=DEVICE))
    found = solve_batched(gram, valid, **numbers(problem), **options)
    return BatchedSolution(*(x.cpu() for x in (found.alpha, found.zone, found.offset, found.gap, found.status)))


def assert_same(
    found: BatchedSolution, k: int, keys: np.ndarray, problem: svmem.Problem, digits: float = 1e-12
) -> None:
    """Hold problem k of a batch against the cold solve of its keys."""
    truth, n = svmem.solve(keys, problem), len(keys)
    zone = np.zeros(n, np.int8)
    zone[truth.margin], zone[truth.bound] = 1, 2
    scale = 1 + problem.ridge
    assert found.status[k].item() == (1 if truth.status is svmem.Status.COLLECTING else 0)
    assert found.zone[k, :n].tolist() == zone.tolist()
    np.testing.assert_allclose(found.alpha[k, :n].numpy(), truth.alpha, rtol=0, atol=digits)
    np.testing.assert_allclose(found.offset[k].item(), truth.offset, rtol=0, atol=digits * scale)
    np.testing.assert_allclose(found.gap[k].item(), truth.gap, rtol=0, atol=1e-14 * scale)
    assert not found.alpha[k, n:].any()
