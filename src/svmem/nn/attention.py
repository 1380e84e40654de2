"""Readouts over a gate's support and the token's own chunk, through torch's fused attention kernels.

Token i of chunk c = i // chunk reads the support of the gate at boundary c * chunk, weighted by alpha, and the tokens
c * chunk .. i of its own chunk. Both are one softmax: log alpha is a bias, and stands in one more channel of the keys,
against a channel of ones in the query. So each chunk is one item of a batch for `scaled_dot_product_attention`, and the
work grows with the support, not with the prefix.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from svmem.errors import InvalidInput
from svmem.nn.gate import Gate

__all__ = ["chunk_boundaries", "hybrid_readout", "rbf_readout"]

SILENT = -1e30  # a bias that leaves no weight in float32 and bfloat16, and is no infinity: 0 * infinity is no gradient
SILENT_HALF = -3e4  # the same in float16


def chunk_boundaries(t: int, chunk: int) -> Tensor:
    """Return the boundaries chunk, 2 chunk, ... below t."""
    return torch.arange(chunk, max(t, chunk), chunk)


class Packed(NamedTuple):
    """Queries and tokens as the fused kernels want them: keys and values equally wide, a bias as one more channel."""

    query: Tensor  # (b, t, h, width), ones in channel d
    tokens: Tensor  # (b, t, g, 2 width): key, its bias in channel d; then its value
    d: int
    v: int
    scale: float  # logits are scale times query . key
    own: Tensor | float  # added to the logits of tokens of the own chunk


def hybrid_readout(
    query: Tensor, key: Tensor, value: Tensor, gate: Gate | None, *, chunk: int, valid: Tensor | None = None
) -> Tensor:
    """Return the hybrid readout, (b, h, t, v): softmax over q.k / sqrt(d), plus log alpha on the memory's tokens.

    query (b, h, t, d), key (b, g, t, d), value (b, g, t, v) where g divides h: head i reads key head i // (h / g).
    The gate, over g heads, has the boundaries `chunk_boundaries(t, chunk)`. Without a gate every earlier token counts
    with coefficient 1: plain causal softmax. Tokens where valid (b, t) is false are read by nobody. [Ramesh2026]
    """
    _check(query, key, value, chunk)
    packed = pack(query, key, value, torch.zeros_like(key[..., 0]), 1.0 / math.sqrt(query.shape[3]))
    return read_packed(packed, gate, chunk, valid).transpose(1, 2)[..., : packed.v]


def rbf_readout(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    gate: Gate | None,
    *,
    chunk: int,
    sigma: float | Tensor,
    C: float | Tensor,
    valid: Tensor | None = None,
) -> Tensor:
    """Return sum c_i kappa(q, x_i) v_i / sum c_i kappa(q, x_i), (b, h, t, v), with c = alpha on the memory's tokens.

    Shapes as for `hybrid_readout`; sigma: one width or one a key head. Tokens of the own chunk, which no gate has seen
    yet, count with the most that a coefficient can be, C. The common factor exp(-|q|^2 / sigma^2) is left out, so the
    sum never vanishes. Without a gate every earlier token counts alike.
    """
    _check(query, key, value, chunk)
    packed = pack_rbf(query, key, value, sigma, C)
    return read_packed(packed, gate, chunk, valid).transpose(1, 2)[..., : packed.v]


def _check(query: Tensor, key: Tensor, value: Tensor, chunk: int) -> None:
    if not isinstance(chunk, int) or chunk < 1:
        raise InvalidInput(f"chunk must be a whole number of at least 1 token, got {chunk!r}")
    fits = query.dim() == key.dim() == value.dim() == 4 and key.shape[:3] == value.shape[:3]
    fits = fits and query.shape[0] == key.shape[0] and query.shape[2:] == key.shape[2:]
    if not fits or query.shape[1] % key.shape[1]:
        came = ", ".join(str(tuple(x.shape)) for x in (query, key, value))
        raise InvalidInput(
            f"query (b, h, t, d), key (b, g, t, d) and value (b, g, t, v) with g dividing h are needed, got {came}"
        )


def pack(query: Tensor, key: Tensor, value: Tensor, bias: Tensor, scale: float, own: Tensor | float = 0.0) -> Packed:
    """Pack queries (b, h, t, d), keys (b, g, t, d), values (b, g, t, v) and the keys' biases (b, g, t)."""
    d, v = key.shape[3], value.shape[3]
    width = max(d + 1, v)
    channel = pad(torch.ones_like(query[..., :1]), (0, width - d - 1))
    bias = pad(bias.unsqueeze(3).to(key.dtype) / scale, (0, width - d - 1))
    tokens = torch.cat([key, bias, value, value.new_zeros(*value.shape[:3], width - v)], dim=3)
    return Packed(torch.cat([query, channel], dim=3).transpose(1, 2), tokens.transpose(1, 2), d, v, scale, own)


