"""The selection certificate: which reserve records may be dropped, now or for any so many further changes.

Derivation: docs/derivations/horizon.md.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from svmem.core.assessment import Assessment, assess, rounded_up, smallest
from svmem.core.problem import Problem
from svmem.core.residual import UNIT
from svmem.errors import InvalidInput
from svmem.types import Ids, Json, Vector

__all__ = ["SelectionCertificate", "certify_selection", "movement", "selection_of"]


@dataclass(frozen=True, slots=True)
class SelectionCertificate:
    """Records that are reserve at the exact optimum, and stay so under the stated further changes, whatever they are.

    The changes are any `admissions` new keys and any `deletions` of records, in any order; 0 and 0 speak of now.
    droppable: positions in the keys as given, rising. slack: by how much each passes, > 0, aligned with `droppable`.
    level: what f_j - K_jj / 2 has to exceed; None where nothing can be certified, and `status` says why.
    movement: the part of `level` that the changes cost. w_bound: distance of the coefficients to the optimum, included.
    Dropping these records together leaves the optimum as it is: coefficients, offset, and every readout.
    """

    n: int
    problem: Problem
    admissions: int
    deletions: int
    level: float | None
    movement: float
    w_bound: float
    reserve: int
    droppable: Ids
    slack: Vector
    status: str

    @property
    def horizon(self) -> tuple[int, int]:
        """Further admissions and deletions that the certificate covers."""
        return self.admissions, self.deletions

    def to_json(self) -> Json:
        """Return the certificate as plain data whose numbers read back to the same bits."""
        data: Json = {name: getattr(self, name) for name in _FIELDS}
        return data | {
            "problem": self.problem.to_json(),
            "droppable": self.droppable.tolist(),
            "slack": self.slack.tolist(),
        }

    @classmethod
    def from_json(cls, data: Json) -> "SelectionCertificate":
        """Return the certificate that `to_json` wrote. Raises InvalidInput for anything else."""
        if not isinstance(data, dict) or set(data) != set(_FIELDS):
            raise InvalidInput(f"a selection certificate has the fields {', '.join(_FIELDS)}")
        counts = {name: _count(data[name], name) for name in ("n", "admissions", "deletions", "reserve")}
        droppable, slack = data["droppable"], data["slack"]
        if not isinstance(droppable, list) or not isinstance(slack, list) or len(droppable) != len(slack):
            raise InvalidInput("droppable and slack must be lists of one length")
        return cls(
            **counts,
            problem=Problem.from_json(data["problem"]),
            level=None if data["level"] is None else _number(data["level"], "level"),
            movement=_number(data["movement"], "movement"),
            w_bound=_number(data["w_bound"], "w_bound"),
            droppable=np.array([_count(i, "droppable") for i in droppable], dtype=np.int64),
            slack=np.array([_number(s, "slack") for s in slack], dtype=np.float64),
            status=str(data["status"]),
        )


def certify_selection(
    keys: ArrayLike, alpha: ArrayLike, problem: Problem, *, admissions: int = 0, deletions: int = 0
) -> SelectionCertificate:
    """Decide which reserve records may be dropped for good within a horizon, from keys and coefficients alone.

    Raises InvalidInput as `certify` does, and where a horizon is asked of a kernel that does not keep
    0 <= kappa <= 1 = kappa(x, x): there one key can move everything.
    """
    return selection_of(assess(keys, alpha, problem), problem, admissions=admissions, deletions=deletions)


def selection_of(
    found: Assessment, problem: Problem, *, admissions: int = 0, deletions: int = 0
) -> SelectionCertificate:
    """Return the certificate that an assessment supports."""
    _check_horizon(problem, admissions, deletions)
    measured, reach, w = found.residuals, found.distances.residual, np.longdouble(found.distances.w)
    cost = movement(problem, admissions, deletions)
    reserve = np.flatnonzero((found.alpha == 0) & (not found.collecting))
    # At most `deletions` of the n_min + deletions smallest residuals can go, so this bounds the offset that follows.
    level = smallest(measured.value + measured.error + reach, problem.n_min + deletions) + cost
    passing, slack = np.empty(0, dtype=np.int64), np.empty(0)
    if reserve.size and np.isfinite(level):
        least = measured.value - measured.error - np.sqrt(measured.diagonal) * w * (1 + 8 * UNIT)
        room = (least - level - 8 * UNIT * (np.abs(least) + np.abs(level)))[reserve]
        passing, slack = reserve[room > 0], -np.array([rounded_up(-s) for s in room[room > 0]])
    return SelectionCertificate(
        n=len(found.alpha),
        problem=problem,
        admissions=int(admissions),
        deletions=int(deletions),
        level=rounded_up(level) if np.isfinite(level) and not found.collecting else None,
        movement=cost,
        w_bound=found.distances.w,
        reserve=int(reserve.size),
        droppable=passing,
        slack=slack,
        status=_status(found, problem, int(reserve.size), len(passing), (admissions, deletions)),
    )


def movement(problem: Problem, admissions: int, deletions: int) -> float:
    """Return how much offset - f_j can rise by, for any fixed key j, beyond what reordering of the records explains.

    An admission moves at most the mass C and costs at most (2 + ridge) / 4 of it; a deletion at most
    (2 + ridge + sqrt(2 (1 + ridge) (2 + ridge))) / 2 of it. With a small ridge: C / 2 and 2 C.
    """
    ridge = np.longdouble(problem.ridge)
    admission = (2 + ridge) / 4
    deletion = (2 + ridge + np.sqrt(2 * (1 + ridge) * (2 + ridge))) / 2
    return rounded_up(np.longdouble(problem.C) * (admissions * admission + deletions * deletion) * (1 + 16 * UNIT))


def _check_horizon(problem: Problem, admissions: int, deletions: int) -> None:
    for name, count in (("admissions", admissions), ("deletions", deletions)):
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
            raise InvalidInput(f"{name} must be a count of 0 or more, got {count!r}")
    if (admissions or deletions) and not problem.kernel.bounded:
        raise InvalidInput(
            f"a horizon needs a kernel with 0 <= kappa <= 1 = kappa(x, x), such as rbf or laplacian: with the "
            f"{problem.kernel.name} kernel one new key can wake any record; ask for admissions = deletions = 0"
        )


def _status(found: Assessment, problem: Problem, reserve: int, passing: int, horizon: tuple[int, int]) -> str:
    n, least = len(found.alpha), problem.n_min
    if found.collecting:
        return (
            f"nothing certified: collecting with {n} keys, fewer than the {least} that C needs, so every key is active"
        )
    if n < least + horizon[1]:
        return f"nothing certified: {horizon[1]} deletions could leave fewer than the {least} keys that C needs"
    what = "now" if horizon == (0, 0) else f"for any {horizon[0]} admissions and {horizon[1]} deletions"
    return f"{passing} of {reserve} reserve records certified to stay silent, {what}"


def _count(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidInput(f"{name} must be a count of 0 or more, got {value!r}")
    return value


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidInput(f"{name} must be a finite number, got {value!r}")
    return float(value)


_FIELDS = tuple(SelectionCertificate.__dataclass_fields__)
