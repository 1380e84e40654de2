"""A student attention layer that fits a fixed teacher, once with the exact gate and once with the paper's path."""

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from svmem.baselines.fista_gate import fista_gate
from svmem.nn import gate
from svmem.types import Json

__all__ = ["train_both"]

WIDTH, HEADS, TOKENS, CHUNK, BATCH = 32, 2, 64, 16, 4
CAP, SIGMA, RIDGE = 0.1, 1.0, 1e-3
BOUNDARIES = range(CHUNK, TOKENS, CHUNK)
SHOWN = 9  # points of a curve that a row keeps, first and last step included


def exact(keys: Tensor) -> Tensor:
    """Return the dense coefficients of the exact gate, (b, h, B, t)."""
    return gate(keys, BOUNDARIES, C=CAP, sigma=SIGMA, ridge=RIDGE).dense(TOKENS)


def fista(keys: Tensor) -> Tensor:
    """Return the dense coefficients of the paper's training path."""
    return fista_gate(keys, BOUNDARIES, C=CAP, sigma=SIGMA, ridge=RIDGE)


class Layer(nn.Module):
    """Hybrid attention with normalised keys, read out densely so that only the gates differ."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.inward = nn.Parameter(torch.randn(WIDTH, 3 * WIDTH, generator=generator) / WIDTH**0.5)
        self.outward = nn.Parameter(torch.randn(WIDTH, WIDTH, generator=generator) / WIDTH**0.5)

    def forward(self, x: Tensor, coefficients: Callable[[Tensor], Tensor]) -> Tensor:
        """Return (b, t, WIDTH)."""
        parts = (x @ self.inward).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)  # (3, b, h, t, d)
        query, key, value = parts[0], nn.functional.normalize(parts[1], dim=-1), parts[2]
        read = torch.softmax(4 * query @ key.transpose(-1, -2) + log_weights(coefficients(key)), -1) @ value
        return read.transpose(1, 2).flatten(2) @ self.outward


def log_weights(alpha: Tensor) -> Tensor:
    """Return what each token (row) adds to the logit of each other: log alpha earlier, 0 in its own chunk, else -inf.

    What the approximate gate puts at or below 0 is silent, since it has no logarithm.
    """
    held = torch.where(alpha > 0, alpha, 1).log().masked_fill(alpha <= 0, -torch.inf)
    nothing = torch.full_like(held[:, :, :1], -torch.inf)
    place = torch.arange(TOKENS)
    earlier = torch.cat([nothing, held], 2)[:, :, place // CHUNK]  # (b, h, t, t)
    own = (place[:, None] // CHUNK == place // CHUNK) & (place[:, None] >= place)
    return torch.where(own, torch.zeros_like(earlier), earlier)


def batch(tokens: str, rng: np.random.Generator) -> Tensor:
    """Return (BATCH, TOKENS, WIDTH) inputs: independent tokens, or near copies of six."""
    x = rng.standard_normal((BATCH, TOKENS, WIDTH))
    if tokens == "redundant":
        centres = rng.standard_normal((BATCH, 6, WIDTH))
        x = np.take_along_axis(centres, rng.integers(6, size=(BATCH, TOKENS, 1)), axis=1) + 0.02 * x
    return torch.tensor(x, dtype=torch.float32)


def train_both(tokens: str, seed: int, steps: int) -> list[Json]:
    """Return one row for each gate: the losses of two students that see the same batches in turn.

    A loss is the mean squared distance to the teacher's output, whose gate is exact, over that output's mean square.
    """
    ways = {"ours": exact, "fista": fista}
    teacher = Layer(1000 + seed).requires_grad_(False)
    students = {way: Layer(seed) for way in ways}
    optimisers = {way: torch.optim.Adam(students[way].parameters(), lr=3e-3) for way in ways}
    losses: dict[str, list[float]] = {way: [] for way in ways}
    spent = dict.fromkeys(ways, 0.0)
    rng = np.random.default_rng([seed, len(tokens)])
    for _ in range(steps):
        x = batch(tokens, rng)
        target = teacher(x, exact)
        for way, coefficients in ways.items():
            start = time.perf_counter()
            loss = (students[way](x, coefficients) - target).square().mean() / target.square().mean()
            optimisers[way].zero_grad()
            loss.backward()
            optimisers[way].step()
            spent[way] += time.perf_counter() - start
            losses[way].append(loss.item())
    shown = np.linspace(0, steps - 1, min(SHOWN, steps)).round().astype(int)
    return [
        {
            "measure": "training",
            "tokens": tokens,
            "student": seed,
            "gate": way,
            "steps": steps,
            "ms_a_step": 1e3 * spent[way] / steps,
            "last_loss": float(np.mean(losses[way][-10:])),
            "finite": bool(np.isfinite(losses[way]).all()),
            "curve": [round(losses[way][i], 4) for i in shown],
        }
        for way in ways
    ]
