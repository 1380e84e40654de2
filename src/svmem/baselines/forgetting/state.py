"""What a forgetting method starts from, and what any coefficients answer there."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from svmem.core.inputs import as_finite, as_matrix
from svmem.core.problem import Problem
from svmem.errors import InvalidInput
from svmem.kernels import RBF, Kernel
from svmem.types import Coefficients, Ids, Keys, Queries, Values, Vector

__all__ = ["Forgetting", "State", "log_kernel"]

SUM_TOLERANCE = 1e-9  # what coefficients from anywhere may miss the sum 1 by


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Records with their coefficients: keys (n, d), values (n, v), alpha (n,), and the problem with kernel and cap."""

    keys: Keys
    values: Values
    alpha: Coefficients
    problem: Problem

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", as_matrix(self.keys, "keys"))
        object.__setattr__(self, "values", as_matrix(self.values, "values"))
        object.__setattr__(self, "alpha", as_finite(self.alpha, "alpha"))
        n = len(self.keys)
        if len(self.values) != n or self.alpha.shape != (n,):
            came = f"{self.values.shape} and {self.alpha.shape}"
            raise InvalidInput(f"values and alpha must have one row a key, {n} in all; got shapes {came}")
        if n == 0 or self.alpha.min() < 0 or abs(self.alpha.sum() - 1) > SUM_TOLERANCE:
            raise InvalidInput(f"alpha must be at least 0 and sum to 1, got a sum of {self.alpha.sum():.9g}")
        if not self.problem.kernel.bounded:
            name = self.problem.kernel.name
            raise InvalidInput(f"a readout needs a kernel that is never negative, rbf or laplacian; got {name}")

    def rows(self, gone: ArrayLike) -> Ids:
        """Return the rows to forget, rising. Raises InvalidInput unless they are some, but not all, of the rows."""
        given, n = np.asarray(gone), len(self.keys)
        whole = given.ndim == 1 and given.dtype.kind in "iu" and given.size > 0
        if not whole or given.min() < 0 or given.max() >= n or len(np.unique(given)) < len(given):
            raise InvalidInput(f"the rows to forget must be distinct whole numbers from 0 to {n - 1}, got {gone!r}")
        if len(given) == n:
            raise InvalidInput(f"at least one record must stay, got all {n} rows to forget")
        return np.sort(given).astype(np.int64)

    def density(self, queries: Queries, alpha: Coefficients) -> Vector:
        """Return f(q) = sum alpha_i kappa(q, x_i) of queries (m, d) for any coefficients (n,)."""
        return np.exp(log_kernel(self.problem.kernel, queries, self.keys)) @ alpha

    def read(self, queries: Queries, alpha: Coefficients) -> Values:
        """Return the readout (m, v) of queries (m, d) for any coefficients (n,): means of the values."""
        active = alpha > 0
        logits = log_kernel(self.problem.kernel, queries, self.keys[active]) + np.log(alpha[active])
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        return weights @ self.values[active] / weights.sum(axis=1, keepdims=True)


class Forgetting(Protocol):
    """From a state and the rows to forget to new coefficients (n,) over all rows. Nothing given is changed."""

    def __call__(self, state: State, gone: ArrayLike) -> Coefficients:
        """Return the new coefficients."""
        ...


def log_kernel(kernel: Kernel, left: Queries, right: Keys) -> NDArray[np.float64]:
    """Return log kappa (m, n) of points (m, d) and (n, d) for the RBF and the Laplacian kernel."""
    out = np.zeros((len(left), len(right)))
    for column in range(right.shape[1]):  # by differences: equal keys are at distance exactly 0
        apart = left[:, column, None] - right[None, :, column]
        out -= apart**2 if isinstance(kernel, RBF) else np.abs(apart)
    return out / kernel.scale
