"""Figures of one memory: sizes of its sets, coefficients, gate scores, and its keys on their two main axes."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from svmem.report.style import BLACK, GREY, GRID, SETS, canvas, ink
from svmem.types import Coefficients, Keys, Vector

__all__ = ["alpha_figure", "gate_figure", "main_plane", "plane_figure", "sizes_figure"]

Flags = NDArray[np.bool_]
Sets = Mapping[str, Flags]  # set name -> its records (n,)
_LEGEND = {"loc": "outside upper left", "ncols": 3, "frameon": False, "handletextpad": 0.5, "columnspacing": 1.5}


def sizes_figure(sets: Sets) -> Figure:
    """Draw how many records each set holds."""
    figure, (ax,) = canvas(7.2, 1.7)
    sizes = [int(sets[style.name].sum()) for style in SETS]
    bars = ax.barh([style.says for style in SETS], sizes, height=0.62, color=[style.color for style in SETS])
    ax.bar_label(bars, labels=[f"{size:,}" for size in sizes], padding=4, fontsize=9.5)
    ax.invert_yaxis()
    ax.margins(x=0.1)
    ax.set_xlabel("records")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color=GRID)
    return figure


def alpha_figure(alpha: Coefficients, cap: float) -> Figure:
    """Draw the coefficients between 0 and the cap, as shares of the cap; those at the cap are only counted."""
    figure, (ax,) = canvas(7.2, 2.8)
    between = alpha[(alpha > 0) & (alpha < cap)] / cap
    ax.hist(between, bins=np.linspace(0, 1, 26).tolist(), color=ink("blue"))
    ax.axvline(1, color=ink("vermilion"), linewidth=4)
    at_cap = f"at the cap: {int((alpha >= cap).sum()):,}"
    ax.text(0.975, 0.96, at_cap, ha="right", va="top", color=ink("vermilion"), transform=ax.transAxes)
    ax.set_xlabel("coefficient as a share of the cap C")
    ax.set_ylabel("margin records")
    ax.set_xlim(0, 1.01)
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_ylim(top=1.25 * max(ax.get_ylim()[1], 1))
    ax.grid(axis="y", color=GRID)
    return figure


def gate_figure(score: Vector, sets: Sets) -> Figure:
    """Draw the gate scores of the stored records, stacked by set; 0 is the boundary."""
    figure, (ax,) = canvas(7.2, 3.0)
    width = float(np.ptp(score)) / 40 or 1.0
    low, high = np.floor(score.min() / width), np.floor(score.max() / width) + 1
    edges = width * np.arange(min(low, 0), max(high, 0) + 1)  # 0 is an edge, so that no bar straddles the boundary
    parts = [score[sets[style.name]] for style in SETS]
    ax.hist(
        parts, bins=edges.tolist(), stacked=True, color=[style.color for style in SETS], label=[s.name for s in SETS]
    )
    ax.axvline(0, color=BLACK, linewidth=1.2)
    ax.text(0, 1.01, "boundary", ha="center", va="bottom", fontsize=9, transform=ax.get_xaxis_transform())
    ax.set_xlabel("gate score (negative: outside, positive: inside)")
    ax.set_ylabel("records")
    ax.grid(axis="y", color=GRID)
    figure.legend(**_LEGEND)
    return figure


def plane_figure(points: Keys, shares: tuple[float, float], sets: Sets) -> Figure:
    """Draw the records on the two main axes of their keys (n, 2); `shares` are the shares of variance on them."""
    figure, (ax,) = canvas(7.2, 5.6)
    for style in reversed(SETS):
        rows = sets[style.name]
        size = style.size * (1.0 if style.name == "margin" else min(1.0, (600 / len(points)) ** 0.25))
        face = "#A6A6A6" if style.color == GREY else style.color
        ax.plot(
            points[rows, 0], points[rows, 1], linestyle="none", marker=style.marker, markersize=size, color=face,
            markeredgecolor="white", markeredgewidth=0.3, label=style.says, rasterized=len(points) > 2000,
        )  # fmt: skip
    first, second = (f"{100 * share:.0f} % of the variance" for share in shares)
    ax.set_xlabel(f"first principal axis of the keys ({first})")
    ax.set_ylabel(f"second principal axis ({second})")
    ax.grid(color=GRID)
    figure.legend(**_LEGEND)
    return figure


def main_plane(keys: Keys) -> tuple[Keys, tuple[float, float]]:
    """Return the keys (n, d) on their first two principal axes (n, 2), and the shares of variance on these.

    The sign of each axis is the one that makes its largest loading positive. With d = 1 the second axis is 0.
    """
    centred = keys - keys.mean(axis=0)
    if keys.shape[1] == 1:
        centred = np.column_stack([centred, np.zeros(len(keys))])
    variance, axes = np.linalg.eigh(centred.T @ centred)  # rising
    axes = axes[:, [-1, -2]]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    total = float(variance.sum())
    first, second = (float(variance[i]) / total if total > 0 else 0.0 for i in (-1, -2))
    return centred @ axes, (first, second)
