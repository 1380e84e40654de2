"""A recurrent network with gated cells: a state of fixed size, one token after the other."""

from torch import Tensor, nn

from svmem.baselines.mixer import TokenMixer

__all__ = ["LSTM"]


class LSTM(TokenMixer):
    """One layer of torch's LSTM, as wide as the tokens, then a linear map as the other layers have it.

    The cells with their input and output gates are those of [HochreiterSchmidhuber1997], the forget gate that of
    [GersSchmidhuberCummins2000]. `num_heads` is there because all layers are made alike: in the published network every
    unit sees every other one, so there are no heads, and the number changes nothing.
    """

    def __init__(self, embed_dim: int, num_heads: int, bias: bool = True) -> None:
        super().__init__(embed_dim, num_heads)
        self.lstm = nn.LSTM(embed_dim, embed_dim, bias=bias, batch_first=True)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return the mixed tokens; output i depends on inputs 0..i only."""
        self._check(x)
        return self.out_proj(self.lstm(x)[0])
