"""What is left of a secret: is it still answered, are the others, and does anything tell that it was ever held?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.removal import State
from svmem import Problem
from svmem.types import Json, Values, Vector

__all__ = ["Outcome", "attack", "duality_gap", "edit_gap", "edit_row", "forget_row", "wilson"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What memories are like, one a case, after a method has taken a secret out."""

    found: NDArray[np.int64]  # (c, n) the fact whose value answers each question best
    answer: Values  # (c, v) to the question for the secret
    score: Vector  # (c,) gate score at the secret's key
    deviation: Vector  # (c,) largest difference of the score from that of a memory that never held the secret
    same: NDArray[np.bool_]  # (c,) bit for bit that memory


def forget_row(method: str, secrets: NDArray[np.int64], aims: Values, after: Outcome, never: Outcome) -> Json:
    """Return what a method leaves: hits and games with their numbers, distances and deviations.

    aims (c, v): the values of the secrets. Distances are those of answers to the question for the secret.
    """
    cases, n = after.found.shape
    hit = after.found == np.arange(n)
    of_secret = hit[np.arange(cases), secrets]
    near, never_near = (-((one.answer - aims) ** 2).sum(axis=1) for one in (after, never))
    by_answer, games = attack(near, never_near)
    distance = np.linalg.norm(after.answer - never.answer, axis=1)
    return {
        "part": "forget",
        "method": method,
        "secret_hits": int(of_secret.sum()),
        "secrets": cases,
        "other_hits": int(hit.sum() - of_secret.sum()),
        "others": cases * (n - 1),
        "wins_by_answer": by_answer,
        "wins_by_score": attack(after.score, never.score)[0],
        "games": games,
        "distance": float(np.median(distance)),
        "deviation": float(np.median(after.deviation)),
        "worst_deviation": float(after.deviation.max()),
        "same": float(after.same.mean()),
    }


def edit_row(
    method: str,
    secrets: NDArray[np.int64],
    found: NDArray[np.int64],
    states: Sequence[dict[str, State]],
    kernels: Sequence[Values],
) -> Json:
    """Return what an edit leaves: how often the new value is answered, the old one, and how far the scores are off.

    found (c,): the record whose value answers the question best, the new one being the last.
    """
    pairs = [(one[method], one["refit"]) for one in states]
    apart = [np.abs(a.score(kernel) - b.score(kernel)).max() for (a, b), kernel in zip(pairs, kernels, strict=True)]
    return {
        "part": "edit",
        "method": method,
        "new_hits": int((found == kernels[0].shape[1] - 1).sum()),
        "old_hits": int((found == secrets).sum()),
        "secrets": len(secrets),
        "deviation": float(np.median(apart)),
        "worst_deviation": float(np.max(apart)),
        "same": float(np.mean([a.digest == b.digest for a, b in pairs])),
    }


def duality_gap(state: State, kernel: Values, problem: Problem, without: int | None = None) -> float:
    """Return how far the objective at a solved state can be above the optimum over the records, all or without one.

    kernel (n, n): of the records with each other, 1 on the diagonal. It takes nothing from the solver but coefficients
    and offset, and is computed in floating point: `svmem.certify`, which bounds the rounding too, takes a second a
    memory of the size of the capitals'.
    With g the gradient, h = g - offset and any a in the capped simplex, the objective falls by at most
    (alpha - a).g = (alpha - a).h, and so by the sum of alpha h where h > 0 and of (C - alpha) |h| elsewhere.
    """
    held = np.arange(len(kernel)) != without
    alpha = state.alpha[held]
    h = kernel[np.ix_(held, held)] @ alpha + problem.ridge * alpha - 0.5 - state.offset
    cap = max(problem.C, 1 / len(alpha))  # while it collects there is one point only
    return float(np.where(h > 0, alpha * h, (cap - alpha) * -h).sum())


def edit_gap(
    states: Sequence[dict[str, State]], kernels: Sequence[Values], secrets: NDArray[np.int64], problem: Problem
) -> float:
    """Return the largest duality gap of memories that were edited, and of those that never held the secrets.

    kernels (n, n): of all records with each other, the old and the new.
    """
    given = zip(states, kernels, secrets.tolist(), strict=True)
    return max(duality_gap(one[name], kernel, problem, i) for one, kernel, i in given for name in ("exact", "refit"))


def attack(after: Vector, never: Vector) -> tuple[float, int]:
    """Return games won and played by who sees two memories and names the one that once held the secret.

    One number is seen of each. Which is the larger one is learned on every second case, and played on the others;
    equal numbers are half a win.
    """
    difference = after - never
    sign = np.sign(np.sign(difference[::2]).sum()) or 1.0
    played = sign * difference[1::2]
    return float((played > 0).sum() + 0.5 * (played == 0).sum()), len(played)


def wilson(hits: float, n: int) -> tuple[float, float]:
    """Return the ends of the 95 % interval of a share of n, by Wilson's score; those of all shares for n = 0."""
    if n == 0:
        return 0.0, 1.0
    z2 = 1.96**2
    middle = (hits + z2 / 2) / (n + z2)
    half = (z2 * (hits * (1 - hits / n) + z2 / 4)) ** 0.5 / (n + z2)
    return max(0.0, middle - half), min(1.0, middle + half)
