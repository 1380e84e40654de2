"""A small language model over bytes, with the layer that mixes its tokens as an argument."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, linear

from svmem.errors import InvalidInput

__all__ = ["LMConfig", "LanguageModel", "Mixer", "bits_per_byte", "generate", "next_token_loss"]

STD = 0.02  # of all initial weights; what is added to the residual stream starts smaller still


@dataclass(frozen=True, slots=True)
class LMConfig:
    """Sizes of the model; the defaults are the small one of [Ramesh2026], 3.22M parameters beside the positions.

    `block` is the longest context. `bias` is for the linear maps; mixers should follow it.
    """

    vocabulary: int = 256
    width: int = 256
    layers: int = 4
    heads: int = 4
    block: int = 256
    mlp_ratio: int = 4
    bias: bool = False

    def __post_init__(self) -> None:
        sizes = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "bias"}
        for name, size in sizes.items():
            if size < 1:
                raise InvalidInput(f"{name} must be at least 1, got {size}")
        if self.width % self.heads:
            raise InvalidInput(f"width must be a multiple of heads, got {self.width} and {self.heads}")


# From the sizes and the number of the layer to a causal module (b, t, width) -> (b, t, width).
Mixer = Callable[[LMConfig, int], nn.Module]


class LanguageModel(nn.Module):
    """A pre-norm decoder with learned positions and a head tied to the embedding. [RadfordEtAl2019, section 2.3]

    Linear maps and embeddings of the model and its mixers start normal with standard deviation 0.02; `out_proj`, the
    name by which a mixer's last linear map is known, and its like in the MLP with 0.02 / sqrt(2 * layers).
    """

    def __init__(self, config: LMConfig, mixer: Mixer) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.positions = nn.Embedding(config.block, config.width)
        self.layers = nn.ModuleList(Layer(config, mixer(config, number)) for number in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                last = name.endswith("out_proj")
                nn.init.normal_(module.weight, std=STD / math.sqrt(2 * config.layers) if last else STD)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits of each next token, (b, t) -> (b, t, vocabulary).

        Raises InvalidInput for more tokens than `block`.
        """
        t = tokens.shape[-1]
        if tokens.dim() != 2 or not 1 <= t <= self.config.block:
            raise InvalidInput(
                f"tokens must be (b, t), t from 1 to block = {self.config.block}; got {tuple(tokens.shape)}"
            )
        x = self.embedding(tokens) + self.positions.weight[:t]
        for layer in self.layers:
            x = layer(x)
        return linear(self.norm(x), self.embedding.weight)

    @property
    def size(self) -> int:
        """The number of parameters but for the positions, as language models are usually counted."""
        return sum(p.numel() for p in self.parameters()) - self.positions.weight.numel()


class Layer(nn.Module):
    """Mix over tokens, then an MLP over the width, each on the normed stream and added to it."""

    def __init__(self, config: LMConfig, mixer: nn.Module) -> None:
        super().__init__()
        self.mixer_norm = nn.LayerNorm(config.width)
        self.mixer = mixer
        self.mlp_norm = nn.LayerNorm(config.width)
        self.in_proj = nn.Linear(config.width, config.mlp_ratio * config.width, bias=config.bias)
        self.out_proj = nn.Linear(config.mlp_ratio * config.width, config.width, bias=config.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return the stream after this layer, (b, t, width) -> (b, t, width)."""
        x = x + self.mixer(self.mixer_norm(x))
        return x + self.out_proj(gelu(self.in_proj(self.mlp_norm(x))))


def next_token_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the mean cross entropy in nats of logits (b, t, vocabulary) for what came, (b, t)."""
    return cross_entropy(logits.flatten(0, 1), targets.flatten())


def bits_per_byte(nats: float) -> float:
    """Return the bits per byte of a mean cross entropy in nats, for tokens that are bytes."""
    return nats / math.log(2)


@torch.no_grad()
def generate(
    model: LanguageModel,
    prompt: Tensor,
    steps: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Return the prompt with `steps` tokens drawn after it, (b, t) -> (b, t + steps).

    Only the last `block` tokens are looked at. Temperature 0 takes the likeliest token; `top_k` draws among so many.
    """
    if not temperature >= 0:
        raise InvalidInput(f"temperature must be at least 0, got {temperature}")
    if top_k is not None and not 1 <= top_k <= model.config.vocabulary:
        raise InvalidInput(f"top_k must be from 1 to the vocabulary of {model.config.vocabulary}, got {top_k}")
    tokens = prompt
    for _ in range(steps):
        logits = model(tokens[:, -model.config.block :])[:, -1]
        following = _draw(logits, temperature, top_k, generator)
        tokens = torch.cat((tokens, following), dim=1)
    return tokens


def _draw(logits: Tensor, temperature: float, top_k: int | None, generator: torch.Generator | None) -> Tensor:
    """Return a token for each row of logits, (b, vocabulary) -> (b, 1)."""
    if temperature == 0:
        return logits.argmax(-1, keepdim=True)
    if top_k is not None:
        logits, kept = logits.topk(top_k)
        return kept.gather(-1, torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator))
    return torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator)
