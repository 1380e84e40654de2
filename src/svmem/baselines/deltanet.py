"""A matrix as memory that each token corrects by the delta rule: a state of fixed size."""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, pad, silu

from svmem.baselines.heads import MultiHead
from svmem.errors import InvalidInput

__all__ = ["DeltaNet"]


class DeltaNet(MultiHead):
    """The delta rule in chunks; time grows with t. [SchlagIrieSchmidhuber2021; YangEtAl2024, section 3]

    As published: a causal depthwise convolution over the last `conv` tokens and SiLU on queries, keys and values, unit
    queries and keys, a write strength beta = sigmoid(linear) per head and token, RMS norm on what a head reads.
    `chunk` changes the speed and not the result.
    """

    def __init__(self, embed_dim: int, num_heads: int, bias: bool = True, *, conv: int = 4, chunk: int = 64) -> None:
        super().__init__(embed_dim, num_heads, bias)
        if conv < 1 or chunk < 1:
            raise InvalidInput(f"conv and chunk must be at least 1, got {conv} and {chunk}")
        self.chunk = chunk
        self.beta_proj = nn.Linear(embed_dim, num_heads, bias=bias)
        self.conv = nn.Conv1d(3 * embed_dim, 3 * embed_dim, conv, groups=3 * embed_dim, bias=False)
        self.norm = nn.RMSNorm(embed_dim // num_heads, eps=1e-5)

    def forward(self, x: Tensor) -> Tensor:
        """Return the mixed tokens; output i depends on inputs 0..i only."""
        self._check(x)
        recent = pad(self.qkv_proj(x).mT, (self.conv.kernel_size[0] - 1, 0))  # (b, 3 * embed_dim, conv - 1 + t)
        q, k, v = (self.split(part) for part in silu(self.conv(recent)).mT.chunk(3, dim=-1))
        beta = self.beta_proj(x).sigmoid().mT[..., None]  # (b, h, t, 1)
        mixed = delta_rule(normalize(q, dim=-1), normalize(k, dim=-1), v, beta, chunk=self.chunk)
        return self.out_proj(self.join(self.norm(mixed)))


def delta_rule(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, *, chunk: int) -> Tensor:
    """Return q_i' H_i for H_i = H_{i-1} + beta_i k_i (v_i - H_{i-1}' k_i)' from H = 0, for all i.

    Shapes (b, h, t, d), and (b, h, t, 1) for beta. [YangEtAl2024, section 3.2]
    """
    # Write H_i = H + sum_{j<=i} k_j u_j' inside a chunk that starts from H. The rule gives
    #   u_i = beta_i (v_i - H' k_i - sum_{j<i} (k_i . k_j) u_j),   i.e.   (I + L) U = diag(beta) (V - K H)
    # with L = diag(beta) strictly_lower(K K'). Solving for diag(beta) V and diag(beta) K apart, X and W, leaves
    # U = X - W H, where only products with H must wait for the chunk before. Then
    #   reads = Q H + lower(Q K') U   and   the next H = H + K' U.
    t, chunk = q.shape[2], min(chunk, q.shape[2])
    q, k, v, beta = (pad(x, (0, 0, 0, -t % chunk)).unflatten(2, (-1, chunk)) for x in (q, k, v, beta))
    system = (beta * (k @ k.mT)).tril(-1)  # (b, h, c, chunk, chunk); the unit diagonal is implied
    written = torch.linalg.solve_triangular(system, beta * torch.cat((v, k), -1), upper=False, unitriangular=True)
    x, w = written.split((v.shape[-1], k.shape[-1]), -1)
    inside = (q @ k.mT).tril()
    state, reads = q.new_zeros(*q.shape[:2], k.shape[-1], v.shape[-1]), []
    for c in range(q.shape[2]):
        u = x[:, :, c] - w[:, :, c] @ state
        reads.append(q[:, :, c] @ state + inside[:, :, c] @ u)
        state = state + k[:, :, c].mT @ u
    return torch.cat(reads, 2)[:, :, :t]
