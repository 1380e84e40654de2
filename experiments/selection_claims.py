"""What [Ramesh2026] says of selection, with its numbers beside ours."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.ledger import Claim
from experiments.skew import Groups
from svmem.demo.retention import Estimate, bootstrap
from svmem.types import Json

__all__ = [
    "ALPHA",
    "EVERYTHING",
    "PAPER_GROUPS",
    "PAPER_PAIRS",
    "PAPER_STAYS",
    "REFERENCES",
    "claim",
    "over_seeds",
    "over_trials",
    "seeds_of",
    "trials_of",
]

EVERYTHING, ALPHA = "everything", "support, read by alpha"
REFERENCES = (EVERYTHING, ALPHA)  # stand beside the selectors: no budget, and another readout

# Rare groups and all groups, 60 trials; `recency` is the paper's last k.
PAPER_GROUPS = {
    "support": (0.861, 0.929),
    "heavy-hitter oracle": (0.319, 0.571),
    "heavy-hitter warm": (0.317, 0.571),
    "random": (0.472, 0.733),
    "recency": (0.000, 0.336),
    EVERYTHING: (0.722, 0.861),
}
# Event hours kept: 1,329 stays of another cohort with all channels, 718 with SpO2 held out.
PAPER_STAYS = {
    "none": {"support": 0.80, "heavy-hitter of keys": 0.05, "random": 0.34, "recency": 0.30},
    "spo2": {"support": 0.464, "heavy-hitter of keys": 0.225, "random": 0.333, "recency": 0.409},
}
PAPER_PAIRS = {"gated": 0.955, "ungated": 0.970, "softmax": 0.535}  # recall@1 of 200 queries
ROUNDING = {"none": 5e-3, "spo2": 5e-4}  # half of the last digit the paper gives
SIZES = {"rare": Groups().rare, "all": Groups().count}  # groups that a trial asks for
RESAMPLES = 2000  # of the trials, for the intervals at the matched budget
# 97.5 % points of Student's t with 1, 2, ... degrees of freedom; the last one serves for more, a little too wide.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160)


def claim(rows: Sequence[Json]) -> list[Claim]:
    """Return each sentence, and whether the rows bear it out."""
    groups = [row for row in rows if row["part"] == "groups"]
    made = [_group_claim(groups, name, which) for which in ("rare", "all") for name in PAPER_GROUPS] if groups else []
    if groups:
        made += [_best_of_groups(groups, which) for which in ("rare", "all")]
        made += [_best_of_budgets(groups, which) for which in ("rare", "all")] + [_weighted(groups)]
    made += _of_order(groups, [row for row in rows if row["part"] == "shuffled"])
    made += _control([row for row in rows if row["part"] == "pairs"])
    for channel in dict.fromkeys(row["held_out"] for row in rows if row["part"] == "stays"):
        stays = {row["selector"]: row for row in rows if row["part"] == "stays" and row["held_out"] == channel}
        seen = "all channels seen" if channel == "none" else f"{channel} held out"
        for name, said in PAPER_STAYS.get(channel, {}).items():
            made.append(_stay_claim(stays[name], seen, said, ROUNDING[channel]))
        made += [_against_heavy(stays["support"], seen), _best_of_stays(stays, seen)]
        made += [_best_of_shares(stays, seen), _nearest(stays, seen)]
    return made


def seeds_of(rows: Sequence[Json], selector: str, which: str) -> list[Any]:
    """Return what a selector has in a column, one a seed in the order of the seeds."""
    mine = sorted((row for row in rows if row["selector"] == selector), key=lambda row: row["seed"])
    return [row[which] for row in mine]


def over_seeds(values: Sequence[float]) -> tuple[float, float, float]:
    """Return mean, standard deviation over seeds and half of the 95 % interval of the mean; nan for one seed."""
    if len(values) < 2:
        return float(np.mean(values)), math.nan, math.nan
    spread = float(np.std(values, ddof=1))
    return float(np.mean(values)), spread, _student(len(values)) * spread / math.sqrt(len(values))


def trials_of(rows: Sequence[Json], selector: str, which: str) -> NDArray[np.float64]:
    """Return the share of groups a selector answers in each trial, of all seeds in their order."""
    counts = seeds_of(rows, selector, f"{which}_by_trial")
    return np.array([count for seed in counts for count in seed]) / SIZES[which]


def over_trials(table: NDArray[np.float64]) -> list[Estimate]:
    """Return the mean of each column with its 95 % bootstrap interval; rows are trials, one has no interval.

    A difference between columns of the same trials is paired, since whole trials are drawn again.
    """
    if len(table) < 2:
        return [Estimate(float(mean), math.nan, math.nan) for mean in table.mean(axis=0)]
    return bootstrap(table, RESAMPLES, 0)


def _student(n: int) -> float:
    return _STUDENT[min(n - 1, len(_STUDENT)) - 1]


def _group_claim(rows: Sequence[Json], name: str, which: str) -> Claim:
    """The paper has one run of 60 trials: it is reproduced if one more seed of ours may give its number."""
    said, values = PAPER_GROUPS[name][which == "all"], seeds_of(rows, name, which)
    trials = trials_of(rows, name, which)
    mean, spread, _ = over_seeds(values)
    reach = spread * _student(len(values)) * math.sqrt(1 + 1 / len(values)) if len(values) > 1 else math.nan
    holds = abs(mean - said) <= reach + 5e-4 if math.isfinite(reach) else None  # the paper's rounding
    ours = _shown(over_trials(trials[:, None])[0])
    text = f"{which} groups answered by {name}: paper {said:.3f}, ours {ours} over {len(trials)} trials"
    return Claim(f"{text} (one seed: ± {reach:.3f})", holds)


def _best_of_groups(rows: Sequence[Json], which: str) -> Claim:
    support = trials_of(rows, "support", which)
    others = [name for name in dict.fromkeys(row["selector"] for row in rows) if name not in REFERENCES]
    leads = over_trials(np.column_stack([trials_of(rows, name, which) - support for name in others]))
    rivals = [
        (f"{name} by {_shown(lead)}", lead.low > 0) for name, lead in zip(others, leads, strict=True) if lead.mean > 0
    ]
    text = f"no selector here answers more {which} groups than support: {support.mean():.3f}"
    return _unbeaten(text, rivals)


def _best_of_budgets(rows: Sequence[Json], which: str) -> Claim:
    """The intervals are those of one budget each: of so many a lead or two may be chance."""
    swept = [row for row in rows if row.get("shares")]
    support = np.array(seeds_of(swept, "support", f"sweep_{which}"))
    shares, leads = next(row["shares"] for row in swept), {}
    for name in dict.fromkeys(row["selector"] for row in swept):
        columns = (np.array(seeds_of(swept, name, f"sweep_{which}")) - support).T
        found = [over_seeds(column.tolist()) for column in columns]
        leads[name] = [(mean, mean > half) for mean, _, half in found]
    text = f"no selector here answers more {which} groups than support at {_span(shares, shares)} of the keys"
    return _unbeaten(text, _rivals(leads, shares, "the spread over seeds"))


def _best_of_shares(stays: dict[str, Json], seen: str) -> Claim:
    """As for groups: of so many intervals one or two may lie above 0 by chance."""
    shares, leads = stays["support"]["shares"], {}
    for name, row in stays.items():
        leads[name] = [(m, low > 0) for m, low in zip(row["sweep_lead"], row["sweep_lead_low"], strict=True)]
    text = f"no selector here keeps more event hours than support at {_span(shares, shares)} of the hours, {seen}"
    return _unbeaten(text, _rivals(leads, shares, "the intervals over stays"))


def _rivals(
    leads: Mapping[str, Sequence[tuple[float, bool]]], shares: Sequence[int], slack: str
) -> list[tuple[str, bool]]:
    """Return who leads at which shares, given leads and whether they are no chance; who may, if nobody else does."""
    rivals: list[str] = []
    maybe: list[str] = []
    for name, found in leads.items():
        sure = [(share, lead) for share, (lead, told) in zip(shares, found, strict=True) if told and lead > 0]
        if sure:
            at, by = _span([share for share, _ in sure], shares), [lead for _, lead in sure]
            rivals.append(f"{name} at {at} by {min(by):.3f}" + f" to {max(by):.3f}" * (len(by) > 1))
        elif any(lead > 0 for lead, _ in found):
            maybe.append(name)
    if rivals:
        return [(f"{', '.join(rivals)}, beyond {slack}", True)]
    return [(f"{', '.join(maybe)}, all within {slack}", False)] if maybe else []


def _of_order(rows: Sequence[Json], shuffled: Sequence[Json]) -> list[Claim]:
    """Return whether support answers the same in any order of the keys, and which selectors do not."""
    if not rows or not shuffled:
        return []
    names = list(dict.fromkeys(row["selector"] for row in shuffled))
    first, drawn = (np.column_stack([trials_of(some, name, "rare") for name in names]) for some in (rows, shuffled))
    moved = [
        f"{name} {before:.3f} to {after:.3f}"
        for name, before, after, lead in zip(
            names, first.mean(axis=0), drawn.mean(axis=0), over_trials(drawn - first), strict=True
        )
        if lead.low > 0 or lead.high < 0
    ]
    own = np.array_equal(trials_of(rows, "support", "rare"), trials_of(shuffled, "support", "rare"))
    text = (
        "with the keys in any order instead of the rare ones first, support answers as many rare groups; others change:"
    )
    return [Claim(f"{text} {', '.join(moved) or 'none'}", own, ours=True)]


def _span(some: Sequence[int], shares: Sequence[int]) -> str:
    """Return some of the shares in words: those that follow each other from the first to the last of them."""
    runs: list[list[int]] = []
    for share in some:
        if runs and shares.index(share) == shares.index(runs[-1][-1]) + 1:
            runs[-1].append(share)
        else:
            runs.append([share])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs) + " %"


def _weighted(rows: Sequence[Json]) -> Claim:
    """Return whether the support answers more when its keys are read by their coefficients instead of alike."""
    said, sure = [], []
    for which in ("rare", "all"):
        ours, alike = (trials_of(rows, name, which) for name in (ALPHA, "support"))
        lead = over_trials((ours - alike)[:, None])[0]
        said.append(f"{ours.mean():.3f} of {which} groups against {alike.mean():.3f} (by {_shown(lead)})")
        sure.append(lead.low > 0 if math.isfinite(lead.low) else None)
    text = f"read by its coefficients the support answers more than with equal weights: {', '.join(said)}"
    return Claim(text, None if None in sure else all(sure), ours=True)


def _unbeaten(text: str, rivals: Sequence[tuple[str, bool]]) -> Claim:
    """A rival whose lead is no chance ends the claim; one whose lead may be leaves it open."""
    more = f"; more: {', '.join(says for says, _ in rivals)}" if rivals else ""
    return Claim(text + more, False if any(sure for _, sure in rivals) else None if rivals else True, ours=True)


def _stay_claim(row: Json, seen: str, said: float, slack: float) -> Claim:
    low, high = row["kept_low"], row["kept_high"]
    text = f"event hours kept by {row['selector']}, {seen}: paper {said:.3f}, ours {_of(row, 'kept')}"
    return Claim(f"{text}, {row['stays']} stays, budget {row['budget']:.3f}", low - slack <= said <= high + slack)


def _against_heavy(row: Json, seen: str) -> Claim:
    paper = {"all channels seen": "paper 0.80 - 0.05 = 0.75, ", "spo2 held out": "paper 0.239 [0.194, 0.284], "}.get(
        seen, ""
    )
    text = f"support keeps more event hours than heavy-hitter, {seen}: {paper}ours {_of(row, 'minus_heavy')}"
    return Claim(text, row["minus_heavy_low"] > 0, ours="paper" not in text)


def _best_of_stays(stays: dict[str, Json], seen: str) -> Claim:
    rows = sorted(stays.values(), key=lambda row: -row["minus_support"])
    rivals = [
        (f"{row['selector']} by {_of(row, 'minus_support')}", row["minus_support_low"] > 0)
        for row in rows
        if row["minus_support"] > 0
    ]
    text = f"no selector here keeps more event hours than support, {seen}: {_of(stays['support'], 'kept')}"
    return _unbeaten(text, rivals)


def _nearest(stays: dict[str, Json], seen: str) -> Claim:
    """The paper's second measure, of which it gives no numbers; the intervals are not paired, so wider than need be."""
    support, others = stays["support"], [stays[name] for name in PAPER_STAYS["none"] if name != "support"]
    shown = ", ".join(f"{row['selector']} {_of(row, 'answered')}" for row in others)
    more = [f"{name} {row['answered']:.3f}" for name, row in stays.items() if row["answered"] > support["answered"]]
    text = (
        f"event hours whose nearest kept hour is one too, {seen}: more with support, {_of(support, 'answered')}, than"
    )
    text += f" with {shown}" + (f"; more than support: {', '.join(more)}" if more else "")
    if any(row["answered"] >= support["answered"] for row in others):
        return Claim(text, False, ours=True)
    return Claim(text, all(row["answered_high"] < support["answered_low"] for row in others) or None, ours=True)


