"""The figures of the experiments on stability and a teacher."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from svmem.report.style import GRID, canvas, ink
from svmem.types import Json

__all__ = ["stability_figure", "teacher_figure"]

HUES = ("blue", "orange", "green", "vermilion", "purple", "sky")


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
