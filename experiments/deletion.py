"""Deletions from small memories, each compared with a memory that never held the records.

    python -m experiments.deletion --figure docs/figures/deletion.svg

A context is solved, two random records are forgotten, and the result is compared with a refit of the others with the
same cap: at the retained keys, the removed ones, and the retained ones with noise of 0.1. Beside it stands the decay
baseline: the two coefficients times 0.01. The first four regimes are those of [Ramesh2026]: normal keys, near copies of
four centres, hours of an intensive-care stay, and key projections of a trained recall model. The others are degenerate.
Values are hours that follow, of the stay, and three normal numbers elsewhere.
"""

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure

from benchmarks.contexts import CONTEXTS
from experiments import ledger
from experiments.beside import Refit, filled, probes_of
from experiments.ledger import Claim, Experiment, Tick, done, silent
from experiments.recaller import NUMBERS, Recaller, train
from svmem import RBF, Problem
from svmem.baselines.forgetting import Decay, State
from svmem.demo.clif import load_clif
from svmem.demo.deviation import apart
from svmem.errors import InvalidInput, SvmemError
from svmem.types import Coefficients, Json, Keys, Values

__all__ = ["PAPER", "Config", "arms", "claim", "draw", "main", "run"]

DEGENERATE = ("duplicates", "grid", "filled", "rounded")
REGIMES = ("gaussian", "redundant", "icu", "learned", *DEGENERATE)
Context = Callable[[np.random.Generator], tuple[Keys, Values]]

# What the paper states of 300 trials each: how many completed and had the refit's partition, then median, mean and
# worst deviation of the gate score, and the median that the decay leaves.
PAPER = {
    "gaussian": (300, 0.99, (2.4e-9, 3.1e-5, 6.4e-3), 8.3e-2),
    "redundant": (300, 0.52, (5.7e-7, 3.1e-5, 9.6e-4), 2.4e-1),
    "icu": (299, 0.98, (1.6e-9, 5.6e-5, 1.1e-2), 1.5e-1),
    "learned": (300, 1.0, (4.5e-13, 9.7e-13, 1.1e-11), 2.2e-2),
}


@dataclass(frozen=True, slots=True)
class Config:
    """Sizes: those of [Ramesh2026]."""

    seeds: tuple[int, ...] = (0,)
    regimes: tuple[str, ...] = REGIMES
    trials: int = 300
    n: int = 24
    forgotten: int = 2
    nu: float = 0.4
    sigma: float = 2.0
    decay: float = 0.01
    hours: int = 40
    least_distance: float = 0.1
    model_steps: int = 500

    def __post_init__(self) -> None:
        if min(self.trials, self.forgotten, self.model_steps) < 1 or not self.forgotten < min(self.n, self.hours):
            raise InvalidInput("trials and model steps must be at least 1, and fewer records forgotten than there are")
        if unknown := set(self.regimes) - set(REGIMES):
            raise InvalidInput(f"regimes must be among {', '.join(REGIMES)}; got {', '.join(sorted(unknown))}")


SAYS = {
    "seeds": "seeds of contexts and of the recall model",
    "regimes": "sets of keys",
    "trials": "deletions a regime",
    "n": "records of a context, but for hours",
    "forgotten": "records forgotten a trial",
    "nu": "C is 1 / (nu n), of the full context",
    "sigma": "width of the kernel",
    "decay": "what the baseline multiplies coefficients by",
    "hours": "hours of a stay, the first ones",
    "least_distance": "hours nearer than that are dropped",
    "model_steps": "training steps of the recall model",
}


def arms(config: Config) -> list[str]:
    """Return the names of what is audited, in order."""
    return [f"{regime}/{seed}" for seed in config.seeds for regime in config.regimes]


def run(config: Config, *, finished: Sequence[Json] = (), tick: Tick = silent) -> Iterator[Json]:
    """Yield a row for each regime that is not finished."""
    for arm in arms(config):
        if not done(finished, arm):
            yield _audit(config, arm, tick)
        tick(arm, 1.0)