def _control(rows: Sequence[Json]) -> list[Claim]:
    """Where all pairs are distinct a gate can only cost; the numbers of the paper are from one seed."""
    if {row["mixer"] for row in rows} != set(PAPER_PAIRS):
        return []
    recall = {mixer: np.array(_by_seed(rows, mixer)) for mixer in PAPER_PAIRS}
    mean = {mixer: float(values.mean()) for mixer, values in recall.items()}
    says = {mixer: f"{mixer} {mean[mixer]:.3f} (paper {said:.3f})" for mixer, said in PAPER_PAIRS.items()}
    support = [row["support"] for row in rows if row["mixer"] == "gated"]
    gain, _, half = over_seeds((recall["gated"] - recall["ungated"]).tolist())
    text = f"distinct pairs: {says['gated']} recalls no more than {says['ungated']}, beyond the spread over seeds: by"
    text += f" {gain:.3f} ± {half:.3f}" + (", the same within the spread" if abs(gain) <= half else "")
    far = mean["softmax"] < 0.7 * min(mean["gated"], mean["ungated"])
    return [
        Claim(text, gain <= half if math.isfinite(half) else None),
        Claim(f"distinct pairs: all are support: {np.mean(support):.3f} (paper 1.00)", min(support) > 0.995),
        Claim(f"distinct pairs: {says['softmax']} recalls far less than both", far),
    ]


def _by_seed(rows: Sequence[Json], mixer: str) -> list[float]:
    return [row["recall"] for row in sorted(rows, key=lambda row: row["seed"]) if row["mixer"] == mixer]


def _shown(found: Estimate) -> str:
    return f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]"


def _of(row: Json, name: str) -> str:
    return f"{row[name]:.3f} [{row[f'{name}_low']:.3f}, {row[f'{name}_high']:.3f}]"
