"""One gate, slowly: a general programme finds the partition, extended precision the numbers."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import qpsolvers
from numpy.typing import NDArray
from scipy.sparse import csc_matrix

from tests.oracles.setting import fewest, total

__all__ = ["GateAnswer", "gram_of", "groups_of", "reference_gate"]

Array = NDArray[np.float64]
Long = np.longdouble
_FUZZ = 1e-13  # conditions of order 1, computed with 64-bit mantissas
_MOST_ROUNDS = 500


@dataclass(frozen=True, slots=True, eq=False)
class GateAnswer:
    """The optimum over one prefix. `slack` says how far every inequality is from turning.

    It is the least of a and C - a over the margin and of |h| off it, per key. Without a margin the offset is a maximum,
    and its lead over the next distinct key counts as well. The collecting answer has only that lead.
    """

    alpha: Array
    offset: float
    margin: tuple[int, ...]
    bound: tuple[int, ...]
    reserve: tuple[int, ...]
    slack: float
    collecting: bool = False


def groups_of(keys: Array) -> NDArray[np.int64]:
    """Return the number of the group of equal keys that each key belongs to, (n,)."""
    _, group = np.unique(keys + 0.0, axis=0, return_inverse=True)  # + 0.0 turns -0 into 0
    return group.reshape(-1).astype(np.int64)


def reference_gate(keys: Any, boundary: int, C: float, sigma: float, ridge: float) -> GateAnswer:
    """Return the optimum over keys[:boundary]: a programme finds the partition, extended precision the numbers.

    Equal keys are one node of multiplicity m with cap m C and ridge / m. Raises ValueError where no partition that
    meets the conditions is found, or where there is no key.
    """
    keys = np.asarray(keys, dtype=np.float64)[:boundary]
    if len(keys) == 0:
        raise ValueError("there is no optimum over no keys")
    group = groups_of(keys)
    first = np.unique(group, return_index=True)[1]
    count = np.bincount(group)
    gram = gram_of(keys[first], sigma)
    if len(keys) < fewest(C):
        mass = count.astype(Long) / len(keys)
        slopes = gram @ mass + Long(ridge) * mass / count - Long(0.5)
        everyone = tuple(range(len(keys)))
        alpha = np.full(len(keys), 1 / len(keys))
        return GateAnswer(alpha, float(slopes.max()), (), everyone, (), _lead(slopes), collecting=True)
    mass, offset, zone = _solve_nodes(gram, count, C, ridge)
    return _answer_of(mass, offset, zone, gram, group, count, (C, ridge))


def _answer_of(
    mass: Any, offset: Any, zone: Any, gram: Any, group: Any, count: Any, numbers: tuple[float, float]
) -> GateAnswer:
    """Return the answer for single keys, each with an equal share of its node."""
    C, ridge = numbers
    share = mass / count
    slopes = gram @ mass + Long(ridge) * share - Long(0.5)
    inside = zone == 0
    room = np.where(inside, np.minimum(share, Long(C) - share), np.abs(slopes - offset))
    if not inside.any():
        best = int(np.argmax(np.where(zone > 0, slopes, -np.inf)))
        room[best] = _lead(slopes[zone > 0])
    alpha = np.where(zone > 0, C, np.where(zone < 0, 0.0, share.astype(np.float64)))[group]
    sets = [tuple(int(i) for i in np.flatnonzero(zone[group] == z)) for z in (0, 1, -1)]
    return GateAnswer(alpha, float(offset), sets[0], sets[1], sets[2], float(room.min()))


def gram_of(keys: Array, sigma: float) -> NDArray[np.longdouble]:
    """Return exp(-|x - y|^2 / sigma^2) of the keys, by coordinate differences."""
    wide = keys.astype(Long)
    with np.errstate(over="ignore", under="ignore"):
        dist2 = np.square(wide[:, None] - wide[None]).sum(axis=2)
        return np.exp(-dist2 / Long(sigma) ** 2)


def _whole(C: float) -> Any:
    exact = total(C)
    return Long(exact.numerator) / Long(exact.denominator)


def _lead(slopes: Any) -> float:
    """Return how far the largest is above the next."""
    ordered = np.sort(slopes)
    return float(ordered[-1] - ordered[-2]) if len(ordered) > 1 else np.inf


def _solve_nodes(gram: Any, count: Any, C: float, ridge: float) -> tuple[Any, Any, NDArray[np.int64]]:
    """Return masses, offset and zones (0 margin, 1 bound, -1 reserve) of the nodes.

    Starting from the programme's partition, the worst broken condition changes its zone until none is broken.
    """
    guess = _programme(gram.astype(np.float64), count, C, ridge)
    share = guess / count / C
    zone = np.where(share < 1e-5, -1, np.where(share > 1 - 1e-5, 1, 0))
    whole, seen = _whole(C), set()
    for _ in range(_MOST_ROUNDS):
        mass, offset = _stationary(gram, count, zone, C, ridge)
        share = mass / count
        slopes = gram @ mass + Long(ridge) * share - Long(0.5)
        broken = np.select(
            [zone == 0, zone == 1], [np.maximum(-share, share - Long(C)), slopes - offset], offset - slopes
        )
        excess = mass.sum() - whole
        if not (zone == 0).any() and abs(excess) > 1e-18:  # without a margin nothing has made up the sum
            worst = int(
                np.argmax(np.where(zone > 0, slopes, -np.inf) if excess > 0 else np.where(zone < 0, -slopes, -np.inf))
            )
        elif (broken <= np.where(zone == 0, 0, _FUZZ)).all():
            return mass, offset, zone
        else:
            worst = int(np.argmax(broken))
        zone = zone.copy()
        zone[worst] = 0 if zone[worst] else (-1 if share[worst] < 0 else 1)
        if zone.tobytes() in seen:
            break
        seen.add(zone.tobytes())
    raise ValueError("no partition meets the conditions")


def _programme(gram: Array, count: Any, C: float, ridge: float) -> Array:
    dense = 2 * (gram + ridge * np.diag(1 / count))
    for solver, form in (("quadprog", np.asarray), ("clarabel", csc_matrix)):
        problem = qpsolvers.Problem(
            form(dense),
            -np.ones(len(gram)),
            A=form(np.ones((1, len(gram)))),
            b=np.array([float(total(C))]),
            lb=np.zeros(len(gram)),
            ub=C * count,
        )
        with warnings.catch_warnings():  # "almost solved" is good enough for a partition
            warnings.simplefilter("ignore", UserWarning)
            try:
                answer = qpsolvers.solve_problem(problem, solver)
            except (ValueError, ArithmeticError, qpsolvers.exceptions.SolverError):
                continue
        if answer.x is not None and np.isfinite(answer.x).all():
            return answer.x
    raise ValueError("no general solver copes")


def _stationary(gram: Any, count: Any, zone: Any, C: float, ridge: float) -> tuple[Any, Any]:
    """Return the masses and the offset that solve the bordered system with the zones held fixed."""
    mass = np.where(zone == 1, Long(C) * count, Long(0))
    inside = np.flatnonzero(zone == 0)
    if len(inside) == 0:
        slopes = gram @ mass + Long(ridge) * mass / count - Long(0.5)
        return mass, (slopes[zone == 1].max() if (zone == 1).any() else Long(-np.inf))
    k = len(inside)
    matrix = np.zeros((k + 1, k + 1), dtype=Long)
    matrix[:k, :k] = gram[np.ix_(inside, inside)] + np.diag(Long(ridge) / count[inside])
    matrix[:k, k], matrix[k, :k] = -1, 1
    side = np.append(Long(0.5) - gram[inside] @ mass, _whole(C) - mass.sum())
    solved = _eliminate(matrix, side)
    mass[inside] = solved[:k]
    return mass, solved[k]


def _eliminate(matrix: Any, side: Any) -> Any:
    """Return the solution of a square system in extended precision, by elimination with row pivots."""
    work = np.column_stack([matrix, side]).astype(Long)
    n = len(work)
    for j in range(n):
        pivot = j + int(np.argmax(np.abs(work[j:, j])))
        work[[j, pivot]] = work[[pivot, j]]
        work[j + 1 :, j:] -= np.outer(work[j + 1 :, j] / work[j, j], work[j, j:])
    x = np.zeros(n, dtype=Long)
    for j in reversed(range(n)):
        x[j] = (work[j, n] - work[j, j + 1 : n] @ x[j + 1 :]) / work[j, j]
    return x
