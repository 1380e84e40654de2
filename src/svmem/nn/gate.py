"""The gate: which keys of each prefix carry the readout, and with what coefficients."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from svmem.errors import InvalidInput
from svmem.kernels import as_number
from svmem.nn.operator import gate_operator

__all__ = ["Gate", "GateStatus", "gate", "gate_over"]

DEFAULT_RIDGE = 1e-6
WARM_UP = 2  # keys beyond those that (P) needs, below which the layers' coefficients are equal and nothing is certified


class GateStatus(enum.IntEnum):
    """What is known of one gate."""

    OPTIMAL = 0  # the optimum of (P), to the stated gap
    COLLECTING = 1  # too few keys for (P): equal coefficients, nothing is certified
    INVALID = 2  # a key is not finite: one coefficient, which is not a number
    FAILED = 3  # the optimum could not be proved: likewise


@dataclass(frozen=True, slots=True)
class Gate:
    """The optimum of (P) over each prefix of keys (b, h, t, d), as packed support of width w.

    alpha and offset carry gradients to keys, sigma and C: the derivative of the optimality conditions on the margin,
    with the partition as it is. Where the partition is about to change, that is the derivative on this side.
    """

    indices: Tensor  # (b, h, B, w) int64, rising positions; 0 beyond the count
    alpha: Tensor  # (b, h, B, w); 0 beyond the count
    counts: Tensor  # (b, h, B) int64
    offset: Tensor  # (b, h, B)
    gap: Tensor  # (b, h, B) float64, duality gap; 0 while collecting
    status: Tensor  # (b, h, B) int8, values of GateStatus
    keys: Tensor  # (b, h, t, d), as given
    sigma: Tensor  # (h,)

    def dense(self, t: int) -> Tensor:
        """Return the coefficients by position, (b, h, B, t)."""
        if t < self.keys.shape[2]:
            raise InvalidInput(f"t must be at least the number of keys, {self.keys.shape[2]}; got {t}")
        out = self.alpha.new_zeros((*self.alpha.shape[:3], t))
        return out.scatter_add(3, self.indices, self.alpha)

    def score(self, points: Tensor) -> Tensor:
        """Return the gate score 2 (f(x) - 1/2 - offset) of points (b, h, m, d) under each boundary, (b, h, B, m)."""
        keys = self.keys
        if points.dim() != 4 or points.shape[:2] != keys.shape[:2] or points.shape[3] != keys.shape[3]:
            expected = f"({keys.shape[0]}, {keys.shape[1]}, m, {keys.shape[3]})"
            raise InvalidInput(f"points must have shape {expected}, got {tuple(points.shape)}")
        b, h, boundaries, w = self.indices.shape
        places = self.indices.reshape(b, h, boundaries * w, 1).expand(-1, -1, -1, keys.shape[3])
        support = keys.gather(2, places).to(self.alpha.dtype).reshape(b, h, boundaries, w, 1, -1)
        difference = support - points.to(self.alpha.dtype)[:, :, None, None]  # (b, h, B, w, m, d)
        kernel = torch.exp(-(difference**2).sum(-1) / self.sigma.to(self.alpha.dtype).reshape(1, h, 1, 1, 1) ** 2)
        f = (self.alpha.unsqueeze(-1) * kernel).sum(3)
        return 2 * (f - 0.5 - self.offset.unsqueeze(-1))


def gate(
    keys: Tensor,
    boundaries: Sequence[int] | Tensor,
    *,
    C: float | Tensor,
    sigma: float | Tensor,
    ridge: float = DEFAULT_RIDGE,
    lengths: Sequence[int] | Tensor | None = None,
) -> Gate:
    """Return, for every boundary s, the optimum of (P) over keys[:, :, :s] of (b, h, t, d): that of `svmem.solve`.

    boundaries rise from 0 to t. sigma: one width or one a head, in exp(-|x - y|^2 / sigma^2). lengths (b,): keys from
    lengths[b] on are padding. Solved in float64 from any float type; alpha is float64 for float64 keys, else float32.
    A batch item that is not finite gets status INVALID and touches no other. Differentiable once in keys, sigma and C.
    Raises InvalidInput for shapes, types or values that make no problem. [TaxDuin2004, section 2]
    """
    _check_keys(keys)
    b, _, t, _ = keys.shape
    valid = torch.ones((b, t), dtype=torch.bool, device=keys.device)
    if lengths is not None:
        limits = _whole(lengths, "lengths").to(keys.device)
        tracing = torch.compiler.is_compiling()  # values are not known then
        if limits.shape != (b,) or (not tracing and bool(((limits < 0) | (limits > t)).any())):
            raise InvalidInput(f"lengths must be {b} whole numbers from 0 to t = {t}, got {limits.tolist()}")
        valid = torch.arange(t, device=keys.device) < limits[:, None]
    return gate_over(keys, valid, boundaries, C=C, sigma=sigma, ridge=ridge)


def gate_over(
    keys: Tensor,
    valid: Tensor,
    boundaries: Sequence[int] | Tensor,
    *,
    C: float | Tensor,
    sigma: float | Tensor,
    ridge: float,
    extra: int = 0,
    unit: bool = False,
) -> Gate:
    """Return the gates over the keys where valid (b, t) holds; collecting with under `extra` more than (P) needs.

    unit: the kernel sees keys of length 1.
    """
    _check_keys(keys)
    stops = _whole(boundaries, "boundaries").to(keys.device)
    width, cap = _width(sigma, keys), _cap(C, keys)
    ridge = as_number(ridge, "ridge")
    keep = torch.is_grad_enabled() and (keys.requires_grad or width.requires_grad or cap.requires_grad)
    indices, alpha, _, sizes, numbers, _ = gate_operator(keys, valid, stops, width, cap, ridge, extra, unit, keep)
    kind = torch.float64 if keys.dtype == torch.float64 else torch.float32
    return Gate(
        indices=indices,
        alpha=alpha.to(kind),
        counts=sizes[..., 0],
        offset=numbers[..., 0].to(kind),
        gap=numbers[..., 1].detach(),
        status=sizes[..., 2].to(torch.int8),
        keys=keys,
        sigma=width,
    )


def _check_keys(keys: Tensor) -> None:
    if not isinstance(keys, Tensor) or keys.dim() != 4 or not keys.is_floating_point():
        came = f"{tuple(keys.shape)} of {keys.dtype}" if isinstance(keys, Tensor) else type(keys).__name__
        raise InvalidInput(f"keys must be a tensor of floats of shape (b, h, t, d), got {came}")
    if keys.shape[3] == 0:
        raise InvalidInput("keys must have at least one coordinate, got d = 0")


def _whole(numbers: Sequence[int] | Tensor, name: str) -> Tensor:
    """Return whole numbers as an int64 tensor (k,)."""
    try:
        out = torch.as_tensor(numbers)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidInput(f"{name} must be whole numbers, got {numbers!r}") from error
    if out.numel() == 0:
        out = out.to(torch.int64)
    if out.dim() != 1 or out.is_floating_point() or out.is_complex() or out.dtype == torch.bool:
        raise InvalidInput(f"{name} must be a row of whole numbers, got {numbers!r}")
    return out.to(torch.int64)


def _width(sigma: float | Tensor, keys: Tensor) -> Tensor:
    """Return one float64 width a head, (h,)."""
    try:
        width = torch.as_tensor(sigma, dtype=torch.float64, device=keys.device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidInput(f"sigma must be a number or one a head, got {sigma!r}") from error
    h = keys.shape[1]
    if width.dim() > 1 or (width.dim() == 1 and width.shape[0] not in (1, h)):
        raise InvalidInput(f"sigma must be one number or one for each of {h} heads, got shape {tuple(width.shape)}")
    return width.expand(h).contiguous()


def _cap(C: float | Tensor, keys: Tensor) -> Tensor:
    try:
        cap = torch.as_tensor(C, dtype=torch.float64, device=keys.device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidInput(f"C must be a number, got {C!r}") from error
    if cap.dim() != 0:
        raise InvalidInput(f"C must be one number, a tensor of no dimension at most; got shape {tuple(cap.shape)}")
    return cap
