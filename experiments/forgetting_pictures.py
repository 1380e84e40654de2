"""The figures of the experiments on deletion and future activation."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments import activation
from experiments.beside import filled
from experiments.deletion import PAPER
from svmem import RBF, Memory, Problem
from svmem.report.style import BLACK, GREY, GRID, SETS, canvas, ink
from svmem.types import Json

__all__ = ["activation_figure", "deletion_figure"]

ZERO = 1e-16  # where a deviation of exactly 0 is drawn


def deletion_figure(rows: Sequence[Json]) -> Figure:
    """Draw, for each regime, deviations of the gate score from the refit, and shares of equal partitions."""
    figure, axes = canvas(10.0, 0.42 * max(len(rows), 4) + 1.5, sharey=True, widths=(1.9, 1.0))
    for place, row in enumerate(rows):
        paper = PAPER.get(row["regime"])
        if row["completed"]:
            _span(axes[0], row, "score", place - 0.24, "blue", "o")
            _span(axes[0], row, "score_bound", place - 0.08, "sky", "s")
            _span(axes[0], row, "decay", place + 0.24, "orange", "^")
            axes[1].barh(place - 0.17, 100 * row["same_partition"], 0.3, color=ink("blue"))
        if paper:
            _, partition, (median, _, worst), decay = paper
            axes[0].plot([median, worst], [place + 0.08] * 2, color=ink("vermilion"), linewidth=1.5)
            axes[0].plot([median, worst], [place + 0.08] * 2, "D", color=ink("vermilion"), markersize=5)
            axes[0].plot([decay], [place + 0.24], "x", color=BLACK, markersize=7, markeredgewidth=1.6)
            axes[1].barh(place + 0.17, 100 * partition, 0.3, color=ink("vermilion"), hatch="///", edgecolor="white")
    legend = (
        ("ours: deviation", "blue", "o"),
        ("ours: proven bound", "sky", "s"),
        ("paper: deviation", "vermilion", "D"),
        ("decay × 0.01: ours", "orange", "^"),
    )
    for label, hue, mark in legend:
        axes[0].plot([], [], color=ink(hue), marker=mark, markersize=5, label=label)
    axes[0].plot([], [], "x", color=BLACK, markersize=7, markeredgewidth=1.6, label="decay × 0.01: paper, median")
    _zero_axis(axes[0])
    axes[0].set_xlabel("largest deviation of a gate score from the refit, median to worst of the trials")
    names = {"icu": "ICU hours", "learned": "learned keys", "filled": "filled forward"}
    axes[0].set_yticks(range(len(rows)), [names.get(str(row["regime"]), str(row["regime"])) for row in rows])
    axes[0].set_ylim(max(len(rows), 1) - 0.5, -0.5)
    axes[1].set_xlabel("trials with the refit's partition, %\n(blue: ours, hatched: paper)")
    axes[1].set_xlim(0, 103)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def _span(ax: Axes, row: Json, name: str, place: float, hue: str, mark: str) -> None:
    """Draw the median and the worst of a number, joined."""
    ends = [max(row[f"{name}_{which}"], ZERO) for which in ("median", "worst")]
    ax.plot(ends, [place] * 2, color=ink(hue), linewidth=1.5, marker=mark, markersize=5)


def _zero_axis(ax: Axes) -> None:
    """Make the horizontal axis one of deviations: logarithmic, and 0 at its low end."""
    powers = range(-13, 1, 3)
    ax.set_xscale("log")
    ax.set_xlim(ZERO / 3, 1)
    ax.set_xticks([ZERO, *(10.0**power for power in powers)], ["0", *(f"$10^{{{power}}}$" for power in powers)])
    ax.axvline(ZERO, color=GREY, linewidth=0.8, zorder=0)
    ax.minorticks_off()
    ax.grid(axis="x", color=GRID, linewidth=0.6)


def activation_figure(rows: Sequence[Json]) -> Figure:
    """Draw the described region before and after the admission, and the third coefficient over its depth."""
    figure, axes = canvas(10.5, 4.2, widths=(1.0, 1.0, 1.15))
    config = activation.Config()
    problem = Problem(RBF(config.sigma), config.C, config.ridge)
    full, pruned = (filled(problem, some, np.zeros((len(some), 1))) for some in (activation.KEYS, activation.KEYS[:2]))
    _region(axes[0], full, pruned)
    axes[0].set_title("before: the third is not needed")
    for memory in (full, pruned):
        memory.add(activation.newcomer(config.depth), np.zeros((1, 1)))
    _region(axes[1], full, pruned)
    axes[1].set_title("after a fourth key at (0, −10)")
    arrow = {"arrowstyle": "->", "color": GREY}
    axes[1].annotate("to the fourth key", (0.0, -1.9), xytext=(0.0, -1.62), ha="center", arrowprops=arrow, fontsize=8)
    depths = [row for row in rows if row["arm"] == "depths"]
    over = [row["depth"] for row in depths]
    axes[2].plot(over, [row["coefficient"] for row in depths], color=ink("blue"), label="third record kept")
    axes[2].plot(over, [0.0 for _ in over], "--", color=ink("vermilion"), label="third record dropped before")
    paper = {"color": BLACK, "markersize": 9, "markeredgewidth": 1.8, "label": "paper"}
    axes[2].plot([10.0], [activation.COEFFICIENT], "x", **paper)
    axes[2].set_xlabel("depth of the fourth key below the origin")
    axes[2].set_ylabel("coefficient of the third record")
    axes[2].grid(color=GRID, linewidth=0.6)
    handles, labels = axes[0].get_legend_handles_labels()
    more, says = axes[2].get_legend_handles_labels()
    figure.legend(handles + more, labels + says, loc="outside upper center", ncols=3)
    return figure


def _region(ax: Axes, full: Memory, pruned: Memory) -> None:
    """Draw the boundary of both regions, and the keys of the full memory near the origin by their sets."""
    side = np.linspace(-1.9, 1.9, 201)
    points = np.stack(np.meshgrid(side, side), axis=-1)
    for memory, hue, line in ((full, "blue", "-"), (pruned, "vermilion", "--")):
        score = memory.score(points.reshape(-1, 2)).reshape(points.shape[:2])
        ax.contour(side, side, score, levels=[0.0], colors=ink(hue), linestyles=line, linewidths=1.5)
    found, near = full.solution, np.abs(full.keys).max(axis=1) < 2
    for style, ids in zip(SETS, (found.margin, found.bound, found.reserve), strict=True):
        keys = full.keys[np.isin(found.ids, ids) & near]
        look = {"color": style.color, "markersize": style.size + 2, "linestyle": "none"}
        label = {"margin": "active record", "reserve": "reserve record"}.get(style.name)
        ax.plot(keys[:, 0], keys[:, 1], style.marker, label=label, **look)
    ax.set_aspect("equal")
    ax.set_xlabel("first coordinate")
    ax.set_ylabel("second coordinate")
