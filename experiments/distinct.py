"""The negative control: pairs that are all distinct, so that a gate has nothing to leave out. [Ramesh2026]"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from svmem.nn import gate
from svmem.types import Json

__all__ = ["MIXERS", "Pairs", "train"]

MIXERS = ("gated", "ungated", "softmax")
PAIRS, KEY, VALUE, NOISE = 10, 5, 3, 0.05
BATCH, RATE, C, SIGMA = 4, 0.03, 0.3, 1.5
ASKED = 200  # queries, ten a sequence


class Pairs(nn.Module):
    """Answers queries (b, m, 5) from pairs: one projection of keys and queries to 4 numbers, one of values to 3.

    gated: RBF weights times the gate's coefficients; ungated: RBF weights; softmax: of the scaled inner products.
    """

    def __init__(self, mixer: str) -> None:
        super().__init__()
        self.mixer = mixer
        self.key, self.value = nn.Linear(KEY, 4), nn.Linear(VALUE, VALUE)
        self.support = 0.0  # share of the pairs with a coefficient, in the last pass

    def forward(self, keys: Tensor, values: Tensor, queries: Tensor) -> Tensor:
        """Return answers (b, m, 3)."""
        k, q = self.key(keys), self.key(queries)
        if self.mixer == "softmax":
            log_weight = q @ k.mT / k.shape[-1] ** 0.5
        else:
            log_weight = -(q[:, :, None] - k[:, None]).square().sum(-1) / SIGMA**2
        if self.mixer == "gated":
            # (b, 1, n, 4) -> coefficients (b, 1, n) of the only prefix; a weight of 0 is minus infinity here
            alpha = gate(k[:, None], [k.shape[1]], C=C, sigma=SIGMA).dense(k.shape[1])[:, 0]
            self.support = float((alpha > 0).double().mean())
            log_weight = log_weight + alpha.clamp_min(1e-30).log()
        return log_weight.softmax(-1) @ self.value(values)


def train(mixer: str, seed: int, steps: int, advance: Callable[[float], None]) -> Json:
    """Return the share of queries whose answer is nearest to their own value, after training on new pairs each step."""
    torch.manual_seed(seed)
    model, rng = Pairs(mixer), np.random.default_rng(seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE)
    for step in range(steps):
        keys, values, queries = _draw(rng, BATCH)
        loss = mse_loss(model(keys, values, queries), values)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        advance((step + 1) / steps)
    with torch.no_grad():
        keys, values, queries = _draw(rng, ASKED // PAIRS)
        nearest = torch.cdist(model(keys, values, queries), values).argmin(-1)
    recall = float((nearest == torch.arange(PAIRS)).double().mean())
    return {"mixer": mixer, "seed": seed, "recall": recall, "support": model.support if mixer == "gated" else None}


def _draw(rng: np.random.Generator, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return keys, values and queries, which are the keys with noise, of `count` sequences."""
    keys, values = rng.standard_normal((count, PAIRS, KEY)), rng.standard_normal((count, PAIRS, VALUE))
    queries = keys + NOISE * rng.standard_normal(keys.shape)
    return torch.tensor(keys).float(), torch.tensor(values).float(), torch.tensor(queries).float()
