"""The layer with the gate as the paper trains it: what the exact gate is compared with."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import normalize

from svmem.baselines.fista_gate import fista_gate
from svmem.errors import InvalidInput
from svmem.nn import Gate, GateStatus, HybridSVAttention, SVCache, chunk_boundaries
from svmem.nn.attention import Packed

__all__ = ["FistaAttention"]


class FistaAttention(HybridSVAttention):
    """`HybridSVAttention` with the gate of `fista_gate`: no partition is checked, and what is below 0 is cut off.

    Its statistics count every gate as certified, with the gap of its coefficients before that cut. Raises InvalidInput
    for padding and for a cache, for which the paper's gate has no rule. [Ramesh2026]
    """

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None, *, cache: SVCache | None = None) -> Tensor:
        """Return the mixed tokens; output i depends on inputs 0..i only."""
        if key_padding_mask is not None or cache is not None:
            raise InvalidInput("FistaAttention takes neither key_padding_mask nor cache; HybridSVAttention does")
        return super().forward(x)

    def gate_of(self, packed: Packed, valid: Tensor) -> Gate | None:
        """Return the approximate gate, packed as the readout wants it, with the gap that its coefficients have."""
        keys = packed.tokens[..., : packed.d].transpose(1, 2)
        keys = normalize(keys, dim=-1) if self.normalize_keys else keys
        stops = chunk_boundaries(valid.shape[1], self.chunk).tolist()
        alpha = fista_gate(keys, stops, C=self.C, sigma=self.sigma, ridge=self.ridge)
        there = alpha > 0
        counts = there.sum(-1)
        order = (~there).to(torch.uint8).argsort(dim=-1, stable=True)[..., : int(counts.max()) if len(stops) else 0]
        gap = _gap(keys.detach(), alpha.detach(), stops, self)
        status = torch.full_like(counts, GateStatus.OPTIMAL, dtype=torch.int8)  # so that the gap is among the figures
        self._seen = (counts, gap, status)
        support = alpha.gather(-1, order).clamp_min(0)
        return Gate(order, support, counts, counts.to(alpha.dtype) * math.nan, gap, status, keys, self.sigma)


def _gap(keys: Tensor, alpha: Tensor, stops: Sequence[int], layer: HybridSVAttention) -> Tensor:
    """Return r.a - min r.b over the capped simplex, r = K a + ridge a - 1/2, (b, h, B): 0 at the optimum only."""
    keys, alpha = keys.double(), alpha.double()
    gram = torch.exp(-((torch.cdist(keys, keys) / layer.sigma.detach().double()[:, None, None]) ** 2))
    residual = alpha @ gram + layer.ridge * alpha - 0.5
    gaps: list[Tensor] = []
    for number, stop in enumerate(stops):
        r, a = residual[..., number, :stop], alpha[..., number, :stop]
        left = (1 - layer.C * torch.arange(stop, dtype=torch.float64, device=keys.device)).clamp(
            0, layer.C
        )  # the least takes most
        gaps.append((r * a).sum(-1) - (r.sort(-1).values * left).sum(-1))
    return torch.stack(gaps, -1) if gaps else alpha.new_zeros(*alpha.shape[:2], 0)
