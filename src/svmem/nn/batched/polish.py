"""From nearly the right partition to the right one, and the masses that are exact for it: a primal-dual active set.

On the margin S, (K + ridge) x - mu = 0 with the caps on the bound set held. A margin node whose mass leaves (0, cap)
goes to that bound, a node outside whose inequality is broken comes in, all at once. Fixed points are optima, and a
partition that is right stays as it is. [HintermullerItoKunisch2003]
"""

from typing import NamedTuple

import torch
from torch import Tensor

from svmem.nn.batched.interior import BOUND, MARGIN, RESERVE, Limits, Quadratic, solved, times

__all__ = ["Settled", "polish"]

NOISE = 2.5e-16  # of a slope less the offset: an inequality broken by less is not known to be broken
PATIENCE = 16.0  # what a node that keeps coming in and going out has NOISE multiplied by, each time
TINY = 1e-16  # a mass at most this large is 0
BEYOND = 1 - 4e-16  # a mass this near its cap has reached it
LEFT_OVER = 2.5e-16  # records at the cap carry exactly the total, or miss it by more: see `Problem.total`
SOLVES = 3  # one solve with the factor, and two that refine it
ROUND = 1.5 * 2.0**52  # adding it rounds to an integer


class Settled(NamedTuple):
    """Partition, masses and offset of problems over w nodes."""

    zone: Tensor  # (..., w) int8
    mass: Tensor  # (..., w)
    offset: Tensor  # (..., 1): f + ridge alpha on the margin; no use where it is empty
    done: Tensor  # (..., 1): nothing wants to change its zone


class _Split(NamedTuple):
    """A kernel matrix as a sum of few-digit numbers and the rest."""

    high: Tensor  # (..., w, w)
    low: Tensor
    ridge: Tensor  # (..., w)
    digits: int


def polish(q: Quadratic, limits: Limits, zone: Tensor, steps: int) -> Settled:
    """Return where that many steps from this partition lead, as far as its last solve."""
    kernel = _split(q, limits)
    patience = torch.full_like(q.copies, NOISE * (1 + limits.ridge))
    state, wanted, patience = _step(q, kernel, limits, zone, patience)
    for _ in range(steps - 1):
        state, wanted, patience = _step(q, kernel, limits, wanted, patience)
    return state


def _step(
    q: Quadratic, kernel: _Split, limits: Limits, zone: Tensor, patience: Tensor
) -> tuple[Settled, Tensor, Tensor]:
    """Return the solution for a partition, the partition that it asks for, and how patient to be with that."""
    mass, offset, left = _stationary(q, kernel, limits, zone)
    enters, wanted = _wanted(q, limits, zone, (mass, *_slopes(kernel, mass, offset), left), patience)
    state = Settled(zone, mass, offset, (wanted == zone).all(-1, keepdim=True))
    return state, wanted, torch.where(enters, PATIENCE * patience, patience)


def _split(q: Quadratic, limits: Limits) -> _Split:
    w = q.copies.shape[-1]
    digits = (53 - w.bit_length()) // 2
    ridge = torch.where(q.member, limits.ridge / q.copies, 0.0)
    kernel = torch.where(q.member.unsqueeze(-1) & q.member.unsqueeze(-2), q.matrix, 0.0)
    kernel.diagonal(dim1=-2, dim2=-1).copy_(q.member)
    high = _rounded(kernel, 2.0**-digits)
    return _Split(high, kernel - high, ridge, digits)


def _rounded(x: Tensor, spacing: Tensor | float) -> Tensor:
    return (x + ROUND * spacing) - ROUND * spacing


def _slopes(kernel: _Split, mass: Tensor, offset: Tensor) -> tuple[Tensor, Tensor]:
    """Return the slopes f + ridge x, and these less the offset far beyond their own rounding.

    The leading digits of kernel and masses are few enough that their products add up exactly, in any order; what
    remains is smaller by 2^-digits, and so is its rounding [Ozaki2012].
    """
    _, exponent = torch.frexp(mass.abs().amax(-1, keepdim=True))
    leading = _rounded(mass, torch.ldexp(torch.ones_like(offset), exponent - kernel.digits))
    exact = times(kernel.high, leading)
    rest = times(kernel.high, mass - leading) + times(kernel.low, mass) + kernel.ridge * mass
    return exact + rest, (exact - offset) + rest


def _stationary(q: Quadratic, kernel: _Split, limits: Limits, zone: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the masses and the offset that are optimal on the margin, and the mass that the bound set leaves to it."""
    margin, bound = zone == MARGIN, zone == BOUND
    left = limits.total - limits.C * torch.where(bound, q.copies, 0.0).sum(-1, keepdim=True)
    identity = torch.eye(zone.shape[-1], dtype=q.matrix.dtype, device=zone.device)
    factor, _ = torch.linalg.cholesky_ex(torch.where(margin.unsqueeze(-1) & margin.unsqueeze(-2), q.matrix, identity))
    ones = solved(factor, margin.to(q.matrix.dtype))
    whole = ones.sum(-1, keepdim=True)
    some = margin.any(-1, keepdim=True)
    mass = torch.where(bound, limits.C * q.copies, 0.0)
    offset = torch.zeros_like(whole)
    for _ in range(SOLVES):
        part = solved(factor, torch.where(margin, -_slopes(kernel, mass, offset)[1], 0.0))
        short = left - torch.where(margin, mass + part, 0.0).sum(-1, keepdim=True)
        rise = torch.where(some, short / torch.where(some, whole, 1.0), 0.0)
        mass = torch.where(margin, mass + (part + rise * ones), mass)
        offset = offset + rise
    return mass, offset, left


def _wanted(
    q: Quadratic, limits: Limits, zone: Tensor, solution: tuple[Tensor, Tensor, Tensor, Tensor], noise: Tensor
) -> tuple[Tensor, Tensor]:
    """Return which nodes should come into the margin, and the zone that every node should be in."""
    mass, slope, above, left = solution
    reserve, margin, bound = q.member & (zone == RESERVE), zone == MARGIN, zone == BOUND
    lowest = torch.where(reserve, slope, torch.inf).amin(-1, keepdim=True)
    highest = torch.where(bound, slope, -torch.inf).amax(-1, keepdim=True)
    # Without a margin one node of either kind, or a pair that trades, has to come in for anything to move.
    empty, more, less = ~margin.any(-1, keepdim=True), left > LEFT_OVER, left < -LEFT_OVER
    level = torch.where(highest > lowest, 0.5 * (highest + lowest), highest)
    above = torch.where(empty, torch.where(more | less, 0.0, slope - level), above)
    forced = empty & ((more & reserve & (slope == lowest)) | (less & bound & (slope == highest)))
    enters = (reserve & (above < -noise)) | (bound & (above > noise)) | forced
    falls, rises = margin & (mass <= TINY), margin & (mass >= BEYOND * limits.C * q.copies)
    wanted = torch.where(falls, RESERVE, torch.where(rises, BOUND, torch.where(enters, MARGIN, zone)))
    return enters, wanted.to(torch.int8)
