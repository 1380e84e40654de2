"""The numbers of all selectors at the matched budget, side by side."""

from collections.abc import Sequence

from experiments.selection_claims import REFERENCES, seeds_of
from svmem.report.page import Table
from svmem.types import Json

__all__ = ["table"]


def table(rows: Sequence[Json]) -> Table:
    """Return the shares of groups answered and of event hours kept by each selector, the most rare groups first."""
    groups = [row for row in rows if row["part"] == "groups"]
    stays = [row for row in rows if row["part"] == "stays"]
    channels = list(dict.fromkeys(row["held_out"] for row in stays))
    header = (
        "selector",
        "rare groups",
        "all groups",
        *("all channels" if one == "none" else f"no {one}" for one in channels),
    )
    kept = {(row["selector"], row["held_out"]): row["kept"] for row in stays}
    lines = []
    for name in dict.fromkeys(row["selector"] for row in [*groups, *stays]):
        shares = [_mean(seeds_of(groups, name, which)) for which in ("rare", "all")]
        shares += [kept.get((name, channel)) for channel in channels]
        lines.append((name, shares))
    lines.sort(key=lambda line: (line[0] in REFERENCES, -(line[1][0] or 0)))
    cells = tuple((name, *("–" if share is None else f"{share:.3f}" for share in shares)) for name, shares in lines)
    return Table(header, cells, "Shares of held-out queries answered and of event hours kept, at the support's budget")


def _mean(numbers: Sequence[float]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None
