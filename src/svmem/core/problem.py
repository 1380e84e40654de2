"""The convex problem (P): kernel, cap and ridge, fixed for the life of a memory."""

import math
from dataclasses import dataclass
from fractions import Fraction

from svmem.errors import InvalidInput
from svmem.kernels import Kernel, as_number, kernel_from_json, kernel_to_json
from svmem.types import Json

__all__ = ["Problem"]

DEFAULT_RIDGE = 1e-8
# A cap that is the reciprocal of an integer k up to its own rounding is meant as one: k keys at the cap carry all.
_CAP_SLACK = Fraction(4, 2**53)


@dataclass(frozen=True, slots=True)
class Problem:
    """minimise a'(K + ridge I)a - diag(K)'a over sum a = 1, 0 <= a_i <= C. [TaxDuin2004, section 2]

    C lies in (0, 1] and never follows the number of keys; nu = 1 / (n C). The ridge makes the optimum unique.
    """

    kernel: Kernel
    C: float
    ridge: float = DEFAULT_RIDGE

    def __post_init__(self) -> None:
        for name in ("C", "ridge"):
            object.__setattr__(self, name, as_number(getattr(self, name), name))
        if not isinstance(self.kernel, Kernel):
            raise InvalidInput(f"kernel must be a svmem kernel such as RBF(sigma=2.0), got {self.kernel!r}")
        if not 1e-9 <= self.C <= 1:  # also catches NaN
            raise InvalidInput(f"C must lie in [1e-9, 1]: coefficients are at most C and sum to 1; got {self.C}")
        if not 1e-14 <= self.ridge <= 1e6:
            raise InvalidInput(f"ridge must lie in [1e-14, 1e6]: it makes the optimum unique; got {self.ridge}")

    @classmethod
    def from_nu(cls, nu: float, n_ref: int, kernel: Kernel, ridge: float = DEFAULT_RIDGE) -> "Problem":
        """Choose C = 1 / (nu n_ref) once, so that about a share nu of n_ref keys may lie at or below the offset."""
        nu, count = as_number(nu, "nu"), as_number(n_ref, "n_ref")
        if not 0 < nu <= 1:
            raise InvalidInput(f"nu must lie in (0, 1], got {nu}")
        if not nu * count >= 1 - _CAP_SLACK:  # (1/49) * 49 is less than 1 in floating point
            raise InvalidInput(f"nu * n_ref must be at least 1, since C is at most 1; got {nu} * {n_ref}")
        return cls(kernel=kernel, C=min(1.0, 1.0 / (nu * count)), ridge=ridge)

    @property
    def total(self) -> tuple[float, float]:
        """Sum of the coefficients as an unevaluated sum of two floats.

        It is 1, except where C is the float next to 1/k for an integer k: there it is k C, within 4 ulps of 1, so that
        k keys at the cap carry exactly everything and no coefficient of 1e-17 is left over.
        """
        k = round(1 / self.C)
        exact = k * Fraction(self.C)
        if abs(exact - 1) > _CAP_SLACK:
            return 1.0, 0.0
        high = float(exact)
        return high, float(exact - Fraction(high))

    @property
    def n_min(self) -> int:
        """Fewest keys for which (P) has a feasible point; with fewer the memory is collecting."""
        k = round(1 / self.C)
        if abs(k * Fraction(self.C) - 1) <= _CAP_SLACK:
            return k
        return math.ceil(1 / Fraction(self.C))

    def to_json(self) -> Json:
        """Return the problem as plain data that reads back to the same bits."""
        return {"kernel": kernel_to_json(self.kernel), "C": self.C, "ridge": self.ridge}

    @classmethod
    def from_json(cls, data: Json) -> "Problem":
        """Return the problem that `to_json` wrote. Raises InvalidInput for anything else."""
        try:
            return cls(kernel=kernel_from_json(data["kernel"]), C=float(data["C"]), ridge=float(data["ridge"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidInput(f"a problem needs kernel, C and ridge, got {data!r}") from error
