"""The problem as a general quadratic programme in float64, solved by an interior-point or a dual active-set method."""

import warnings
from typing import Any

import numpy as np
import qpsolvers
from numpy.typing import NDArray
from scipy.sparse import csc_matrix
from scipy.spatial.distance import cdist

from tests.oracles.setting import Setting, total

__all__ = ["float_gram", "objective", "quadratic"]

Array = NDArray[np.float64]
_TIGHT: dict[str, Any] = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13}


def float_gram(keys: Any, setting: Setting, others: Any = None) -> Array:
    """Return the kernel between keys (and others, if given) in float64, by coordinate differences."""
    left = np.asarray(keys, dtype=np.float64)
    right = left if others is None else np.asarray(others, dtype=np.float64)
    if setting.kernel == "precomputed":
        return left
    if setting.kernel == "rbf":
        return np.exp(-cdist(left, right, "sqeuclidean") / setting.sigma**2)
    if setting.kernel == "laplacian":
        return np.exp(-cdist(left, right, "cityblock") / setting.sigma)
    if setting.kernel == "cosine":
        left, right = _unit(left), _unit(right)
    return left @ right.T


def _unit(rows: Array) -> Array:
    rows = rows / np.abs(rows).max(axis=1, keepdims=True)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def objective(alpha: Array, gram: Array, ridge: float) -> float:
    """Return a'(K + ridge I)a - diag(K)'a."""
    return float(alpha @ (gram @ alpha) + ridge * (alpha @ alpha) - np.diag(gram) @ alpha)


def quadratic(keys: Any, setting: Setting, solver: str = "clarabel") -> Array:
    """Return the coefficients that "clarabel" or "quadprog" finds. Raises ValueError where it gives up."""
    gram = float_gram(keys, setting)
    n = len(gram)
    dense = 2 * (gram + setting.ridge * np.eye(n))
    sparse = solver == "clarabel"
    problem = qpsolvers.Problem(
        csc_matrix(dense) if sparse else dense,
        -np.diag(gram).copy(),
        A=csc_matrix(np.ones((1, n))) if sparse else np.ones((1, n)),
        b=np.array([float(total(setting.C))]),
        lb=np.zeros(n),
        ub=np.full(n, setting.C),
    )
    with warnings.catch_warnings():  # "almost solved" at 1e-13 is still an answer; it is judged by its objective
        warnings.simplefilter("ignore", UserWarning)
        answer = qpsolvers.solve_problem(problem, solver, **(_TIGHT if sparse else {}))
    if answer.x is None or not np.isfinite(answer.x).all():
        raise ValueError(f"{solver} gave up on {n} keys")
    return answer.x
