"""What baselines with queries, keys and values share: one fused projection to the heads, and one back."""

from torch import Tensor, nn

from svmem.baselines.mixer import TokenMixer

__all__ = ["MultiHead"]


class MultiHead(TokenMixer):
    """Multi-head mixing of tokens; how a head mixes is the method's `mix`."""

    def __init__(self, embed_dim: int, num_heads: int, bias: bool = True) -> None:
        super().__init__(embed_dim, num_heads)
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim, bias=bias)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return the mixed tokens; output i depends on inputs 0..i only."""
        self._check(x)
        q, k, v = (self.split(part) for part in self.qkv_proj(x).chunk(3, dim=-1))
        return self.out_proj(self.join(self.mix(q, k, v)))

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return what each head reads, (b, h, t, d), from its queries, keys and values of that shape."""
        raise NotImplementedError

    def split(self, x: Tensor) -> Tensor:
        """Return the parts of the width that belong to each head: (b, t, h * d) -> (b, h, t, d)."""
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def join(self, y: Tensor) -> Tensor:
        """Undo `split`: (b, h, t, d) -> (b, t, h * d)."""
        return y.transpose(1, 2).flatten(2)
