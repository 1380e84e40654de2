"""The figures of the experiments on recall, stability and a teacher."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.language.figure import COLORS, DASHES
from svmem.report.style import GRID, canvas, ink
from svmem.types import Json

__all__ = ["recall_figure", "stability_figure", "teacher_figure"]

NAMES = {"sv": "SV hybrid", "softmax": "softmax", "window": "sliding window", "linear": "linear", "delta": "DeltaNet"}
MARKS = {"sv": "o", "softmax": "s", "window": "^", "linear": "v", "delta": "D"}
HUES = ("blue", "orange", "green", "vermilion", "purple", "sky")


def recall_figure(rows: Sequence[Json]) -> Figure:
    """Draw recall over redundant filler, the state that carries it, and recall of the other tasks."""
    figure, axes = canvas(10.5, 3.7, widths=(1.0, 0.8, 1.5))
    copy = [row for row in rows if row["task"] == "copy"]
    for mixer in NAMES:
        mine = _curve([row for row in copy if row["mixer"] == mixer], "filler", "accuracy")
        look = {"color": ink(COLORS[mixer]), "linestyle": DASHES[mixer], "marker": MARKS[mixer], "markersize": 5}
        axes[0].plot(*mine, label=NAMES[mixer], clip_on=False, **look)
    for kind, label, mark in (("mean_support", "SV: mean support", "o"), ("tokens", "softmax: all tokens", "s")):
        some = [row | {"tokens": row["filler"] + row["facts"]} for row in copy if row["mixer"] == "sv"]
        mixer = "sv" if mark == "o" else "softmax"
        axes[1].plot(*_curve(some, "filler", kind), label=label, marker=mark, markersize=5, color=ink(COLORS[mixer]))
    trained = max((row["filler"] for row in copy if row["trained"]), default=0)
    for ax in axes[:2]:
        ax.set_xscale("log", base=2)
        ticks = sorted({row["filler"] for row in copy})
        ax.set_xticks(ticks, [str(tick) for tick in ticks])
        ax.set_xlabel("tokens of redundant filler")
        ax.axvline(trained, color=GRID, zorder=0)
    axes[0].annotate(
        "trained up to here",
        (trained, 0.5),
        xytext=(-3, 0),
        textcoords="offset points",
        rotation=90,
        ha="right",
        va="center",
        fontsize=8,
    )
    axes[0].set_ylabel("share of facts recalled")
    axes[0].set_ylim(0, 1.03)
    axes[1].set_yscale("log", base=2)
    axes[1].set_yticks(ticks := [8 << k for k in range(9)], [str(tick) for tick in ticks])
    axes[1].set_ylabel("tokens that are kept")
    axes[1].set_ylim(8, 2048)
    axes[1].legend(loc="upper left")
    _bars(axes[2], rows)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=5)
    return figure


def _bars(ax: Axes, rows: Sequence[Json]) -> None:
    """Draw a group of bars for each task beside copying, and for each kind of answer after deletions."""
    groups: dict[str, list[Json]] = {}
    for row in rows:
        if row["task"] == "pairs":
            groups.setdefault(f"{row['facts']}\npairs", []).append(row | {"height": row["accuracy"]})
        elif row["task"] == "distinct":
            groups.setdefault("distinct\nfiller", []).append(row | {"height": row["accuracy"]})
        elif row["task"] == "delete":
            groups.setdefault("deleted:\n“none”", []).append(row | {"height": row["accuracy_deleted"]})
            groups.setdefault("kept\nbeside", []).append(row | {"height": row["accuracy_kept"]})
    for number, some in enumerate(groups.values()):
        for place, mixer in enumerate(NAMES):
            heights = [row["height"] for row in some if row["mixer"] == mixer]
            if heights:
                at, height = number + 0.16 * (place - 2), sum(heights) / len(heights)
                ax.bar(at, height, 0.14, color=ink(COLORS[mixer]))
    ax.set_xticks(range(len(groups)), list(groups))
    ax.set_ylim(0, 1.03)
    ax.set_ylabel("share of right answers")


def stability_figure(rows: Sequence[Json]) -> Figure:
    """Draw gradients through the gate and losses over the ridge, and the losses of all runs of the wide models."""
    figure, axes = canvas(10.5, 3.9, widths=(1.0, 1.0, 1.0))
    small, wide = ([row for row in rows if row["wide"] == which] for which in (False, True))
    for ax, name in zip(axes, ("gate_grad_max", "loss"), strict=False):
        _over_ridge(ax, small, name)
        ax.set_xscale("log")
        ax.set_xlabel("ridge")
    axes[0].set_yscale("log")
    axes[0].set_ylabel("largest gradient through the gate")
    axes[1].set_ylabel("loss of the last 20 steps, nats")
    for row in wide:
        label, hue, line = WIDE[row["gate"], row["unit_keys"]]
        axes[2].plot(row["losses"], color=ink(hue), label=label, linestyle=line, linewidth=1.2)
    axes[2].set_xlabel("step, 10 times as wide and twice as deep")
    axes[2].set_ylabel("loss, nats")
    if wide:
        axes[2].legend(loc="upper right")
    if small:
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


WIDE = {
    ("exact", False): ("exact gate, raw keys", "blue", "-"),
    ("exact", True): ("exact gate, keys of length 1", "green", "-."),
    ("approximate", False): ("approximate gate", "orange", ":"),
    ("approximate", True): ("approximate gate, keys of length 1", "sky", ":"),
    ("none", False): ("softmax", "vermilion", "--"),
}


def _over_ridge(ax: Axes, rows: Sequence[Json], name: str) -> None:
    """Draw one number of the small models' rows over the ridge, and that of the approximate gate at its own."""
    looks = [(unit, learn) for unit in (False, True) for learn in (False, True)]
    for (unit, learn), hue, mark in zip(looks, HUES, "o^sv", strict=False):
        some = [row for row in rows if row["gate"] == "exact" and row["unit_keys"] == unit]
        label = f"{'keys of length 1' if unit else 'raw keys'}, {'learned' if learn else 'fixed'} width"
        look = {"color": ink(hue), "marker": mark, "markersize": 5, "linestyle": "--" if learn else "-"}
        ax.plot(*_curve([row for row in some if row["learn_sigma"] == learn], "ridge", name), label=label, **look)
    for unit, hue in ((False, "orange"), (True, "green")):
        some = [row for row in rows if row["gate"] == "approximate" and row["unit_keys"] == unit]
        label = f"approximate gate, {'keys of length 1' if unit else 'raw keys'}"
        look = {"color": ink(hue), "marker": "x", "markersize": 9, "markeredgewidth": 2, "linestyle": "none"}
        ax.plot(*_curve(some, "ridge", name), label=label, **look)


def teacher_figure(rows: Sequence[Json]) -> Figure:
    """Draw the loss, the gradient through the gate and the worst gap over the steps."""
    figure, axes = canvas(10.0, 3.3, widths=(1.0, 1.0, 1.0))
    says = ("loss / variance of the teacher", "gradient through the gate", "worst duality gap")
    for ax, name, label in zip(axes, ("share", "gate_grad", "worst_gap"), says, strict=True):
        for kind, hue, line in (("hybrid", "blue", "-"), ("rbf", "orange", "--")):
            some = [row for row in rows if row["readout"] == kind and row[name]]
            ax.plot(*_curve(some, "step", name), color=ink(hue), linestyle=line, label=f"{kind} readout")
        ax.set_yscale("log")
        ax.set_xlabel("step")
        ax.set_ylabel(label)
        ax.grid(color=GRID, linewidth=0.6)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


def _curve(rows: Sequence[Json], over: str, of: str) -> tuple[list[float], list[float]]:
    """Return the places and the means over the rows at each, leaving out what is no number."""
    at: dict[float, list[float]] = {}
    for row in rows:
        if row[of] is not None:
            at.setdefault(row[over], []).append(row[of])
    return sorted(at), [sum(at[place]) / len(at[place]) for place in sorted(at)]
