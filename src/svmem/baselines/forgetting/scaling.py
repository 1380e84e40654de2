"""Forgetting by leaving out and scaling up."""

from dataclasses import dataclass

from numpy.typing import ArrayLike

from svmem.baselines.forgetting.state import State
from svmem.errors import InvalidInput
from svmem.types import Coefficients

__all__ = ["Scaling"]


@dataclass(frozen=True, slots=True)
class Scaling:
    """The forgotten records' coefficients 0, the others' scaled to sum 1, nothing solved again.

    [Ramesh2026, version 1] names coefficient scaling and says no more. Scaled coefficients can exceed the cap C.
    """

    def __call__(self, state: State, gone: ArrayLike) -> Coefficients:
        """Return the new coefficients. Raises InvalidInput where the others carry nothing that could be scaled."""
        alpha = state.alpha.copy()
        alpha[state.rows(gone)] = 0.0
        left = alpha.sum()
        if left == 0:
            raise InvalidInput("a record that stays must have a coefficient above 0 to be scaled; all were forgotten")
        return alpha / left
