"""Many small deletions, each compared with a memory that never held the hours, and with damping their coefficients."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from svmem.baselines.selection.scene import dist2
from svmem.core.problem import Problem
from svmem.demo.hours import Hours
from svmem.errors import InvalidInput
from svmem.kernels import RBF
from svmem.memory import Memory
from svmem.types import Coefficients, Keys, Vector

__all__ = ["AuditProtocol", "Trial", "apart", "audit_deletions"]


@dataclass(frozen=True, slots=True)
class AuditProtocol:
    """The paper's settings for deletions on one stay."""

    nu: float = 0.4
    sigma: float = 2.0
    hours: int = 40  # the first of a stay
    least_distance: float = 0.1  # nearer hours are dropped from the context
    forgotten: int = 2
    decay: float = 0.01  # what the baseline multiplies the forgotten coefficients by
    trials: int = 300
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Trial:
    """One deletion: the largest gate-score deviation from the refit over the probes, for ours and for the decay."""

    stay: str
    n: int
    ours: float
    decay: float
    same_digest: bool
    same_partition: bool


def audit_deletions(
    hours: Hours, protocol: AuditProtocol, advance: Callable[[int], None] = lambda _: None
) -> tuple[Trial, ...]:
    """Forget a few random hours of a stay, `trials` times, going round the stays. `advance` is called after each.

    Probes are the retained keys, the forgotten ones, and the retained ones with noise of 0.1.
    """
    rng = np.random.default_rng(protocol.seed)
    contexts = []
    for stay, span in hours.stays(protocol.hours):
        rows = np.arange(span.start, span.start + protocol.hours)
        rows = rows[apart(hours.keys[rows], protocol.least_distance)]
        if len(rows) * protocol.nu >= 1 and len(rows) > protocol.forgotten:
            contexts.append((stay, rows))
    if not contexts:
        raise InvalidInput(f"deletions need a stay of at least {protocol.hours} hours that differ, and there is none")
    trials = []
    for number in range(protocol.trials):
        stay, rows = contexts[number % len(contexts)]
        trials.append(_trial(stay, hours.keys[rows], hours.values[rows], protocol, rng))
        advance(1)
    return tuple(trials)


def apart(keys: Keys, least: float) -> list[int]:
    """Return the rows that are at least that far from every row returned before."""
    kept: list[int] = []
    for row, key in enumerate(keys):
        if np.linalg.norm(keys[kept] - key, axis=1).min(initial=np.inf) >= least:
            kept.append(row)
    return kept


def _trial(stay: str, keys: Keys, values: Keys, protocol: AuditProtocol, rng: np.random.Generator) -> Trial:
    n = len(keys)
    problem = Problem.from_nu(protocol.nu, n, RBF(protocol.sigma))
    gone = np.sort(rng.choice(n, protocol.forgotten, replace=False))
    kept = np.setdiff1d(np.arange(n), gone)
    probes = np.vstack([keys[kept], keys[gone], keys[kept] + 0.1 * rng.standard_normal(keys[kept].shape)])

    kernel = np.exp(-dist2(probes, keys) / problem.kernel.scale)

    def scored(alpha: Coefficients, offset: float) -> Vector:
        """Return the gate score of the probes for coefficients that no memory holds."""
        return 2 * (kernel @ alpha - 0.5 - offset)

    memory = _filled(problem, keys, values)
    before = memory.solution
    damped = before.alpha.copy()
    damped[gone] *= protocol.decay  # ids are row numbers: the memory was empty
    memory.forget(ids=gone.tolist())
    refit = _filled(problem, keys[kept], values[kept])
    after, cold = memory.solution, refit.solution
    never_held = np.zeros(n)
    never_held[kept] = cold.alpha
    return Trial(
        stay=stay,
        n=n,
        ours=float(np.abs(memory.score(probes) - refit.score(probes)).max()),
        decay=float(np.abs(scored(damped, before.offset) - scored(never_held, cold.offset)).max()),
        same_digest=memory.digest() == refit.digest(),
        same_partition=np.array_equal(after.margin, kept[cold.margin])
        and np.array_equal(after.bound, kept[cold.bound]),
    )


def _filled(problem: Problem, keys: Keys, values: Keys) -> Memory:
    memory = Memory(problem, key_dim=keys.shape[1], value_dim=values.shape[1])
    memory.add(keys, values)
    return memory
