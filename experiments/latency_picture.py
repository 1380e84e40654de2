"""The figure of the experiment on latency."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.latency_claims import AUTHORS, PAPER
from svmem.report.style import BLACK, GREY, GRID, canvas, ink
from svmem.types import Json

__all__ = ["latency_figure"]

LOOKS = {
    "forget": ("deletion, ours", "blue", "o", "-"),
    "cold": ("our cold solve", "sky", "s", "-"),
    "libsvm": ("libsvm, 1e-3", "green", "v", "--"),
    "libsvm tight": ("libsvm, 1e-12", "purple", "^", "-."),
    "clarabel": ("clarabel", "orange", "D", "-"),
    "quadprog": ("quadprog", "vermilion", "P", ":"),
}


def latency_figure(rows: Sequence[Json]) -> Figure:
    """Draw milliseconds over n for each method, and refits in deletions, the paper's numbers as hollow marks."""
    figure, axes = canvas(10.5, 4.3, widths=(1.0, 1.0))
    for method in LOOKS:
        mine = sorted((row for row in rows if row["method"] == method and row["count"]), key=lambda row: row["n"])
        _line(axes[0], mine, "seconds", 1e3)
        if method != "forget":
            _line(axes[1], mine, "ratio", 1.0)
    hollow: dict[str, Any] = {
        "linestyle": "none",
        "markerfacecolor": "white",
        "markersize": 7,
        "markeredgewidth": 1.5,
        "zorder": 5,
    }
    axes[1].plot(list(PAPER), [ratio for _, ratio in PAPER.values()], "o", color=BLACK, **hollow)
    hollow["label"] = "paper"
    axes[0].plot(list(PAPER), [ms for ms, _ in PAPER.values()], "o", color=BLACK, **hollow)
    hollow["label"] = "deletion, the paper's code here"
    axes[0].plot(list(AUTHORS), list(AUTHORS.values()), "s", color=GREY, **hollow)
    sizes = sorted({row["n"] for row in rows} | set(PAPER))
    for ax, label in zip(axes, ("milliseconds", "refit, in deletions of one record"), strict=True):
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
        ax.minorticks_off()
        ax.set_xlabel("records")
        ax.set_ylabel(label)
        ax.grid(color=GRID, linewidth=0.6)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure


def _line(ax: Axes, rows: Sequence[Json], name: str, scale: float) -> None:
    """Draw the medians of a method over n, and the band between its quartiles."""
    if not rows:
        return
    label, hue, mark, line = LOOKS[rows[0]["method"]]
    over = [row["n"] for row in rows]
    median, low, high = ([scale * row[f"{name}_{what}"] for row in rows] for what in ("median", "low", "high"))
    ax.fill_between(over, low, high, color=ink(hue), alpha=0.2, linewidth=0)
    ax.plot(over, median, line, color=ink(hue), marker=mark, markersize=5, linewidth=1.6, label=label)
