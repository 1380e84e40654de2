"""What the paper says of recall from a bounded state, and what ours adds, as code over rows."""

import math
from collections.abc import Sequence

import numpy as np

from experiments.ledger import Claim
from svmem.types import Json

__all__ = ["claim"]

RECALL, CARRIERS = 0.99, 14  # the paper's
OBEYING = {"sv": "SV", "softmax": "softmax", "window": "a window of the same state", "linear": "linear attention"}
LEARNED, FALLEN = 0.8, 0.2  # recall after the least filler that shows a task learned, and after the most that is lost


def claim(rows: Sequence[Json]) -> list[Claim]:
    """Return what [Ramesh2026, version 1] says of bounded state, and our own sentences, with our numbers."""
    copy = [row for row in rows if row["task"] == "copy"]
    longest = max((row["filler"] for row in copy), default=0)
    return [
        _keeps(copy, longest),
        _carriers(copy, longest),
        _falls(copy, longest),
        _window(copy, longest),
        _state(copy, longest),
        _distance(rows),
        _pairs(rows),
        _distinct(rows),
        _deletions([row for row in rows if row["task"] == "delete"]),
    ]


def _keeps(copy: Sequence[Json], longest: int) -> Claim:
    lengths = sorted({row["filler"] for row in copy})
    means = {n: {mixer: _mean(copy, "accuracy", mixer=mixer, filler=n) for mixer in ("sv", "rbf")} for n in lengths}
    worst = {mixer: min((one[mixer] for one in means.values()), default=math.nan) for mixer in ("sv", "rbf")}
    at = {mixer: _mean(copy, "accuracy", mixer=mixer, filler=longest) for mixer in ("sv", "rbf")}
    says = (
        f"recall of SV stays near 0.99 at all lengths: {at['sv']:.3f} after {longest} tokens of redundant filler and "
        f"{worst['sv']:.3f} where it is lowest (RBF readout {at['rbf']:.3f} and {worst['rbf']:.3f})"
    )
    return Claim(says, _told(worst["sv"] >= RECALL, worst["sv"]))


def _carriers(copy: Sequence[Json], longest: int) -> Claim:
    sv, rbf = (_mean(copy, "support", mixer=mixer, filler=longest) for mixer in ("sv", "rbf"))
    each = [row["support"] for row in copy if row["mixer"] == "sv" and row["filler"] == longest and row["support"]]
    span = f"{min(each, default=math.nan):.1f} to {max(each, default=math.nan):.1f} by seed"
    says = (
        f"11 to 14 support tokens carry it: {sv:.1f} when asked after {longest} tokens, {span} (RBF readout {rbf:.1f})"
    )
    return Claim(says, _told(sv <= CARRIERS, sv))


def _falls(copy: Sequence[Json], longest: int) -> Claim:
    fell = {mixer: _fell(copy, mixer, longest) for mixer in ("linear", "delta")}
    holds = None if None in fell.values() else all(fell.values())
    if False in fell.values():  # one that stays is enough to say no
        holds = False
    shortest = min((row["filler"] for row in copy), default=0)
    spans = {}
    for mixer in ("linear", "delta", "delta-conv", "ssm"):
        first, last = (_mean(copy, "accuracy", mixer=mixer, filler=n) for n in (shortest, longest))
        spans[mixer] = f"{first:.2f} to {last:.2f}"
    says = (
        f"linear attention and DeltaNet fall to chance (0.06) from {shortest} to {longest} tokens: {spans['linear']} "
        f"and {spans['delta']} (DeltaNet with its convolution {spans['delta-conv']}, selective SSM {spans['ssm']})"
    )
    return Claim(says, holds)


def _window(copy: Sequence[Json], longest: int) -> Claim:
    found = _mean(copy, "accuracy", mixer="window", filler=longest)
    says = f"a sliding window of the same state has lost the facts: {found:.2f} after {longest} tokens"
    return Claim(says, _fell(copy, "window", longest), ours=True)


