"""The figure of the experiment on recall."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from svmem.report.style import BLACK, GREY, GRID, canvas, ink
from svmem.types import Json

__all__ = ["recall_figure"]

# What the legend calls a mixer, its hue, mark and line: what the paper proposes solid, the others broken.
LOOKS = {
    "sv": ("SV hybrid", ink("blue"), "o", "-"),
    "rbf": ("SV, RBF readout", ink("sky"), "D", "-"),
    "ungated": ("RBF readout, no gate", ink("sky"), "d", ":"),
    "softmax": ("softmax", ink("vermilion"), "s", "--"),
    "window": ("window of SV's state", ink("orange"), "^", "-."),
    "linear": ("linear attention", ink("green"), "v", "--"),
    "delta": ("DeltaNet", ink("purple"), "P", "--"),
    "delta-conv": ("DeltaNet, convolved", ink("purple"), "X", ":"),
    "ssm": ("selective state space", GREY, "*", "-."),
}
CHANCE = 1 / 16
GROUPS = {
    "distinct filler": ("distinct", "accuracy"),
    "kept beside\ndeleted": ("delete", "accuracy_kept"),
    "deleted:\n“none”": ("delete", "accuracy_deleted"),
}


def recall_figure(rows: Sequence[Json]) -> Figure:
    """Draw recall, state and time over redundant filler, recall over pairs, and recall of the other tasks."""
    figure, axes = canvas(12.5, 7.4, rows=2, widths=(1.0, 1.0, 1.0))
    copy = [row for row in rows if row["task"] == "copy"]
    pairs = [row for row in rows if row["task"] == "pairs"]
    trained = max((row["filler"] for row in copy if row["trained"]), default=16)
    for ax, of in zip(axes[:3], ("accuracy", "state", "ask_ms"), strict=True):
        _lines(ax, copy, "filler", of)
        ax.set_xlabel("tokens of redundant filler")
        ax.axvline(trained, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
    _note(axes[0], trained)
    axes[1].set_ylabel("numbers that a layer keeps")
    axes[2].set_ylabel("milliseconds a sequence")
    _support(axes[3], copy)
    _lines(axes[4], pairs, "facts", "accuracy")
    axes[4].set_xlabel("pairs, all of them asked")
    _tasks(axes[5], rows)
    for ax in (axes[0], axes[4], axes[5]):
        ax.set_ylabel("share of facts recalled")
        ax.set_ylim(-0.02, 1.04)
        ax.axhline(CHANCE, color=GREY, linewidth=0.8, zorder=0)
    for ax in axes[1:3]:
        ax.set_yscale("log" if copy else "linear")
    axes[5].set_visible(any(row["task"] in ("distinct", "delete") for row in rows))
    for ax in axes:
        ax.grid(color=GRID, linewidth=0.6)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=5)
    return figure


def _note(ax: Axes, trained: int) -> None:
    look = {"xytext": (-3, 0), "textcoords": "offset points", "rotation": 90, "ha": "right", "va": "center"}
    ax.annotate("trained up to here", (trained, 0.5), fontsize=8, color=BLACK, **look)


def _lines(ax: Axes, rows: Sequence[Json], over: str, of: str) -> None:
    """Draw the means over seeds, and the span of the seeds as a line across."""
    for mixer, (name, color, mark, line) in LOOKS.items():
        at = _over([row for row in rows if row["mixer"] == mixer], over, of)
        middle = [sum(values) / len(values) for values in at.values()]
        ax.plot(list(at), middle, label=name, color=color, marker=mark, linestyle=line, markersize=5, linewidth=1.4)
        ax.vlines(list(at), [min(v) for v in at.values()], [max(v) for v in at.values()], color=color, linewidth=1.0)
    _doubling(ax, rows, over)


def _doubling(ax: Axes, rows: Sequence[Json], over: str) -> None:
    if not rows:  # nothing that a logarithm could be taken of
        return
    ax.set_xscale("log", base=2)
    ticks = sorted({row[over] for row in rows})
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.minorticks_off()


def _support(ax: Axes, copy: Sequence[Json]) -> None:
    """Draw how many tokens the questions read, beside the paper's 11 to 14."""
    ax.axhspan(11, 14, color=ink("orange"), alpha=0.25, linewidth=0, label="paper: 11 to 14")
    for mixer in ("sv", "rbf"):
        name, color, mark, line = LOOKS[mixer]
        at = _over([row for row in copy if row["mixer"] == mixer], "filler", "support")
        middle = [sum(values) / len(values) for values in at.values()]
        ax.plot(list(at), middle, label=name, color=color, marker=mark, linestyle=line, markersize=5)
        ax.vlines(list(at), [min(v) for v in at.values()], [max(v) for v in at.values()], color=color, linewidth=1.0)
    _doubling(ax, copy, "filler")
    ax.set_ylim(0, 28)
    ax.set_xlabel("tokens of redundant filler")
    ax.set_ylabel("support tokens when asked")
    ax.legend(loc="lower right")


def _tasks(ax: Axes, rows: Sequence[Json]) -> None:
    """Draw a dot for each mixer and seed of the tasks beside."""
    for number, (task, of) in enumerate(GROUPS.values()):
        for place, (mixer, (_, color, mark, _)) in enumerate(LOOKS.items()):
            found = [row[of] for row in rows if row["task"] == task and row["mixer"] == mixer]
            at = number + 0.09 * (place - (len(LOOKS) - 1) / 2)
            ax.plot([at] * len(found), found, color=color, marker=mark, linestyle="none", markersize=5, alpha=0.8)
    ax.set_xticks(range(len(GROUPS)), list(GROUPS))
    ax.set_xlim(-0.6, len(GROUPS) - 0.4)


def _over(rows: Sequence[Json], over: str, of: str) -> dict[float, list[float]]:
    """Return the numbers of all seeds at each place, in order, leaving out what is missing."""
    at: dict[float, list[float]] = {}
    for row in sorted(rows, key=lambda row: row[over]):
        if row[of] is not None:
            at.setdefault(row[over], []).append(row[of])
    return at
