"""Forgetting by gradient ascent on the weights of the model, as the other way to unlearn a fact of a sequence."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from experiments.cases import Cases, problem_of
from experiments.recaller import Weights, answer, learned_keys
from experiments.removal import State, solved_all

__all__ = ["Climbed", "climbed"]


@dataclass(frozen=True, slots=True)
class Climbed:
    """A set of weights a case, the states of memories of the keys that they give, and the mean number of steps.

    own: the coefficient of a question in the readout that climbed.
    """

    weights: Weights
    states: list[State]
    steps: float
    own: float

    def answers(self, cases: Cases, asked: Tensor) -> Tensor:
        """Return the answers (c, m, 8) to questions (c, m, 16)."""
        alpha = torch.tensor(np.stack([state.alpha for state in self.states]))
        return answer(self.weights, cases.facts, alpha, asked, self.own)


def climbed(cases: Cases, own: float, lr: float, steps: int) -> Climbed:
    """Let weights climb until the secret of each case is not answered, and solve again for the keys they give."""
    weights, taken = _climb(cases, own, lr, steps)
    states = []
    for i, keys in enumerate(learned_keys(weights, cases.facts)):
        problem = problem_of(cases.model, {name: one[i] for name, one in weights.items()})
        states.append(solved_all(keys, cases.values[i].numpy(), problem))
    return Climbed(weights, states, taken, own)


def _climb(cases: Cases, own: float, lr: float, steps: int) -> tuple[dict[str, Tensor], float]:
    """Let weights, a set a case, climb the loss of its secret until that is not answered; return also the mean steps.

    The loss: by how much the answer lies farther, in square, from the secret's value than from the nearest other one.
    """
    weights = {
        name: one.detach().repeat(len(cases.facts), *[1] * one.dim()) for name, one in cases.model.weights.items()
    }
    optimiser = torch.optim.Adam([one.requires_grad_(True) for one in weights.values()], lr=lr)
    question, alpha, taken = cases.asked.gather(1, cases.place), cases.alpha("none"), 0
    secrets = torch.from_numpy(cases.secrets)[:, None]
    for _ in range(steps):
        found = answer(weights, cases.facts, alpha, question, own)
        dist2 = (found - cases.values).square().sum(2)
        loss = dist2.gather(1, secrets) - dist2.scatter(1, secrets, torch.inf).amin(1, keepdim=True)
        on = loss[:, 0] < 0
        if not on.any():
            break
        optimiser.zero_grad()
        (-loss.sum()).backward()
        before = {name: one.detach().clone() for name, one in weights.items()}
        optimiser.step()
        with torch.no_grad():
            for name, one in weights.items():
                one[~on] = before[name][~on]  # there it has come to its end
        taken += int(on.sum())
    return {name: one.detach() for name, one in weights.items()}, taken / len(cases.facts)
