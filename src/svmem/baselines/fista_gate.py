"""The gate as the paper trains it: a fixed number of projected gradient steps, then one solve that autograd sees."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from svmem.errors import InvalidInput

__all__ = ["fista_gate"]

_HALVINGS = 28  # of the projection's interval: beyond the 24 bits of a float32
_EDGE = 1e-3  # a coefficient this near 0 or C, in units of C, counts as there


def fista_gate(
    keys: Tensor,
    boundaries: Sequence[int],
    *,
    C: float | Tensor,
    sigma: float | Tensor,
    iterations: int = 80,
    ridge: float = 1e-3,
) -> Tensor:
    """Return dense coefficients (b, h, B, t) of the prefixes of keys (b, h, t, d), near the optimum of (P).

    In float32: `iterations` accelerated steps over the capped simplex give a partition by thresholds; the bordered
    system on its margin, with this ridge, gives the coefficients and the gradient. Nothing re-checks the partition, so
    a coefficient may leave [0, C]. Prefixes of fewer than 1/C keys get 1/n. [Ramesh2026]
    Raises InvalidInput for keys of another shape, boundaries out of order or out of range, or numbers out of range.
    """
    cap, width = torch.as_tensor(C, dtype=torch.float32), torch.as_tensor(sigma, dtype=torch.float32)
    _check(keys, boundaries, cap, width)
    if not len(boundaries) or not keys.shape[2]:
        return keys.new_zeros(*keys.shape[:2], len(boundaries), keys.shape[2], dtype=torch.float32)
    with torch.autocast(keys.device.type, enabled=False):
        gram = _gram(keys[:, :, : boundaries[-1]].float(), width.to(keys.device))
        grams = [gram[..., :stop, :stop] for stop in boundaries]
        fewest = round(float(1 / cap.detach()) + 0.499)  # 1/C rounded up, whole numbers with some room
        enough = [one for one in grams if one.shape[-1] >= fewest]
        with torch.no_grad():
            found = iter(_descend([one.contiguous() for one in enough], float(cap.detach()), iterations))
        cap = cap.to(keys.device)
        rows = [_polish(one, next(found), cap, ridge) if one.shape[-1] >= fewest else _even(one) for one in grams]
        return torch.stack([pad(row, (0, keys.shape[2] - row.shape[-1])) for row in rows], 2)


def _check(keys: Tensor, boundaries: Sequence[int], cap: Tensor, width: Tensor) -> None:
    if keys.dim() != 4 or not keys.is_floating_point():
        raise InvalidInput(f"keys must be floats of shape (b, h, t, d), got {keys.dtype} of shape {tuple(keys.shape)}")
    stops = list(boundaries)
    if stops != sorted(stops) or (stops and not 0 <= stops[0] <= stops[-1] <= keys.shape[2]):
        raise InvalidInput(f"boundaries must rise and lie in [0, {keys.shape[2]}], got {stops}")
    if cap.dim() or not 0 < float(cap.detach()) <= 1:
        raise InvalidInput(f"C must be one number in (0, 1], got {cap.tolist()}")
    if width.dim() > 1 or width.numel() not in (1, keys.shape[1]) or not (width > 0).all():
        raise InvalidInput(f"sigma must be positive, one number or one for each head, got {width.tolist()}")


def _gram(keys: Tensor, width: Tensor) -> Tensor:
    length2 = keys.square().sum(-1, keepdim=True)
    dist2 = (length2 + length2.transpose(-1, -2) - 2 * keys @ keys.transpose(-1, -2)).clamp_min(0)
    return torch.exp(-dist2 / width.reshape(-1, 1, 1).square())  # (b, h, t, t)


def _even(gram: Tensor) -> Tensor:
    return gram.new_full(gram.shape[:-1], 1 / max(gram.shape[-1], 1))


def _descend(grams: Sequence[Tensor], cap: float, iterations: int) -> list[Tensor]:
    """Return coefficients (b, h, n) of each prefix after accelerated projected gradient steps from the uniform point.

    Products are taken prefix by prefix, projections of all of them at once.
    """
    if not grams:
        return []
    sizes = [one.shape[-1] for one in grams]
    # The largest eigenvalue is at most the largest row sum.
    steps = [0.5 / one.sum(-1).amax(-1)[..., None, None].clamp_min(1) for one in grams]
    alpha = torch.stack([pad(_even(one), (0, max(sizes) - n)) for one, n in zip(grams, sizes, strict=True)], 2)
    ahead, momentum = alpha, 1.0
    point = torch.full_like(alpha, -torch.inf)  # what is beyond its prefix is projected to 0
    for _ in range(iterations):
        for at, (gram, n, step) in enumerate(zip(grams, sizes, steps, strict=True)):
            here = ahead[:, :, at : at + 1, :n]
            point[:, :, at : at + 1, :n] = here - step * (2 * here @ gram - 1)
        moved = _project(point, cap)
        later = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead = moved + (momentum - 1) / later * (moved - alpha)
        alpha, momentum = moved, later
    return [alpha[:, :, at, :n] for at, n in enumerate(sizes)]


def _project(point: Tensor, cap: float) -> Tensor:
    """Return the nearest coefficients in [0, cap] that sum to 1: a common shift, found by bisection."""
    high = point.amax(-1, keepdim=True)
    low = torch.where(point > -torch.inf, point, high).amin(-1, keepdim=True) - cap
    shift, reach = (low + high) / 2, (high - low) / 2
    for _ in range(_HALVINGS):
        excess = (point - shift).clamp_(0, cap).sum(-1, keepdim=True).sub_(1)
        reach = reach / 2
        shift = shift + torch.copysign(reach, excess)
    return (point - shift).clamp_(0, cap)


def _polish(gram: Tensor, alpha: Tensor, cap: Tensor, ridge: float) -> Tensor:
    """Return the stationary point on the margin, K a - mu = 1/2 there, by one system of n + 1 unknowns."""
    edge = _EDGE * cap.detach()
    full = (alpha >= cap.detach() - edge).float()
    inside = (alpha > edge).float() * (1 - full)  # (b, h, n)
    block = inside[..., :, None] * gram * inside[..., None, :]
    block = block + torch.diag_embed(ridge * inside + (1 - inside))  # unknowns off the margin are 0
    none = (inside.sum(-1, keepdim=True) == 0).float()
    top = torch.cat([block, -inside[..., None]], -1)
    bottom = torch.cat([inside, none], -1)[..., None, :]
    held = cap * full
    side = inside * (0.5 - (held[..., None, :] @ gram)[..., 0, :])
    left = (1 - none) * (1 - held.sum(-1, keepdim=True))
    solved = torch.linalg.solve(torch.cat([top, bottom], -2), torch.cat([side, left], -1))
    return inside * solved[..., :-1] + held
