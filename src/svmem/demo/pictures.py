"""The figures of the demo, from what it measured."""

import numpy as np

from svmem.core.solution import Solution
from svmem.demo.deviation import Trial
from svmem.demo.growth import Growth
from svmem.demo.hours import Hours
from svmem.demo.result import PAPER_KEPT, PAPER_KEPT_HELD_OUT
from svmem.demo.retention import Estimate, Retention
from svmem.report.figures import Bar, Panel, counts_figure, deviation_figure, share_figure, stream_figure
from svmem.report.page import Picture, percent, short
from svmem.report.style import svg

__all__ = ["counts_picture", "deviation_picture", "retention_picture", "stream_picture"]

# arXiv 2607.12204, ICU regime: median and worst score deviation of its incremental deletion
PAPER_DEVIATION = (1.6e-9, 1.1e-2)


def stream_picture(hours: Hours, solution: Solution) -> Picture:
    """Draw one stay with the set of each hour."""
    columns = {f"{c.label}\n({c.unit})": hours.raw[:, i] for i, c in enumerate(hours.channels)}
    sets = {name: np.isin(solution.ids, getattr(solution, name)) for name in ("margin", "bound", "reserve")}
    figure = stream_figure(
        hours.hour.astype(np.float64),
        columns,
        sets,
        hours.event,
        time_label="hours since the first reading of the stay",
        event_label="deterioration hour",
    )
    active = int((sets["margin"] | sets["bound"]).sum())
    kept_events = int(((sets["margin"] | sets["bound"]) & hours.event).sum())
    return Picture(
        "stream",
        svg(figure),
        f"Six vital signs of one stay over {len(hours)} hours, each hour marked as margin, bound or reserve",
        f"One stay of {len(hours)} hours, picked because it is typical: the share of deterioration hours it keeps is "
        "nearest to the mean of all stays. Every hour is one record made of all six vitals, so its mark is the "
        f"same in all six rows. {active} hours carry the answers (margin and bound); the other {len(hours) - active} "
        f"are silent: leaving them out changes no answer. Of {int(hours.event.sum())} deterioration hours, "
        f"{kept_events} carry the answers. The selection never sees the shading.",
    )


def retention_picture(retention: Retention, held_out: Retention | None) -> Picture:
    """Draw the shares of event hours kept and answered beside the paper's."""
    panels = [
        Panel("Six vitals: deterioration hour is kept", _bars(retention.kept, PAPER_KEPT)),
        Panel("Six vitals: nearest kept hour is a deterioration hour", _bars(retention.answered, {})),
    ]
    if held_out is not None:
        panels.append(
            Panel("SpO2 hidden from selection: hour below 90 % is kept", _bars(held_out.kept, PAPER_KEPT_HELD_OUT))
        )
    return Picture(
        "retention",
        svg(share_figure(panels, label="share of deterioration hours, mean over stays")),
        "Bars: share of deterioration hours kept by support set, heavy-hitter, random and last k",
        f"Four rules keep the same number of hours of each stay (on average {percent(retention.budget)}). Lines are "
        "95 % bootstrap intervals over stays; diamonds are the paper's values, on far more stays of the same kind.",
    )


def _bars(ours: dict[str, Estimate], paper: dict[str, float]) -> tuple[Bar, ...]:
    return tuple(Bar(name, e.mean, e.low, e.high, paper.get(name)) for name, e in ours.items())


def deviation_picture(trials: tuple[Trial, ...], decay: float) -> Picture:
    """Draw how far the gate score is from the refit after each small deletion."""
    series = {
        "svmem: forget": np.array([t.ours for t in trials]),
        f"baseline: coefficients × {decay:g}": np.array([t.decay for t in trials]),
    }
    median, worst = PAPER_DEVIATION
    span = {f"paper: median {short(median)}, worst {short(worst)}": PAPER_DEVIATION}
    figure = deviation_figure(series, label="largest deviation of the gate score from the refit", spans=span)
    zeros, silent = int((series["svmem: forget"] == 0).sum()), sum(t.decay == 0 for t in trials)
    return Picture(
        "deviation",
        svg(figure),
        "Histogram of score deviations after deletion: svmem at exactly zero, the decay baseline around 0.05",
        f"{len(trials)} deletions of two random hours from a 40-hour context, each compared with a memory that never "
        f"held them. svmem agrees to the last bit in {zeros} of {len(trials)}. The baseline damps the two coefficients "
        f"and solves nothing again; it is exact only where both hours were silent anyway ({silent} times).",
    )


def counts_picture(one: Growth, everybody: Growth) -> Picture:
    """Draw the sizes of the three sets as hours arrive."""
    panels = {"One memory for one stay": _panel(one), "One memory for all patients": _panel(everybody)}
    figure = counts_figure(panels, labels=["hours stored"] * 2)
    return Picture(
        "counts",
        svg(figure),
        "Line charts: number of margin, bound and reserve hours as hours arrive, for one stay and for all patients",
        "While collecting (grey), every hour counts the same. From 1/C hours on the memory selects: the hours that "
        "carry the answers (margin and bound) stay about as many, and new hours mostly become silent reserve.",
    )


def _panel(growth: Growth) -> tuple[np.ndarray, dict[str, np.ndarray], float]:
    counts = {"margin": growth.margin, "bound": growth.bound, "reserve": growth.reserve}
    return growth.seen, counts, float(growth.needed)
