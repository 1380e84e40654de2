"""The figure of the experiment on surgery."""

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.audit import wilson
from experiments.redundant import ALL, RARE_ONLY, RULES, TOKENS, answered
from svmem.report.style import BLACK, GRID, canvas, ink
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
SWEPT = {  # the rules whose answers are drawn over the budget
    "support": ("vermilion", "o"),
    "k-medoids": ("blue", "s"),
    "leverage": ("green", "^"),
    "random": ("purple", "D"),
    "heavy-hitter": ("orange", "v"),
}

Share = tuple[float, float, float]  # with the ends of its interval


def surgery_figure(rows: Sequence[Json]) -> Figure:
    """Draw for sequences and capitals what is answered after each method, leaks, attacks, distances; what is kept."""
    figure, axes = canvas(15.5, 7.0, rows=2, widths=(1.0, 1.0, 1.0, 1.1))
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
    keep = [row for row in rows if row["part"] == "keep"]
    _kept(axes[3], [row for row in keep if row["matched"]])
    _attacks(axes[4], parts)
    _away(axes[5], parts, "deviation", "worst_deviation", (-6, 0))
    axes[5].set_xlabel("difference of scores from a refit's")
    _away(axes[6], parts, "distance", "distance", (-10, 1))
    axes[6].set_xlabel("membership distance of the answer")
    _swept(axes[7], keep)
    for ax in (axes[1], axes[5], axes[6]):
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


def _away(ax: Axes, parts: dict[str, list[Json]], middle: str, worst: str, powers: tuple[int, int]) -> None:
    """Draw how far, median to worst, methods are from a memory that never held the secret; 0 at the left end."""
    low, high = powers
    floor = 10.0**low

    def spread(mine: list[Json]) -> Share:
        mean = max(sum(row[middle] for row in mine) / len(mine), floor)
        return mean, mean, max(mean, *(row[worst] for row in mine))

    for name, hue, mark, shift in ((SEQUENCES, "vermilion", "o", -0.12), (CAPITALS, "blue", "s", 0.12)):
        _by_method(ax, parts[name], spread, hue, mark, name, shift)
    ax.set_xscale("log")
    steps = range(low + 1, high + 1, 1 + (high - low) // 8)
    ax.set_xticks([floor, *(10.0**k for k in steps)], ["0", *(f"$10^{{{k}}}$" for k in steps)])
    ax.minorticks_off()
    ax.set_xlim(floor / 2, 10.0**high * 2)
    _legend(ax)


def _kept(ax: Axes, matched: Sequence[Json]) -> None:
    """Draw which redundant facts are answered when each rule keeps as many tokens as the gate supports."""
    for place, rule in enumerate(RULES):
        looks = (("rare", "vermilion", "o", "told once", -0.12), ("dense", "blue", "s", "told four times", 0.12))
        for kind, hue, mark, label, shift in looks:
            if matched:
                value, low, high = answered(matched, rule, (f"{kind}_hits",))
                ax.plot([low, high], [place + shift] * 2, color=ink(hue), linewidth=2, alpha=0.6)
                said = label if place == 0 else None
                ax.plot(value, place + shift, mark, color=ink(hue), markersize=5, clip_on=False, label=said)
    ax.set_yticks(range(len(RULES)), list(RULES))
    ax.set_ylim(len(RULES) - 0.5, -0.5)
    ax.set_xlim(-0.02, 1.04)
    ax.grid(color=GRID, linewidth=0.6)
    ax.set_xlabel("facts answered, all rules at equal budget")
    _legend(ax)


def _swept(ax: Axes, keep: Sequence[Json]) -> None:
    """Draw which redundant facts are answered over the number of tokens kept: those told once, dashed all."""
    for rule, (hue, mark) in SWEPT.items():
        for hits, style in ((RARE_ONLY, "-"), (ALL, "--")):
            budgets = sorted({row["budget"] for row in keep if not row["matched"]})
            found = [answered([row for row in keep if row["budget"] == budget], rule, hits)[0] for budget in budgets]
            matched = [row for row in keep if row["matched"]]
            if matched:
                budgets.append(sum(row["budget"] for row in matched) / len(matched))
                found.append(answered(matched, rule, hits)[0])
            label = rule if hits == RARE_ONLY and keep else None
            ax.plot(budgets, found, style, marker=mark, color=ink(hue), markersize=5, label=label)
    ax.set_ylim(-0.04, 1.04)
    ax.set_xlabel(f"tokens kept of {TOKENS}")
    ax.set_ylabel("answered: told once (line), all (dashed)")
    ax.grid(color=GRID, linewidth=0.6)
    if keep:
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=8)


def _legend(ax: Axes) -> None:
    """Name what is drawn, above it."""
    handles, labels = ax.get_legend_handles_labels()
    if handles:
        ax.legend(handles, labels, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def _share(rows: Sequence[Json], hits: str, of: str) -> Share:
    total, n = sum(row[hits] for row in rows), sum(row[of] for row in rows)
    return total / n, *wilson(total, n)
