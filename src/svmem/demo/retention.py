"""How many deterioration hours the support set of a stay keeps, against three rules with the same budget."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from svmem.baselines.selection import Recency, Scene, SelfMass, Uniform
from svmem.core.problem import Problem
from svmem.demo.hours import Hours
from svmem.demo.shares import answered_share, kept_share
from svmem.errors import InvalidInput
from svmem.kernels import RBF
from svmem.types import Keys

__all__ = [
    "HELD_OUT",
    "SELECTORS",
    "VITALS",
    "Estimate",
    "Protocol",
    "Retention",
    "StayResult",
    "bootstrap",
    "measure_retention",
]

VITALS = (0, 1, 2, 3, 4, 5)  # all columns of the keys
HELD_OUT = 4  # the column of SpO2
SELECTORS: tuple[str, ...] = ("support", "heavy-hitter", "random", "last k")


@dataclass(frozen=True, slots=True)
class Protocol:
    """The paper's settings for one solve a stay, and how often chance is repeated."""

    nu: float = 0.3
    sigma: float = 3.0
    hours_at_least: int = 48
    draws: int = 50  # of the random rule
    resamples: int = 10_000  # of the stays, for the intervals
    seed: int = 0


@dataclass(frozen=True, slots=True)
class StayResult:
    """One stay with an event: hours, budget, and per selector the share of its event hours kept and answered."""

    stay: str
    hours: int
    budget: int
    events: int
    kept: tuple[float, ...]
    answered: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over stays with its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Retention:
    """Means over the stays that have an event hour; the budget is the share of hours in the support set."""

    stays: int
    events: int
    hours: int
    hours_kept: int
    budget: float
    kept: dict[str, Estimate]
    answered: dict[str, Estimate]
    kept_difference: Estimate  # support minus heavy-hitter, paired by stay
    rows: tuple[StayResult, ...]


def measure_retention(
    hours: Hours,
    event: NDArray[np.bool_],
    columns: tuple[int, ...],
    protocol: Protocol,
    advance: Callable[[int], None] = lambda _: None,
) -> Retention:
    """Solve each stay on the named columns of its keys and compare what the selectors keep of its event hours.

    Stays without an event hour have no share and are left out, as in the paper. `advance` is called after each stay.
    Raises InvalidInput when no stay is left.
    """
    rng = np.random.default_rng(protocol.seed)
    rows = []
    for stay, span in hours.stays(protocol.hours_at_least):
        if event[span].any():
            rows.append(_one_stay(stay, hours.keys[span][:, columns], event[span], protocol, rng))
        advance(1)
    if not rows:
        raise InvalidInput(f"no stay of at least {protocol.hours_at_least} hours has an event hour: nothing to compare")
    return _summary(tuple(rows), protocol)


def _one_stay(
    stay: str, keys: Keys, event: NDArray[np.bool_], protocol: Protocol, rng: np.random.Generator
) -> StayResult:
    n = len(keys)
    scene = Scene(keys, Problem.from_nu(protocol.nu, n, RBF(protocol.sigma)))
    support = np.flatnonzero(scene.solution.alpha > 0)
    budget = len(support)
    fixed = (support, *(rule.select(scene, budget, rng) for rule in (SelfMass(), Recency())))
    drawn = [Uniform().select(scene, budget, rng) for _ in range(protocol.draws)]

    def shares(measure: Callable[[NDArray[np.int64]], float]) -> tuple[float, ...]:
        of_support, of_heavy, of_last = (measure(kept) for kept in fixed)
        return of_support, of_heavy, float(np.mean([measure(kept) for kept in drawn])), of_last

    return StayResult(
        stay=stay,
        hours=n,
        budget=budget,
        events=int(event.sum()),
        kept=shares(lambda kept: kept_share(event, kept)),
        answered=shares(lambda kept: answered_share(keys, event, kept)),
    )


def _summary(rows: tuple[StayResult, ...], protocol: Protocol) -> Retention:
    kept, answered = np.array([r.kept for r in rows]), np.array([r.answered for r in rows])
    difference = kept[:, 0] - kept[:, 1]
    table = np.column_stack([kept, answered, difference])
    estimates = bootstrap(table, protocol.resamples, protocol.seed)
    width = len(SELECTORS)
    return Retention(
        stays=len(rows),
        events=sum(r.events for r in rows),
        hours=sum(r.hours for r in rows),
        hours_kept=sum(r.budget for r in rows),
        budget=float(np.mean([r.budget / r.hours for r in rows])),
        kept=dict(zip(SELECTORS, estimates[:width], strict=True)),
        answered=dict(zip(SELECTORS, estimates[width : 2 * width], strict=True)),
        kept_difference=estimates[-1],
        rows=rows,
    )


def bootstrap(table: NDArray[np.float64], resamples: int, seed: int) -> list[Estimate]:
    """Return mean and 95 % interval of each column, from resampling whole rows (stays) with replacement."""
    rng = np.random.default_rng(seed)
    n = len(table)
    # how often each stay is drawn says all about a resample: (resamples, n) @ (n, columns)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=resamples)
    low, high = np.quantile(counts @ table / n, [0.025, 0.975], axis=0)
    return [Estimate(float(m), float(a), float(b)) for m, a, b in zip(table.mean(axis=0), low, high, strict=True)]
