"""The model that recalls facts of one sequence: one support-vector layer with the RBF readout. [Ramesh2026]

A token is [key; value], eight numbers each; a question is [key with noise; 0]. Frozen, the model is asked again with
coefficients that did not come from its own gate: those of a memory from which a fact was taken out.
"""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from svmem.nn import SVAttention
from svmem.types import Keys

__all__ = [
    "ASKED",
    "NOISE",
    "NUMBERS",
    "Recaller",
    "Weights",
    "answer",
    "learned_keys",
    "nearest",
    "questions",
    "train",
]

Weights = Mapping[str, Tensor]

NUMBERS = 8  # of a key, and of a value
NOISE = 0.02  # on the key of a question
ASKED = 4  # questions of a sequence in training


class Recaller(nn.Module):
    """Tokens (b, t, 16) to values (b, t, 8)."""

    def __init__(self, facts: int, width: int, C: float, sigma: float) -> None:
        super().__init__()
        self.embed = nn.Linear(2 * NUMBERS, width)
        self.layer = SVAttention(width, 1, chunk=facts, C=C, sigma=sigma)
        self.head = nn.Linear(width, NUMBERS)

    def forward(self, x: Tensor) -> Tensor:
        """Return the values, answered by the model's own gate."""
        return self.head(self.layer(self.embed(x)))

    @property
    def weights(self) -> Weights:
        """The weights by name."""
        return dict(self.named_parameters())


def learned_keys(weights: Weights, facts: Tensor) -> Keys:
    """Return the learned keys (b, n, width) of facts (b, n, 16)."""
    return _projected(weights, facts)[1].numpy()


def answer(weights: Weights, facts: Tensor, alpha: Tensor, asked: Tensor, own: float = 0.0) -> Tensor:
    """Return the answers (b, m, 8) to questions (b, m, 16), each alone, with coefficients alpha (b, n) of the facts.

    own: the coefficient of the question itself. With C and the gate's alpha this is what the layer answers; with 0, and
    so by default, the memory alone is read. All may have one set of weights, or each of b its own.
    """
    _, key, value = _projected(weights, facts)
    query, own_key, own_value = _projected(weights, asked)
    width2 = (2 * weights["layer.log_sigma"]).exp().unsqueeze(-1)
    near = alpha.log().unsqueeze(-2) - (query.unsqueeze(-2) - key.unsqueeze(-3)).square().sum(-1) / width2
    self_near = torch.tensor(own, dtype=alpha.dtype).log() - (query - own_key).square().sum(-1, keepdim=True) / width2
    weight = torch.cat([near, self_near], dim=-1).softmax(-1)
    read = weight[..., :-1] @ value + weight[..., -1:] * own_value
    return _dense(weights, "head", _dense(weights, "layer.out_proj", read))


def _projected(weights: Weights, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    query, key, value = _dense(weights, "layer.qkv_proj", _dense(weights, "embed", x)).chunk(3, dim=-1)
    return query, key, value


def _dense(weights: Weights, name: str, x: Tensor) -> Tensor:
    return x @ weights[f"{name}.weight"].mT + weights[f"{name}.bias"].unsqueeze(-2)


def questions(facts: Tensor, noise: float, generator: torch.Generator) -> Tensor:
    """Return a question (b, n, 16) for each fact: its key with noise, and no value."""
    key = facts[..., :NUMBERS]
    key = key + noise * torch.randn(key.shape, generator=generator, dtype=key.dtype)
    return torch.cat([key, torch.zeros_like(key)], dim=2)


def nearest(answers: Tensor, values: Tensor) -> NDArray[np.int64]:
    """Return which of the values (b, n, 8) lies nearest to each answer (b, m, 8)."""
    return torch.cdist(answers, values).argmin(2).numpy()


def train(
    model: Recaller, steps: int, batch: int, lr: float, generator: torch.Generator, tick: Callable[[float], None]
) -> float:
    """Let a model learn to answer 4 of the facts of a sequence, and return its last loss."""
    optimiser, loss, n = torch.optim.Adam(model.parameters(), lr=lr), torch.zeros(()), model.layer.chunk
    for step in range(steps):
        facts = torch.randn(batch, n, 2 * NUMBERS, generator=generator)
        chosen = torch.rand(batch, n, generator=generator).argsort(1)[:, :ASKED, None]
        asked = questions(facts, NOISE, generator).gather(1, chosen.expand(-1, -1, 2 * NUMBERS))
        aim = facts[..., NUMBERS:].gather(1, chosen.expand(-1, -1, NUMBERS))
        loss = mse_loss(model(torch.cat([facts, asked], dim=1))[:, n:], aim)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        tick((step + 1) / steps)
    return float(loss.detach())