def _audit(config: Config, arm: str, tick: Tick) -> Json:
    regime, seed = arm.split("/")[0], int(arm.split("/")[1])
    start, (context, facts) = time.perf_counter(), _context(config, regime, seed)
    found, failures = [], []
    for trial in range(config.trials):
        try:
            found.append(_trial(config, context, np.random.default_rng([seed, REGIMES.index(regime), trial])))
        except SvmemError as error:
            failures.append(str(error))
        tick(arm, (trial + 1) / config.trials)
    row = {"arm": arm, "regime": regime, "seed": seed, "trials": config.trials, "completed": len(found)} | facts
    for name in ("n", "same_partition", "same_digest", "feasible"):
        row[name] = float(np.mean([one[name] for one in found])) if found else None
    for name in ("score", "readout", "alpha", "score_bound", "readout_bound", "kkt", "decay", "decay_readout"):
        row |= _summary(name, [one[name] for one in found if one[name] is not None])
    status = "ok" if not failures else f"{len(failures)} failed, first: {failures[0]}"
    return row | {"seconds": time.perf_counter() - start, "status": status, "last": True}


def _summary(name: str, values: Sequence[float]) -> Json:
    """Return median, mean and worst, and how many there are."""
    if not values:
        return {f"{name}_{what}": None for what in ("median", "mean", "worst")} | {f"{name}_count": 0}
    numbers = {"median": np.median(values), "mean": np.mean(values), "worst": max(values)}
    return {f"{name}_{what}": float(number) for what, number in numbers.items()} | {f"{name}_count": len(values)}


def _context(config: Config, regime: str, seed: int) -> tuple[Context, Json]:
    """Return what gives the keys and values of a trial, and what a row says of it."""
    if regime == "icu":
        cohort = load_clif()
        first = [np.arange(span.start, span.start + config.hours) for _, span in cohort.stays(config.hours)]
        rows = [some[apart(cohort.keys[some], config.least_distance)] for some in first]
        # The others have so few hours that differ that each would be active, or nothing would be left.
        rows = [some for some in rows if len(some) * config.nu >= 1 and len(some) > config.forgotten]

        def of_stay(rng: np.random.Generator) -> tuple[Keys, Values]:
            chosen = rows[int(rng.integers(len(rows)))]
            return cohort.keys[chosen], cohort.values[chosen]

        return of_stay, {"stays": len(rows)}
    if regime == "learned":
        torch.manual_seed(seed)
        model, generator = Recaller(facts=8, width=32, C=0.2, sigma=2.0), torch.Generator().manual_seed(seed)
        loss = train(model, config.model_steps, 16, 3e-3, generator, lambda _: None)

        def of_tokens(rng: np.random.Generator) -> tuple[Keys, Values]:
            tokens = torch.tensor(rng.standard_normal((config.n, 2 * NUMBERS))).float()
            _, keys, _ = model.layer.qkv_proj(model.embed(tokens)).detach().chunk(3, dim=1)
            return keys.double().numpy(), rng.standard_normal((config.n, 3))

        return of_tokens, {"model_loss": loss}
    keys = CONTEXTS[regime]
    return lambda rng: (keys(rng, config.n), rng.standard_normal((config.n, 3))), {}


def _trial(config: Config, context: Context, rng: np.random.Generator) -> Json:
    keys, values = context(rng)
    n = len(keys)
    problem = Problem.from_nu(config.nu, n, RBF(config.sigma))
    gone = np.sort(rng.choice(n, config.forgotten, replace=False))
    kept = np.setdiff1d(np.arange(n), gone)
    memory = filled(problem, keys, values)
    state, offset = State(keys, values, memory.alpha, problem), memory.offset
    memory.forget(ids=gone.tolist())  # ids are row numbers: the memory was empty
    order = rng.permutation(kept)
    refit = filled(problem, keys[order], values[order])
    beside = Refit.of(refit, probes_of(rng, keys[kept], keys[gone]), values)
    score, readout = beside.away(memory.score(beside.probes), memory.read(beside.probes))
    decay, decay_readout = beside.away_with(Decay(config.decay), state, offset, gone)
    ours, cold, certificate = memory.solution, refit.solution, memory.certify()
    return {
        "n": n,
        "score": score,
        "readout": readout,
        "alpha": float(np.abs(ours.alpha - cold.alpha[np.argsort(order)]).max()),
        "same_partition": np.array_equal(ours.margin, np.sort(order[cold.margin]))
        and np.array_equal(ours.bound, np.sort(order[cold.bound])),
        "same_digest": memory.digest() == refit.digest(),
        "feasible": _feasible(ours.alpha, problem),
        "score_bound": certificate.score_bound,
        "readout_bound": certificate.readout_bound(float(np.linalg.norm(values / beside.spread, axis=1).max())),
        "kkt": certificate.max_kkt,
        "decay": decay,
        "decay_readout": decay_readout,
    }


