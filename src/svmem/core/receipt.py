"""The receipt of a forget: how many records went, what state it led from and to, and what the result equals."""

from dataclasses import dataclass

from svmem.core.document import Scope
from svmem.core.solution import Status
from svmem.types import Json

__all__ = ["Receipt"]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What one call of `forget` did.

    The state afterwards is, bit for bit, that of a memory which never held the records, given the others of
    `exact_relative_to`. repairs: how often the incremental steps gave way to a cold solve in this call.
    """

    count: int
    ids: tuple[int, ...]
    n_before: int
    n_after: int
    status_before: Status
    status_after: Status
    exact_relative_to: Scope
    repairs: int
    elapsed_s: float
    change: int  # how many changes the memory had seen by then: what tells whether this is still its state

    def to_json(self) -> Json:
        """Return the receipt as plain data without the ids: a receipt is kept, and what it speaks of is gone."""
        return {
            "count": self.count,
            "n_before": self.n_before,
            "n_after": self.n_after,
            "status_before": str(self.status_before),
            "status_after": str(self.status_after),
            "exact_relative_to": str(self.exact_relative_to),
            "repairs": self.repairs,
            "elapsed_s": self.elapsed_s,
        }

    def __str__(self) -> str:
        return (
            f"{self.count} forgotten, {self.n_after} retained, as if never seen relative to {self.exact_relative_to}; "
            f"{self.status_after}"
        )
