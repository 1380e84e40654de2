"""Ways to solve a description anew from its keys: our cold solve, libsvm, and general solvers of quadratic programmes.

Each takes keys (n, d) and a problem with an RBF kernel and returns coefficients on the capped simplex, the kernel
matrix included where one is needed. They are as far from the optimum as their tolerances leave them; libsvm knows no
ridge.
"""

from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import qpsolvers
from scipy.sparse import csc_matrix
from scipy.spatial.distance import cdist
from sklearn.svm import OneClassSVM

import svmem
from svmem import RBF, Problem
from svmem.errors import SolverError
from svmem.types import Coefficients, Keys

__all__ = ["REFITS", "Refitting", "feasible", "gram_of", "version_of"]

Refitting = Callable[[Keys, Problem], Coefficients]


def gram_of(keys: Keys, others: Keys, problem: Problem) -> np.ndarray:
    """Return the kernel (n, m) between keys and others, by coordinate differences."""
    assert isinstance(problem.kernel, RBF)
    return np.exp(-cdist(keys, others, "sqeuclidean") / problem.kernel.sigma**2)


def feasible(alpha: Coefficients, C: float) -> Coefficients:
    """Return coefficients in [0, C] that sum to 1, as near as the ones given are to that.

    What lacks is spread over the room below the cap, what is too much over the coefficients themselves.
    """
    alpha = np.clip(alpha, 0, C)
    lack = 1 - alpha.sum()
    room = C - alpha if lack > 0 else alpha
    return np.clip(alpha + lack * room / max(room.sum(), np.finfo(float).tiny), 0, C)


def _cold(keys: Keys, problem: Problem) -> Coefficients:
    return svmem.solve(keys, problem).alpha


def _libsvm(keys: Keys, problem: Problem, *, tolerance: float) -> Coefficients:
    """Return libsvm's coefficients: its own lie in [0, 1] and sum to nu n, which is 1/C."""
    assert isinstance(problem.kernel, RBF)
    n = len(keys)
    machine = OneClassSVM(nu=min(1.0, 1 / (problem.C * n)), tol=tolerance, cache_size=1000, shrinking=False)
    machine.set_params(gamma=1 / problem.kernel.sigma**2).fit(keys)
    alpha = np.zeros(n)
    alpha[machine.support_] = problem.C * np.asarray(machine.dual_coef_).ravel()
    return feasible(alpha, problem.C)


def _quadratic(keys: Keys, problem: Problem, *, solver: str) -> Coefficients:
    """Return what a general solver finds at its own tolerances. Raises SolverError where it gives up."""
    gram, n = gram_of(keys, keys, problem), len(keys)
    hessian, ones = 2 * (gram + problem.ridge * np.eye(n)), np.ones((1, n))
    shape: Callable[[np.ndarray], Any] = csc_matrix if solver == "clarabel" else np.asarray
    limits = {"lb": np.zeros(n), "ub": np.full(n, problem.C)}
    asked = qpsolvers.Problem(shape(hessian), -np.diag(gram).copy(), A=shape(ones), b=np.ones(1), **limits)
    answer = qpsolvers.solve_problem(asked, solver)
    if answer.x is None or not np.isfinite(answer.x).all():
        raise SolverError(f"{solver} gave up on {n} keys")
    return feasible(answer.x, problem.C)


# By name, the quick ones first.
REFITS: dict[str, Refitting] = {
    "cold": _cold,
    "libsvm": partial(_libsvm, tolerance=1e-3),
    "libsvm tight": partial(_libsvm, tolerance=1e-12),
    "clarabel": partial(_quadratic, solver="clarabel"),
    "quadprog": partial(_quadratic, solver="quadprog"),
}


def version_of(name: str) -> str:
    """Return which version of which package solves for a way of that name; libsvm comes inside scikit-learn."""
    package = {"cold": "svmem", "libsvm": "scikit-learn", "libsvm tight": "scikit-learn"}.get(name, name)
    return f"{package} {version(package)}"
