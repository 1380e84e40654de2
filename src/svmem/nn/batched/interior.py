"""An interior-point method for many gates at once: a partition from nothing, in about as many steps whatever it is.

minimise x'Qx/2 over sum x = total, 0 <= x <= cap, with room e = cap - x and multipliers z (of x >= 0), y (of e >= 0):
    Qx - mu - z + y = 0,   x z = tau,   e y = tau,   tau -> 0.
A Newton step eliminates z and y, which adds z/x + y/e to the diagonal: one Cholesky factor a step, whatever the
partition. Steps are the predictor and corrector of [Mehrotra1992]. At the end x z is far below the
rounding of either, so that the smaller of the two tells the sets apart; `batched_polish` then solves for them exactly.
"""

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["BOUND", "MARGIN", "RESERVE", "Limits", "Quadratic", "guess_partition"]

RESERVE, MARGIN, BOUND = 0, 1, 2  # values of zone, as in `_jit.work`

ENOUGH = 1e-20  # mean complementarity: coefficients of 1e-12 are told from multipliers of 1e-8
START = 1e-2  # first multipliers, beside slopes of order 1
NEARLY = 0.9999  # of the way to the first bound
FULL = 1e-15  # caps that exceed the total by no more leave no choice


class Limits(NamedTuple):
    """The numbers of problem (P): cap, sum of coefficients, fewest records that can carry it, ridge."""

    C: float
    total: float
    n_min: int
    ridge: float


class Quadratic(NamedTuple):
    """Problems over w nodes each, (..., w): a node of m equal records has cap m C and ridge m."""

    matrix: Tensor  # (..., w, w): kernel plus ridge among members, the identity elsewhere
    member: Tensor  # bool
    copies: Tensor  # float64, m


class _Point(NamedTuple):
    mass: Tensor
    room: Tensor
    offset: Tensor  # (..., 1), as all one-number-a-problem tensors here
    low: Tensor  # multiplier of mass >= 0
    high: Tensor  # multiplier of room >= 0


class _System(NamedTuple):
    """A Newton system: what is left of the conditions, and the factor with its solution for ones."""

    dual: Tensor
    primal: Tensor
    factor: Tensor
    ones: Tensor


def guess_partition(q: Quadratic, limits: Limits, steps: int) -> tuple[Tensor, Tensor]:
    """Return the zone of every node (..., w) int8 and the masses after that many steps.

    A problem that has converged changes no more; one that breaks down stays where it was.
    """
    records = torch.where(q.member, q.copies, 0.0).sum(-1, keepdim=True)
    full = limits.C * records <= limits.total * (1 + FULL)  # no interior: every record at the cap, or none at all
    point, rests = _start(q, limits), full
    for _ in range(steps):
        point, rests = _step(q, limits, point, rests)
    zone = torch.where(point.mass < point.low, RESERVE, torch.where(point.room < point.high, BOUND, MARGIN))
    zone = torch.where(full, BOUND, zone)
    mass = torch.where(full, limits.C * q.copies, point.mass)
    return torch.where(q.member, zone, RESERVE).to(torch.int8), torch.where(q.member, mass, 0.0)


def _start(q: Quadratic, limits: Limits) -> _Point:
    """Return a point with all masses in proportion to their caps."""
    cap = limits.C * q.copies
    room_for = torch.where(q.member, cap, 0.0).sum(-1, keepdim=True)
    share = (limits.total / room_for.clamp(min=limits.C)).clamp(max=0.95)
    mass = torch.where(q.member, share * cap, 0.5)
    slope = times(q.matrix, mass)
    offset = _sum(q, slope * mass) / _sum(q, mass).clamp(min=1e-300)
    above = torch.where(q.member, slope - offset, 0.0)
    low, high = above.clamp(min=0) + START, (-above).clamp(min=0) + START
    return _Point(mass, torch.where(q.member, cap - mass, 0.5), offset, low, high)


