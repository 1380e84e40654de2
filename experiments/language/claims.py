"""What the paper says of its language models, and what ours adds, as code over families of runs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from experiments.language.compare import Comparison, compared
from experiments.language.figure import Curve
from experiments.language.plan import FAMILIES
from experiments.language.train import best
from experiments.ledger import Claim

__all__ = ["OTHERS", "PAPER_GAINS", "Runs", "claim", "kind", "versus"]

# Finished runs by family, then by the name of the run.
Runs = Mapping[str, Mapping[str, Curve]]

# Held-out bits per byte of the hybrid and of the matched window, seed by seed: enwik8 and TinyStories, 3.22M; 10M; 32M.
PAPER = {
    "enwik8, 3.22M": (
        (2.110, 2.104, 2.139, 2.120, 2.310, 2.303, 2.159),
        (2.287, 2.297, 2.469, 2.415, 2.389, 2.420, 2.405),
    ),
    "TinyStories, 3.22M": ((1.329, 1.185, 1.269), (1.434, 1.451, 1.526)),
    "10M": ((2.406, 2.249, 2.415, 2.475, 3.127), (2.502, 2.661, 2.426, 2.286, 2.524)),
    "32M": ((4.456,), (3.106,)),
}
PAPER_GAINS = {name: tuple(1 - a / b for a, b in zip(*both, strict=True)) for name, both in PAPER.items()}
# What the hybrid is compared with, by the first part of a run's name; only the first is the paper's sentence.
OTHERS = {
    "window": "a window of the same state",
    "local": "a window as wide as the chunk",
    "uniform": "the same with equal coefficients",
    "softmax": "softmax",
    "linear": "linear attention",
    "delta": "DeltaNet",
    "fista": "the paper's gate",
}
SWITCHES = {
    "unit-keys": "unit length of the keys",
    "learned-width": "a learned width",
    "slow-warm-up": "a rate that rises over 30 steps instead of 3",
    "wider-kernel": "a wider kernel",
}
WASH = "large"  # the size at which the paper's hybrid is not better


def kind(name: str) -> str:
    """Return the first part of a run's name: the same for all seeds."""
    return name.rpartition("-")[0]


def versus(runs: Mapping[str, Curve], other: str) -> Comparison | None:
    """Compare the hybrid with another kind of runs of a family; None where there is no pair of one seed."""
    ours = [curve for name, curve in runs.items() if kind(name) == "sv"]
    theirs = [curve for name, curve in runs.items() if kind(name) == other]
    if not {curve.settings.seed for curve in ours} & {curve.settings.seed for curve in theirs}:
        return None
    found = compared([*ours, *theirs], "sv", theirs[0].settings.mixer)
    return replace(found, mixer="the hybrid", other=OTHERS[other])


def claim(runs: Runs) -> list[Claim]:
    """Return the sentences for which there are runs."""
    made: list[Claim] = []
    for family in FAMILIES:
        mine = runs.get(family.name, {})
        for other in OTHERS:
            found = versus(mine, other)
            if found is not None:
                theirs = other != "window" or family.name == WASH
                made.append(Claim(f"{family.title}: {found}", found.better == len(found.seeds), ours=theirs))
        if family.name == WASH and versus(mine, "window") is not None:
            made.append(_curves(family.title, mine))
    made += _switches(runs.get("switches", {}))
    every = [curve for family in runs.values() for curve in family.values()]
    return [*made, *_kept(runs), _worst_gap(every), _converged(every)] if every else []


def _curves(title: str, runs: Mapping[str, Curve]) -> Claim:
    """Return whether the hybrid is not behind the window on the curve, and what gradients came to."""
    ours, theirs = (next(curve for name, curve in runs.items() if kind(name) == which) for which in ("sv", "window"))
    both = list(zip(ours.rows, theirs.rows, strict=False))
    ahead = sum(a["bits_per_byte"] <= b["bits_per_byte"] for a, b in both)
    says = (
        f"{title}: the hybrid is not behind the window on the curve: ahead at {ahead} of {len(both)} points; largest "
        f"gradient {_steepest(ours):.1f} against {_steepest(theirs):.1f}"
    )
    return Claim(says, ahead == len(both), ours=True)


def _switches(runs: Mapping[str, Curve]) -> list[Claim]:
    """Return for each switch what it does to the best loss and to the largest gradient of the exact gate as it is.

    What is switched for a window, which has no gate, stands beside the window as it is.
    """
    made = []
    for name, curve in runs.items():
        plain = "window" if name.startswith("window") else "exact-gate"
        if name == plain or plain not in runs:
            continue
        bits, before = _lowest(curve), _lowest(runs[plain])
        what = f"{SWITCHES[name.removeprefix('window-')]} helps" + " a window too" * (plain == "window")
        steep = f"largest gradient {_steepest(curve):.1f} against {_steepest(runs[plain]):.1f}"
        says = f"{what}, 150 steps: {bits:.3f} against {before:.3f} bits per byte, {steep} (one seed)"
        made.append(Claim(says, bits < before, ours=True))
    return made


def _lowest(curve: Curve) -> float:
    row = best(curve.rows)
    assert row is not None
    return row["bits_per_byte"]


def _steepest(curve: Curve) -> float:
    """Return the largest gradient of all steps; of those with a row where a run noted no others."""
    return max(row.get("grad_norm_max", row["grad_norm"]) for row in curve.rows)


def _kept(runs: Runs) -> list[Claim]:
    """Return whether gates keep at most half of their keys at the end; a gate has half a block of keys on average."""
    parts, every = [], []
    for family in FAMILIES:
        rows = [(curve.rows[-1], curve.settings.block) for curve in runs.get(family.name, {}).values()]
        shares = [2 * row["mean_support"] / block for row, block in rows if row.get("mean_support")]
        if shares:
            every += shares
            said = " to ".join(dict.fromkeys(f"{end:.0%}" for end in (min(shares), max(shares))))
            parts.append(f"{said} ({family.title}; {len(shares)} run{'s' * (len(shares) > 1)})")
    text = f"gates keep at most half of their keys as support: {', '.join(parts)}"
    return [Claim(text, max(every) <= 0.5, ours=True)] if every else []


def _worst_gap(curves: Sequence[Curve]) -> Claim:
    gated = [curve.rows[-1] for curve in curves if curve.settings.mixer == "sv"]
    gap, failed = (max((row[name] for row in gated), default=0.0) for name in ("worst_gap", "failed"))
    says = f"all gates of all steps are certified optima: worst gap {gap:.1e} in {len(gated)} runs, {failed:.0f} failed"
    return Claim(says, gap <= 1e-10 and failed == 0 if gated else None, ours=True)


def _converged(curves: Sequence[Curve]) -> Claim:
    lost = sum(curve.diverged for curve in curves)
    return Claim(f"no run diverged: {lost} of {len(curves)} did", lost == 0, ours=True)
