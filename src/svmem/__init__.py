"""svmem: a support-vector memory whose every decision can be proved."""

from svmem import errors
from svmem.core.certificate import OptimalityCertificate, certify
from svmem.core.problem import Problem
from svmem.core.receipt import Receipt
from svmem.core.selection import SelectionCertificate, certify_selection
from svmem.core.solution import Solution, Status
from svmem.core.solve import solve
from svmem.kernels import RBF, Cosine, Laplacian, Linear, Precomputed, median_sigma
from svmem.memory import Memory

__all__ = [
    "RBF",
    "Cosine",
    "Laplacian",
    "Linear",
    "Memory",
    "OptimalityCertificate",
    "Precomputed",
    "Problem",
    "Receipt",
    "SelectionCertificate",
    "Solution",
    "Status",
    "__version__",
    "certify",
    "certify_selection",
    "errors",
    "median_sigma",
    "solve",
]

__version__ = "0.1.0"
