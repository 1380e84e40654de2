"""The model that recalls facts: one backbone, and the mixers that are compared on it."""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor, nn

from experiments.facts import KEYS, STRAYS, VALUES, Episode
from svmem.baselines import DeltaNet, LinearAttention, SelectiveSSM, SlidingWindowAttention, SoftmaxAttention
from svmem.nn import HybridSVAttention, SVAttention
from svmem.nn.lm import Layer, LMConfig

__all__ = ["GATED", "MIXERS", "Reader", "Sizes", "state_size"]


class Sizes(Protocol):
    """What a reader needs to know of the experiment."""

    @property
    def width(self) -> int: ...  # noqa: D102
    @property
    def layers(self) -> int: ...  # noqa: D102
    @property
    def heads(self) -> int: ...  # noqa: D102
    @property
    def C(self) -> float: ...  # noqa: D102
    @property
    def sigma(self) -> float: ...  # noqa: D102


# A mixer from the sizes, the tokens between two gates, and the window.
MIXERS: dict[str, Callable[[Sizes, int, int], nn.Module]] = {
    "sv": lambda s, chunk, _: HybridSVAttention(s.width, s.heads, chunk=chunk, C=s.C, sigma=s.sigma),
    "rbf": lambda s, chunk, _: SVAttention(s.width, s.heads, chunk=chunk, C=s.C, sigma=s.sigma),
    "ungated": lambda s, chunk, _: SVAttention(s.width, s.heads, chunk=chunk, C=s.C, sigma=s.sigma, gate=False),
    "softmax": lambda s, *_: SoftmaxAttention(s.width, s.heads),
    # After those whose state it matches.
    "window": lambda s, _, window: SlidingWindowAttention(s.width, s.heads, window=window),
    "linear": lambda s, *_: LinearAttention(s.width, s.heads),
    # A token is a whole fact, and its neighbours are others: a convolution over them can only do harm.
    "delta": lambda s, *_: DeltaNet(s.width, s.heads, conv=1),
    "delta-conv": lambda s, *_: DeltaNet(s.width, s.heads),
    "ssm": lambda s, *_: SelectiveSSM(s.width, s.heads, conv=1),
}
GATED = ("sv", "rbf")


class Reader(nn.Module):
    """Embeds keys and values, mixes, and answers each token: (b, t) -> (b, t, VALUES + 1). No positions."""

    def __init__(self, sizes: Sizes, mixer: str, *, chunk: int, window: int) -> None:
        super().__init__()
        w = sizes.width
        config = LMConfig(width=w, layers=sizes.layers, heads=sizes.heads)
        self.key, self.value = nn.Embedding(KEYS + STRAYS, w), nn.Embedding(VALUES + 2, w)
        self.layers = nn.ModuleList(Layer(config, MIXERS[mixer](sizes, chunk, window)) for _ in range(sizes.layers))
        self.norm, self.head = nn.LayerNorm(w), nn.Linear(w, VALUES + 1)

    def forward(self, asked: Episode, generator: torch.Generator) -> Tensor:
        """Return logits of the answers."""
        x = self.key(asked.key) + self.value(asked.value)
        length = x.detach().square().mean(-1, keepdim=True).sqrt()
        x = x + asked.noise.unsqueeze(-1) * length * torch.randn(x.shape, generator=generator)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def state_size(model: Reader, *, tokens: int, support: float | None) -> int:
    """Return how many numbers a layer keeps to answer after so many tokens; `support`: of the gates, if there are."""
    mixer = model.layers[0].mixer
    assert isinstance(mixer, nn.Module)
    if isinstance(mixer, SlidingWindowAttention):
        tokens = min(tokens, mixer.window)
    elif isinstance(mixer, LinearAttention):
        return mixer.embed_dim * (mixer.embed_dim // mixer.num_heads + 1)
    elif isinstance(mixer, DeltaNet):
        taps = mixer.conv.kernel_size[0]
        return mixer.embed_dim * (mixer.embed_dim // mixer.num_heads + 3 * (taps - 1))
    elif isinstance(mixer, SelectiveSSM):
        return mixer.log_decay.numel() + (mixer.conv.kernel_size[0] - 1) * mixer.skip.numel()
    elif isinstance(mixer, SVAttention) and support is not None:
        # Of each key also its coefficient.
        return round(2 * mixer.embed_dim * (support + mixer.chunk) + mixer.num_heads * support)
    width = mixer.embed_dim
    assert isinstance(width, int)
    return 2 * width * tokens
