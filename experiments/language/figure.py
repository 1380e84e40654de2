"""Learning curves: held-out bits per byte over steps and over seconds."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from experiments import files
from experiments.language.settings import Settings, read_settings
from experiments.language.train import best
from svmem.errors import FileRefused
from svmem.report.style import BLACK, GREY, canvas, ink
from svmem.types import Json

__all__ = ["LOOKS", "Curve", "curves_figure", "read_curve"]

# What the legend calls a mixer, its colour and its line: the gates' solid, the others' broken.
LOOKS: dict[str, tuple[str, str, Any]] = {
    "sv": ("SV-Attention, C {C:g}, chunk {chunk}", ink("blue"), "-"),
    "fista": ("the paper's gate, C {C:g}, chunk {chunk}", ink("sky"), "-"),
    "uniform": ("equal coefficients, chunk {chunk}", ink("sky"), (0, (1, 1))),
    "softmax": ("softmax attention", ink("vermilion"), "--"),
    "window": ("sliding window of {window}", ink("orange"), "-."),
    "linear": ("linear attention", ink("green"), ":"),
    "delta": ("DeltaNet", ink("purple"), (0, (5, 1, 1, 1, 1, 1))),
    "ssm": ("selective state space", GREY, "--"),
    "lstm": ("LSTM", BLACK, ":"),
}


@dataclass(frozen=True, slots=True)
class Curve:
    """A run as it is drawn."""

    settings: Settings
    rows: list[Json]
    diverged: bool = False

    @property
    def name(self) -> str:
        """What the legend calls its mixer."""
        s = self.settings
        return LOOKS[s.mixer][0].format(C=s.C, chunk=s.chunk, window=s.window)


def read_curve(folder: Path) -> Curve:
    """Return the run in a folder. Raises FileRefused when it has measured nothing yet."""
    settings = read_settings(files.read_json(folder / files.RUN), folder / files.RUN)
    found = files.read_rows(folder / files.ROWS)
    rows = [row for row in found if row["bits_per_byte"] is not None]
    if not rows:
        raise FileRefused(f"{folder} holds a run that has no row yet: one comes every {settings.every} steps")
    return Curve(settings, rows, found[-1]["status"] != "ok")


def curves_figure(curves: Sequence[Curve]) -> Figure:
    """Draw all runs over steps and over seconds of training; runs that differ by seed share a look and a label."""
    figure, axes = canvas(8.0, 3.9, sharey=True, widths=(1.0, 1.0))
    for ax, over, label in zip(axes, ("step", "seconds"), ("step", "seconds of training steps"), strict=True):
        for number, curve in enumerate(curves):
            alike = [one for one in curves if one.name == curve.name]
            ax.plot(
                [row[over] for row in curve.rows],
                [row["bits_per_byte"] for row in curve.rows],
                color=LOOKS[curve.settings.mixer][1],
                linestyle=LOOKS[curve.settings.mixer][2],
                linewidth=1.3,
                alpha=1.0 if len(alike) == 1 else 0.7,
                marker="o" if len(curve.rows) == 1 else None,
                label=None if curve.name in [one.name for one in curves[:number]] else _label(alike),
            )
        ax.set_xlabel(label)
        ax.grid(color="#E4E4E4", linewidth=0.6)
    axes[0].set_ylabel("held-out bits per byte")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=2, frameon=False)
    return figure


def _label(alike: Sequence[Curve]) -> str:
    lowest = [row["bits_per_byte"] for curve in alike if (row := best(curve.rows))]
    mean = sum(lowest) / len(lowest)
    if len(alike) == 1:
        return f"{alike[0].name}: best {mean:.3f}"
    return f"{alike[0].name}: mean best of {len(alike)} runs {mean:.3f}"
