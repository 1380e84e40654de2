"""The figure of the experiment on withdrawing patients."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.patients import EQUAL
from svmem.report.style import GREY, GRID, canvas, ink
from svmem.types import Json

__all__ = ["patients_figure"]

ZERO = 1e-19  # where a deviation of exactly 0 is drawn: rounding leaves 1e-16 or more, so the two stay apart
KINDS = {
    "score": "gate score: largest deviation\nfrom the refit",
    "readout": "readout: largest deviation\nfrom the refit, of the values' range",
}
LOOKS = {
    "exact": ("exact removal", "blue", "o", "-"),
    "decay_01": ("decay × 0.1", "orange", "v", "-"),
    "decay_001": ("decay × 0.01", "vermilion", "^", "--"),
    "scaling": ("scaling", "purple", "D", ":"),
    "ascent": ("gradient ascent", "green", "s", "-."),
}


def patients_figure(rows: Sequence[Json]) -> Figure:
    """Draw what each way to forget leaves of one patient out of few and of all, and along the chains of withdrawals.

    Above the gate scores, below the readouts.
    """
    chains = [part for part in dict.fromkeys(row["part"] for row in rows) if part.startswith("chain")]
    parts = ["five", "hundred", *chains]
    figure, axes = canvas(13.0, 6.8, rows=2, widths=tuple(1.0 for _ in parts), sharey=True)
    well = [row for row in rows if row["status"] == "ok"]
    for place, ax in enumerate(axes):
        part, kind = parts[place % len(parts)], list(KINDS)[place // len(parts)]
        mine = [row for row in well if row["part"] == part]
        if part in chains:
            _chain(ax, mine, kind)
        else:
            _each(ax, mine, kind)
        _zero_below(ax)
        if place < len(parts):
            ax.set_title(_title(part, mine), fontsize=10)
        if part == "five":
            ax.set_ylabel(KINDS[kind])
    _legend(figure, axes[0])
    return figure


def _title(part: str, rows: Sequence[Json]) -> str:
    if part.startswith("chain"):
        return f"one after the other, ν = {part.removeprefix('chain')}"
    return f"one of {rows[0]['patients_left'] + 1} patients, {len(rows)} times" if rows else "nobody withdrew"


def _shown(rows: Sequence[Json], name: str, kind: str) -> list[float]:
    """Return deviations as they are drawn; nan where a method cannot be applied."""
    found = [row[kind if name == "exact" else f"{name}_{kind}"] for row in rows]
    return [np.nan if value is None else max(value, ZERO) for value in found]


def _each(ax: Axes, rows: Sequence[Json], kind: str) -> None:
    """Draw every withdrawal as a point, a column for each way to forget."""
    rng = np.random.default_rng(0)  # only spreads the points sideways
    for place, (name, (_, hue, mark, _)) in enumerate(LOOKS.items()):
        at = place + rng.uniform(-0.25, 0.25, len(rows))
        ax.plot(at, _shown(rows, name, kind), mark, color=ink(hue), markersize=3.5, linestyle="none")
    names = ["exact", "decay\n× 0.1", "decay\n× 0.01", "scaling", "gradient\nascent"]
    ax.set_xticks(range(len(names)), names, fontsize=8)
    ax.set_xlim(-0.6, len(names) - 0.4)


def _chain(ax: Axes, rows: Sequence[Json], kind: str) -> None:
    """Draw deviations after a withdrawal over the patients that are left."""
    left = [row["patients_left"] for row in rows]
    waiting = [row["patients_left"] for row in rows if row["collecting"]]
    if waiting:
        ax.axvspan(0, max(waiting) + 0.5, color=GRID, zorder=0)
        ax.text(max(waiting) / 2, 2e-9, "collecting: fewer\nhours than 1/C", ha="center", va="center", fontsize=8)
    if kind == "score":
        ax.plot(left, [max(row["score_bound"], ZERO) for row in rows], color=ink("sky"), marker="x", markersize=4)
    for name, (_, hue, mark, line) in LOOKS.items():
        ax.plot(
            left, _shown(rows, name, kind), color=ink(hue), marker=mark, markersize=4, linewidth=1.2, linestyle=line
        )
    ax.set_xlim(100, 0)
    ax.set_xlabel("patients left")


def _zero_below(ax: Axes) -> None:
    """Make the vertical axis logarithmic, with a band of its own for 0, and mark what rounding may leave."""
    ax.set_yscale("log")
    ax.set_ylim(ZERO / 20, 5)
    ax.set_yticks([ZERO, *(10.0**power for power in range(-16, 1, 4))])
    ax.set_yticklabels(["exactly 0", *(f"$10^{{{power}}}$" for power in range(-16, 0, 4)), "1"])
    ax.axhspan(ZERO / 20, 20 * ZERO, color=ink("sky"), alpha=0.25, linewidth=0, zorder=0)
    ax.axhline(EQUAL, color=GREY, linewidth=0.9, linestyle=":", zorder=1)
    ax.minorticks_off()
    ax.grid(axis="y", color=GRID, linewidth=0.6)


def _legend(figure: Figure, ax: Axes) -> None:
    """Name what is drawn in all panels, above them."""
    made = [ax.plot([], [], color=ink(hue), marker=mark, linestyle=line)[0] for _, hue, mark, line in LOOKS.values()]
    made.append(ax.plot([], [], color=ink("sky"), marker="x")[0])
    made.append(ax.plot([], [], color=GREY, linewidth=0.9, linestyle=":")[0])
    names = [label for label, *_ in LOOKS.values()]
    names += [
        "exact removal, proven bound of its score",
        f"equal but for rounding: below $10^{{{np.log10(EQUAL):.0f}}}$",
    ]
    figure.legend(made, names, loc="outside upper center", ncols=4, frameon=False, fontsize=9)
