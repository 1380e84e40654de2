"""What [Ramesh2026] says of deletions' times, with its numbers beside ours."""

from collections.abc import Sequence

from experiments.ledger import Claim
from experiments.refits import REFITS
from svmem.report.page import Table
from svmem.types import Json

__all__ = ["AUTHORS", "PAPER", "claim", "table"]

# What the paper states by n: milliseconds of a deletion, and how much longer its refit takes. Its code solves by a
# general solver. Then the milliseconds of that code's deletions, as measured by us on two cores.
PAPER = {120: (0.30, 26), 256: (0.92, 24), 384: (1.04, 63), 512: (0.69, 223)}
AUTHORS = {120: 0.68, 256: 2.3, 384: 3.0, 512: 1.1}
GENERAL = "clarabel"  # what stands for the paper's refit


def claim(rows: Sequence[Json]) -> list[Claim]:
    """Return our deletions and refits beside the paper's, then what each refit is to a deletion at all sizes."""
    made = []
    for row in rows:
        if row["method"] == "forget" and row["n"] in PAPER:
            general = next((one for one in rows if one["arm"] == row["arm"] and one["method"] == GENERAL), None)
            made.append(_against_paper(row, general))
    own = [row for row in rows if row["method"] == "forget"]
    if not own:
        return made
    for name in REFITS:
        mine = [row for row in rows if row["method"] == name and row["count"]]
        if name != GENERAL and mine:
            ratios = ", ".join(f"{_times(row['ratio_median'])} at {row['n']:,}" for row in mine)
            text = f"a refit by {_called(name)} takes longer than a deletion: {ratios} times as long"
            text += f"; gap at most {_worst_of(mine, 'gap'):.1e}, scores off by {_worst_of(mine, 'deviation'):.1e}"
            made.append(Claim(text, all(row["ratio_median"] > 1 for row in mine), ours=True))
    same, count = (sum(row[name] for row in own) for name in ("same_digest", "count"))
    text = f"{same} of {count} deletions end in the digest of a memory that never held the record, gap at most"
    made.append(Claim(f"{text} {_worst_of(own, 'gap'):.1e}", same == count, ours=True))
    return made


def table(rows: Sequence[Json]) -> Table:
    """Return milliseconds of a deletion by size, and how many times as long each refit takes, beside the paper's."""
    header = ("records", "deletion, ms", "paper, ms", *map(_called, REFITS), "paper's refit")
    lines: list[tuple[str, ...]] = []
    for own in (row for row in rows if row["method"] == "forget"):
        ratios = {row["method"]: row.get("ratio_median") for row in rows if row["arm"] == own["arm"]}
        ours = [f"{_times(ratio)} ×" if (ratio := ratios.get(name)) else "–" for name in REFITS]
        stated = PAPER.get(own["n"])
        said, longer = (f"{stated[0]:g}", f"{stated[1]} ×") if stated else ("–", "–")
        lines.append((f"{own['n']:,}", f"{1e3 * own['seconds_median']:.2f}", said, *ours, longer))
    return Table(header, tuple(lines), "A deletion, and how many times as long a refit takes")


def _against_paper(row: Json, general: Json | None) -> Claim:
    """Return whether a deletion takes no longer than the paper's, and a refit at least as many times as long."""
    n, (stated_ms, stated) = row["n"], PAPER[row["n"]]
    ours_ms = 1e3 * row["seconds_median"]
    said = {"active": "active", "reserve": "reserve", "in_a_row": "in a row"}
    parts = ", ".join(f"{word} {1e3 * row[f'{name}_s']:.2g}" for name, word in said.items() if row[f"{name}_s"])
    text = f"n = {n}: a deletion takes {ours_ms:.3g} ms ({parts}; paper: {stated_ms:g}, its code on two cores here"
    text += f" {AUTHORS[n]:g})"
    if general is None or not general["count"]:
        return Claim(text, None)
    low, ratio, high = (_times(general[f"ratio_{what}"]) for what in ("low", "median", "high"))
    text += f", a refit by {_called(GENERAL)} {ratio} times as long, quartiles {low} to {high}"
    text += f" (paper: {stated}); its gap is at most {general['gap']:.1e}, ours {row['gap']:.1e}"
    return Claim(text, ours_ms <= stated_ms and general["ratio_median"] >= stated)


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}"


def _called(name: str) -> str:
    said = {"cold": "our cold solve", "libsvm": "libsvm at 1e-3", "libsvm tight": "libsvm at 1e-12"}
    return said.get(name, name)


def _worst_of(rows: Sequence[Json], name: str) -> float:
    return max(row[name] for row in rows)
