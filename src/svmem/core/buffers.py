"""Allocation and growth of the compiled solver's arrays."""

import numpy as np

from svmem._jit.refine import GRID
from svmem._jit.work import CAP, CODE, HALF_STEP, RIDGE, SCALE, SLOT, TOTAL, TOTAL_LOW, Work
from svmem.core.problem import Problem

__all__ = ["allocate", "resize"]


def allocate(problem: Problem, key_dim: int, nodes: int = 64, margin: int = 32) -> Work:
    """Return empty buffers with room for that many nodes and margin nodes."""
    counts = np.zeros(8, np.int64)
    counts[CODE] = problem.kernel.code
    real = np.zeros(9)
    real[CAP], real[RIDGE], real[SCALE] = problem.C, problem.ridge, problem.kernel.scale
    real[TOTAL], real[TOTAL_LOW] = problem.total
    real[HALF_STEP] = 0.5 * max(GRID, problem.C - np.nextafter(problem.C, 0.0))
    return Work(
        xt=np.zeros((key_dim, nodes)),
        node=np.zeros((7, nodes)),
        tag=np.zeros((2, nodes), np.int64),
        order=np.stack([np.zeros(margin, np.int64), np.arange(margin)]),
        rows=np.empty((margin, nodes)),
        gram=np.zeros((margin, margin)),
        chol=np.zeros((margin, margin)),
        small=np.zeros((7, margin)),
        point=np.zeros(key_dim),
        counts=counts,
        real=real,
    )


def _grown(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return a copy of `array` in the leading corner of a larger one."""
    out = np.zeros(shape, array.dtype)
    out[tuple(slice(0, length) for length in array.shape)] = array
    return out


def resize(work: Work, nodes: int, margin: int) -> Work:
    """Return buffers with room for at least that many nodes and margin nodes, the contents kept."""
    have_nodes, have_margin = work.node.shape[1], work.order.shape[1]
    if nodes <= have_nodes and margin <= have_margin:
        return work
    n = have_nodes if nodes <= have_nodes else max(nodes, 2 * have_nodes)
    s = have_margin if margin <= have_margin else max(margin, have_margin + have_margin // 2)
    order = _grown(work.order, (2, s))
    order[SLOT, have_margin:] = np.arange(have_margin, s)
    return work._replace(
        xt=_grown(work.xt, (work.xt.shape[0], n)),
        node=_grown(work.node, (7, n)),
        tag=_grown(work.tag, (2, n)),
        order=order,
        rows=_grown(work.rows, (s, n)),
        gram=_grown(work.gram, (s, s)),
        chol=_grown(work.chol, (s, s)),
        small=_grown(work.small, (7, s)),
    )