def _step(q: Quadratic, limits: Limits, at: _Point, rests: Tensor) -> tuple[_Point, Tensor]:
    """Return the next point, and which problems have come to rest."""
    pairs = 2 * q.member.sum(-1, keepdim=True).clamp(min=1)
    tau = _sum(q, at.mass * at.low + at.room * at.high) / pairs
    rests = rests | (tau < ENOUGH)
    dual = torch.where(q.member, at.low - at.high + at.offset - times(q.matrix, at.mass), 0.0)
    matrix = q.matrix.clone()
    matrix.diagonal(dim1=-2, dim2=-1).add_(torch.where(q.member, at.low / at.mass + at.high / at.room, 0.0))
    factor, info = torch.linalg.cholesky_ex(matrix)
    system = _System(dual, limits.total - _sum(q, at.mass), factor, solved(factor, q.member.to(dual.dtype)))

    aim_low, aim_high = -at.mass * at.low, -at.room * at.high
    ahead = _direction(q, at, system, aim_low, aim_high)
    length = _length(q, at, ahead).clamp(max=1)
    after = _moved(at, ahead, length)
    share = (_sum(q, after.mass * after.low + after.room * after.high) / pairs / tau).clamp(0, 1) ** 3
    aim_low = aim_low + share * tau - ahead.mass * ahead.low
    aim_high = aim_high + share * tau - ahead.room * ahead.high
    way = _direction(q, at, system, aim_low, aim_high)
    length = (NEARLY * _length(q, at, way)).clamp(max=1)

    sound = length.isfinite() & (way.mass + way.low + way.high).sum(-1, keepdim=True).isfinite()
    goes = sound & ~rests & (info == 0)[..., None]
    return _Point(*(torch.where(goes, new, old) for new, old in zip(_moved(at, way, length), at, strict=True))), rests


def _direction(q: Quadratic, at: _Point, system: _System, aim_low: Tensor, aim_high: Tensor) -> _Point:
    """Return the Newton direction to mass * low = aim_low + (as it is), room * high = aim_high + (as it is)."""
    right = torch.where(q.member, system.dual + aim_low / at.mass - aim_high / at.room, 0.0)
    part = solved(system.factor, right)
    offset = (system.primal - part.sum(-1, keepdim=True)) / system.ones.sum(-1, keepdim=True)
    mass = part + offset * system.ones
    low = torch.where(q.member, (aim_low - at.low * mass) / at.mass, 0.0)
    high = torch.where(q.member, (aim_high + at.high * mass) / at.room, 0.0)
    return _Point(mass, -mass, offset, low, high)


def _length(q: Quadratic, at: _Point, way: _Point) -> Tensor:
    """Return how far to go until the first of masses, rooms and multipliers is 0."""
    rates = [-step / value for step, value in ((way.mass, at.mass), (way.room, at.room), (way.low, at.low))]
    rate = torch.stack([*rates, -way.high / at.high]).amax(0)
    return 1 / torch.where(q.member, rate, 0.0).amax(-1, keepdim=True).clamp(min=1e-30)


def _moved(at: _Point, way: _Point, length: Tensor) -> _Point:
    return _Point(*(value + length * step for value, step in zip(at, way, strict=True)))


def _sum(q: Quadratic, x: Tensor) -> Tensor:
    """Return the sum over members, (..., 1)."""
    return torch.where(q.member, x, 0.0).sum(-1, keepdim=True)


def times(matrix: Tensor, x: Tensor) -> Tensor:
    """Return matrix x for (..., w, w) and (..., w)."""
    return (matrix @ x.unsqueeze(-1)).squeeze(-1)


def solved(factor: Tensor, x: Tensor) -> Tensor:
    """Return the solution y of L L' y = x for lower factors (..., w, w) and x (..., w).

    Two triangular solves rather than cholesky_solve, which waits for the device with some of its back ends.
    """
    half = torch.linalg.solve_triangular(factor, x.unsqueeze(-1), upper=False)
    return torch.linalg.solve_triangular(factor.mT, half, upper=True).squeeze(-1)
