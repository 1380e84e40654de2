"""The figure of the language models: curves, gains over the matched window seed by seed, and what switches do."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.language.claims import OTHERS, PAPER_GAINS, Runs, kind, versus
from experiments.language.figure import LOOKS, Curve
from experiments.language.plan import FAMILIES
from experiments.language.train import best
from svmem.report.style import BLACK, GREY, GRID, canvas, ink

__all__ = ["language_figure"]

NAMES = {"sv": "SV hybrid", **OTHERS}
HEIGHTS = {"bits_per_byte": "held-out bits per byte", "grad_norm_max": "largest gradient"}
PLACES = {
    "small": "0.8M, gcide",
    "medium": "3.22M, gcide",
    "wiki": "0.8M, Wikipedia",
    "large": "10M, gcide",
}


def language_figure(runs: Runs) -> Figure:
    """Draw the curves of each size, the gains over the window beside the paper's, gradients, and the switches.

    What has no runs has no panel.
    """
    panels = _panels(runs)
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = canvas(1.0 + 3.9 * columns, 0.6 + 3.4 * rows, rows=rows, widths=(1.0,) * columns)
    for ax, panel in zip(axes, panels, strict=False):
        panel(ax)
        ax.grid(color=GRID, linewidth=0.6)
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    handles = {label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=min(columns + 1, 4))
    return figure


def _panels(runs: Runs) -> list[Callable[[Axes], None]]:
    """Return what draws each panel that there is something for."""
    panels: list[Callable[[Axes], None]] = []
    for family in FAMILIES:
        if family.name != "switches" and runs.get(family.name):
            panels.append(partial(_curves, runs=runs[family.name], of="bits_per_byte", title=family.title))
    panels.append(partial(_gains, runs=runs))
    if runs.get("large"):
        panels.append(partial(_curves, runs=runs["large"], of="grad_norm_max", title="10M parameters, gcide"))
    if runs.get("switches"):
        panels.append(partial(_switches, runs=runs["switches"]))
    return panels


def _curves(ax: Axes, runs: Mapping[str, Curve], of: str, title: str) -> None:
    """Draw the mean over the seeds of each mixer, and each seed thinly behind it."""
    for first, name in NAMES.items():
        mine = [curve for run, curve in runs.items() if kind(run) == first]
        if not mine:
            continue
        _, color, line = LOOKS[mine[0].settings.mixer] if first != "local" else ("", GREY, "-.")
        shortest = min(len(curve.rows) for curve in mine)
        steps = [row["step"] for row in mine[0].rows[:shortest]]
        heights = np.array([[row[of] for row in curve.rows[:shortest]] for curve in mine])
        if len(mine) > 1:
            ax.plot(steps, heights.T, color=color, linewidth=0.5, alpha=0.6)
        ax.plot(steps, heights.mean(0), color=color, linestyle=line, linewidth=1.6, label=name)
    if of == "grad_norm_max":
        ax.set_yscale("log")
    ax.set_title(title)
    ax.set_xlabel("step")
    ax.set_ylabel(HEIGHTS[of])


def _gains(ax: Axes, runs: Runs) -> None:
    """Draw a dot for each pair of seeds, ours full and the paper's hollow."""
    places: list[str] = []
    for family, label in PLACES.items():
        found = versus(runs.get(family, {}), "window")
        if found is None:
            continue
        _dots(ax, len(places), found.gains, ink("blue"))
        places.append(label)
    for name, shares in PAPER_GAINS.items():
        _dots(ax, len(places), shares, "none")
        places.append(f"paper: {name}")
    ax.axvline(0, color=BLACK, linewidth=0.8)
    ax.set_yticks(range(len(places)), places, fontsize=8)
    ax.set_ylim(len(places) - 0.5, -0.5)
    ax.set_xlabel("fewer bits than the window, %")
    ax.set_title("each dot one pair of seeds; bar: mean")


def _dots(ax: Axes, place: int, shares: Sequence[float], face: str) -> None:
    at = place + np.linspace(-0.2, 0.2, len(shares)) if len(shares) > 1 else np.array([place])
    edge = ink("blue") if face != "none" else GREY
    ax.plot(100 * np.array(shares), at, marker="o", linestyle="none", markersize=6, color=edge, markerfacecolor=face)
    ax.vlines(100 * float(np.mean(shares)), place - 0.35, place + 0.35, color=edge, linewidth=2)


def _switches(ax: Axes, runs: Mapping[str, Curve]) -> None:
    """Draw the best bits of each switch as a dot on a line of its own."""
    names = [name for name in runs if best(runs[name].rows)]
    for place, name in enumerate(names):
        lowest = best(runs[name].rows)
        assert lowest is not None
        ax.plot(lowest["bits_per_byte"], place, "o", color=LOOKS[runs[name].settings.mixer][1], markersize=7)
    if "exact-gate" in names:
        lowest = best(runs["exact-gate"].rows)
        assert lowest is not None
        ax.axvline(lowest["bits_per_byte"], color=GREY, linewidth=0.8)
    ax.set_yticks(range(len(names)), [name.replace("-", " ") for name in names])
    ax.set_ylim(max(len(names), 1) - 0.5, -0.5)
    ax.set_xlabel("best held-out bits per byte")
    ax.set_title("one switch each, 0.8M, 150 steps")
