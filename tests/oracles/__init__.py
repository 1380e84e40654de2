"""Slow or foreign solvers of the same problem, for comparison. They share no code with svmem."""

from tests.oracles.conditions import Residuals, duality_gap, residuals
from tests.oracles.enumeration import enumerate_optimum
from tests.oracles.exact import Optimum
from tests.oracles.libsvm import LibsvmAnswer, libsvm
from tests.oracles.precise import precise
from tests.oracles.quadratic import float_gram, objective, quadratic
from tests.oracles.setting import Setting, fewest, total

__all__ = [
    "LibsvmAnswer",
    "Optimum",
    "Residuals",
    "Setting",
    "duality_gap",
    "enumerate_optimum",
    "fewest",
    "float_gram",
    "libsvm",
    "objective",
    "precise",
    "quadratic",
    "residuals",
    "total",
]
