"""Where a cold solve starts: masses that pair selection brings to a coarse gap."""

import numpy as np

from svmem._jit import work as jit
from svmem._jit.cold import grad_of_masses
from svmem._jit.smo import smo
from svmem.core.problem import Problem

__all__ = ["start"]

CACHE_BYTES = 256 * 2**20  # of kernel rows kept at a time; the whole Gram matrix is never held beyond this
COARSE = 1e-6  # violation at which exact steps take over, relative to the largest kernel value


def start(work: jit.Work, problem: Problem) -> int:
    """Write masses near the optimum into the buffers, ready for `rebuild`. Return the number of margin nodes."""
    n = int(work.counts[jit.NODES])
    caps = work.node[jit.MULT, :n] * problem.C
    work.node[jit.MASS, :n] = fill(caps, problem.total[0])
    grad_of_masses(work, np.flatnonzero(work.node[jit.MASS, :n] > 0))
    cache = np.empty((int(np.clip(CACHE_BYTES // (8 * n), 2, n + 1)), n))
    smo(work, COARSE * work.real[jit.SIZE], 100 * n + 10_000, cache)
    mass = work.node[jit.MASS, :n]
    return int(np.count_nonzero((mass > 0) & (mass < caps)))


def fill(caps: np.ndarray, total: float) -> np.ndarray:
    """Return masses at their caps, in a scattered order, until the total is used up."""
    order = np.random.default_rng(0).permutation(caps.shape[0])
    before = np.concatenate([[0.0], np.cumsum(caps[order])[:-1]])
    mass = np.empty_like(caps)
    mass[order] = np.clip(total - before, 0.0, caps[order])
    return mass