def _fell(copy: Sequence[Json], mixer: str, longest: int) -> bool | None:
    """Return whether a mixer that learned the task has lost it at the end; None where it never did, or has no rows."""
    shortest = min((row["filler"] for row in copy), default=0)
    first, last = (_mean(copy, "accuracy", mixer=mixer, filler=n) for n in (shortest, longest))
    if last >= FALLEN:
        return False
    return True if first >= LEARNED else None


def _state(copy: Sequence[Json], longest: int) -> Claim:
    state, recall = (
        {mixer: _mean(copy, of, mixer=mixer, filler=longest) for mixer in ("sv", "softmax")}
        for of in ("state", "accuracy")
    )
    says = (
        f"after {longest} tokens a layer of SV keeps a tenth of softmax's numbers or less, and recalls as much: "
        f"{_said(state['sv'], ',.0f')} and {_said(state['softmax'], ',.0f')} numbers, {_said(recall['sv'], '.3f')} and "
        f"{_said(recall['softmax'], '.3f')} recalled"
    )
    holds = state["sv"] <= state["softmax"] / 10 and recall["sv"] >= recall["softmax"]
    return Claim(says, _told(holds, *state.values(), *recall.values()), ours=True)


def _pairs(rows: Sequence[Json]) -> Claim:
    pairs = [row for row in rows if row["task"] == "pairs"]
    most = max((row["facts"] for row in pairs), default=0)
    each = [row["accuracy"] for row in pairs if row["mixer"] == "sv" and row["facts"] == most]
    seeds = ", ".join(f"{one:.2f}" for one in each)
    says = f"the hybrid learns {most} pairs in these steps, whatever the seed: {seeds or 'not run'} recalled"
    return Claim(says, min(each) >= LEARNED if each else None, ours=True)


def _distance(rows: Sequence[Json]) -> Claim:
    pairs = [row for row in rows if row["task"] == "pairs"]
    gated, plain = (_mean(pairs, "accuracy", mixer=mixer) for mixer in ("rbf", "ungated"))
    says = (
        "on distinct keys the distance kernel does the work, not the gate: the RBF readout recalls "
        f"{gated:.3f} of pairs with the gate and {plain:.3f} without"
    )
    return Claim(says, _told(plain >= gated - 0.02, gated, plain), ours=True)


def _distinct(rows: Sequence[Json]) -> Claim:
    distinct = [row for row in rows if row["task"] == "distinct"]
    sv, softmax, ungated = (_mean(distinct, "accuracy", mixer=mixer) for mixer in ("sv", "softmax", "ungated"))
    support = _mean(distinct, "support", mixer="sv")
    says = f"filler of which no two tokens are alike pushes the facts out: SV recalls {_said(sv)} from "
    says += f"{_said(support, '.1f')} support tokens; softmax "
    says += f"{_said(softmax)} and the RBF readout without a gate {_said(ungated)}, which keep every token"
    return Claim(says, _told(sv < softmax - 0.05, sv, softmax), ours=True)


def _deletions(rows: Sequence[Json]) -> Claim:
    """Return whether SV obeys deletions that are tokens themselves, and still answers what was not deleted."""
    found = {m: [_mean(rows, f"accuracy_{of}", mixer=m) for of in ("kept", "deleted")] for m in OBEYING}
    each = [f"{says} {_said(found[m][0])} and {_said(found[m][1])}" for m, says in OBEYING.items()]
    says = (
        f"of facts of which half were deleted, SV answers the others and says of these that there are none: {each[0]}"
    )
    return Claim(f"{says} ({'; '.join(each[1:])})", _told(min(found["sv"]) >= RECALL, *found["sv"]), ours=True)


def _mean(rows: Sequence[Json], of: str, **where: str | int) -> float:
    """Return the mean of a column over the rows that are like `where`; no number when there is none."""
    found = [row[of] for row in rows if all(row[name] == value for name, value in where.items())]
    return float(np.mean([math.nan if value is None else value for value in found])) if found else math.nan


def _told(holds: bool, *needs: float) -> bool | None:
    """Return whether it holds, or None when a number that it needs is missing."""
    return bool(holds) if all(map(math.isfinite, needs)) else None


def _said(number: float, how: str = ".2f") -> str:
    return f"{number:{how}}" if math.isfinite(number) else "not run"
