"""Recall of facts by nine mixers on one small backbone.

    python -m experiments.recall --figure docs/figures/recall.svg

A token is a fact: a key and a value, as in the recall model of [Ramesh2026]. A sequence holds facts, then asks for some
of them, by tokens with a key and no value. The tasks: `pairs` (facts, all of them asked), `copy` (8 facts strewn in
filler of near copies of 4 tokens; trained on short filler, asked after longer one too), `distinct` (the counter-case:
filler of which no two tokens are alike), and `delete` (tokens that take a fact back: its answer is then "none").
The sliding window is as wide as the state of the support-vector layer: its largest support and one chunk.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from experiments import ledger
from experiments.facts import KEYS, NONE, STRAYS, VALUES, Task, episode
from experiments.ledger import Experiment, Tick, done, plain, silent
from experiments.probe import gate_figures, supports_after
from experiments.reader import GATED, MIXERS, Reader, state_size
from experiments.recall_claims import claim
from svmem.errors import InvalidInput
from svmem.types import Json

__all__ = ["Config", "arms", "claim", "draw", "main", "run"]


@dataclass(frozen=True, slots=True)
class Config:
    """Sizes: ours, since the paper gives none for these tasks."""

    seeds: tuple[int, ...] = (0, 1, 2)
    pairs: tuple[int, ...] = (8, 32, 64)
    facts: int = 8
    trained_filler: tuple[int, ...] = (16, 64, 128)
    filler: tuple[int, ...] = (16, 64, 128, 256, 512, 1024, 2048)
    distinct_filler: int = 128
    width: int = 64
    layers: int = 2
    heads: int = 2
    chunk: int = 16
    C: float = 0.25
    sigma: float = 9.0
    steps: int = 400
    batch: int = 16
    lr: float = 3e-3
    held_out: int = 128

    def __post_init__(self) -> None:
        counts = (*self.pairs, *self.trained_filler, *self.filler)
        if min(*counts, self.facts, self.distinct_filler, self.steps, self.batch, self.held_out) < 1:
            raise InvalidInput("facts, filler, steps and batches must be at least 1")
        if max(*self.pairs, self.facts) > KEYS or max(self.distinct_filler, self.chunk) > STRAYS:
            raise InvalidInput(f"there are {KEYS} keys for facts and {STRAYS} for filler")


SAYS = {
    "seeds": "seeds of weights and sequences",
    "pairs": "facts of the task `pairs`",
    "facts": "facts of the other tasks",
    "trained_filler": "tokens of filler in training",
    "filler": "tokens of filler when asked",
    "distinct_filler": "tokens of distinct filler",
    "width": "width of the model",
    "layers": "number of layers",
    "heads": "heads a layer",
    "chunk": "tokens between two gates, at most",
    "C": "cap of a coefficient",
    "sigma": "width of the kernel, to start from",
    "steps": "training steps",
    "batch": "sequences a step",
    "lr": "learning rate",
    "held_out": "sequences that are asked",
}


@dataclass(frozen=True, slots=True)
class Arm:
    """One training: on these tasks in turn, asked those then."""

    trained: list[Task]
    asked: list[Task]
    mixer: str
    seed: int

    @property
    def name(self) -> str:
        """Its name among rows."""
        return f"{self.trained[0].title}/{self.mixer}/{self.seed}"

    def chunk(self, config: Config) -> int:
        """Return the tokens between two gates: so few that facts lie in the memory by the time they are asked."""
        return min(config.chunk, self.trained[0].facts + self.trained[0].filler)


def _arms(config: Config) -> list[Arm]:
    m, seeds = config.facts, config.seeds
    pairs, distinct = [Task("pairs", n) for n in config.pairs], Task("distinct", m, config.distinct_filler)
    made = [([one], [one]) for one in (*pairs, distinct, Task("delete", m))]
    made.append(([Task("copy", m, n) for n in config.trained_filler], [Task("copy", m, n) for n in config.filler]))
    # The window comes after the layer whose state it matches.
    return [Arm(trained, asked, mixer, seed) for trained, asked in made for seed in seeds for mixer in MIXERS]


def arms(config: Config) -> list[str]:
    """Return the names of what is trained, in order."""
    return [arm.name for arm in _arms(config)]


def run(config: Config, *, finished: Sequence[Json] = (), tick: Tick = silent) -> Iterator[Json]:
    """Yield the rows of the arms that are not finished: one an arm and asked task."""
    rows = list(finished)
    for arm in _arms(config):
        if done(rows, arm.name):
            tick(arm.name, 1.0)
            continue
        window = 1
        if arm.mixer == "window":
            like = replace(arm, mixer="sv").name
            window = round(max(row["support"] or 0.0 for row in rows if row["arm"] == like)) + arm.chunk(config)
        start = time.perf_counter()
        model, losses = _train(config, arm, window, tick)
        seconds = time.perf_counter() - start
        for task in arm.asked:
            row = _ask(config, arm, task, model) | {"loss": plain(float(np.mean(losses[-20:]))), "seconds": seconds}
            row |= {"window": window if arm.mixer == "window" else None, "last": task is arm.asked[-1]}
            rows.append(row)
            yield row


def _train(config: Config, arm: Arm, window: int, tick: Tick) -> tuple[Reader, list[float]]:
    torch.manual_seed(arm.seed)
    model = Reader(config, arm.mixer, chunk=arm.chunk(config), window=window)
    noise = torch.Generator().manual_seed(arm.seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=config.lr)
    losses: list[float] = []
    for step in range(config.steps):
        given = episode(arm.trained[step % len(arm.trained)], config.batch, np.random.default_rng([arm.seed, step]))
        loss = cross_entropy(model(given, noise).flatten(0, 1), given.target.flatten(), ignore_index=-1)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        rate = min(1.0, (step + 1) / 20, 0.1 + 1.8 * (1 - step / config.steps))  # level, then falling
        for group in optimiser.param_groups:
            group["lr"] = config.lr * rate
        optimiser.step()
        losses.append(float(loss.detach()))
        tick(arm.name, (step + 1) / config.steps)
    return model, losses


@dataclass(slots=True)
class _Answers:
    """What came of asking: right or not, what was right, the gates of each batch, and its seconds."""

    right: list[Tensor] = field(default_factory=list)
    answers: list[Tensor] = field(default_factory=list)
    gates: list[dict[str, float]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    supports: list[float] = field(default_factory=list)


@torch.no_grad()
def _answers(config: Config, arm: Arm, task: Task, model: Reader) -> _Answers:
    """Ask about sequences that were not trained on."""
    rng, noise = np.random.default_rng([arm.seed, task.filler, 2**31]), torch.Generator().manual_seed(2**31)
    found = _Answers()
    with supports_after(model, task.told) as found.supports:
        for _ in range(0, config.held_out, config.batch):
            given = episode(task, config.batch, rng)
            start = time.perf_counter()
            said, there = model(given, noise).argmax(-1), given.target >= 0
            found.times.append(time.perf_counter() - start)
            found.right.append((said == given.target)[there])
            found.answers.append(given.target[there])
            found.gates.append(gate_figures(model))
    return found


def _ask(config: Config, arm: Arm, task: Task, model: Reader) -> Json:
    """Return a row: the share of right answers, how the gates were, what is kept and how long it took."""
    found = _answers(config, arm, task, model)
    hit, gone = torch.cat(found.right).double(), torch.cat(found.answers) == NONE
    gates = found.gates if found.gates[0] else []
    support = float(np.mean(found.supports)) if found.supports else None
    return {
        "arm": arm.name,
        "task": task.name,
        "facts": task.facts,
        "filler": task.filler,
        "chunk": arm.chunk(config) if arm.mixer in GATED else None,
        "trained": task in arm.trained,
        "mixer": arm.mixer,
        "seed": arm.seed,
        "steps": config.steps,
        "questions": len(hit),
        "accuracy": float(hit.mean()),
        "accuracy_kept": float(hit[~gone].mean()),
        "accuracy_deleted": float(hit[gone].mean()) if bool(gone.any()) else None,
        "chance": 1 / VALUES,
        "support": support,  # of the last gate before the questions
        "mean_support": float(np.mean([one["mean_support"] for one in gates])) if gates else None,  # of all gates
        "certified": float(np.mean([one["certified"] for one in gates])) if gates else None,
        "worst_gap": max((one["worst_gap"] for one in gates), default=None),
        "state": state_size(model, tokens=task.told + task.facts, support=support),
        "ask_ms": 1e3 * min(found.times) / config.batch,  # a sequence; the quickest, since machines have other work
        "status": "ok",
    }


def draw(rows: Sequence[Json]) -> Figure:
    """Draw recall over facts and over filler, the state over filler, and recall with deletions."""
    from experiments.recall_picture import recall_figure

    return recall_figure(rows)


EXPERIMENT = Experiment("recall", __doc__ or "", Config, SAYS, run, arms, claim, draw)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and return its exit code."""
    return ledger.main(EXPERIMENT, argv)


if __name__ == "__main__":
    sys.exit(main())
