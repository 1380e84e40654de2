"""The gate and its readout as causal self-attention layers."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, normalize, pad

from svmem.core.problem import Problem
from svmem.errors import InvalidInput
from svmem.kernels import RBF
from svmem.nn.attention import Packed, chunk_boundaries, pack_rbf, read_packed
from svmem.nn.cache import SVCache
from svmem.nn.gate import WARM_UP, Gate, gate_over
from svmem.nn.statistics import GateStatistics

__all__ = ["HybridSVAttention", "SVAttention"]

UNIT_SIGMA = 1.0  # initial width for keys of length 1


class SVAttention(nn.Module):
    """Causal self-attention over a support-vector memory, (b, t, embed_dim) -> (b, t, embed_dim), RBF readout.

    Time is cut into chunks. A token reads its own chunk up to itself, and of all earlier chunks the support of the gate
    over their keys (`svmem.nn.gate`), weighted by its coefficients. Memory and reading cost follow the support size.

    num_kv_heads: key and value heads, shared by groups of query heads. C: the most a coefficient can be. sigma: initial
    width of the kernel, one learnable number a key head (learn_sigma=False: fixed); by default sqrt(head_dim) / 2, or 1
    for keys of length 1, which is what the kernel sees if normalize_keys is set. gate=False: every earlier token counts
    alike, for comparison. Below ceil(1/C) + 2 earlier keys coefficients are equal, and nothing is certified.
    [Ramesh2026]
    """

    # So many arguments because users of nn.MultiheadAttention look for them here.
    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        bias: bool = True,
        *,
        num_kv_heads: int | None = None,
        chunk: int = 64,
        C: float = 0.25,
        sigma: float | None = None,
        ridge: float = 1e-3,
        normalize_keys: bool = False,
        learn_sigma: bool = True,
        gate: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        if not all(isinstance(count, int) for count in (embed_dim, num_heads, kv_heads, chunk)):
            raise InvalidInput(
                "embed_dim, num_heads, num_kv_heads and chunk must be whole numbers, "
                f"got {embed_dim!r}, {num_heads!r}, {kv_heads!r} and {chunk!r}"
            )
        if min(embed_dim, num_heads, kv_heads) < 1 or embed_dim % num_heads or num_heads % kv_heads:
            raise InvalidInput(
                "num_heads must divide embed_dim and num_kv_heads must divide num_heads, "
                f"got {embed_dim}, {num_heads} and {kv_heads}"
            )
        if chunk < 1:
            raise InvalidInput(f"chunk must be at least 1 token, got {chunk}")
        initial = UNIT_SIGMA if normalize_keys else 0.5 * math.sqrt(embed_dim / num_heads)
        width = initial if sigma is None else sigma
        problem = Problem(RBF(width), C, ridge)  # raises InvalidInput for numbers that make no problem
        self.embed_dim, self.num_heads, self.num_kv_heads = embed_dim, num_heads, kv_heads
        self.head_dim = embed_dim // num_heads
        self.chunk, self.C, self.ridge = chunk, problem.C, problem.ridge
        self.normalize_keys, self.gated = normalize_keys, gate
        sizes = {"device": device, "dtype": dtype}
        self.qkv_proj = nn.Linear(embed_dim, (num_heads + 2 * kv_heads) * self.head_dim, bias=bias, **sizes)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias, **sizes)
        start = torch.full((kv_heads,), math.log(width), **sizes)
        self.log_sigma = nn.Parameter(start, requires_grad=learn_sigma)
        self._seen: tuple[Tensor, Tensor, Tensor] | None = None

    @property
    def sigma(self) -> Tensor:
        """Width of the kernel in exp(-|x - y|^2 / sigma^2), (num_kv_heads,)."""
        return self.log_sigma.exp()

    @property
    def statistics(self) -> GateStatistics | None:
        """What the gates of the last forward pass were like; None before the first and without a gate."""
        return None if self._seen is None else GateStatistics.of(*self._seen)

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None, *, cache: SVCache | None = None) -> Tensor:
        """Return the mixed tokens; output i depends on inputs 0..i only.

        key_padding_mask (b, t): True where a token is padding, which nobody reads; its own output means nothing.
        cache: x goes on where the cache has come to, which takes x up; without gradients.
        """
        valid = self._valid(x, key_padding_mask)
        if cache is not None:
            with torch.no_grad():
                return self.combine(cache.extend(self, x, valid))
        packed = self.project(x)
        found = self.gate_of(packed, valid if valid is not None else x.new_ones(x.shape[:2], dtype=torch.bool))
        return self.combine(read_packed(packed, found, self.chunk, valid))

    def project(self, x: Tensor) -> Packed:
        """Return queries and tokens, packed for the readout."""
        h, g, d = self.num_heads, self.num_kv_heads, self.head_dim
        query, key, value = self.qkv_proj(x).split([h * d, g * d, g * d], dim=2)
        query, key, value = (part.unflatten(2, (-1, d)).transpose(1, 2) for part in (query, key, value))
        if self.normalize_keys:
            query, key = normalize(query, dim=-1), normalize(key, dim=-1)
        return pack_rbf(query, key, value, self.sigma, self.C)

    def combine(self, out: Tensor) -> Tensor:
        """Return tokens (b, t, embed_dim) from readouts (b, t, h, width)."""
        return self.out_proj(out[..., : self.head_dim].flatten(2))

    def gate_of(self, packed: Packed, valid: Tensor) -> Gate | None:
        """Return the gate over every earlier chunk's keys; None without a gate."""
        if not self.gated:
            return None
        stops = chunk_boundaries(valid.shape[1], self.chunk)
        setting = {"C": self.C, "sigma": self.sigma, "ridge": self.ridge, "extra": WARM_UP, "unit": self.normalize_keys}
        found = gate_over(packed.tokens[..., : packed.d].transpose(1, 2), valid, stops, **setting)
        self._seen = (found.counts, found.gap, found.status)
        return found

    def extra_repr(self) -> str:
        """Return what `print(layer)` shows."""
        names = ("embed_dim", "num_heads", "num_kv_heads", "chunk", "C", "ridge", "normalize_keys")
        return ", ".join(f"{name}={getattr(self, name)}" for name in names) + ("" if self.gated else ", gate=False")

    def _valid(self, x: Tensor, key_padding_mask: Tensor | None) -> Tensor | None:
        if x.dim() != 3 or x.shape[1] < 1 or x.shape[2] != self.embed_dim or not x.is_floating_point():
            came = f"{tuple(x.shape)} of {x.dtype}"
            raise InvalidInput(f"x must be floats of shape (b, t, {self.embed_dim}), t at least 1; got {came}")
        if key_padding_mask is None:
            return None
        if key_padding_mask.dtype != torch.bool or key_padding_mask.shape != x.shape[:2]:
            came = f"{tuple(key_padding_mask.shape)} of {key_padding_mask.dtype}"
            raise InvalidInput(f"key_padding_mask must be bool of shape {tuple(x.shape[:2])}, got {came}")
        return ~key_padding_mask


