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

import torch
from matplotlib.figure import Figure

from experiments import ledger
from experiments.audit import wilson
from experiments.capitals import capital_rows, missing
from experiments.ledger import Claim, Experiment, Tick, done, silent
from experiments.recaller import Recaller, train
from experiments.redundant import RULES, keep_rows
from experiments.sequences import cases_of, forget_rows, leak_rows, put_back_rows, recall_row
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
    capitals: int = 300
    nu: float = 0.5
    relative_sigma: float = 0.35

    def __post_init__(self) -> None:
        if min(self.steps, self.batch, self.ascent_steps) < 1 or self.cases < 2 or self.facts < 4:
            raise InvalidInput("steps and batch must be at least 1, cases at least 2 and facts at least 4")
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
    "capitals": "countries, at most; 0 leaves them out",
    "nu": "C of the capitals is 1 / (nu n)",
    "relative_sigma": "width of the capitals' kernel, in median distances",
}


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
            yield {"arm": arm, "part": "missing", "seconds": 0.0, "status": lacking, "last": False}
            continue
        if arm == "capitals":
            rows = list(capital_rows(config.capitals, config.nu, config.relative_sigma))
        else:
            rows = list(_recall(config, arm, tick))
        for number, row in enumerate(rows, 1):
            common = {"arm": arm, "seconds": time.perf_counter() - start, "status": "ok", "last": number == len(rows)}
            yield row | common


def _recall(config: Config, arm: str, tick: Tick) -> Iterator[Json]:
    seed = int(arm.split("/")[1])
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = Recaller(config.facts, config.width, config.C, config.sigma)
    train(model, config.steps, config.batch, config.lr, generator, lambda share: tick(arm, 0.5 * share))
    cases = cases_of(model.double().requires_grad_(False), config.cases, generator)
    yield recall_row(cases, generator) | {"seed": seed}
    for row in forget_rows(cases, config.ascent_lr, config.ascent_steps):
        tick(arm, 0.9)
        yield row | {"seed": seed}
    for row in (*leak_rows(cases, config.noises, generator), *put_back_rows(cases, generator)):
        yield row | {"seed": seed}
    for row in keep_rows(cases.model, config.cases, generator):
        yield row | {"seed": seed}


def claim(rows: Sequence[Json]) -> list[Claim]:
    """Return what [Ramesh2026] says, with our numbers; of the capitals, which it does not have, what a secret needs."""
    sequences = [row for row in rows if row["arm"].startswith("recall")]
    if not sequences:
        return [Claim("what is left of a secret", None)]
    capital = [row for row in rows if row["arm"] == "capitals"]
    made = [*_of_secrets(sequences), *_of_edits(sequences), _of_attacks(sequences, "sequences"), _of_keeping(sequences)]
    if not any(row["part"] == "forget" for row in capital):
        return [*made, Claim(next((row["status"] for row in capital), "no capitals were asked"), None)]
    left, other = _share(capital, "exact", "secret_hits", "secrets"), _share(capital, "exact", "other_hits", "others")
    text = f"no capital is answered after its removal, and 99 % of the others are: {left:.2f} and {other:.2%}"
    return [*made, Claim(text, left == 0 and other >= 0.99, ours=True), _of_attacks(capital, "capitals")]


def _of_secrets(rows: Sequence[Json]) -> list[Claim]:
    hits, asked, chance = (
        sum(row[name] for row in rows if row["part"] == "recall") for name in ("hits", "asked", "chance")
    )
    before, after, tenth, hundredth = (
        _share(rows, method, "secret_hits", "secrets") for method in ("none", "exact", "decay 0.1", "decay 0.01")
    )
    known, others = (_share(rows, method, "other_hits", "others") for method in ("none", "exact"))
    chance /= sum(row["part"] == "recall" for row in rows)
    said = f"the secret's recall falls from 1.00 to 0.04, below chance, by exact removal: {before:.2f} to {after:.2f}"
    by_decay = f"decay by 10 leaves a recall of 1.00, by 100 of 0.95: {tenth:.2f} and {hundredth:.2f}"
    return [
        Claim(f"the model recalls 1.000 of held-out facts: {hits / asked:.3f}", hits / asked >= 0.995),
        Claim(said, before >= 0.99 and after <= chance),
        Claim(by_decay, abs(tenth - 1.0) <= 0.05 and abs(hundredth - 0.95) <= 0.05),
        Claim(f"all other facts are still answered: {others:.2%}, and {known:.2%} before", others >= known),
    ]


def _of_edits(rows: Sequence[Json]) -> list[Claim]:
    edits = {m: [row for row in rows if row["part"] == "edit" and row["method"] == m] for m in ("exact", "decay 0.01")}
    exact, decay = (max(row["worst_deviation"] for row in some) for some in edits.values())
    new = sum(row["new_hits"] for row in edits["exact"]) / sum(row["secrets"] for row in edits["exact"])
    again = [row for row in rows if row["part"] == "again"]
    apart, back = max(row["worst_deviation"] for row in again), _ratio(again, "secret_hits", "secrets")
    restored = f"forgotten and added again, the answer is back to 8e-8, and right in 93 %: {apart:.0e} and {back:.1%}"
    return [
        Claim(f"an edit leaves scores 1e-13 from a refit: {exact:.0e}; {new:.2f} answer anew", exact <= 1e-12),
        Claim(f"an edit by decay leaves scores 1.15 from a refit: {decay:.1e} at worst", decay >= 1.0),
        Claim(restored, apart <= 8e-8 and back >= 0.93),
    ]


def _of_attacks(rows: Sequence[Json], where: str) -> Claim:
    """Return whether chance lies in the intervals of both attacks after exact removal, and outside after decay."""
    said, holds = [], True
    for method in ("exact", "decay 0.01"):
        some = [
            row for row in rows if row["part"] == "forget" and row["method"] == method and row["readout"] == "memory"
        ]
        for name in ("wins_by_answer", "wins_by_score"):
            low, high = wilson(sum(row[name] for row in some), sum(row["games"] for row in some))
            said.append(f"{low:.2f} to {high:.2f}")
            holds &= (low <= 0.5 <= high) == (method == "exact")
    text = f"{where}: who tells a memory that forgot from one that never held wins by chance after exact removal"
    return Claim(
        f"{text} ({said[0]} by answers, {said[1]} by scores), not after decay ({said[2]}, {said[3]})", holds, True
    )


def _of_keeping(rows: Sequence[Json]) -> Claim:
    kept = {m: [row for row in rows if row["part"] == "keep" and row["method"] == m] for m in RULES}
    found = [_ratio(some, "rare_hits", "rare") for some in kept.values()]
    numbers = ", ".join(f"{one:.2f}" for one in found)
    text = "rare facts are answered 1.00 from the support; 0.16, 0.08, 0.87 from heavy-hitters, last k, random"
    return Claim(f"{text}: {numbers}", found[0] >= 0.99 and found[0] > found[3] > max(found[1:3]))


def _share(rows: Sequence[Json], method: str, hits: str, of: str) -> float:
    """Return a share over the rows that say what a method leaves in the memory."""
    some = [row for row in rows if row["part"] == "forget" and row["method"] == method and row["readout"] == "memory"]
    return _ratio(some, hits, of)


def _ratio(rows: Sequence[Json], hits: str, of: str) -> float:
    return sum(row[hits] for row in rows) / sum(row[of] for row in rows)


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
