"""One look for all figures: the Okabe-Ito colours, a mark for each of the three sets, and SVG out."""

import io
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["BLACK", "GREY", "GRID", "SETS", "SHADE", "SetStyle", "canvas", "ink", "svg"]

# Okabe & Ito's palette: told apart with every common kind of colour vision.
BLUE, VERMILION, GREEN, ORANGE, SKY, PURPLE = "#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7"
BLACK, GREY, GRID, SHADE = "#222222", "#767676", "#E4E4E4", "#FBE3B5"
INK = {"blue": BLUE, "vermilion": VERMILION, "green": GREEN, "orange": ORANGE, "sky": SKY, "purple": PURPLE}

_RC: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so the same everywhere
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.labelsize": 10,
    "axes.edgecolor": GREY,
    "axes.labelcolor": BLACK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "text.color": BLACK,
    "xtick.color": BLACK,
    "ytick.color": BLACK,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "svg.fonttype": "path",
    "svg.hashsalt": "svmem",  # else the ids inside differ from run to run
}


@dataclass(frozen=True, slots=True)
class SetStyle:
    """How the records of one set are drawn: colour and shape both tell them apart."""

    name: str
    says: str
    color: str
    marker: str
    size: float  # points


SETS = (
    SetStyle("margin", "margin: on the boundary", BLUE, "o", 5.5),
    SetStyle("bound", "bound: outside, at the cap", VERMILION, "^", 5.5),
    SetStyle("reserve", "reserve: inside, silent", GREY, ".", 6.0),
)


def ink(name: str) -> str:
    """Return the colour of that name in the palette."""
    return INK[name]


def canvas(
    width: float,
    height: float,
    rows: int = 1,
    *,
    sharex: bool = False,
    sharey: bool = False,
    widths: tuple[float, ...] = (1.0,),
) -> tuple[Figure, list[Axes]]:
    """Return a white figure of that size in inches and its axes in reading order; `widths` are those of the columns."""
    with matplotlib.rc_context(_RC):
        figure = Figure(figsize=(width, height), facecolor="white")
        figure.set_layout_engine("constrained", h_pad=0.06, hspace=0.03)
        axes = figure.subplots(rows, len(widths), squeeze=False, sharex=sharex, sharey=sharey, width_ratios=widths)
    return figure, list(axes.ravel())


def svg(figure: Figure) -> str:
    """Return the figure as SVG without date, document type or metadata: the same figure is the same text."""
    buffer = io.StringIO()
    with matplotlib.rc_context(_RC):
        figure.savefig(buffer, format="svg", metadata={"Creator": None, "Date": None, "Format": None, "Type": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
