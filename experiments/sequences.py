"""What taking one fact out of a sequence leaves, over many sequences of a frozen `Recaller`."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch

from experiments.audit import Outcome, duality_gap, edit_gap, edit_row, forget_row
from experiments.cases import Cases, problem_of
from experiments.climb import Climbed
from experiments.recaller import ASKED, NUMBERS, answer, learned_keys, nearest, questions
from experiments.removal import ASCENT, EVERY, METHODS, SIMPLE, edited, gaussian
from svmem.types import Json

__all__ = ["Gaps", "forget_rows", "gaps_of", "leak_rows", "put_back_rows", "recall_row"]

Gaps = Mapping[str, float]  # the largest one of the memories that a method starts from or ends with


def gaps_of(cases: Cases, climbs: Mapping[str, Climbed]) -> Gaps:
    """Return the largest duality gap of the memories behind each method, and those called again and never."""
    problem, sigma = problem_of(cases.model, cases.model.weights), float(cases.model.layer.sigma)
    kernels = [gaussian(keys, keys, sigma) for keys in cases.keys]
    found: dict[str, float] = {}
    for name in ("none", "exact", "again", "never"):
        given = zip(cases.states, kernels, cases.secrets.tolist(), strict=True)
        gone = name in ("exact", "never")
        found[name] = max(duality_gap(one[name], kernel, problem, i if gone else None) for one, kernel, i in given)
    climbed = max(gap for climb in climbs.values() for gap in _climbed_gaps(cases, climb))
    return found | dict.fromkeys(SIMPLE, found["none"]) | {ASCENT: climbed}


def _climbed_gaps(cases: Cases, climb: Climbed) -> Iterator[float]:
    for i, keys in enumerate(learned_keys(climb.weights, cases.facts)):
        weights = {name: one[i] for name, one in climb.weights.items()}
        kernel = gaussian(keys, keys, float(weights["layer.log_sigma"].exp()))
        yield duality_gap(climb.states[i], kernel, problem_of(cases.model, weights))


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
    of_gate = {"mean_support": found.mean_support, "worst_gap": found.worst_gap} if found else {"mean_support": None}
    return {"part": "recall"} | numbers | of_gate


def forget_rows(cases: Cases, climbs: Mapping[str, Climbed], gaps: Gaps) -> Iterator[Json]:
    """Yield what each method leaves, gradient ascent last; then what it leaves if the question reads itself as well.

    climbs: the ascent, for each readout by its name.
    """
    aims = cases.values.numpy()[cases.rows, cases.secrets]
    for readout, climb in climbs.items():
        own = climb.own
        never = _outcome(cases, "never", own)
        for method in METHODS:
            row = forget_row(method, cases.secrets, aims, _outcome(cases, method, own), never)
            worst = max(gaps[method], gaps["never"])
            yield row | {"readout": readout, "ascent_steps": None, "worst_gap": worst}
        row = forget_row(ASCENT, cases.secrets, aims, _ascended(cases, climb), never)
        worst = max(gaps[ASCENT], gaps["never"])
        yield row | {"readout": readout, "ascent_steps": climb.steps, "worst_gap": worst}


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


def _ascended(cases: Cases, climb: Climbed) -> Outcome:
    """Return what memories are like whose keys come from weights of their own, nothing being taken out of them."""
    keys, scores, apart, sigma = learned_keys(climb.weights, cases.facts), [], [], float(cases.model.layer.sigma)
    for i, secret in enumerate(cases.secrets):
        state, width = climb.states[i], float(climb.weights["layer.log_sigma"][i].exp())
        scores.append(state.score(gaussian(keys[i][[secret]], keys[i], width))[0])
        expected = cases.states[i]["never"].score(gaussian(cases.points[i], cases.keys[i], sigma))
        apart.append(np.abs(state.score(gaussian(cases.points[i], keys[i], width)) - expected).max())
    answers = climb.answers(cases, cases.asked)
    at_secret = answers.numpy()[cases.rows, cases.secrets]
    none = np.zeros(len(apart), dtype=np.bool_)
    return Outcome(nearest(answers, cases.values), at_secret, np.array(scores), np.array(apart), none)


def leak_rows(
    cases: Cases, noises: Sequence[float], generator: torch.Generator, climb: Climbed, gaps: Gaps
) -> Iterator[Json]:
    """Yield how often the secret is still answered when its question is put in other words: with noise on its key."""
    for noise in noises:
        asked = questions(cases.facts, noise, generator).gather(1, cases.place)
        for method in EVERY:
            answers = climb.answers(cases, asked) if method == ASCENT else cases.answers(method, asked)
            hits = int((nearest(answers, cases.values)[:, 0] == cases.secrets).sum())
            row = {"part": "leak", "method": method, "words": str(noise), "secret_hits": hits, "secrets": len(asked)}
            yield row | {"worst_gap": gaps[method]}


def put_back_rows(cases: Cases, generator: torch.Generator, gaps: Gaps) -> Iterator[Json]:
    """Yield how a fact comes back that was forgotten and added again, and what edits of its value leave."""
    first, back = (cases.answers(name, cases.asked) for name in ("none", "again"))
    right = [nearest(one, cases.values)[cases.rows, cases.secrets] == cases.secrets for one in (first, back)]
    numbers = {"secret_hits": int((right[0] & right[1]).sum()), "secrets": int(right[0].sum())}
    row = {"part": "again", "method": "exact"} | numbers | {"worst_deviation": float((first - back).abs().max())}
    yield row | {"worst_gap": max(gaps["none"], gaps["again"])}
    new = cases.facts.gather(1, cases.place).clone()
    new[..., NUMBERS:] = torch.randn(new[..., NUMBERS:].shape, generator=generator, dtype=new.dtype)
    facts = torch.cat([cases.facts, new], dim=1)
    keys, values, sigma = learned_keys(cases.model.weights, facts), facts[..., NUMBERS:], float(cases.model.layer.sigma)
    problem = problem_of(cases.model, cases.model.weights)
    given = zip(keys, values.numpy(), cases.secrets.tolist(), strict=True)
    states = [edited(*one, problem) for one in given]
    points = np.concatenate([cases.points, keys[:, -1:]], axis=1)
    kernels = [gaussian(*one, sigma) for one in zip(points, keys, strict=True)]
    solved = edit_gap(states, [gaussian(one, one, sigma) for one in keys], cases.secrets, problem)
    for method in ("exact", "decay 0.01"):
        alpha = torch.tensor(np.stack([one[method].alpha for one in states]))
        answers = answer(cases.model.weights, facts, alpha, cases.asked.gather(1, cases.place))
        row = edit_row(method, cases.secrets, nearest(answers, values)[:, 0], states, kernels)
        yield row | {"worst_gap": max(solved, gaps["none"])}
