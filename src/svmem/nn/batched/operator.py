"""The batched gates in the form of the operators `svmem::gate` and `svmem::gate_backward`: packed support."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from svmem.core.problem import Problem
from svmem.kernels import RBF
from svmem.nn.batched.gate import gate_on_device, gate_on_device_backward
from svmem.nn.batched.interior import BOUND, MARGIN, RESERVE
from svmem.nn.batched.solution import FAILED, INVALID, BatchedSolution

__all__ = ["SMALLEST_RIDGE", "PackedGates", "pull_back", "solve"]

SMALLEST_RIDGE = 1e-8  # below, near twins may fail


class PackedGates(NamedTuple):
    """Gates of width w, as `_jit.gates.Written` has them, its first axis split into (b, h)."""

    position: Tensor  # (b, h, B, w) int64
    alpha: Tensor  # (b, h, B, w) float64
    slot: Tensor  # (b, h, B, w) int64: 0 in the margin, -1 on the bound and while collecting
    sizes: Tensor  # (b, h, B, 3) int64: support, margin, status
    numbers: Tensor  # (b, h, B, 2) float64: offset, gap
    factor: Tensor  # empty: the margins are factored again for the gradient


def solve(
    keys: Tensor, valid: Tensor, boundaries: Tensor, sigma: Tensor, problem: tuple[float, float], extra: int, unit: bool
) -> PackedGates | None:
    """Return the gates over keys (b, h, t, d) on their device; None where a problem is beyond the batched solver.

    problem: C and ridge. Two things come back to the host once all is solved: whether something failed, and the width.
    """
    C, ridge = problem
    if ridge < SMALLEST_RIDGE:
        return None
    posed = Problem(RBF(1.0), C, ridge)
    numbers = (posed.C, posed.total[0], posed.n_min + extra, posed.ridge)
    points = _points(keys, unit)
    found = gate_on_device(points, valid, boundaries.tolist(), sigma, *numbers)
    bad = ~points.isfinite().all(-1) & valid[:, None]
    return None if bool((found.status == FAILED).any()) else _packed(found, bad)


def _packed(found: BatchedSolution, bad: Tensor) -> PackedGates:
    """Return the support side by side; of a gate with a bad key (b, h, t) the first such, which is not a number."""
    lost = (found.status == INVALID).unsqueeze(-1)
    first_bad = bad & (bad.cumsum(-1) == 1)
    carries = torch.where(lost, first_bad.unsqueeze(2), found.zone != RESERVE)
    counts = carries.sum(-1)
    width = max(int(counts.max()) if counts.numel() else 0, 1)
    alpha, zone = found.alpha, found.zone
    if alpha.shape[-1] == 0:  # no keys: room for one that is not there, as on the host
        alpha, zone, carries = (pad(x, (0, 1)) for x in (alpha, zone, carries))
    index = (~carries).to(torch.uint8).argsort(dim=-1, stable=True)[..., :width]
    there = torch.arange(width, device=index.device) < counts.unsqueeze(-1)
    margin = (zone == MARGIN) & carries
    return PackedGates(
        position=torch.where(there, index, 0),
        alpha=torch.where(there, alpha.gather(-1, index), 0.0),
        slot=torch.where(there & ~margin.gather(-1, index), -1, 0),
        sizes=torch.stack([counts, margin.sum(-1), found.status.to(torch.int64)], -1),
        numbers=torch.stack([found.offset, found.gap], -1),
        factor=alpha.new_empty(0),
    )


def pull_back(
    keys: Tensor, gates: PackedGates, upstream: tuple[Tensor, Tensor], sigma: Tensor, ridge: float, unit: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of keys (b, h, t, d), sigma (h,) and C () in float64, from those of alpha and offset."""
    shape = (*gates.alpha.shape[:3], max(keys.shape[2], 1))
    there = torch.arange(gates.alpha.shape[3], device=keys.device) < gates.sizes[..., :1]
    zones = torch.where(there, torch.where(gates.slot < 0, BOUND, MARGIN), RESERVE)
    parts = (gates.alpha, upstream[0].to(torch.float64), zones)
    # Beyond the count every place names key 0 and adds nothing to it.
    alpha, g_alpha, zone = (
        part.new_zeros(shape).scatter_add(-1, gates.position, torch.where(there, part, 0))[..., : keys.shape[2]]
        for part in parts
    )
    points = _points(keys, unit)
    state = (alpha, zone.to(torch.int8), gates.sizes[..., 2].to(torch.int8))
    by_keys, by_sigma, by_C = gate_on_device_backward(g_alpha, upstream[1], points, sigma, *state, ridge)
    if unit:  # the part along the key changes nothing
        by_keys = by_keys - points * (points * by_keys).sum(-1, keepdim=True)
        by_keys = by_keys / _lengths(keys.to(torch.float64))
    return by_keys, by_sigma, by_C


def _points(keys: Tensor, unit: bool) -> Tensor:
    """Return the keys as the solver sees them: float64, and of length 1 if so wished."""
    points = keys.detach().to(torch.float64)
    return points / _lengths(points) if unit else points


def _lengths(points: Tensor) -> Tensor:
    """Return the lengths (..., 1), of a key that is 0 as 1."""
    length = points.square().sum(-1, keepdim=True).sqrt()
    return torch.where(length == 0, 1.0, length)
