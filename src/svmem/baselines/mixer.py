"""What every layer here promises: a width, heads that divide it, and tokens of that width in and out."""

from torch import Tensor, nn

from svmem.errors import InvalidInput

__all__ = ["TokenMixer"]


class TokenMixer(nn.Module):
    """A causal mixing of tokens, (b, t, embed_dim) -> (b, t, embed_dim), made from (embed_dim, num_heads, bias).

    Its last linear map is called `out_proj`: by that name a model knows what is added to its stream.
    Raises InvalidInput when the heads do not divide the width, or the input has another width.
    """

    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        if num_heads < 1 or embed_dim < 1 or embed_dim % num_heads:
            raise InvalidInput(f"embed_dim must be a multiple of num_heads, got {embed_dim} and {num_heads}")
        self.embed_dim = embed_dim
        self.num_heads = num_heads

    def forward(self, x: Tensor) -> Tensor:
        """Return the mixed tokens; output i depends on inputs 0..i only."""
        raise NotImplementedError

    def _check(self, x: Tensor) -> None:
        if x.dim() != 3 or x.shape[1] < 1 or x.shape[2] != self.embed_dim:
            raise InvalidInput(
                f"the input must have shape (b, t, {self.embed_dim}), t at least 1; got {tuple(x.shape)}"
            )
