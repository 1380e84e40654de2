"""The hybrid layer without its choice: every earlier token in the memory, all with the same coefficient."""

import math

import torch
from torch import Tensor

from svmem.nn import Gate, GateStatus, HybridSVAttention, chunk_boundaries
from svmem.nn.attention import Packed

__all__ = ["UniformSVAttention"]


class UniformSVAttention(HybridSVAttention):
    """`HybridSVAttention` with coefficients 1/n of all n earlier keys: what log alpha does when nothing is chosen."""

    def gate_of(self, packed: Packed, valid: Tensor) -> Gate | None:
        """Return the gate that leaves nothing out. It proves nothing, and has no statistics."""
        keys = packed.tokens[..., : packed.d].transpose(1, 2)
        b, h, t, _ = keys.shape
        stops = chunk_boundaries(t, self.chunk).to(keys.device)
        width = int(stops[-1]) if len(stops) else 0
        order = torch.arange(width, device=keys.device).expand(b, h, len(stops), width)
        there = order < stops[:, None]
        alpha = there / stops[:, None].to(keys.dtype)
        counts = stops.expand(b, h, -1)
        nothing = torch.full(counts.shape, math.nan, dtype=keys.dtype, device=keys.device)
        status = torch.full_like(counts, GateStatus.COLLECTING, dtype=torch.int8)
        return Gate(order, alpha, counts, nothing, nothing, status, keys, self.sigma)
