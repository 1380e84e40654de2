"""The figure of the experiment on prediction."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.prediction_claims import NAMES, PAPER
from svmem.report.style import BLACK, GREY, GRID, canvas, ink
from svmem.types import Json

__all__ = ["prediction_figure"]

# What a model is called, its hue and mark, and how far above its line it lies.
LOOKS = {"bare": ("mixer alone", "blue", "o", -0.16), "block": ("mixer in a block with an MLP", "orange", "s", 0.16)}
OWN = ("sv", "hybrid")  # in bold


def prediction_figure(rows: Sequence[Json]) -> Figure:
    """Draw both areas for every mixer, those with the largest AUROC first, and below them what needs no training."""
    figure, axes = canvas(9.5, 4.6, sharey=True, widths=(1.0, 1.0))
    trained = {row["mixer"]: row["auroc"] for row in rows if row["part"] == "bare"}
    trained = trained or {row["mixer"]: row["auroc"] for row in rows if row["part"] == "block"}
    given = [row["mixer"] for row in rows if row["part"] == "references"]
    order = [*sorted(trained, key=lambda name: -trained[name]), *given]
    for ax, measure in zip(axes, ("auroc", "auprc"), strict=True):
        for part, (label, hue, mark, shift) in LOOKS.items():
            _dots(ax, [row for row in rows if row["part"] == part], measure, order, (label, ink(hue), mark, shift))
        nothing = [row for row in rows if row["part"] == "references"]
        _dots(ax, nothing, measure, order, ("no training", GREY, "D", 0.0))
        ax.set_axisbelow(True)
        ax.grid(color=GRID, linewidth=0.6)
        if given and trained:
            ax.axhline(len(trained) - 0.5, color=GREY, linewidth=0.8)
    for name in PAPER if trained else ():
        look = {"markerfacecolor": "none", "markeredgecolor": BLACK, "markersize": 7, "markeredgewidth": 1.3}
        label = "the paper's, on other stays" if name == next(iter(PAPER)) else None
        axes[0].plot(PAPER[name], order.index(name), "d", label=label, zorder=5, linestyle="none", **look)
    axes[0].set_yticks(range(len(order)), [NAMES[name] for name in order])
    axes[0].set_ylim(max(len(order), 1) - 0.5, -0.6)
    own = [NAMES[name] for name in OWN]
    for tick in axes[0].get_yticklabels():
        tick.set_fontweight("bold" if tick.get_text() in own else "normal")
    axes[0].set_xlabel("AUROC: event in the next six hours")
    axes[1].set_xlabel("AUPRC (average precision)")
    if rows:
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    return figure


def _dots(
    ax: Axes, rows: Sequence[Json], measure: str, order: Sequence[str], look: tuple[str, str, str, float]
) -> None:
    """Draw the measure of each row with its interval."""
    label, color, mark, shift = look
    for row in rows:
        place = order.index(row["mixer"]) + shift
        ax.plot([row[f"{measure}_low"], row[f"{measure}_high"]], [place, place], color=color, linewidth=1.8)
        first = label if row is rows[0] else None
        ax.plot(row[measure], place, mark, color=color, markersize=5, linestyle="none", label=first)
