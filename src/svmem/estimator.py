"""The scikit-learn face of the memory: support vector data description with updates and exact deletion."""

from numbers import Real
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from svmem.core.problem import DEFAULT_RIDGE, Problem
from svmem.kernels import RBF
from svmem.memory import Memory
from svmem.types import Ids, Keys, Vector

__all__ = ["SVDD"]


class SVDD(OutlierMixin, BaseEstimator):
    """Support vector data description with an RBF kernel exp(-|x - y|^2 / sigma^2). [TaxDuin2004]

    `nu` in (0, 1] chooses C = 1 / (nu n) once, from the n samples of `fit` or of the first `partial_fit`; `C` in (0, 1]
    sets it directly. C then stays, whatever is added or forgotten. sigma is a width in the units of X: see
    `svmem.median_sigma` for a first guess.

    Attributes: `memory_` (svmem.Memory, ids in order of arrival), `support_` (ids with a positive coefficient),
    `dual_coef_` (their coefficients, sum 1), `offset_` (score_samples less offset_ is decision_function),
    `n_features_in_`.
    """

    _parameter_constraints = {  # noqa: RUF012 - the name and form that scikit-learn reads
        "sigma": [Interval(Real, 0, None, closed="neither")],
        "nu": [Interval(Real, 0, 1, closed="right")],
        "C": [Interval(Real, 0, 1, closed="right"), None],
        "ridge": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self, *, sigma: float = 1.0, nu: float = 0.5, C: float | None = None, ridge: float = DEFAULT_RIDGE
    ) -> None:
        self.sigma = sigma
        self.nu = nu
        self.C = C
        self.ridge = ridge

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Describe the samples X (n, d); `y` is not used."""
        self._validate_params()
        self._start(self._checked(X, reset=True))
        return self

    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:
        """Take up further samples (n, d): the same state as `fit` on all of them with this C, bit for bit."""
        if not hasattr(self, "memory_"):
            return self.fit(X)
        self._validate_params()
        samples = self._checked(X, reset=False)
        self.memory_.add(samples, np.zeros((len(samples), 1)))
        return self

    def forget(self, ids: list[int]) -> Self:
        """Take samples out, by their ids in order of arrival from 0; the state is then that of the others alone."""
        check_is_fitted(self)
        self.memory_.forget(ids=ids)
        return self

    def decision_function(self, X: ArrayLike) -> Vector:
        """Return the gate score of samples (m, d): positive inside, negative outside."""
        return self.score_samples(X) - self.offset_

    def score_samples(self, X: ArrayLike) -> Vector:
        """Return twice the kernel density f(x) = sum alpha_i kappa(x, x_i) of samples (m, d), without the offset."""
        check_is_fitted(self)
        return self.memory_.score(self._checked(X, reset=False)) + self.offset_

    def predict(self, X: ArrayLike) -> Ids:
        """Return 1 for samples inside or on the boundary, -1 for those outside."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    @property
    def support_(self) -> Ids:
        """Ids with a positive coefficient."""
        found = self.memory_.solution
        return found.ids[found.alpha > 0]

    @property
    def dual_coef_(self) -> Vector:
        """The positive coefficients, in the order of `support_`."""
        alpha = self.memory_.solution.alpha
        return alpha[alpha > 0]

    @property
    def offset_(self) -> float:
        """What `decision_function` subtracts from `score_samples`: 2 offset + 1."""
        return 2 * self.memory_.offset + 1

    def _checked(self, X: ArrayLike, *, reset: bool) -> Keys:
        checked: Any = validate_data(self, cast(Any, X), dtype=np.float64, reset=reset)  # typed there by a default
        return checked

    def _start(self, samples: Keys) -> None:
        kernel = RBF(float(self.sigma))
        if self.C is None:
            # With fewer than 1 / nu samples C is 1, the largest there is.
            problem = Problem(kernel, min(1.0, 1.0 / (self.nu * len(samples))), float(self.ridge))
        else:
            problem = Problem(kernel, float(self.C), float(self.ridge))
        memory = Memory(problem, samples.shape[1], 1)
        memory.add(samples, np.zeros((len(samples), 1)))
        self.memory_ = memory

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "memory_")
