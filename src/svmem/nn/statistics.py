"""What the gates of a forward pass were like: of one layer, and of all layers of a model."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from svmem.nn.gate import GateStatus

__all__ = ["GateStatistics", "gate_statistics"]


@dataclass(frozen=True, slots=True)
class GateStatistics:
    """What gates were like. Those neither certified nor failed had too few keys."""

    problems: int  # gates with at least one key
    certified: int  # of these, those with an optimum proved to `worst_gap`
    failed: int  # of these, those without an answer: a key was not finite, or no optimum was proved
    mean_support: float  # keys that carry a certified gate, on average
    max_support: int
    worst_gap: float  # largest duality gap of a certified gate

    @classmethod
    def of(cls, counts: Tensor, gap: Tensor, status: Tensor) -> "GateStatistics":
        """Return the statistics of gates with these support sizes, gaps and states (any one shape)."""
        certified = status == GateStatus.OPTIMAL
        sizes = counts[certified]
        some = bool(certified.any())
        return cls(
            problems=int((counts > 0).sum()),
            certified=int(certified.sum()),
            failed=int(((status == GateStatus.INVALID) | (status == GateStatus.FAILED)).sum()),
            mean_support=float(sizes.double().mean()) if some else 0.0,
            max_support=int(sizes.max()) if some else 0,
            worst_gap=float(gap[certified].max()) if some else 0.0,
        )

    @classmethod
    def joined(cls, parts: Sequence["GateStatistics"]) -> "GateStatistics":
        """Return the statistics of all gates of the parts together, of which there is at least one."""
        certified = sum(one.certified for one in parts)
        return cls(
            problems=sum(one.problems for one in parts),
            certified=certified,
            failed=sum(one.failed for one in parts),
            mean_support=sum(one.mean_support * one.certified for one in parts) / max(certified, 1),
            max_support=max(one.max_support for one in parts),
            worst_gap=max(one.worst_gap for one in parts),
        )


def gate_statistics(model: nn.Module) -> GateStatistics | None:
    """Return the statistics of all gates in a model's last forward pass; None where it has none."""
    found = [one for part in model.modules() if isinstance(one := getattr(part, "statistics", None), GateStatistics)]
    return GateStatistics.joined(found) if found else None
