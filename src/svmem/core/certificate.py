"""The optimality certificate: how far given coefficients are from the optimum of (P), for every query at once."""

import math
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from svmem.core.assessment import ROOM, Assessment, assess, rounded_up
from svmem.core.problem import Problem
from svmem.errors import InvalidInput
from svmem.types import Json

__all__ = ["CertificateStatus", "OptimalityCertificate", "certificate_of", "certify"]


class CertificateStatus(StrEnum):
    """What an optimality certificate claims."""

    PROVEN = "proven: the coefficients are this close to the one optimum, for every query"
    COLLECTING = "collecting: fewer than 1/C keys, so each carries 1/n by definition; nothing is claimed of an optimum"


@dataclass(frozen=True, slots=True)
class OptimalityCertificate:
    """Upper bounds on the distance to the optimum of (P) in exact arithmetic, rounding included.

    gap: the duality gap. w_bound: |w - w*|, so |f(x) - f*(x)| <= w_bound sqrt(kappa(x, x)) for every x.
    offset: the one certified, to `offset_bound`. score_bound: the gate score, for every x with kappa(x, x) = 1.
    alpha_bound: |alpha - alpha*|, Euclidean. max_kkt: the worst violation of the conditions of optimality.
    sum_error: sum of the coefficients less what it should be, exact to the last place.
    readout_epsilon: every coefficient is known to this relative accuracy, and the zeros are zeros; None if that is not
    shown. While collecting the optimum stands for alpha = 1/n. Derivation: docs/derivations/optimality.md
    """

    n: int
    problem: Problem
    offset: float
    gap: float
    w_bound: float
    offset_bound: float
    score_bound: float
    alpha_bound: float
    readout_epsilon: float | None
    max_kkt: float
    sum_error: float
    status: CertificateStatus

    def readout_bound(self, largest_value: float) -> float | None:
        """Return how far any readout can be from the optimum's, given max |v|; None where nothing is proven."""
        if self.readout_epsilon is None:
            return None
        factor = 2 * self.readout_epsilon / (1 - self.readout_epsilon)
        return factor * largest_value * (1 + 4 * np.finfo(np.float64).eps)

    def to_json(self) -> Json:
        """Return the certificate as plain data whose numbers read back to the same bits."""
        data: Json = {field.name: getattr(self, field.name) for field in fields(self)}
        return data | {"problem": self.problem.to_json(), "status": str(self.status)}

    @classmethod
    def from_json(cls, data: Json) -> "OptimalityCertificate":
        """Return the certificate that `to_json` wrote. Raises InvalidInput for anything else."""
        names = {field.name for field in fields(cls)}
        if not isinstance(data, dict) or set(data) != names:
            raise InvalidInput(f"an optimality certificate has the fields {', '.join(sorted(names))}")
        if not isinstance(data["n"], int) or data["n"] < 0 or data["status"] not in list(CertificateStatus):
            raise InvalidInput(
                f"n must count records and status be a known sentence, got {data['n']!r}, {data['status']!r}"
            )
        numbers = {name: _number(data[name], name) for name in names - {"n", "problem", "status", "readout_epsilon"}}
        epsilon = data["readout_epsilon"]
        return cls(
            n=data["n"],
            problem=Problem.from_json(data["problem"]),
            status=CertificateStatus(data["status"]),
            readout_epsilon=None if epsilon is None else _number(epsilon, "readout_epsilon"),
            **numbers,
        )


def certify(
    keys: ArrayLike, alpha: ArrayLike, problem: Problem, *, offset: float | None = None
) -> OptimalityCertificate:
    """Bound how far `alpha` is from the optimum of (P), for every query at once.

    Uses only the keys and the coefficients: it does not trust the solver that found them. `offset` is certified too; by
    default it is computed, as the float nearest to the n_min-th smallest of f + ridge alpha - K_ii / 2. For the
    `Precomputed` kernel the keys are the Gram matrix.
    Raises InvalidInput if `alpha` is not on the capped simplex: 0 <= alpha <= C exactly, and a sum off by at most
    1e-12, which the bounds include; while collecting, if it is not 1/n. Also if a Gram matrix cannot be shown to make
    the problem convex.
    """
    return certificate_of(assess(keys, alpha, problem), problem, offset)


def certificate_of(found: Assessment, problem: Problem, offset: float | None = None) -> OptimalityCertificate:
    """Return the certificate that an assessment supports."""
    given = float(found.level) if offset is None else float(offset)
    if not math.isfinite(given):
        raise InvalidInput(f"offset must be finite, got {offset}")
    distances, level = found.distances, found.level
    error = found.residuals.error.max(initial=np.longdouble(0))
    # The offset is an order statistic of the residuals, and those move by at most distances.residual.
    offset_bound = (abs(given - level) + error + distances.residual.max(initial=np.longdouble(0))) * ROOM
    return OptimalityCertificate(
        n=len(found.alpha),
        problem=problem,
        offset=given,
        gap=distances.gap,
        w_bound=distances.w,
        offset_bound=rounded_up(offset_bound),
        score_bound=rounded_up(2 * (distances.w + offset_bound) * ROOM),
        alpha_bound=distances.alpha,
        readout_epsilon=_readout_epsilon(found, problem),
        max_kkt=_largest_violation(found, problem, np.longdouble(given)),
        sum_error=found.sum_error,
        status=CertificateStatus.COLLECTING if found.collecting else CertificateStatus.PROVEN,
    )


def _readout_epsilon(found: Assessment, problem: Problem) -> float | None:
    """Return the relative accuracy to which every coefficient is known, if each zero is a zero of the optimum as well.

    The sign of h* settles a coefficient for good: below 0 it is C, above 0 it is 0.
    """
    alpha, measured, reach = found.alpha, found.residuals, found.distances.residual
    if not (problem.kernel.bounded and alpha.size):
        return None
    open_ = alpha > 0
    if not found.collecting:
        room = measured.error.max() + reach.max()
        above = measured.value - measured.error - reach > found.level + room
        below = measured.value + measured.error + reach < found.level - room
        if not above[alpha == 0].all():
            return None
        open_ &= ~((alpha == problem.C) & below)
    if not open_.any():
        return 0.0
    epsilon = rounded_up(np.longdouble(found.distances.alpha) / alpha[open_].min() * ROOM)
    return epsilon if epsilon < 1 else None


def _largest_violation(found: Assessment, problem: Problem, offset: np.longdouble) -> float:
    """Return the largest |h| on the margin, h on the bound set (all keys while collecting), -h on the reserve."""
    alpha, measured = found.alpha, found.residuals
    h = measured.value - offset
    above = np.where(alpha > 0, h + measured.error, 0)
    full = np.full(alpha.shape, True) if found.collecting else alpha == problem.C
    below = np.where(full, 0, measured.error - h)
    return rounded_up(np.maximum(above, below).max(initial=np.longdouble(0)) * ROOM)


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidInput(f"{name} must be a finite number, got {value!r}")
    return float(value)
