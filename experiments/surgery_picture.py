"""The figure of the experiment on surgery."""

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.audit import wilson
from experiments.redundant import RULES
from svmem.report.style import BLACK, GREY, GRID, canvas, ink
from svmem.types import Json

__all__ = ["surgery_figure"]

METHODS = {
    "none": "left in",
    "exact": "exact removal",
    "decay 0.1": "decay × 0.1",
    "decay 0.01": "decay × 0.01",
    "scaling": "others scaled up",
    "ascent": "gradient ascent",
}
SEQUENCES, CAPITALS = "facts of a sequence", "capitals"
FLOOR = 1e-6  # where a deviation of 0 is drawn

Share = tuple[float, float, float]  # with the ends of its interval


def surgery_figure(rows: Sequence[Json]) -> Figure:
    """Draw for sequences and capitals what is answered after each method; leaks; attacks; scores; and what is kept."""
    figure, axes = canvas(11.0, 6.6, rows=2, widths=(1.15, 1.0, 1.0))
    forget = [row for row in rows if row["part"] == "forget" and row["readout"] == "memory"]
    parts = {
        SEQUENCES: [row for row in forget if row["arm"].startswith("recall")],
        CAPITALS: [row for row in forget if row["arm"] == "capitals"],
    }
    for ax, (name, some) in zip(axes, parts.items(), strict=False):
        _by_method(ax, some, lambda mine: _share(mine, "secret_hits", "secrets"), "vermilion", "o", "taken out", -0.12)
        _by_method(ax, some, lambda mine: _share(mine, "other_hits", "others"), "blue", "s", "all others", 0.12)
        ax.set_xlabel(f"share answered: {name}")
        ax.set_xlim(-0.04, 1.04)
        _legend(ax)
    _leaks(axes[2], rows)
    _attacks(axes[3], parts)
    _scores(axes[4], parts)
    _kept(axes[5], rows)
    for ax in (axes[1], axes[4]):
        ax.tick_params(labelleft=False)
    return figure


def _by_method(
    ax: Axes,
    rows: Sequence[Json],
    number: Callable[[list[Json]], Share],
    hue: str,
    mark: str,
    label: str,
    shift: float = 0.0,
) -> None:
    """Draw a number with its interval in the line of each method, the first one on top."""
    for place, method in enumerate(METHODS):
        mine = [row for row in rows if row["method"] == method]
        if mine:
            value, low, high = number(mine)
            at, color = place + shift, ink(hue)
            ax.plot([low, high], [at, at], linewidth=2, alpha=0.6, color=color)
            ax.plot(value, at, mark, markersize=6, clip_on=False, label=label if place == 1 else None, color=color)
    ax.set_yticks(range(len(METHODS)), list(METHODS.values()))
    ax.set_ylim(len(METHODS) - 0.5, -0.5)
    ax.grid(color=GRID, linewidth=0.6)


def _leaks(ax: Axes, rows: Sequence[Json]) -> None:
    """Draw how often the secret is answered over the noise in the question."""
    leaks = [row for row in rows if row["part"] == "leak" and row["arm"].startswith("recall")]
    looks = {
        "none": ("blue", "s"),
        "decay 0.1": ("orange", "v"),
        "decay 0.01": ("purple", "^"),
        "ascent": ("sky", "D"),
        "exact": ("green", "o"),
    }
    for method, (hue, mark) in looks.items():
        mine = [row for row in leaks if row["method"] == method]
        noises = sorted({float(row["words"]) for row in mine})
        at = [
            _share([row for row in mine if float(row["words"]) == noise], "secret_hits", "secrets") for noise in noises
        ]
        ax.plot(noises, [one[0] for one in at], marker=mark, color=ink(hue), label=METHODS[method], markersize=5)
        ax.fill_between(noises, [one[1] for one in at], [one[2] for one in at], color=ink(hue), alpha=0.15, linewidth=0)
    if leaks:
        ax.set_xscale("log")
        ax.set_xticks(ticks := sorted({float(row["words"]) for row in leaks}), [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
        ax.legend(loc="center left", bbox_to_anchor=(0.0, 0.35))
    ax.set_ylim(-0.04, 1.04)
    ax.set_xlabel("noise on the key of the question")
    ax.set_ylabel("share of secrets answered")


def _attacks(ax: Axes, parts: dict[str, list[Json]]) -> None:
    """Draw the share of games won by who tells by scores a memory that forgot from one that never held the secret."""
    looks = {SEQUENCES: ("vermilion", "o", -0.12), CAPITALS: ("blue", "s", 0.12)}
    for name, (hue, mark, shift) in looks.items():
        _by_method(ax, parts[name], lambda mine: _share(mine, "wins_by_score", "games"), hue, mark, name, shift)
    ax.axvline(0.5, color=BLACK, linewidth=0.8, linestyle="--", zorder=0)
    ax.set_xlabel("games won by an attack (0.5: chance)")
    ax.set_xlim(0.38, 1.02)
    _legend(ax)


def _scores(ax: Axes, parts: dict[str, list[Json]]) -> None:
    """Draw how far, median to worst, the gate scores are from those of a memory that never held the secret."""

    def spread(mine: list[Json]) -> Share:
        middle = sum(row["deviation"] for row in mine) / len(mine)
        worst = max(row["worst_deviation"] for row in mine)
        return max(middle, FLOOR), max(middle, FLOOR), max(worst, FLOOR)

    for name, hue, mark, shift in ((SEQUENCES, "vermilion", "o", -0.12), (CAPITALS, "blue", "s", 0.12)):
        _by_method(ax, parts[name], spread, hue, mark, name, shift)
    ax.set_xscale("log")
    ticks = [10.0**k for k in range(-6, 1)]
    ax.set_xticks(ticks, ["0", *(f"$10^{{{k}}}$" for k in range(-5, 1))])
    ax.minorticks_off()
    ax.set_xlim(FLOOR / 2, 1.0)
    ax.set_xlabel("difference of scores from a refit's")


def _kept(ax: Axes, rows: Sequence[Json]) -> None:
    """Draw which redundant facts are answered when each rule keeps as many tokens as the gate supports."""
    keep = [row for row in rows if row["part"] == "keep"]
    for place, rule in enumerate(RULES):
        mine = [row for row in keep if row["method"] == rule]
        for kind, hue, shift in (("rare", "vermilion", -0.2), ("dense", "blue", 0.2)):
            if mine:
                value, low, high = _share(mine, f"{kind}_hits", kind)
                label = {"rare": "facts told once", "dense": "told four times"}[kind] if place == 0 else None
                ax.bar(place + shift, value, 0.36, color=ink(hue), label=label)
                ax.plot([place + shift] * 2, [low, high], color=GREY, linewidth=1.5)
    ax.set_xticks(range(len(RULES)), [rule.replace("-", "-\n") for rule in RULES])
    ax.set_ylim(0, 1.04)
    ax.set_ylabel("share of facts answered")
    ax.set_xlabel("tokens kept by")
    _legend(ax)


def _legend(ax: Axes) -> None:
    """Name what is drawn, above it."""
    handles, labels = ax.get_legend_handles_labels()
    if handles:
        ax.legend(handles, labels, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def _share(rows: Sequence[Json], hits: str, of: str) -> Share:
    total, n = sum(row[hits] for row in rows), sum(row[of] for row in rows)
    return total / n, *wilson(total, n)