def pack_rbf(query: Tensor, key: Tensor, value: Tensor, sigma: float | Tensor, C: float | Tensor) -> Packed:
    """Pack for the logits (2 q.x - |x|^2) / sigma^2."""
    wide = torch.float64 if key.dtype == torch.float64 else torch.float32
    width = torch.as_tensor(sigma, device=key.device).to(wide).expand(key.shape[1])
    scale = 1.0 / (width * width)
    bias = -(key.to(wide) ** 2).sum(3) * scale.unsqueeze(1)  # (b, g, t)
    factor = (2.0 * scale).repeat_interleave(query.shape[1] // key.shape[1]).reshape(-1, 1, 1)
    own = torch.as_tensor(C, dtype=wide, device=key.device).log()
    return pack((factor * query.to(wide)).to(query.dtype), key, value, bias, 1.0, own)


def silent(x: Tensor) -> float:
    """Return a bias that leaves no weight in a tensor's type, and is no infinity."""
    return SILENT_HALF if x.dtype == torch.float16 else SILENT


def read_packed(packed: Packed, gate: Gate | None, chunk: int, valid: Tensor | None) -> Tensor:
    """Return the readout (b, t, h, width), of which the first v channels count."""
    b, t, g, both = packed.tokens.shape
    if valid is not None:  # whatever stands there, were it not a number
        packed = packed._replace(tokens=packed.tokens.masked_fill(~valid[:, :, None, None], 0.0))
    if gate is None:
        return _read_all(packed, valid)
    chunks = -(-t // chunk)
    if gate.counts.shape != (b, g, chunks - 1):
        raise InvalidInput(
            f"the gate must have a boundary between any two chunks, shape {(b, g, chunks - 1)}; "
            f"got {tuple(gate.counts.shape)}"
        )
    own = torch.as_tensor(packed.own, dtype=packed.tokens.dtype, device=packed.tokens.device).expand(b, t)
    if valid is not None:
        own = own.masked_fill(~valid, silent(own))
    index, bias = _layout(gate, own, chunk)
    bias = (bias / packed.scale).clamp(min=torch.finfo(bias.dtype).min / 2)  # float16 ends at -65504
    end = chunks * chunk - t
    query = pad(packed.query, (0, 0, 0, 0, 0, end)) if end else packed.query  # (b, chunks chunk, h, width)
    gathered = Gathered(packed.tokens.reshape(b * t * g, both), index, bias, packed.d)
    with gathered.forgotten():
        key, value = (part.transpose(1, 2) for part in gathered.keys_and_values())
        out = attend(query.reshape(b * chunks, chunk, *query.shape[2:]), key, value, packed.scale)
    return out.reshape(b, chunks * chunk, *query.shape[2:])[:, :t]


def _read_all(packed: Packed, valid: Tensor | None) -> Tensor:
    """Plain causal attention: no gate, every earlier token counts."""
    group = packed.query.shape[2] // packed.tokens.shape[2]
    tokens = packed.tokens
    if valid is not None:
        bias = torch.zeros_like(valid, dtype=tokens.dtype).masked_fill(~valid, silent(tokens))
        tokens = tokens + pad(bias[:, :, None, None], (packed.d, tokens.shape[3] - packed.d - 1))
    key, value = tokens.repeat_interleave(group, 2).transpose(1, 2).chunk(2, dim=3)
    out = scaled_dot_product_attention(packed.query.transpose(1, 2), key, value, is_causal=True, scale=packed.scale)
    return out.transpose(1, 2)


def _layout(gate: Gate, own: Tensor, chunk: int) -> tuple[Tensor, Tensor]:
    """Return which rows of the flat tokens (b t g) each chunk reads, (b chunks, w + chunk, g), and with what bias.

    The memory's tokens come first. The first chunk has none: its are silent. own (b, t): bias in the own chunk.
    """
    b, t = own.shape
    g, chunks, w = gate.indices.shape[1], gate.indices.shape[2] + 1, gate.indices.shape[3]
    places = pad(gate.indices, (0, 0, 1, 0)).transpose(1, 2)  # (b, chunks, g, w)
    bias = log_alpha(pad(gate.alpha, (0, 0, 1, 0)), pad(gate.counts, (1, 0)), own).transpose(1, 2)
    local = torch.arange(chunks * chunk, device=own.device).clamp(max=t - 1).reshape(1, chunks, 1, chunk)
    places = torch.cat([places, local.expand(b, -1, g, -1)], dim=3)
    own = pad(own, (0, chunks * chunk - t)).reshape(b, chunks, 1, chunk)
    bias = torch.cat([bias, own.expand(-1, -1, g, -1)], dim=3)
    items = torch.arange(b, device=own.device).reshape(b, 1, 1, 1)
    heads = torch.arange(g, device=own.device).reshape(1, 1, g, 1)
    rows = (items * t + places) * g + heads
    # As the fused kernels lay out the gradients of keys and values.
    rows, bias = (x.reshape(b * chunks, g, w + chunk).transpose(1, 2).contiguous() for x in (rows, bias))
    return rows, bias


class Gathered:
    """Rows of tokens (m, 2 width) at an index (...), a bias (...) added in one channel: keys and values (..., width).

    They are several times as large as the tokens, so they are not kept for the backward pass but gathered again.
    """

    def __init__(self, tokens: Tensor, index: Tensor, bias: Tensor, channel: int) -> None:
        self._args = (tokens, index, bias, channel)
        self._made: Tensor | None = None  # both together, while at hand

    def keys_and_values(self) -> tuple[Tensor, Tensor]:
        """Return keys and values, with gradients to tokens and bias."""
        key, value = Assemble.apply(*self._args)
        self._made = key._base if key._base is not None else key
        return key, value

    @contextmanager
    def forgotten(self) -> Iterator[None]:
        """Let the operations of the block remember keys and values as what they are made of."""
        if torch.compiler.is_compiling() or not torch.is_grad_enabled():
            yield
            return
        tokens, index, bias, channel = self._args
        kept = Gathered(tokens.detach(), index, bias.detach(), channel)

        def pack(saved: Tensor) -> Tensor | tuple[Any, ...]:
            made = self._made
            if made is None or saved.untyped_storage().data_ptr() != made.untyped_storage().data_ptr():
                return saved
            return saved.size(), saved.stride(), saved.storage_offset()

        with torch.autograd.graph.saved_tensors_hooks(pack, kept._view):
            yield
        self._made = None

    def _view(self, packed: Tensor | tuple[Any, ...]) -> Tensor:
        """Return a tensor as it was: the first view gathers, the second lets go."""
        if isinstance(packed, Tensor):
            return packed
        made, self._made = self._made, None
        if made is None:
            made = self._made = gather(*self._args)
        return made.as_strided(*packed)


def gather(tokens: Tensor, index: Tensor, bias: Tensor, channel: int) -> Tensor:
    """Return the rows of tokens (m, c) at an index (...), a bias (...) added in one channel: (..., c)."""
    out = tokens.index_select(0, index.flatten()).reshape(*index.shape, tokens.shape[1])
    out[..., channel] += bias
    return out


class Assemble(torch.autograd.Function):
    """`gather`, as its two halves."""

    @staticmethod
    def forward(tokens: Tensor, index: Tensor, bias: Tensor, channel: int) -> tuple[Tensor, Tensor]:
        """Gather, and add."""
        key, value = gather(tokens, index, bias, channel).chunk(2, dim=-1)
        return key, value

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor, int], output: tuple[Tensor, Tensor]) -> None:
        """Keep where the rows came from."""
        ctx.save_for_backward(inputs[1])
        ctx.rows, ctx.channel = inputs[0].shape[0], inputs[3]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, Tensor, None]:
        """Sum the rows' gradients where they came from; the bias's are those of its channel."""
        (index,) = ctx.saved_tensors
        halves = [
            torch.ops.aten.embedding_dense_backward(
                grad.reshape(-1, grad.shape[-1]), index.flatten(), ctx.rows, -1, False
            )
            for grad in grads
        ]
        return torch.cat(halves, 1), None, grads[0][..., ctx.channel], None


