"""The gate and its gradient as torch operators `svmem::gate` and `svmem::gate_backward`.

Registered, torch.compile and autocast treat them as units. Everything inside is float64, whatever the keys' type. Keys
on the host go to the compiled solver; those on another device to the batched one there and, where a problem is beyond
it, to the host after all.
"""

from typing import Any
from warnings import warn

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from svmem._jit.gate_output import Written
from svmem.core.problem import Problem
from svmem.errors import InvalidInput
from svmem.kernels import RBF
from svmem.nn.batched import operator as batched
from svmem.nn.compiled import solve_gates, solve_gates_backward

__all__ = ["gate_operator"]


@torch.library.custom_op("svmem::gate", mutates_args=())
def gate_operator(
    keys: Tensor,
    valid: Tensor,
    boundaries: Tensor,
    sigma: Tensor,
    C: Tensor,
    ridge: float,
    extra: int,
    unit: bool,
    keep_factor: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return what `Written` lists, its first axis split into (b, h).

    keys (b, h, t, d), valid (b, t) bool, boundaries (B,) int64, sigma (h,) and C () float64.
    """
    stops, width, cap = boundaries.cpu(), sigma.detach().cpu(), C.detach().cpu()
    _check_boundaries(stops, keys.shape[2])
    _check_numbers(width, cap, ridge)
    found = batched.solve(keys, valid, stops, sigma.detach(), (cap.item(), ridge), extra, unit)
    if found is not None:
        return found
    warn("a gate is beyond the batched solver, so that all gates of this call are solved on the host", stacklevel=2)
    here = _compiled(keys.detach().cpu(), valid.cpu(), stops, width, cap, ridge, extra, unit, keep_factor)
    index, alpha, slot, sizes, numbers, factor = (part.to(keys.device) for part in here)
    return index, alpha, slot, sizes, numbers, pad(factor, (0, 1))  # never empty, which tells the gradient


@gate_operator.register_kernel("cpu")
def _compiled(keys, valid, boundaries, sigma, C, ridge, extra, unit, keep_factor):
    b, h, t, _ = keys.shape
    _check_boundaries(boundaries, t)
    _check_numbers(sigma, C, ridge)
    gates = solve_gates(
        _array(keys),
        np.repeat(valid.numpy(), h, axis=0),
        boundaries.numpy(),
        np.tile(sigma.detach().numpy(), b),
        problem=(C.detach().item(), ridge),
        extra=extra,
        unit=unit,
        keep_factor=keep_factor,
    )
    parts = (torch.from_numpy(part) for part in gates[:5])
    index, alpha, slot, sizes, numbers = (part.reshape(b, h, *part.shape[1:]) for part in parts)
    return index, alpha, slot, sizes, numbers, torch.from_numpy(gates.factor)


def _check_boundaries(boundaries: Tensor, t: int) -> None:
    stops = boundaries.numpy()
    if (stops < 0).any() or (stops > t).any() or (np.diff(stops) < 0).any():
        raise InvalidInput(f"boundaries must rise from 0 to t = {t}, got {stops.tolist()}")


def _check_numbers(sigma: Tensor, C: Tensor, ridge: float) -> None:
    """Raise InvalidInput for values that make no problem."""
    for width in set(sigma.detach().tolist()):
        Problem(RBF(width), C.detach().item(), ridge)


def _array(keys: Tensor) -> np.ndarray:
    """Return keys (b, h, t, d) as (b h, t, d), in float32 what numpy has no type for."""
    kind = keys.dtype if keys.dtype == torch.float64 else torch.float32
    return keys.detach().to(kind).flatten(0, 1).numpy()


@gate_operator.register_fake
def _(keys, valid, boundaries, sigma, C, ridge, extra, unit, keep_factor):
    b, h = keys.shape[:2]
    context = torch.library.get_ctx()
    support, factors = context.new_dynamic_size(), context.new_dynamic_size()
    shape = (b, h, boundaries.shape[0])

    def empty(last: Any, kind: torch.dtype) -> Tensor:
        return keys.new_empty((*shape, last), dtype=kind)

    index, alpha, slot = empty(support, torch.int64), empty(support, torch.float64), empty(support, torch.int64)
    return (
        index,
        alpha,
        slot,
        empty(3, torch.int64),
        empty(2, torch.float64),
        keys.new_empty(factors, dtype=alpha.dtype),
    )


@torch.library.custom_op("svmem::gate_backward", mutates_args=())
def gate_backward_operator(
    keys: Tensor,
    index: Tensor,
    alpha: Tensor,
    slot: Tensor,
    sizes: Tensor,
    factor: Tensor,
    g_alpha: Tensor,
    g_offset: Tensor,
    sigma: Tensor,
    ridge: float,
    unit: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of keys (b, h, t, d) in their type, of sigma (h,) and of C () in float64."""
    upstream = (g_alpha, g_offset)
    if factor.numel() == 0:  # the gates were not solved on the host
        gates = batched.PackedGates(index, alpha, slot, sizes, alpha.new_empty((*sizes.shape[:3], 0)), factor)
        by_keys, by_sigma, by_C = batched.pull_back(keys, gates, upstream, sigma.detach(), ridge, unit)
        return by_keys.to(keys.dtype), by_sigma, by_C
    inputs = (keys, index, alpha, slot, sizes, factor, *upstream, sigma)
    here = _compiled_backward(*[x.detach().cpu() for x in inputs], ridge=ridge, unit=unit)
    by_keys, by_sigma, by_C = (grad.to(keys.device) for grad in here)
    return by_keys, by_sigma, by_C


@gate_backward_operator.register_kernel("cpu")
def _compiled_backward(keys, index, alpha, slot, sizes, factor, g_alpha, g_offset, sigma, ridge, unit):
    b, h = keys.shape[:2]
    n = b * h

    def flat(x: Tensor) -> np.ndarray:
        return x.contiguous().numpy().reshape(n, *x.shape[2:])

    gates = Written(flat(index), flat(alpha), flat(slot), flat(sizes), np.empty((n, 0)), factor.numpy())
    width = np.tile(sigma.detach().numpy(), b)
    upstream = (flat(g_alpha.to(torch.float64)), flat(g_offset.to(torch.float64)))
    grad, parts = solve_gates_backward(_array(keys), gates, upstream, width, ridge=ridge, unit=unit)
    sums = torch.from_numpy(parts).reshape(b, h, 2).sum(0)
    return torch.from_numpy(grad).reshape(keys.shape).to(keys.dtype), sums[:, 0].contiguous(), sums[:, 1].sum()


@gate_backward_operator.register_fake
def _(keys, index, alpha, slot, sizes, factor, g_alpha, g_offset, sigma, ridge, unit):
    return torch.empty_like(keys), torch.empty_like(sigma), sigma.new_empty(())


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    keys, _, _, sigma, _, ridge, _, unit, keep_factor = inputs
    index, alpha, slot, sizes, _, factor = output
    ctx.save_for_backward(keys, index, alpha, slot, sizes, factor, sigma)
    ctx.ridge, ctx.unit, ctx.keep_factor = ridge, unit, keep_factor


def _backward(ctx: Any, _index: Any, g_alpha: Tensor, _slot: Any, _sizes: Any, g_numbers: Tensor, _factor: Any) -> Any:
    if not ctx.keep_factor:
        raise RuntimeError("this gate kept no factors, so it has no gradient: call it with keep_factor=True")
    keys, index, alpha, slot, sizes, factor, sigma = ctx.saved_tensors
    grads = gate_backward_operator(
        keys, index, alpha, slot, sizes, factor, g_alpha, g_numbers[..., 0].contiguous(), sigma, ctx.ridge, ctx.unit
    )
    return grads[0], None, None, grads[1], grads[2], None, None, None, None


def _refuse(ctx: Any, *_grads: Any) -> Any:
    raise RuntimeError(
        "the gate has no second derivative: its partition is piecewise constant, and only the first is worked out"
    )


gate_operator.register_autograd(_backward, setup_context=_setup_context)
gate_backward_operator.register_autograd(_refuse)
