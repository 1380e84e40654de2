"""Figures from plain arrays: a stream with its three sets, shares with intervals, deviations, counts over time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from svmem.report.style import BLACK, GREY, GRID, SETS, SHADE, canvas, ink
from svmem.types import Vector

__all__ = ["Bar", "Panel", "counts_figure", "deviation_figure", "share_figure", "stream_figure"]

Flags = NDArray[np.bool_]
_LEGEND = {"loc": "outside upper left", "ncols": 2, "frameon": False, "handletextpad": 0.5, "columnspacing": 1.5}


def stream_figure(
    time: Vector,
    columns: Mapping[str, Vector],
    sets: Mapping[str, Flags],
    event: Flags,
    *,
    time_label: str,
    event_label: str,
) -> Figure:
    """Draw each column over time, one above the other: line for the values, marks for the set of each record.

    `columns` maps an axis label to values (n,), `sets` a set's name to its records (n,). Event times are shaded.
    """
    figure, axes = canvas(7.2, 1.25 * len(columns) + 1.0, rows=len(columns), sharex=True)
    for ax, (label, values) in zip(axes, columns.items(), strict=True):
        _shade(ax, time, event, event_label)
        ax.plot(time, values, color="#B5B5B5", linewidth=0.9, zorder=1)
        for style in reversed(SETS):
            rows = sets[style.name]
            ax.plot(
                time[rows], values[rows], linestyle="none", marker=style.marker, markersize=style.size,
                color=style.color, markeredgecolor="white", markeredgewidth=0.4, label=style.says, zorder=3,
            )  # fmt: skip
        ax.set_ylabel(label, rotation=0, ha="right", va="center", fontsize=9)
        ax.margins(y=0.15)
    axes[-1].set_xlabel(time_label)
    axes[-1].set_xlim(time.min() - 0.8, time.max() + 0.8)
    figure.align_ylabels(axes)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], **_LEGEND)
    return figure


def _shade(ax: Axes, time: Vector, event: Flags, label: str) -> None:
    flags = np.concatenate([[False], event, [False]]).astype(int)
    starts, ends = np.flatnonzero(np.diff(flags) == 1), np.flatnonzero(np.diff(flags) == -1) - 1
    for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
        ax.axvspan(time[start] - 0.5, time[end] + 0.5, color=SHADE, lw=0, zorder=0, label=label if i == 0 else None)


@dataclass(frozen=True, slots=True)
class Bar:
    """One share with its interval, and what was published for it, where it was."""

    label: str
    mean: float
    low: float
    high: float
    published: float | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """Bars under one title; the first is ours and drawn in colour."""

    title: str
    bars: tuple[Bar, ...]


def share_figure(panels: Sequence[Panel], *, label: str) -> Figure:
    """Draw shares between 0 and 1 as horizontal bars with intervals; a diamond marks the published value."""
    figure, axes = canvas(7.2, 0.5 + sum(0.42 * len(p.bars) + 0.55 for p in panels), rows=len(panels), sharex=True)
    for ax, panel in zip(axes, panels, strict=True):
        _share_panel(ax, panel)
    axes[-1].set_xlabel(label)
    axes[0].legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=2, frameon=False, borderaxespad=0.2)
    return figure


def _share_panel(ax: Axes, panel: Panel) -> None:
    places = np.arange(len(panel.bars))
    means = np.array([b.mean for b in panel.bars])
    reach = np.array([[b.mean - b.low, b.high - b.mean] for b in panel.bars]).T
    colors = [ink("blue"), *["#BDBDBD"] * (len(panel.bars) - 1)]
    ax.barh(places, means, height=0.62, color=colors)
    ax.errorbar(means, places, xerr=reach, fmt="none", ecolor=BLACK, elinewidth=1.2, capsize=3, label="95 % interval")
    known = [(i, b.published) for i, b in enumerate(panel.bars) if b.published is not None]
    if known:
        rows, shares = zip(*known, strict=True)
        ax.plot(
            shares, rows, linestyle="none", marker="D", markersize=6.5, color=ink("orange"),
            markeredgecolor=BLACK, markeredgewidth=0.9, label="paper", zorder=4,
        )  # fmt: skip
    for place, bar in zip(places, panel.bars, strict=True):
        ax.text(1.015, float(place), f"{bar.mean:.2f}", va="center", transform=ax.get_yaxis_transform(), fontsize=9.5)
    ax.set_yticks(places, [b.label for b in panel.bars])
    ax.set_xlim(0, 1)
    ax.invert_yaxis()
    ax.grid(axis="x", color=GRID)
    ax.tick_params(axis="y", length=0)
    ax.set_title(panel.title, loc="left", fontweight="bold", pad=8)


def deviation_figure(
    series: Mapping[str, Vector], *, label: str, spans: Mapping[str, tuple[float, float]] | None = None
) -> Figure:
    """Draw how often deviations of each size occur, on a logarithmic axis, with a bar of its own for exactly zero.

    `spans` are published ranges (median, worst), drawn as lines above the histogram.
    """
    figure, (zero, rest) = canvas(7.2, 3.6, sharey=True, widths=(1, 5.2))
    colors = [ink("blue"), ink("orange"), ink("purple")]
    least = min([float(v[v > 0].min(initial=1.0)) for v in series.values()] + [s[0] for s in (spans or {}).values()])
    edges = np.logspace(np.floor(np.log10(least)), 0.5, 61)
    width = 0.8 / len(series)
    for i, (name, values) in enumerate(series.items()):
        none = int((values == 0).sum())
        bars = zero.bar([i * width], [none], width=width * 0.92, color=colors[i], label=name)
        zero.bar_label(bars, padding=2, fontsize=9)
        if (values > 0).any():
            rest.hist(values[values > 0], bins=edges.tolist(), color=colors[i], alpha=0.9)
    top = 1.2 * max(zero.get_ylim()[1], rest.get_ylim()[1])
    zero.set_ylim(0, top)
    for i, (name, (median, worst)) in enumerate((spans or {}).items()):
        height = top * (0.52 - 0.16 * i)
        rest.plot([median, worst], [height, height], color=BLACK, linewidth=1.4, marker="|", markersize=10)
        rest.text(worst, height + top * 0.03, name, fontsize=9, ha="right", va="bottom")
    rest.set_xscale("log")
    rest.set_xlim(edges[0], edges[-1])
    rest.set_xlabel(label)
    zero.set_xticks([(len(series) - 1) * width / 2], ["exactly 0"])
    zero.set_xlim(-width, len(series) * width)
    zero.set_ylabel("trials")
    zero.grid(axis="y", color=GRID)
    rest.grid(axis="y", color=GRID)
    rest.tick_params(axis="y", length=0)
    rest.spines["left"].set_visible(False)
    figure.legend(**_LEGEND)
    return figure


def counts_figure(panels: Mapping[str, tuple[Vector, Mapping[str, Vector], float]], *, labels: Sequence[str]) -> Figure:
    """Draw how many records are margin, bound and reserve as records arrive, one panel a memory.

    Each panel's title maps to (records so far, set name -> counts, records needed before selection starts).
    """
    figure, axes = canvas(7.2, 2.5 * len(panels) + 0.5, rows=len(panels))
    for ax, label, (title, (seen, counts, needed)) in zip(axes, labels, panels.items(), strict=True):
        for style in SETS:
            ax.plot(seen, counts[style.name], color=style.color, linewidth=2, clip_on=False)
            ax.plot(seen[-1], counts[style.name][-1], style.marker, color=style.color, markersize=6, clip_on=False)
            ax.annotate(
                f"{style.name} {int(counts[style.name][-1]):,}", (seen[-1], counts[style.name][-1]), xytext=(7, 0),
                textcoords="offset points", va="center", color=style.color if style.color != GREY else "#555555",
                fontsize=9.5, annotation_clip=False,
            )  # fmt: skip
        ax.axvspan(0, needed, color="#F2F2F2", lw=0, zorder=0)
        ax.text(
            needed / 2, 0.97, "collecting", ha="center", va="top", color="#555555", fontsize=9,
            transform=ax.get_xaxis_transform(),
        )  # fmt: skip
        ax.set_title(title, loc="left", fontweight="bold", pad=8)
        ax.set_xlim(0, float(seen[-1]) * 1.02)
        ax.set_ylim(bottom=0)
        ax.set_xlabel(label)
        ax.set_ylabel("records")
        ax.xaxis.set_major_formatter(_thousands)
        ax.yaxis.set_major_formatter(_thousands)
        ax.grid(axis="y", color=GRID)
    return figure


def _thousands(value: float, _position: float) -> str:
    return f"{value:,.0f}"
