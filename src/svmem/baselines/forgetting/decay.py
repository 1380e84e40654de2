"""Forgetting by damping."""

from dataclasses import dataclass

from numpy.typing import ArrayLike

from svmem.baselines.forgetting.state import State
from svmem.errors import InvalidInput
from svmem.types import Coefficients

__all__ = ["Decay"]


@dataclass(frozen=True, slots=True)
class Decay:
    """The forgotten records' coefficients times a factor, nothing solved again. [Ramesh2026]

    The paper's factors are 0.1 and 0.01. As there, the coefficients no longer sum to 1, and the offset stays.
    """

    factor: float = 0.01

    def __post_init__(self) -> None:
        if not 0 <= self.factor <= 1:  # also catches NaN
            raise InvalidInput(f"factor must lie in [0, 1], got {self.factor}")

    def __call__(self, state: State, gone: ArrayLike) -> Coefficients:
        """Return the new coefficients."""
        alpha = state.alpha.copy()
        alpha[state.rows(gone)] *= self.factor
        return alpha
