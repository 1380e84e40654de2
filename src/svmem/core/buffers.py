"""Allocation and growth of the compiled solver's arrays."""

import numpy as np

from svmem._jit.refine import GRID
from svmem._jit.work import CAP, CODE, HALF_STEP, RIDGE, SCALE, TOTAL, TOTAL_LOW, Work
from svmem.core.problem import Problem

__all__ = ["allocate", "resize"]

_INTEGERS = {"place": np.int64, "zone": np.int8, "slot": np.int64, "margin": np.int64}
_NODE_FIELDS = ("half", "mult", "mass", "zone", "place", "sum_high", "sum_low", "alpha", "grad")


def allocate(problem: Problem, key_dim: int, nodes: int = 64, margin: int = 32) -> Work:
    """Return empty buffers with room for that many nodes and margin nodes."""
    count = np.zeros(8, np.int64)
    count[CODE] = problem.kernel.code
    real = np.zeros(9)
    real[CAP], real[RIDGE], real[SCALE] = problem.C, problem.ridge, problem.kernel.scale
    real[TOTAL], real[TOTAL_LOW] = problem.total
    real[HALF_STEP] = 0.5 * max(GRID, problem.C - np.nextafter(problem.C, 0.0))
    per_node = {name: np.zeros(nodes, _INTEGERS.get(name, np.float64)) for name in _NODE_FIELDS}
    return Work(
        xt=np.zeros((key_dim, nodes)),
        rows=np.empty((margin, nodes)),
        slot=np.arange(margin),
        margin=np.zeros(margin, np.int64),
        gram=np.zeros((margin, margin)),
        chol=np.zeros((margin, margin)),
        small=np.zeros((8, margin)),
        point=np.zeros(key_dim),
        count=count,
        real=real,
        **per_node,
    )


def _grown(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return a copy of `array` in the leading corner of a larger one."""
    out = np.zeros(shape, array.dtype)
    out[tuple(slice(0, length) for length in array.shape)] = array
    return out


def resize(work: Work, nodes: int, margin: int) -> Work:
    """Return buffers with room for at least that many nodes and margin nodes, the contents kept."""
    have_nodes, have_margin = work.half.shape[0], work.margin.shape[0]
    if nodes <= have_nodes and margin <= have_margin:
        return work
    n = have_nodes if nodes <= have_nodes else max(nodes, 2 * have_nodes)
    s = have_margin if margin <= have_margin else max(margin, have_margin + have_margin // 2)
    slot = np.concatenate([work.slot, np.arange(have_margin, s)])
    per_node = {name: _grown(getattr(work, name), (n,)) for name in _NODE_FIELDS}
    return work._replace(
        xt=_grown(work.xt, (work.xt.shape[0], n)),
        rows=_grown(work.rows, (s, n)),
        slot=slot,
        margin=_grown(work.margin, (s,)),
        gram=_grown(work.gram, (s, s)),
        chol=_grown(work.chol, (s, s)),
        small=_grown(work.small, (8, s)),
        **per_node,
    )
