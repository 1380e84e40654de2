"""The gates of a batch of sequences, and their gradients, on whatever device the keys are: what the operators call."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from svmem.nn.batched.adjoint import adjoint_batched
from svmem.nn.batched.gram import gram_batched, gram_gradient
from svmem.nn.batched.solution import BatchedSolution, solve_batched

__all__ = ["gate_on_device", "gate_on_device_backward"]

GROUPS = 4  # in which boundaries known to the host are solved, the early ones over fewer keys


def gate_on_device(
    keys: Tensor,
    valid: Tensor,
    boundaries: Tensor | Sequence[int],
    sigma: Tensor,
    C: float,
    total: float,
    n_min: int,
    ridge: float,
) -> BatchedSolution:
    """Return the optima over keys[:, :, :s] of (b, h, t, d) where valid (b, t) holds, for every boundary s.

    sigma (h,); total and n_min as for `solve_batched`. alpha and zone are (b, h, B, t); offset, gap and status
    (b, h, B). Nothing comes back to the host on the way. Boundaries given as numbers rather than as a tensor save up to
    two thirds of the work, as early prefixes are then solved as the smaller problems that they are.
    """
    b, h, t, _ = keys.shape
    if t == 0:  # reductions want something to reduce
        one, nobody = torch.nn.functional.pad(keys, (0, 0, 0, 1)), torch.nn.functional.pad(valid, (0, 1))
        found = gate_on_device(one, nobody, boundaries, sigma, C, total, n_min, ridge)
        return replace(found, alpha=found.alpha[..., :0], zone=found.zone[..., :0])
    gram = gram_batched(keys, _width(sigma, keys)).flatten(0, 1)
    stops = torch.as_tensor(boundaries, dtype=torch.int64, device=keys.device)
    prefix = torch.arange(t, device=keys.device) < stops[:, None]
    posed = (valid[:, None, None] & prefix).expand(b, h, -1, -1).flatten(0, 1)  # (b h, B, t)
    parts = []
    for part, reach in _groups(boundaries, t):
        small = gram[:, :reach, :reach]
        found = solve_batched(small, posed[:, part, :reach], C=C, total=total, n_min=n_min, ridge=ridge)
        pad = (0, t - reach)
        lost = torch.where(found.status < 2, 0.0, torch.nan).unsqueeze(-1).to(found.alpha.dtype)
        alpha = torch.cat([found.alpha, lost.expand(-1, -1, t - reach)], -1)
        zone = torch.nn.functional.pad(found.zone, pad)
        parts.append((alpha, zone, found.offset, found.gap, found.status))
    return BatchedSolution(*(torch.cat(x, 1).unflatten(0, (b, h)) for x in zip(*parts, strict=True)))


def gate_on_device_backward(
    g_alpha: Tensor,
    g_offset: Tensor,
    keys: Tensor,
    sigma: Tensor,
    alpha: Tensor,
    zone: Tensor,
    status: Tensor,
    ridge: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of keys (b, h, t, d), sigma (h,) and C () in float64, given those of alpha and offset.

    alpha, zone and status are those of `gate_on_device`, as are the shapes.
    """
    b, h, t, _ = keys.shape
    width = _width(sigma, keys)
    if t == 0:
        return torch.zeros_like(keys, dtype=torch.float64), width.new_zeros(h), width.new_zeros(())
    gram = gram_batched(keys, width)
    held = BatchedSolution(*(x.flatten(0, 1) for x in (alpha, zone, g_offset, g_offset, status)))
    upstream = (x.flatten(0, 1).to(torch.float64) for x in (g_alpha, g_offset))
    by_gram, by_C = adjoint_batched(gram.flatten(0, 1), held, *upstream, ridge=ridge)
    by_keys, by_sigma = gram_gradient(keys, width, gram, by_gram.unflatten(0, (b, h)))
    return by_keys, by_sigma.sum(0), by_C.sum()


def _width(sigma: Tensor, keys: Tensor) -> Tensor:
    """Return sigma (h,) in float64 for every item and head, (b, h)."""
    return sigma.to(torch.float64).expand(keys.shape[:2])


def _groups(boundaries: Tensor | Sequence[int], t: int) -> Iterator[tuple[slice, int]]:
    """Yield parts of the boundaries, with a number of keys that none of a part exceeds."""
    if isinstance(boundaries, Tensor) or len(boundaries) == 0:
        yield slice(None), t
        return
    size = -(-len(boundaries) // GROUPS)
    for start in range(0, len(boundaries), size):
        part = slice(start, start + size)
        yield part, min(t, max(1, *boundaries[part]))
