"""Which facts survive when a sequence repeats some of them and only part of its tokens is kept, and what that shows.

Rules that look at queries are left out: tokens are dropped before the first question is asked.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from experiments.audit import wilson
from experiments.cases import problem_of
from experiments.ledger import Claim
from experiments.recaller import NOISE, NUMBERS, Recaller, answer, learned_keys, nearest, questions
from svmem.baselines.selection import KEY_ONLY, Recency, Scene, Selector, SelfMass, Support, Uniform
from svmem.types import Ids, Json

__all__ = ["ALL", "PAPER", "RARE_ONLY", "RULES", "TOKENS", "answered", "keep_claims", "keep_rows"]

PAPER = ("support", "heavy-hitter", "last k", "random")  # as the paper calls them
_THEIRS: dict[str, Selector] = dict(zip(PAPER, (Support(), SelfMass(), Recency(), Uniform()), strict=True))
_NAMES = {rule.name for rule in _THEIRS.values()}
RULES: dict[str, Selector] = _THEIRS | {rule.name: rule for rule in KEY_ONLY if rule.name not in _NAMES}

RARE, DENSE, COPIES, COPY_NOISE = 2, 3, 4, 0.01  # the rare facts come first, so the last tokens are copies
FACTS, TOKENS = RARE + DENSE, RARE + DENSE * COPIES
DRAWN = ("random", "reservoir", "farthest-point", "k-medoids")
DRAWS = 4  # of their choices
RARE_ONLY, ALL = ("rare_hits",), ("rare_hits", "dense_hits")


def keep_rows(
    model: Recaller, count: int, budgets: Sequence[int], generator: torch.Generator, advance: Callable[[float], None]
) -> Iterator[Json]:
    """Yield which facts are answered from the tokens that each rule keeps, all with one coefficient.

    matched: as many tokens as the gate supports, which differs from sequence to sequence; else one of the budgets.
    """
    kinds = np.repeat(np.arange(FACTS), [1] * RARE + [COPIES] * DENSE)
    facts = torch.randn(count, FACTS, 2 * NUMBERS, generator=generator, dtype=torch.float64)
    tokens = facts[:, kinds]
    noise = COPY_NOISE * torch.randn(tokens.shape, generator=generator, dtype=tokens.dtype)
    tokens[:, RARE:] += noise[:, RARE:]
    asked, problem = questions(facts, NOISE, generator), problem_of(model, model.weights)
    scenes = [Scene(one, problem) for one in learned_keys(model.weights, tokens)]
    matched = [int((scene.solution.alpha > 0).sum()) for scene in scenes]
    common = {"of": TOKENS, "worst_gap": max(scene.solution.gap for scene in scenes)}
    sizes = [matched, *([budget] * count for budget in budgets)]
    for place, size in enumerate(sizes):
        for method, rule in RULES.items():
            rng = np.random.default_rng(generator.initial_seed())
            draws = DRAWS if method in DRAWN else 1
            chosen = [_selected(rule, scenes, size, rng) for _ in range(draws)]
            right = [_answered(model, facts, tokens, asked, places) for places in chosen]
            row = {"part": "keep", "method": method, "matched": place == 0, "budget": float(np.mean(size))}
            kept = sum(int((one < RARE).sum()) for places in chosen for one in places)
            yield row | common | {"draws": draws, "rare_kept": kept} | _hits(np.concatenate(right))
        advance((place + 1) / len(sizes))


def _selected(rule: Selector, scenes: Sequence[Scene], sizes: Sequence[int], rng: np.random.Generator) -> list[Ids]:
    return [rule.select(scene, size, rng) for scene, size in zip(scenes, sizes, strict=True)]


def _answered(model: Recaller, facts: Tensor, tokens: Tensor, asked: Tensor, kept: Sequence[Ids]) -> np.ndarray:
    """Return which facts (c, f) are answered from the tokens kept."""
    alpha = torch.zeros(tokens.shape[:2], dtype=torch.float64)
    for row, places in zip(alpha, kept, strict=True):
        row[places] = 1 / len(places)
    answers = answer(model.weights, tokens, alpha, asked)
    return nearest(answers, facts[..., NUMBERS:]) == np.arange(FACTS)


def _hits(right: np.ndarray) -> Json:
    rare, dense = np.split(right, [RARE], axis=1)
    return {"rare_hits": int(rare.sum()), "rare": rare.size, "dense_hits": int(dense.sum()), "dense": dense.size}


def keep_claims(keep: Sequence[Json]) -> list[Claim]:
    """Return what the paper says of as many tokens as the gate supports, then what is ours: also of other budgets."""
    matched = [row for row in keep if row["matched"]]
    return [_of_paper(matched), _of_copies(matched), _of_budgets(keep, RARE_ONLY), _of_budgets(keep, ALL)]


def _of_paper(matched: Sequence[Json]) -> Claim:
    """Return what the rules of the paper keep of the facts that are told once."""
    shares = [answered(matched, method) for method in PAPER]
    found = [share for share, _, _ in shares]
    text = "rare facts are answered 1.00 from the support; 0.16, 0.08, 0.87 from heavy-hitters, last k, random"
    text += f": {', '.join(map(_said, shares))}, with {_size(matched)} of {TOKENS} tokens kept"
    return Claim(text, found[0] >= 0.99 and found[0] > found[3] > max(found[1:3]))


def _of_copies(matched: Sequence[Json]) -> Claim:
    """Return whether two rules of the paper keep fewer tokens of rare facts than chance does."""
    shares = {method: answered(matched, method, ("rare_kept",)) for method in PAPER}
    said = {method: _said(share) for method, share in shares.items()}
    text = f"with {_size(matched)} of {TOKENS} tokens kept heavy-hitters and last k both keep the copies, and of the"
    text += f" tokens told once {said['heavy-hitter']} and {said['last k']}; chance keeps {said['random']} of these,"
    chance = shares["random"][1]
    holds = max(shares["heavy-hitter"][2], shares["last k"][2]) < chance <= shares["support"][0]
    return Claim(f"{text} support {said['support']}", holds, ours=True)


def _of_budgets(keep: Sequence[Json], hits: Sequence[str]) -> Claim:
    """Return whether no rule answers more facts than support at any budget, so that their intervals do not meet."""
    sizes: dict[str, list[Json]] = {}
    for budget in dict.fromkeys(None if row["matched"] else row["budget"] for row in keep):
        some = [row for row in keep if (None if row["matched"] else row["budget"]) == budget]
        sizes[_size(some)] = some
    own = {size: answered(sizes[size], "support", hits) for size in sorted(sizes, key=float)}
    more: dict[str, list[str]] = {}
    same: dict[str, list[str]] = {}
    for size, (_, least, most) in own.items():
        for method in RULES:
            share, low, high = answered(sizes[size], method, hits)
            if method != "support" and low > most:
                more.setdefault(method, []).append(f"{share:.2f} with {size}")
            elif method != "support" and high >= least:
                same.setdefault(method, []).append(size)
    same = {rule: ["all"] if len(found) == len(own) else found for rule, found in same.items()}
    facts = "facts told once" if hits == RARE_ONLY else "facts in all"
    text = f"no rule answers more {facts} than support with {', '.join(own)} of {TOKENS} tokens kept: support"
    text += f" {', '.join(map(_said, own.values()))}"
    text += f"; more: {_by_rule(more)}; within the intervals as many: {_by_rule(same, 'with ')}"
    if "StreamingLLM" in more or "StreamingLLM" in same:
        text += " (StreamingLLM keeps the first tokens, and these are the ones told once)"
    return Claim(text, not more, ours=True)


def answered(rows: Sequence[Json], method: str, hits: Sequence[str] = ("rare_hits",)) -> tuple[float, float, float]:
    """Return a share of the facts with its interval. Draws of a rule are no further facts: they count as their mean."""
    mine = [row for row in rows if row["method"] == method]
    total = sum(row[name] / row["draws"] for row in mine for name in hits)
    n = sum(row[name.split("_")[0]] // row["draws"] for row in mine for name in hits)
    return total / n, *wilson(total, n)


def _by_rule(found: dict[str, list[str]], before: str = "") -> str:
    return "; ".join(f"{rule} {before}{', '.join(sizes)}" for rule, sizes in found.items()) or "none"


def _size(rows: Sequence[Json]) -> str:
    """Return how many tokens are kept, on average where that differs from sequence to sequence."""
    mean = sum(row["budget"] for row in rows) / len(rows)
    return f"{mean:.1f}" if rows[0]["matched"] else f"{mean:g}"


def _said(share: tuple[float, float, float]) -> str:
    return f"{share[0]:.2f} ({share[1]:.2f} to {share[2]:.2f})"
