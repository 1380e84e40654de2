"""What flows back through a gate alone, and what the gates of a model were like."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor, nn

from svmem.nn import Gate, SVAttention, gate_statistics
from svmem.nn.attention import Packed

__all__ = ["GateFlow", "gate_figures", "probed", "supports_after"]


class GateOf(Protocol):
    """A layer's `gate_of`."""

    def __call__(self, packed: Packed, valid: Tensor) -> Gate | None: ...


@dataclass
class GateFlow:
    """Norms of d loss / d keys through the gates alone, one a gate call since the last `take`."""

    norms: list[float] = field(default_factory=list)

    def note(self, grad: Tensor) -> None:
        """Note a gradient."""
        self.norms.append(float(grad.double().norm()))

    def take(self) -> float:
        """Return the norm over all gates noted, and forget them."""
        total = sum(norm**2 for norm in self.norms) ** 0.5
        self.norms.clear()
        return total


@contextmanager
def probed(model: nn.Module) -> Iterator[GateFlow]:
    """Note what flows back through the gates of all SVAttention layers of a model while the block runs."""
    flow = GateFlow()

    def noting(layer: SVAttention) -> GateOf:
        inner = layer.gate_of

        def gate_of(packed: Packed, valid: Tensor) -> Gate | None:
            # Only the gate reads this view, so what comes back to it came through the gate.
            through = packed.tokens.view_as(packed.tokens)
            if through.requires_grad:
                through.register_hook(flow.note)
            return inner(packed._replace(tokens=through), valid)

        return gate_of

    with _around_gates(model, noting):
        yield flow


@contextmanager
def supports_after(model: nn.Module, told: int) -> Iterator[list[float]]:
    """Note how many tokens, on average, carry the last gate over at most `told` tokens: one number a gate call."""
    sizes: list[float] = []

    def noting(layer: SVAttention) -> GateOf:
        inner = layer.gate_of

        def gate_of(packed: Packed, valid: Tensor) -> Gate | None:
            found, place = inner(packed, valid), told // layer.chunk - 1
            if found is not None and 0 <= place < found.counts.shape[-1]:
                sizes.append(float(found.counts[..., place].double().mean()))
            return found

        return gate_of

    with _around_gates(model, noting):
        yield sizes


@contextmanager
def _around_gates(model: nn.Module, wrap: Callable[[SVAttention], GateOf]) -> Iterator[None]:
    layers = [module for module in model.modules() if isinstance(module, SVAttention)]
    for layer in layers:
        layer.gate_of = wrap(layer)
    try:
        yield
    finally:
        for layer in layers:
            del layer.gate_of


def gate_figures(model: nn.Module) -> dict[str, float]:
    """Return what a row says of the gates in a model's last pass; nothing where none is certified."""
    found = gate_statistics(model)
    if found is None or not found.certified:
        return {}
    share = found.certified / found.problems
    return {"mean_support": found.mean_support, "certified": share, "worst_gap": found.worst_gap}