def _feasible(alpha: Coefficients, problem: Problem) -> bool:
    """Return whether coefficients lie in [0, C] exactly and sum to 1; while collecting each is 1/n."""
    cap = problem.C if len(alpha) >= problem.n_min else 1 / len(alpha)
    return bool(alpha.min() >= 0 and alpha.max() <= cap and abs(alpha.sum() - 1) <= 1e-14)


def claim(rows: Sequence[Json]) -> list[Claim]:
    """Return the numbers of [Ramesh2026] beside ours, which are reproduced where every deletion is the refit's bits."""
    made = []
    for row in rows:
        paper = PAPER.get(row["regime"])
        text = f"{row['arm']}: {row['completed']} of {row['trials']} completed"
        if not row["completed"]:
            made.append(Claim(text, False, ours=paper is None))
            continue
        text += f", {row['same_partition']:.0%} with the refit's partition, {row['same_digest']:.0%} with its digest,"
        text += f" {row['feasible']:.0%} feasible, gate score off by"
        text += f" {_said([row[f'score_{what}'] for what in ('median', 'mean', 'worst')])} (median / mean / worst),"
        text += (
            f" readout by {_said([row['readout_worst']])} of its range, coefficients by {_said([row['alpha_worst']])},"
        )
        text += f" scores proven to {row['score_bound_worst']:.1e}, readouts to {row['readout_bound_worst']:.1e}"
        if paper is None:
            made.append(Claim(text, _exact(row), ours=True))
            continue
        completed, partition, theirs, decay = paper
        stated = f"paper: {completed} of 300, {partition:.0%}, {_said(theirs)}"
        stated += ", readout by up to 52% of its range" if row["regime"] == "redundant" else ""
        made.append(Claim(f"{text} ({stated})", _exact(row)))
        left = row["decay_median"]
        text = f"{row['arm']}: the decay leaves a median deviation of {left:.1e} (paper: {decay:.1e}"
        made.append(Claim(f"{text}), the same within a factor of 1.5", decay / 1.5 <= left <= decay * 1.5))
    return [_together(rows), *made] if len(rows) > 1 else made


def _together(rows: Sequence[Json]) -> Claim:
    completed, trials = (sum(row[name] for row in rows) for name in ("completed", "trials"))
    worst = max((row["score_worst"] for row in rows if row["completed"]), default=math.nan)
    text = f"all kinds of keys: {completed:,} of {trials:,} deletions completed, gate scores off by {_said([worst])} at"
    return Claim(
        f"{text} worst (paper: 1,199 of 1,200, 1.1e-02)", all(row["completed"] and _exact(row) for row in rows)
    )


def _exact(row: Json) -> bool:
    """Return whether every trial completed, has a proof and is bit by bit the refit: no deviation in the paper is 0."""
    whole = row["completed"] == row["score_bound_count"] == row["trials"]
    same = all(row[name] == 1 for name in ("same_partition", "same_digest", "feasible"))
    return whole and same and all(row[f"{name}_worst"] == 0 for name in ("score", "readout", "alpha"))


def _said(numbers: Sequence[float]) -> str:
    return " / ".join("0" if number == 0 else f"{number:.1e}" for number in numbers)


def draw(rows: Sequence[Json]) -> Figure:
    """Draw deviations and shares of equal partitions, ours beside the paper's and the decay's."""
    from experiments.forgetting_pictures import deletion_figure

    return deletion_figure(rows)


EXPERIMENT = Experiment("deletion", __doc__ or "", Config, SAYS, run, arms, claim, draw)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and return its exit code."""
    return ledger.main(EXPERIMENT, argv)


if __name__ == "__main__":
    sys.exit(main())