class HybridSVAttention(SVAttention):
    """`SVAttention` with the hybrid readout: one softmax over the memory's support and the token's own chunk.

    Logits are q.k / sqrt(d), plus log alpha on the memory; queries and keys are read as they come, whatever
    normalize_keys shows the gate. Without a gate this is plain causal softmax attention. [Ramesh2026]
    """

    def project(self, x: Tensor) -> Packed:
        """Return queries and tokens, packed for the readout.

        The weights are widened instead of the tokens: the channel of ones in the query comes from a bias, and empty
        channels of keys and values from empty rows, so that nothing has to be copied.
        """
        h, g, d = self.num_heads, self.num_kv_heads, self.head_dim
        weight = self.qkv_proj.weight.reshape(h + 2 * g, d, -1)
        bias = self.qkv_proj.bias
        bias = weight.new_zeros(h + 2 * g, d) if bias is None else bias.reshape(h + 2 * g, d)
        weight, bias = pad(weight, (0, 0, 0, 1)), pad(bias, (0, 1))
        ones = torch.zeros_like(bias[:h])
        ones[:, d] = 1.0
        order = torch.arange(2 * g, device=x.device).reshape(2, g).t().flatten()  # a head's key before its value
        query = linear(x, weight[:h].flatten(0, 1), (bias[:h] + ones).flatten())
        tokens = linear(x, weight[h:][order].flatten(0, 1), bias[h:][order].flatten())
        query, tokens = query.unflatten(2, (h, d + 1)), tokens.unflatten(2, (g, 2 * d + 2))
        return Packed(query, tokens, d, d, 1.0 / math.sqrt(d), 0.0)

    def combine(self, out: Tensor) -> Tensor:
        """Return tokens (b, t, embed_dim) from readouts (b, t, h, width)."""
        weight = pad(self.out_proj.weight.unflatten(1, (self.num_heads, self.head_dim)), (0, 1))
        return linear(out.flatten(2), weight.flatten(1), self.out_proj.bias)
