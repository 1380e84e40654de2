"""The cold solve: from keys and problem to the canonical optimum."""

import numpy as np
from numpy.typing import ArrayLike

from svmem._jit import work as jit
from svmem.core.incremental import WorkingSet
from svmem.core.inputs import as_matrix
from svmem.core.problem import Problem
from svmem.core.solution import Solution
from svmem.errors import InvalidInput

__all__ = ["solve"]


def solve(keys: ArrayLike, problem: Problem) -> Solution:
    """Return the optimum of (P) for keys (n, d); ids are row numbers.

    The answer is a function of the set of keys, bit for bit: equal keys get equal coefficients and order plays no part
    (up to rounding for a `Precomputed` kernel, whose keys are not known).
    With fewer than 1/C keys every key gets 1/n (status collecting). With a `Precomputed` kernel, `keys` is the (n, n)
    Gram matrix. Raises InvalidInput for bad keys and SolverError when no optimum can be proved.
    """
    matrix = as_matrix(keys, "keys")
    if matrix.shape[0] == 0:
        raise InvalidInput("keys must hold at least one key, got none")
    working = WorkingSet(problem, matrix.shape[1])
    handles = working.insert(matrix)
    return solution_of(working, np.arange(matrix.shape[0]), handles)


def solution_of(working: WorkingSet, ids: np.ndarray, handles: np.ndarray) -> Solution:
    """Return the state of a working set as a Solution over records with these ids (sorted) and handles."""
    zone = working.zone_of(handles)
    return Solution(
        ids=ids,
        alpha=working.alpha_of(handles),
        offset=working.offset,
        margin=ids[zone == jit.MARGIN],
        bound=ids[zone == jit.BOUND],
        reserve=ids[zone == jit.RESERVE],
        status=working.status,
        gap=working.gap(),
    )
