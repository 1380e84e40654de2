"""Masses near the optimum for the exact steps to start from, by pair selection."""

import numpy as np

from svmem._jit import work as jit
from svmem._jit.cold import add_to_grad, forget_zones
from svmem._jit.settle import price
from svmem._jit.smo import smo
from svmem.core.problem import Problem

__all__ = ["approach", "plain_grad", "start"]

CACHE_BYTES = 256 * 2**20  # of kernel rows kept at a time; the whole Gram matrix is never held beyond this
COARSE = 1e-6  # violation at which exact steps take over, relative to the largest kernel value


def start(work: jit.Work, problem: Problem) -> int:
    """Choose masses from nothing, ready for `reconcile`. Return the number of margin nodes."""
    n = int(work.counts[jit.NODES])
    forget_zones(work)
    order = np.random.default_rng(0).permutation(n)
    masses = filled(work.node[jit.MULT, order] * problem.C, problem.total[0])
    plain_grad(work, order[masses > 0], masses[masses > 0])
    return _exchange(work, problem)


def approach(work: jit.Work, problem: Problem) -> int:
    """Go on from the present masses after many changes, ready for `reconcile`. Return the number of margin nodes."""
    n = int(work.counts[jit.NODES])
    price(work)
    missing = problem.total[0] - work.node[jit.MASS, :n].sum()
    if missing > 0:  # to where it costs least
        order = np.argsort(work.node[jit.GRAD, :n], kind="stable")
        masses = filled(work.node[jit.MULT, order] * problem.C - work.node[jit.MASS, order], missing)
        add_to_grad(work, order[masses > 0], masses[masses > 0])
    return _exchange(work, problem)


def plain_grad(work: jit.Work, nodes: np.ndarray, masses: np.ndarray) -> None:
    """Set the masses to these on the given nodes and to zero elsewhere, and grad to match."""
    n = int(work.counts[jit.NODES])
    work.node[jit.MASS, :n] = 0.0
    work.node[jit.GRAD, :n] = -work.node[jit.HALF, :n]
    add_to_grad(work, nodes, masses)


def filled(room: np.ndarray, total: float) -> np.ndarray:
    """Return masses that use up the total, filling the room in order."""
    before = np.concatenate([[0.0], np.cumsum(room)[:-1]])
    return np.clip(total - before, 0.0, room)


def _exchange(work: jit.Work, problem: Problem) -> int:
    n = int(work.counts[jit.NODES])
    rows = np.empty((int(np.clip(CACHE_BYTES // (8 * n), 2, n + 1)), n))
    smo(work, COARSE * work.real[jit.SIZE], 100 * n + 10_000, rows)
    mass, caps = work.node[jit.MASS, :n], work.node[jit.MULT, :n] * problem.C
    return int(np.count_nonzero((mass > 0) & (mass < caps)))
