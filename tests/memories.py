"""A small memory for tests: normal records in two coordinates, with owners in turn."""

import numpy as np

import svmem
from svmem.memory import Memory

__all__ = ["PROBLEM", "filled", "rows"]

PROBLEM = svmem.Problem(svmem.RBF(2.0), C=0.1)


def rows(n: int, d: int = 2, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


def filled(n: int = 40, problem: svmem.Problem = PROBLEM) -> Memory:
    """Return a memory of n records with owners p0, p1, p2 in turn."""
    memory = Memory(problem, key_dim=2, value_dim=1)
    memory.add(rows(n), rows(n, 1, seed=1), owners=[f"p{i % 3}" for i in range(n)])
    return memory