def attend(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    """Return what queries (n, q, h, width) read of keys and values (n, g, m, width), the last q of these causally."""
    n, q, h, width = query.shape
    g, m = key.shape[1:3]
    allowed = torch.ones(q, m, dtype=torch.bool, device=query.device).tril(m - q)
    if g == h:
        out = scaled_dot_product_attention(query.transpose(1, 2), key, value, attn_mask=allowed, scale=scale)
        return out.transpose(1, 2)
    query = query.reshape(n, q, g, h // g, width).permute(0, 2, 3, 1, 4).reshape(n, g, h // g * q, width)
    allowed = allowed.repeat(h // g, 1)
    out = scaled_dot_product_attention(query, key, value, attn_mask=allowed, scale=scale)
    return out.reshape(n, g, h // g, q, width).permute(0, 3, 1, 2, 4).reshape(n, q, h, width)


def log_alpha(alpha: Tensor, counts: Tensor, like: Tensor) -> Tensor:
    """Return log alpha (..., w) in the type of `like`, and beyond the counts (...) a bias that leaves no weight."""
    there = torch.arange(alpha.shape[-1], device=alpha.device) < counts.unsqueeze(-1)
    return torch.where(there, alpha, 1.0).log().masked_fill(~there, silent(like)).to(like.dtype)
