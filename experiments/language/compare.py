"""One mixer against another over the same seeds: the best of each run, and whether the difference could be chance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scipy import stats

from experiments.language.figure import Curve
from experiments.language.train import best
from svmem.errors import InvalidInput

__all__ = ["Comparison", "compared"]

DIVERGED = 8.0  # bits per byte of a run that diverged: those of a model that knows nothing


@dataclass(frozen=True, slots=True)
class Comparison:
    """Best held-out bits per byte of two mixers, aligned by seed."""

    mixer: str
    other: str
    seeds: tuple[int, ...]
    ours: tuple[float, ...]
    theirs: tuple[float, ...]
    t_test: float | None  # p of the paired test, two-sided; None for fewer than two pairs
    wilcoxon: float | None

    @property
    def better(self) -> int:
        """In how many seeds the first mixer is better."""
        return sum(a < b for a, b in zip(self.ours, self.theirs, strict=True))

    @property
    def gains(self) -> tuple[float, ...]:
        """By what share of the other's bits the first one's are fewer, seed by seed."""
        return tuple(1 - a / b for a, b in zip(self.ours, self.theirs, strict=True))

    @property
    def gain(self) -> float:
        """The mean of that over the seeds."""
        return sum(self.gains) / len(self.seeds)

    def __str__(self) -> str:
        pairs = ", ".join(f"{a:.3f} : {b:.3f}" for a, b in zip(self.ours, self.theirs, strict=True))
        chance = "" if self.t_test is None else f"; paired t-test p {self.t_test:.3g}, Wilcoxon p {self.wilcoxon:.3g}"
        return (
            f"{self.mixer} has fewer bits per byte than {self.other} in {self.better} of {len(self.seeds)} seeds "
            f"({pairs}), {self.gain:.1%} on average{chance}"
        )


def compared(curves: Sequence[Curve], mixer: str, other: str) -> Comparison:
    """Compare two mixers over the seeds that both have. Raises InvalidInput when there is none."""
    ours, theirs = _best_by_seed(curves, mixer), _best_by_seed(curves, other)
    seeds = tuple(sorted(ours.keys() & theirs.keys()))
    if not seeds:
        raise InvalidInput(f"to compare {mixer} with {other}, both need a run of the same seed")
    a, b = tuple(ours[seed] for seed in seeds), tuple(theirs[seed] for seed in seeds)
    several = len(seeds) > 1
    tests: list[Any] = [stats.ttest_rel(a, b), stats.wilcoxon(a, b)] if several else []
    return Comparison(
        mixer=mixer,
        other=other,
        seeds=seeds,
        ours=a,
        theirs=b,
        t_test=float(tests[0].pvalue) if several else None,
        wilcoxon=float(tests[1].pvalue) if several else None,
    )


def _best_by_seed(curves: Sequence[Curve], mixer: str) -> dict[int, float]:
    found: dict[int, float] = {}
    for curve in curves:
        row = best(curve.rows)
        if curve.settings.mixer == mixer and row is not None:
            found[curve.settings.seed] = DIVERGED if curve.diverged else row["bits_per_byte"]
    return found
