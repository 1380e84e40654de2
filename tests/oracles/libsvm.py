"""libsvm's one-class machine on the same problem, for kernels with a constant diagonal."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import OneClassSVM

from tests.oracles.quadratic import float_gram
from tests.oracles.setting import Setting

__all__ = ["LibsvmAnswer", "libsvm"]


@dataclass(frozen=True, slots=True)
class LibsvmAnswer:
    """libsvm's answer in our units. `level` is its offset of f; ours is level - K_ii/2 unless the margin is empty."""

    alpha: NDArray[np.float64]
    level: float


def libsvm(keys: Any, setting: Setting, tol: float = 1e-10, most_steps: int = 200_000) -> LibsvmAnswer:
    """Return libsvm's optimum for nu = 1 / (n C).

    Its coefficients lie in [0, 1] and sum to nu n = 1/C, so C times them are ours, and so for rho. The ridge goes in as
    a Gram matrix K + ridge I; with a constant diagonal the linear term of the objective is a constant.
    Raises ValueError where libsvm has no finite offset, which is so for n C = 1, and for other kernels.
    """
    gram = float_gram(keys, setting)
    n = len(gram)
    if np.ptp(np.diag(gram)) > 1e-12:
        raise ValueError("the one-class machine is the same problem only if all K_ii are equal")
    machine = OneClassSVM(kernel="precomputed", nu=min(1.0, 1.0 / (n * setting.C)), tol=tol, max_iter=most_steps)
    with warnings.catch_warnings():  # stopped early is no harm: the answer is judged by its duality gap
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(gram + setting.ridge * np.eye(n))
    alpha = np.zeros(n)
    alpha[machine.support_] = machine.dual_coef_[0] * setting.C
    return LibsvmAnswer(alpha, float(machine.offset_[0]) * setting.C)
