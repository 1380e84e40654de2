"""svmem: a support-vector memory whose every decision can be proved."""

from svmem.core.problem import Problem
from svmem.core.solution import Solution, Status
from svmem.core.solve import solve
from svmem.kernels import RBF, Cosine, Laplacian, Linear, Precomputed, median_sigma

__all__ = ["RBF", "Cosine", "Laplacian", "Linear", "Precomputed", "Problem", "Solution", "Status", "median_sigma", "solve"]
__version__ = "0.1.0"
