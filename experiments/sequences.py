"""What taking one fact out of a sequence leaves, over many sequences of a frozen `Recaller`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from experiments.audit import Outcome, edit_row, forget_row
from experiments.recaller import ASKED, NOISE, NUMBERS, Recaller, Weights, answer, learned_keys, nearest, questions
from experiments.removal import METHODS, State, edited, forgotten, gaussian, probes, solved_all
from svmem import Problem
from svmem.kernels import RBF
from svmem.types import Json, Keys

__all__ = ["Cases", "cases_of", "forget_rows", "leak_rows", "problem_of", "put_back_rows", "recall_row"]


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


def recall_row(cases: Cases, generator: torch.Generator) -> Json:
    """Return the share recalled as trained, by the model's own gate, and how near a `Memory` comes to that gate."""
    n, layer = cases.facts.shape[1], cases.model.layer
    chosen = torch.rand(cases.facts.shape[:2], generator=generator).argsort(1)[:, :ASKED]
    asked = cases.asked.gather(1, chosen.unsqueeze(2).expand(-1, -1, 2 * NUMBERS))
    answers = cases.model(torch.cat([cases.facts, asked], dim=1))[:, n:]
    hits = int((nearest(answers, cases.values) == chosen.numpy()).sum())
    found = layer.statistics
    # The first question reads nothing but the facts and itself, as in `answer`.
    apart = float((cases.answers("none", asked[:, :1], layer.C) - answers[:, :1]).abs().max())
    numbers = {"hits": hits, "asked": chosen.numel(), "chance": 1 / n, "answer_apart": apart}
    return {"part": "recall"} | numbers | {"mean_support": found.mean_support if found else None}


def forget_rows(cases: Cases, ascent_lr: float, ascent_steps: int) -> Iterator[Json]:
    """Yield what each method leaves, gradient ascent last; then what it leaves if the question reads itself as well."""
    aims = cases.values.numpy()[cases.rows, cases.secrets]
    for readout, own in (("memory", 0.0), ("layer", cases.model.layer.C)):
        never = _outcome(cases, "never", own)
        for method in METHODS:
            row = forget_row(method, cases.secrets, aims, _outcome(cases, method, own), never)
            yield row | {"readout": readout, "ascent_steps": None}
        weights, steps = _climb(cases, own, ascent_lr, ascent_steps)
        row = forget_row("ascent", cases.secrets, aims, _ascended(cases, weights, own), never)
        yield row | {"readout": readout, "ascent_steps": steps}


def _outcome(cases: Cases, method: str, own: float) -> Outcome:
    answers = cases.answers(method, cases.asked, own)
    sigma, scores, apart = float(cases.model.layer.sigma), [], []
    for keys, points, states, secret in zip(cases.keys, cases.points, cases.states, cases.secrets, strict=True):
        kernel = gaussian(points, keys, sigma)
        score, expected = (states[name].score(kernel) for name in (method, "never"))
        scores.append(score[secret])
        apart.append(np.abs(score - expected).max())
    return Outcome(
        found=nearest(answers, cases.values),
        answer=answers.numpy()[cases.rows, cases.secrets],
        score=np.array(scores),
        deviation=np.array(apart),
        same=np.array([states[method].digest == states["never"].digest for states in cases.states]),
    )


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


def _ascended(cases: Cases, weights: Weights, own: float) -> Outcome:
    """Return what memories are like whose keys come from weights of their own, nothing being taken out of them."""
    keys, scores, apart, alpha = learned_keys(weights, cases.facts), [], [], []
    for i, secret in enumerate(cases.secrets):
        problem = problem_of(cases.model, {name: one[i] for name, one in weights.items()})
        state, width = solved_all(keys[i], cases.values[i].numpy(), problem), float(weights["layer.log_sigma"][i].exp())
        alpha.append(state.alpha)
        scores.append(state.score(gaussian(keys[i][[secret]], keys[i], width))[0])
        expected = cases.states[i]["never"].score(
            gaussian(cases.points[i], cases.keys[i], float(cases.model.layer.sigma))
        )
        apart.append(np.abs(state.score(gaussian(cases.points[i], keys[i], width)) - expected).max())
    answers = answer(weights, cases.facts, torch.tensor(np.stack(alpha)), cases.asked, own)
    at_secret = answers.numpy()[cases.rows, cases.secrets]
    none = np.zeros(len(apart), dtype=np.bool_)
    return Outcome(nearest(answers, cases.values), at_secret, np.array(scores), np.array(apart), none)


def leak_rows(cases: Cases, noises: Sequence[float], generator: torch.Generator) -> Iterator[Json]:
    """Yield how often the secret is still answered when its question is put in other words: with noise on its key."""
    for noise in noises:
        asked = questions(cases.facts, noise, generator).gather(1, cases.place)
        for method in METHODS:
            hits = int((nearest(cases.answers(method, asked), cases.values)[:, 0] == cases.secrets).sum())
            yield {"part": "leak", "method": method, "words": str(noise), "secret_hits": hits, "secrets": len(asked)}


def put_back_rows(cases: Cases, generator: torch.Generator) -> Iterator[Json]:
    """Yield how a fact comes back that was forgotten and added again, and what edits of its value leave."""
    first, back = (cases.answers(name, cases.asked) for name in ("none", "again"))
    right = [nearest(one, cases.values)[cases.rows, cases.secrets] == cases.secrets for one in (first, back)]
    numbers = {"secret_hits": int((right[0] & right[1]).sum()), "secrets": int(right[0].sum())}
    yield {"part": "again", "method": "exact"} | numbers | {"worst_deviation": float((first - back).abs().max())}
    new = cases.facts.gather(1, cases.place).clone()
    new[..., NUMBERS:] = torch.randn(new[..., NUMBERS:].shape, generator=generator, dtype=new.dtype)
    facts = torch.cat([cases.facts, new], dim=1)
    keys, values, sigma = learned_keys(cases.model.weights, facts), facts[..., NUMBERS:], float(cases.model.layer.sigma)
    problem = problem_of(cases.model, cases.model.weights)
    given = zip(keys, values.numpy(), cases.secrets.tolist(), strict=True)
    states = [edited(*one, problem) for one in given]
    points = np.concatenate([cases.points, keys[:, -1:]], axis=1)
    kernels = [gaussian(*one, sigma) for one in zip(points, keys, strict=True)]
    for method in ("exact", "decay 0.01"):
        alpha = torch.tensor(np.stack([one[method].alpha for one in states]))
        answers = answer(cases.model.weights, facts, alpha, cases.asked.gather(1, cases.place))
        yield edit_row(method, cases.secrets, nearest(answers, values)[:, 0], states, kernels)
