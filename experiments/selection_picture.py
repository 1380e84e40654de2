"""The figure of the experiment on selection."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments.selection_claims import (
    PAPER_GROUPS,
    PAPER_PAIRS,
    PAPER_STAYS,
    REFERENCES,
    over_seeds,
    over_trials,
    seeds_of,
    trials_of,
)
from svmem.report.style import BLACK, GREY, GRID, canvas, ink
from svmem.types import Json

__all__ = ["selection_figure"]

# Hue, mark and line of the selectors in the sweep; the others would only add lines.
SWEPT = {
    "support": ("blue", "o", "-"),
    "lowest kernel mass": ("green", "D", "--"),
    "farthest-point": ("sky", "v", "-."),
    "random": ("orange", "s", ":"),
    "H2O": ("purple", "^", "--"),
    "heavy-hitter oracle": ("vermilion", "X", "-"),
    "heavy-hitter of keys": ("vermilion", "X", "-"),
}
# What a series is called, its hue and mark, and how far above its line it lies.
GROUPS = {"rare": ("groups with 1 key", "blue", "o", -0.17), "all": ("all groups", "orange", "s", 0.17)}
STAYS = {
    "none": ("all vital signs seen", "blue", "o", -0.17),
    "spo2": ("SpO2 held out, event SpO2 < 90 %", "orange", "s", 0.17),
}
CHANNELS = {
    "spo2": "SpO2",
    "heart_rate": "heart rate",
    "sbp": "systolic pressure",
    "respiratory_rate": "respiratory rate",
    "temp_c": "temperature",
}
# What stands for each channel held out; the best of the others is one more, chosen channel by channel.
NAMED = {
    "support": ("blue", "o"),
    "best other": ("green", "D"),
    "random": ("orange", "s"),
    "heavy-hitter of keys": ("vermilion", "X"),
}
HOLLOW = {"color": BLACK, "markerfacecolor": "none", "markersize": 8, "markeredgewidth": 1.2, "linestyle": "none"}


def selection_figure(rows: Sequence[Json]) -> Figure:
    """Draw both questions for all selectors, at the right both over the budget; below: channels held out, and pairs."""
    groups = [row for row in rows if row["part"] == "groups"]
    stays = [row for row in rows if row["part"] == "stays"]
    figure, axes = _panels()
    order = _order(groups, stays)
    for which, look in GROUPS.items():
        points = {}
        for name in order:
            if seeds_of(groups, name, which):
                found = over_trials(trials_of(groups, name, which)[:, None])[0]
                points[name] = (found.mean, found.low, found.high)
        said = {name: numbers[which == "all"] for name, numbers in PAPER_GROUPS.items()}
        _dots(axes[0], order, points, said, look)
    for channel, look in STAYS.items():
        some = [row for row in stays if row["held_out"] == channel]
        points = {row["selector"]: (row["kept"], row["kept_low"], row["kept_high"]) for row in some}
        _dots(axes[1], order, points, PAPER_STAYS[channel], look)
    _sweep(axes[2], *_of_groups(groups))
    _sweep(axes[3], *_of_stays([row for row in stays if row["held_out"] == "spo2" and "shares" in row]))
    axes[2].set(xlabel="Groups: budget, % of the keys", ylabel="groups with 1 key: answered")
    axes[3].set(xlabel="Intensive care, SpO2 held out: budget, % of the hours", ylabel="event hours: kept")
    _frame(axes[0], axes[1], order, stays)
    _held_out(axes[4], stays)
    _pairs(axes[5], [row for row in rows if row["part"] == "pairs"])
    for ax in axes:
        ax.grid(color=GRID, linewidth=0.6)
        ax.set_axisbelow(True)
        if ax.get_legend_handles_labels()[1]:
            look = {"borderaxespad": 0.2, "frameon": False, "fontsize": 9}
            ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=(1, 1, 2, 2, 3, 3)[axes.index(ax)], **look)
    return figure


def _panels() -> tuple[Figure, list[Axes]]:
    """Return a figure with two high panels, two low ones at their right, and below a wide and a narrow one."""
    figure, axes = canvas(13.0, 11.0, rows=3, widths=(1.0, 1.0, 1.1))
    left, middle, above, *rest, below, wide, _, narrow = axes
    grid = left.get_subplotspec().get_gridspec()  # pyright: ignore[reportOptionalMemberAccess]
    grid.set_height_ratios((1.0, 1.0, 0.95))
    for column, ax in enumerate((left, middle)):
        rest[column].remove()
        ax.set_subplotspec(grid[:2, column])
    axes[7].remove()
    wide.set_subplotspec(grid[2, :2])
    return figure, [left, middle, above, below, wide, narrow]


def _order(groups: Sequence[Json], stays: Sequence[Json]) -> list[str]:
    """Return all selectors, those that answer most rare groups first, and below them what is no selector."""
    names = dict.fromkeys(row["selector"] for row in [*groups, *stays])
    rare = {name: float(np.mean(seeds_of(groups, name, "rare") or [0.0])) for name in names}
    return sorted(names, key=lambda name: (name in REFERENCES, -rare[name]))


def _dots(
    ax: Axes,
    order: Sequence[str],
    points: Mapping[str, tuple[float, float, float]],
    said: Mapping[str, float],
    look: tuple[str, str, str, float],
) -> None:
    """Draw a mean with its interval for each selector, and what the paper says as a hollow mark."""
    label, hue, mark, shift = look
    for place, name in enumerate(order):
        if name not in points:
            continue
        mean, low, high = points[name]
        ax.plot([low, high], [place + shift] * 2, color=ink(hue), linewidth=2)
        first = label if name == next(iter(points)) else None
        ax.plot(mean, place + shift, mark, color=ink(hue), markersize=5.5, label=first, clip_on=False)
        if name in said:
            paper = "the paper's" if hue == "orange" and name == next(one for one in order if one in said) else None
            ax.plot(said[name], place + shift, "D", label=paper, zorder=5, clip_on=False, **HOLLOW)


def _frame(left: Axes, right: Axes, order: Sequence[str], stays: Sequence[Json]) -> None:
    """Name the selectors once, at the left, and say where one could not be asked."""
    for ax in (left, right):
        ax.set_yticks(range(len(order)), order)
        ax.set_ylim(max(len(order), 1) - 0.5, -0.6)
        ax.set_xlim(-0.02, 1.0)
        if len(order) > len(REFERENCES):
            ax.axhline(len(order) - len(REFERENCES) - 0.5, color=GREY, linewidth=0.8)
    right.tick_params(labelleft=False)
    for tick in left.get_yticklabels():
        tick.set_fontweight("bold" if tick.get_text() == "support" else "normal")
    left.set_xlabel("Groups: share of held-out queries answered")
    right.set_xlabel("Intensive care: share of event hours kept")
    there = {row["selector"] for row in stays}
    for place, name in enumerate(order):
        if there and name not in there:
            says = "not asked" if name in REFERENCES else "needs queries"
            right.text(0.0, place, says, color=GREY, fontsize=8, va="center")


# Shares in per cent; mean, low and high by selector, each over the shares; and the size of the support set.
_Swept = tuple[Sequence[int], dict[str, tuple[NDArray[np.float64], ...]], float]


def _of_groups(groups: Sequence[Json]) -> _Swept:
    """Return the share of rare groups over the budget, with intervals over seeds."""
    swept = [row for row in groups if row["selector"] in SWEPT and row.get("shares")]
    swept = [row for row in swept if row["selector"] != "heavy-hitter of keys"]  # 0 at all budgets
    lines = {}
    for name in dict.fromkeys(row["selector"] for row in swept):
        values = np.array(seeds_of(swept, name, "sweep_rare"))
        mean, _, half = np.array([over_seeds(column.tolist()) for column in values.T]).T
        lines[name] = mean, mean - np.nan_to_num(half), mean + np.nan_to_num(half)
    return next((row["shares"] for row in swept), ()), lines, _budget(groups)


def _of_stays(stays: Sequence[Json]) -> _Swept:
    """Return the share of event hours over the budget, with intervals over stays."""
    ends = ("sweep_kept", "sweep_kept_low", "sweep_kept_high")
    lines = {row["selector"]: tuple(np.array(row[end]) for end in ends) for row in stays if row["selector"] in SWEPT}
    return next((row["shares"] for row in stays), ()), lines, _budget(stays)


def _budget(rows: Sequence[Json]) -> float:
    sizes = [row["budget"] for row in rows if row["selector"] == "support"]
    return 100 * float(np.mean(sizes)) if sizes else np.nan


def _sweep(ax: Axes, shares: Sequence[int], lines: Mapping[str, tuple[NDArray[np.float64], ...]], size: float) -> None:
    """Draw lines over the budget, and mark the size of the support set."""
    for name, (hue, mark, line) in SWEPT.items():
        if name in lines:
            mean, low, high = lines[name]
            ax.fill_between(shares, low, high, color=ink(hue), alpha=0.2, linewidth=0)
            ax.plot(
                shares, mean, color=ink(hue), marker=mark, linestyle=line, markersize=4.5, label=name, clip_on=False
            )
    if lines:
        ax.axvline(size, color=GREY, linewidth=1.2, linestyle="--", label="size of the support set")
    ax.set_ylim(0, 1.0)


def _held_out(ax: Axes, stays: Sequence[Json]) -> None:
    """Draw what is kept at the size of the support set for each channel that the selectors do not see."""
    there = {row["held_out"] for row in stays}
    channels, names = [channel for channel in CHANNELS if channel in there], []
    for place, channel in enumerate(channels):
        of = {row["selector"]: row for row in stays if row["held_out"] == channel}
        names.append(f"{CHANNELS[channel]}\n{of['support']['stays']} stays")
        best = max((name for name in of if name not in NAMED), key=lambda name: of[name]["kept"])
        for line, (name, (hue, mark)) in enumerate(NAMED.items()):
            row, at = of[best if name == "best other" else name], place + 0.2 * (line - 1.5)
            ax.plot([row["kept_low"], row["kept_high"]], [at] * 2, color=ink(hue), linewidth=2)
            label = f"best of the other {len(of) - len(NAMED) + 1}, as named" if name == "best other" else name
            ax.plot(row["kept"], at, mark, color=ink(hue), markersize=5.5, label=None if place else label)
            if name == "best other":
                ax.text(row["kept_high"] + 0.008, at, best, color=BLACK, fontsize=8, va="center")
            if name in PAPER_STAYS.get(channel, {}):
                paper = "the paper's" if name == "heavy-hitter of keys" else None
                ax.plot(PAPER_STAYS[channel][name], at, "D", label=paper, zorder=5, **HOLLOW)
    ax.set_yticks(range(len(channels)), names)
    ax.set_ylim(max(len(channels), 1) - 0.5, -0.5)
    ax.set_xlim(-0.01, 1.0)
    ax.set_xlabel("Intensive care, by the vital sign held out: share of its event hours kept, budget as the support's")


def _pairs(ax: Axes, pairs: Sequence[Json]) -> None:
    """Draw the recall of pairs that are all distinct: each seed as a point, their mean as a bar."""
    rng = np.random.default_rng(0)  # only spreads the points
    for place, ((mixer, said), hue) in enumerate(zip(PAPER_PAIRS.items(), ("blue", "sky", "orange"), strict=True)):
        recall = [row["recall"] for row in pairs if row["mixer"] == mixer]
        at = place + rng.uniform(-0.16, 0.16, len(recall))
        if recall:
            ax.plot(recall, at, "o", color=ink(hue), markersize=5, clip_on=False, label=None if place else "a seed")
            mean, says = float(np.mean(recall)), None if place else "mean"
            ax.plot([mean] * 2, [place - 0.3, place + 0.3], color=ink(hue), linewidth=1.6, label=says)
            ax.plot(said, place, "D", label="the paper's, one seed" if place == 2 else None, zorder=5, **HOLLOW)
    ax.set_yticks(range(len(PAPER_PAIRS)), list(PAPER_PAIRS))
    ax.set_ylim(len(PAPER_PAIRS) - 0.4, -0.6)
    ax.set_xlim(0.0, 1.01)
    ax.set_xlabel("Distinct pairs: share of 200 queries recalled")
