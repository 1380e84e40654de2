"""The form of a case: keys, setting, what is known of the answer, and what a memory does next."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from svmem.core.problem import Problem
from svmem.kernels import RBF, Cosine, Kernel, Laplacian, Linear, Precomputed
from tests.oracles.setting import Setting

__all__ = ["Case", "Step", "problem_of", "rows"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A change made to a memory that holds the keys of the case, and the answer after it, in id order."""

    add: Array | None = None
    forget: Array | None = None  # every record with one of these keys
    alpha: tuple[float, ...] | None = None
    level: float | None = None
    alpha_at: tuple[int, float] | None = None  # one known coefficient: position and value
    digits: float = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Known values are those for ridge -> 0; `level` is f on the margin, or on the best bound key if it is empty."""

    name: str
    why: str
    keys: Array
    setting: Setting
    alpha: tuple[float, ...] | None = None
    level: float | None = None
    level_interval: tuple[float, float] | None = None
    margin_empty: bool = False
    collecting: bool = False
    steps: tuple[Step, ...] = ()

    @property
    def problem(self) -> Problem:
        """The setting as the subject's problem."""
        return problem_of(self.setting)

    def __repr__(self) -> str:
        return self.name


def rows(points: Iterable[Sequence[float] | float]) -> Array:
    """Return points as (n, d) float64; plain numbers become one column."""
    array = np.array(list(points), dtype=np.float64)
    return array.reshape(len(array), -1)


def problem_of(setting: Setting) -> Problem:
    """Return the subject's problem for an oracle's setting."""
    kernels: dict[str, Kernel] = {
        "rbf": RBF(setting.sigma),
        "laplacian": Laplacian(setting.sigma),
        "linear": Linear(),
        "cosine": Cosine(),
        "precomputed": Precomputed(),
    }
    return Problem(kernel=kernels[setting.kernel], C=setting.C, ridge=setting.ridge)
