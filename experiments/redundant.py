"""Which facts survive when a sequence repeats some of them and only part of its tokens is kept."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from experiments.cases import problem_of
from experiments.recaller import NOISE, NUMBERS, Recaller, answer, learned_keys, nearest, questions
from experiments.removal import gaussian, solved_all
from svmem.types import Json, Keys

__all__ = ["RULES", "keep_rows"]

RULES = ("support", "heavy-hitter", "last k", "random")

RARE, DENSE, COPIES, COPY_NOISE = 2, 3, 4, 0.01  # the rare facts come first, so the last tokens are copies
DRAWS = 4  # of the random choice

Places = NDArray[np.int64]


def keep_rows(model: Recaller, count: int, generator: torch.Generator) -> Iterator[Json]:
    """Yield which facts are answered when as many tokens are kept as the gate supports, all with one coefficient."""
    kinds = np.repeat(np.arange(RARE + DENSE), [1] * RARE + [COPIES] * DENSE)
    facts = torch.randn(count, RARE + DENSE, 2 * NUMBERS, generator=generator, dtype=torch.float64)
    tokens = facts[:, kinds]
    noise = COPY_NOISE * torch.randn(tokens.shape, generator=generator, dtype=tokens.dtype)
    tokens[:, RARE:] += noise[:, RARE:]
    asked, keys = questions(facts, NOISE, generator), learned_keys(model.weights, tokens)
    supports = [
        np.flatnonzero(solved_all(*one, problem_of(model, model.weights)).alpha)
        for one in zip(keys, tokens[..., NUMBERS:].numpy(), strict=True)
    ]
    rng = np.random.default_rng(generator.initial_seed())
    for method, choices in _kept(keys, supports, float(model.layer.sigma), rng).items():
        right = []
        for places in choices:
            alpha = torch.zeros(count, len(kinds), dtype=torch.float64)
            for row, some in zip(alpha, places, strict=True):
                row[some] = 1 / len(some)
            answers = answer(model.weights, tokens, alpha, asked)
            right.append(nearest(answers, facts[..., NUMBERS:]) == np.arange(RARE + DENSE))
        rare, dense = np.split(np.concatenate(right), [RARE], axis=1)
        numbers = {"rare_hits": int(rare.sum()), "rare": rare.size, "dense_hits": int(dense.sum()), "dense": dense.size}
        budget = float(np.mean([len(some) for some in supports]))
        yield {"part": "keep", "method": method, "budget": budget, "of": len(kinds)} | numbers


def _kept(keys: Keys, supports: list[Places], sigma: float, rng: np.random.Generator) -> dict[str, list[list[Places]]]:
    """Return for each rule its choices over all sequences: one, and several of the random rule."""
    n = keys.shape[1]
    mass = [gaussian(one, one, sigma).sum(axis=1) for one in keys]
    heavy = [np.argsort(-one, kind="stable")[: len(some)] for one, some in zip(mass, supports, strict=True)]
    last = [np.arange(n - len(some), n) for some in supports]
    drawn = [[rng.choice(n, len(some), replace=False) for some in supports] for _ in range(DRAWS)]
    return dict(zip(RULES, ([supports], [heavy], [last], drawn), strict=True))
