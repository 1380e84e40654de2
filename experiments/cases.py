"""Sequences of facts to a frozen `Recaller`, a secret in each, and memories from which it was taken out."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from experiments.recaller import NOISE, NUMBERS, Recaller, Weights, answer, learned_keys, questions
from experiments.removal import State, forgotten, probes
from svmem import Problem
from svmem.kernels import RBF
from svmem.types import Keys

__all__ = ["Cases", "cases_of", "problem_of"]


@dataclass(frozen=True, slots=True)
class Cases:
    """Sequences of facts (c, n, 16), questions for all of them, a secret each, and the states after each method."""

    model: Recaller
    facts: Tensor
    asked: Tensor
    secrets: NDArray[np.int64]
    keys: Keys  # (c, n, d)
    points: Keys  # (c, 2 n, d) where scores are compared
    states: list[dict[str, State]]

    @property
    def values(self) -> Tensor:
        """The values (c, n, 8)."""
        return self.facts[..., NUMBERS:]

    @property
    def rows(self) -> NDArray[np.int64]:
        """The numbers of the cases."""
        return np.arange(len(self.facts))

    @property
    def place(self) -> Tensor:
        """The places of the secrets, as `gather` wants them for tokens."""
        return torch.from_numpy(self.secrets)[:, None, None].expand(-1, -1, 2 * NUMBERS)

    def alpha(self, method: str) -> Tensor:
        """Return the coefficients (c, n) after a method."""
        return torch.tensor(np.stack([states[method].alpha for states in self.states]))

    def answers(self, method: str, asked: Tensor, own: float = 0.0) -> Tensor:
        """Return the answers (c, m, 8) to questions (c, m, 16) after a method."""
        return answer(self.model.weights, self.facts, self.alpha(method), asked, own)


def problem_of(model: Recaller, weights: Weights) -> Problem:
    """Return what the gate of the layer solves."""
    return Problem(RBF(float(weights["layer.log_sigma"].exp())), model.layer.C, model.layer.ridge)


def cases_of(model: Recaller, count: int, generator: torch.Generator) -> Cases:
    """Return so many cases of a model in float64."""
    n = model.layer.chunk
    facts = torch.randn(count, n, 2 * NUMBERS, generator=generator, dtype=torch.float64)
    secrets = torch.randint(n, (count,), generator=generator).numpy()
    asked, keys = questions(facts, NOISE, generator), learned_keys(model.weights, facts)
    rng = np.random.default_rng(generator.initial_seed())
    points, problem = np.stack([probes(one, rng) for one in keys]), problem_of(model, model.weights)
    given = zip(keys, facts[..., NUMBERS:].numpy(), secrets.tolist(), strict=True)
    return Cases(model, facts, asked, secrets, keys, points, [forgotten(*one, problem) for one in given])
