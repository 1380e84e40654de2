"""Attention with a feature map in the place of the exponential: a state of fixed size."""

import torch
from torch import Tensor
from torch.nn.functional import elu, pad

from svmem.baselines.heads import MultiHead
from svmem.errors import InvalidInput

__all__ = ["LinearAttention"]

# The authors' code adds it to the sum of the weights, which the features of very negative inputs let underflow.
EPSILON = 1e-6


class LinearAttention(MultiHead):
    """Causal linear attention with the features elu(x) + 1, in chunks; time grows with t. [KatharopoulosEtAl2020]

    `chunk` changes the speed and not the result.
    """

    def __init__(self, embed_dim: int, num_heads: int, bias: bool = True, *, chunk: int = 64) -> None:
        super().__init__(embed_dim, num_heads, bias)
        if chunk < 1:
            raise InvalidInput(f"chunk must be at least 1, got {chunk}")
        self.chunk = chunk

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return the mean of the values 0..i with weights phi(q_i) . phi(k)."""
        t, chunk = q.shape[2], min(self.chunk, q.shape[2])
        # A column of ones beside the values sums up the weights; it is zero where the padding is.
        q, k, v = elu(q) + 1, elu(k) + 1, pad(v, (0, 1), value=1.0)
        q, k, v = (pad(x, (0, 0, 0, -t % chunk)).unflatten(2, (-1, chunk)) for x in (q, k, v))  # (b, h, c, chunk, d)
        # The state before chunk c is the sum over the chunks before it; shifted, since subtracting the chunk itself
        # again would leave its rounding errors in what must not depend on it.
        states = pad((k.mT @ v).cumsum(2)[:, :, :-1], (0, 0, 0, 0, 1, 0))  # (b, h, c, d, d + 1)
        sums = q @ states + torch.tril(q @ k.mT) @ v
        sums = sums.flatten(2, 3)[:, :, :t]
        return sums[..., :-1] / (sums[..., -1:] + EPSILON)
