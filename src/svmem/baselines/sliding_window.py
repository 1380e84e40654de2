"""Softmax attention over the last few tokens."""

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from svmem.baselines.heads import MultiHead
from svmem.errors import InvalidInput

__all__ = ["SlidingWindowAttention"]

# Blocks shorter than this cost more in kernel calls than they spare in masked products.
SHORTEST_BLOCK = 32


class SlidingWindowAttention(MultiHead):
    """Causal softmax attention of each token to the last `window` ones, itself included.

    Time and memory grow with t * window. [BeltagyPetersCohan2020, section 3.1]
    """

    def __init__(self, embed_dim: int, num_heads: int, bias: bool = True, *, window: int) -> None:
        super().__init__(embed_dim, num_heads, bias)
        if window < 1:
            raise InvalidInput(f"window must be at least 1, since a token attends to itself; got {window}")
        self.window = window

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return the mean of the values i-window+1..i with weights softmax(q_i . k / sqrt(d))."""
        t = q.shape[2]
        if t <= self.window:
            return scaled_dot_product_attention(q, k, v, is_causal=True)
        return self._blockwise(q, k, v)

    def _blockwise(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        # A block of m queries sees its own m keys and the window - 1 before them, s in all. The blocks are the batch of
        # one fused call, and all (b, h) share the mask of their block.
        b, h, t, _ = q.shape
        m, before = max(self.window, SHORTEST_BLOCK), self.window - 1
        blocks = -(-t // m)
        after = blocks * m - t
        q = pad(q, (0, 0, 0, after)).unflatten(2, (blocks, m))  # (b, h, blocks, m, d)
        k, v = (pad(x, (0, 0, before, after)).unfold(2, before + m, m).mT for x in (k, v))  # (b, h, blocks, s, d)
        q, k, v = (x.movedim(2, 0).flatten(1, 2) for x in (q, k, v))  # (blocks, b * h, m or s, d)
        mixed = scaled_dot_product_attention(q, k, v, attn_mask=self._mask(blocks, m, q.device))
        return mixed.unflatten(1, (b, h)).movedim(0, 2).flatten(2, 3)[:, :, :t]

    def _mask(self, blocks: int, m: int, device: torch.device) -> Tensor:
        """Return which keys each query sees, (blocks, 1, m, s): those in the window that exist."""
        start = torch.arange(blocks, device=device)[:, None, None, None] * m
        query = start + torch.arange(m, device=device)[:, None]
        key = start + torch.arange(1 - self.window, m, device=device)
        return (key <= query) & (key > query - self.window) & (key >= 0)
