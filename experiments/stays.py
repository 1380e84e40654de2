"""Stays in intensive care, and which of their event hours the key-only selectors keep."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from svmem.baselines.selection import KEY_ONLY, Scene, Selector
from svmem.core.problem import Problem
from svmem.demo.hours import CHANNELS, Hours
from svmem.demo.retention import Protocol, bootstrap
from svmem.demo.shares import answered_share, kept_share
from svmem.errors import InvalidInput
from svmem.kernels import RBF
from svmem.types import Ids, Json, Keys

__all__ = ["CHANCE", "NO_CHANNEL", "Table", "compare", "question", "summary"]

NO_CHANNEL = "none"
NAMES = tuple(channel.name for channel in CHANNELS)
# The selectors whose choice is drawn; their shares are means over draws.
CHANCE = ("farthest-point", "k-medoids", "random", "reservoir")
SWEEP_DRAWS = 5  # at budgets other than the support's, of which there are many


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Of the stays with an event: the share of their event hours that is kept, and answered, (stays, selectors).

    swept (stays, selectors, shares): kept at other budgets, `shares` in per cent of the hours.
    """

    kept: NDArray[np.float64]
    answered: NDArray[np.float64]
    budgets: NDArray[np.float64]  # shares of the hours
    events: int
    worst_gap: float
    shares: Sequence[int]
    swept: NDArray[np.float64]


def question(hours: Hours, held_out: str) -> tuple[Keys, NDArray[np.bool_]]:
    """Return the keys that selectors see, and the event hours: of any channel, or of the one they do not see.

    Raises InvalidInput for a channel that is not there or has no limits.
    """
    if held_out == NO_CHANNEL:
        return hours.keys, hours.event
    limited = [channel.name for channel in CHANNELS if np.isfinite(channel.calm).any()]
    if held_out not in limited:
        raise InvalidInput(f"a channel that is held out must be one of {', '.join(limited)}; got {held_out}")
    place = NAMES.index(held_out)
    low, high = CHANNELS[place].calm
    event = (hours.raw[:, place] < low) | (hours.raw[:, place] > high)
    return np.delete(hours.keys, place, axis=1), event


def compare(
    hours: Hours, held_out: str, protocol: Protocol, budgets: Sequence[int], advance: Callable[[float], None]
) -> Table:
    """Solve each stay with an event, and let each selector keep as many hours as the support set has.

    budgets: others that are measured too, per cent of the hours.

    `advance` is called after each stay with the share that is behind. Raises InvalidInput when no stay is left.
    """
    keys, event = question(hours, held_out)
    stays = [span for _, span in hours.stays(protocol.hours_at_least) if event[span].any()]
    if not stays:
        raise InvalidInput(f"no stay of at least {protocol.hours_at_least} hours has an event hour: nothing to compare")
    kept, answered, sizes, gaps, swept = [], [], [], [], []
    for number, span in enumerate(stays):
        mine, hit = keys[span], event[span]
        scene = Scene(mine, Problem.from_nu(protocol.nu, len(mine), RBF(protocol.sigma)))
        budget = int((scene.solution.alpha > 0).sum())
        shares = [_shares(scene, hit, selector, budget, protocol.draws, number) for selector in KEY_ONLY]
        kept.append([share[0] for share in shares])
        answered.append([share[1] for share in shares])
        sizes.append(budget / len(mine))
        swept.append([_swept(scene, hit, selector, budgets, number) for selector in KEY_ONLY])
        gaps.append(scene.solution.gap)
        advance((number + 1) / len(stays))
    events = sum(int(event[span].sum()) for span in stays)
    return Table(np.array(kept), np.array(answered), np.array(sizes), events, max(gaps), budgets, np.array(swept))


def _shares(
    scene: Scene, event: NDArray[np.bool_], selector: Selector, budget: int, draws: int, number: int
) -> tuple[float, float]:
    """Return the means over draws of the shares of event hours that are kept and answered."""
    rng = np.random.default_rng([number, KEY_ONLY.index(selector)])
    chosen: list[Ids] = [selector.select(scene, budget, rng) for _ in range(draws if selector.name in CHANCE else 1)]
    kept = float(np.mean([kept_share(event, one) for one in chosen]))
    return kept, float(np.mean([answered_share(scene.keys, event, one) for one in chosen]))


def _swept(
    scene: Scene, event: NDArray[np.bool_], selector: Selector, budgets: Sequence[int], number: int
) -> list[float]:
    """Return the share of event hours that is kept at each budget, the mean over draws where choices are drawn."""
    rng, n = np.random.default_rng([number, KEY_ONLY.index(selector), 1]), len(scene)
    draws = SWEEP_DRAWS if selector.name in CHANCE else 1
    sizes = [max(1, round(share * n / 100)) for share in budgets]
    return [
        float(np.mean([kept_share(event, selector.select(scene, size, rng)) for _ in range(draws)])) for size in sizes
    ]


def summary(table: Table, protocol: Protocol) -> Iterator[Json]:
    """Yield for each selector its means over stays, and the paired differences to heavy-hitter and to support."""
    names = [selector.name for selector in KEY_ONLY]
    against = {"heavy": names.index("heavy-hitter of keys"), "support": names.index("support")}
    for place, name in enumerate(names):
        columns = {"kept": table.kept[:, place], "answered": table.answered[:, place]}
        columns |= {f"minus_{other}": columns["kept"] - table.kept[:, at] for other, at in against.items()}
        found = bootstrap(np.column_stack(list(columns.values())), protocol.resamples, protocol.seed)
        row: Json = {"selector": name, "stays": len(table.kept), "events": table.events, "worst_gap": table.worst_gap}
        row["budget"] = float(table.budgets.mean())
        for column, estimate in zip(columns, found, strict=True):
            row |= {column: estimate.mean, f"{column}_low": estimate.low, f"{column}_high": estimate.high}
        yield row | _sweep(table, place, against["support"], protocol)


def _sweep(table: Table, place: int, support: int, protocol: Protocol) -> Json:
    """Return what a selector keeps at each other budget, and by how much more than support, paired by stay."""
    if not table.shares:
        return {}
    mine = table.swept[:, place]
    kept = bootstrap(mine, protocol.resamples, protocol.seed)
    lead = bootstrap(mine - table.swept[:, support], protocol.resamples, protocol.seed)
    made: Json = {"shares": table.shares}
    for name, found in (("kept", kept), ("lead", lead)):
        made[f"sweep_{name}"] = [one.mean for one in found]
        made |= {f"sweep_{name}_low": [one.low for one in found], f"sweep_{name}_high": [one.high for one in found]}
    return made
