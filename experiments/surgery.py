"""Taking one fact out of a memory: what is still answered, what else is lost, and what tells that it was there.

    python -m experiments.surgery --figure docs/figures/surgery.svg

A small model learns to recall the facts of a sequence and is frozen; its learned keys go into a `svmem.Memory`, and
one fact is taken out: exactly, by making its coefficient small, by scaling up the others, or by gradient ascent on the
weights until it is no longer answered [Ramesh2026]. Then the same with real facts: capitals, with keys by a sentence
encoder. Of the redundant facts it is asked which survive when only as many tokens are kept as the gate supports.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from matplotlib.figure import Figure

from experiments import ledger
from experiments.capitals import capital_rows, missing
from experiments.cases import cases_of
from experiments.climb import climbed
from experiments.ledger import Experiment, Tick, done, silent
from experiments.recaller import Recaller, train
from experiments.redundant import TOKENS, keep_rows
from experiments.sequences import forget_rows, gaps_of, leak_rows, put_back_rows, recall_row
from experiments.surgery_claims import claim
from svmem.errors import InvalidInput
from svmem.types import Json

__all__ = ["Config", "arms", "claim", "draw", "main", "run"]


@dataclass(frozen=True, slots=True)
class Config:
    """The sizes of [Ramesh2026] for the model; those of the capitals, the noises and the cases are ours."""

    seeds: tuple[int, ...] = (0, 1, 2)
    facts: int = 8
    width: int = 32
    C: float = 0.2
    sigma: float = 2.0
    steps: int = 500
    batch: int = 16
    lr: float = 3e-3
    cases: int = 200
    noises: tuple[float, ...] = (0.02, 0.1, 0.2, 0.5, 1.0)
    ascent_lr: float = 3e-3
    ascent_steps: int = 100
    budgets: tuple[int, ...] = (4, 6, 8, 10)
    capitals: int = 300
    nu: float = 0.5
    relative_sigma: float = 0.35

    def __post_init__(self) -> None:
        if min(self.steps, self.batch, self.ascent_steps) < 1 or self.cases < 2 or self.facts < 4:
            raise InvalidInput("steps and batch must be at least 1, cases at least 2 and facts at least 4")
        if not 1 <= min(self.budgets) <= max(self.budgets) <= TOKENS:
            raise InvalidInput(f"budgets are tokens that are kept, from 1 to {TOKENS}; got {self.budgets}")
        if self.capitals < 0:
            raise InvalidInput(f"capitals must not be negative, got {self.capitals}")


SAYS = {
    "seeds": "seeds of weights and sequences",
    "facts": "facts of a sequence",
    "width": "width of the model",
    "C": "cap of a coefficient",
    "sigma": "width of the kernel at the start",
    "steps": "training steps",
    "batch": "sequences a step",
    "lr": "learning rate",
    "cases": "sequences a seed of which one fact is taken out",
    "noises": "noise on the key of a question",
    "ascent_lr": "learning rate of gradient ascent",
    "ascent_steps": "steps of gradient ascent, at most",
    "budgets": "tokens that are kept of redundant facts, beside as many as the gate supports",
    "capitals": "countries, at most; 0 leaves them out",
    "nu": "C of the capitals is 1 / (nu n)",
    "relative_sigma": "width of the capitals' kernel, in median distances",
}


NOTHING = {"seed": None, "worst_gap": None}  # of a row that draws nothing, or has nothing solved behind it


def arms(config: Config) -> list[str]:
    """Return the names of what is measured, in order."""
    return [f"recall/{seed}" for seed in config.seeds] + ["capitals"] * (config.capitals > 0)


def run(config: Config, *, finished: Sequence[Json] = (), tick: Tick = silent) -> Iterator[Json]:
    """Yield the rows of the arms that are not finished."""
    for arm in arms(config):
        tick(arm, 0.0)
        if done(finished, arm):
            continue
        start, lacking = time.perf_counter(), missing() if arm == "capitals" else None
        if lacking is not None:
            # Not the arm's last row: once they are there, it is run.
            yield NOTHING | {"arm": arm, "part": "missing", "seconds": 0.0, "status": lacking, "last": False}
            continue
        if arm == "capitals":
            rows = list(capital_rows(config.capitals, config.nu, config.relative_sigma, partial(tick, arm)))
        else:
            rows = list(_recall(config, arm, tick))
        for number, row in enumerate(rows, 1):
            common = {"arm": arm, "seconds": time.perf_counter() - start, "status": "ok", "last": number == len(rows)}
            yield NOTHING | row | common


def _recall(config: Config, arm: str, tick: Tick) -> Iterator[Json]:
    seed = int(arm.split("/")[1])
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = Recaller(config.facts, config.width, config.C, config.sigma)
    train(model, config.steps, config.batch, config.lr, generator, lambda share: tick(arm, 0.5 * share))
    cases = cases_of(model.double().requires_grad_(False), config.cases, generator)
    yield recall_row(cases, generator) | {"seed": seed}
    owns = {"memory": 0.0, "layer": cases.model.layer.C}  # a question's own coefficient in each readout
    climbs = {readout: climbed(cases, own, config.ascent_lr, config.ascent_steps) for readout, own in owns.items()}
    gaps = gaps_of(cases, climbs)
    tick(arm, 0.7)
    yield from (row | {"seed": seed} for row in forget_rows(cases, climbs, gaps))
    leaks = leak_rows(cases, config.noises, generator, climbs["memory"], gaps)
    for row in (*leaks, *put_back_rows(cases, generator, gaps)):
        yield row | {"seed": seed}
    for row in keep_rows(
        cases.model, config.cases, config.budgets, generator, lambda share: tick(arm, 0.7 + 0.3 * share)
    ):
        yield row | {"seed": seed}


def draw(rows: Sequence[Json]) -> Figure:
    """Draw what is answered after each method, what attacks win, how far scores are off, and what is kept."""
    from experiments.surgery_picture import surgery_figure

    return surgery_figure(rows)


EXPERIMENT = Experiment("surgery", __doc__ or "", Config, SAYS, run, arms, claim, draw)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and return its exit code."""
    return ledger.main(EXPERIMENT, argv)


if __name__ == "__main__":
    sys.exit(main())
