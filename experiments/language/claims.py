"""What the paper says of its language models, and what ours adds, as code over families of runs."""

from collections.abc import Mapping, Sequence

from experiments.language.compare import Comparison, compared
from experiments.language.figure import Curve
from experiments.language.plan import FAMILIES
from experiments.language.train import best
from experiments.ledger import Claim
from svmem.errors import InvalidInput

__all__ = ["PAPER_GAINS", "Runs", "claim", "gains"]

# Finished runs by family, then by the name of the run.
Runs = Mapping[str, Mapping[str, Curve]]

# Held-out bits per byte of the hybrid and of the matched window, seed by seed: enwik8 and TinyStories, 3.22M; 10M.
PAPER = {
    "enwik8, 3.22M": (
        (2.110, 2.104, 2.139, 2.120, 2.310, 2.303, 2.159),
        (2.287, 2.297, 2.469, 2.415, 2.389, 2.420, 2.405),
    ),
    "TinyStories, 3.22M": ((1.329, 1.185, 1.269), (1.434, 1.451, 1.526)),
    "10M": ((2.406, 2.249, 2.415, 2.475, 3.127), (2.502, 2.661, 2.426, 2.286, 2.524)),
}
PAPER_GAINS = {name: tuple(1 - a / b for a, b in zip(*both, strict=True)) for name, both in PAPER.items()}


def gains(comparison: Comparison) -> tuple[float, ...]:
    """Return by what share of the other's bits ours are fewer, seed by seed."""
    return tuple(1 - a / b for a, b in zip(comparison.ours, comparison.theirs, strict=True))


def claim(runs: Runs) -> list[Claim]:
    """Return the sentences for which there are runs."""
    made: list[Claim] = []
    for family in FAMILIES:
        curves = list(runs.get(family.name, {}).values())
        if family.name == "switches":
            made += _switches(runs.get("switches", {}))
            continue
        for other in ("window", "softmax", "linear", "delta", "fista"):
            try:
                found = compared(curves, "sv", other)
            except InvalidInput:
                continue
            says = f"{family.title}: {found}"
            holds = found.better == len(found.seeds)
            made.append(Claim(says, holds, ours=other != "window"))
    if runs:
        made.append(_worst_gap([curve for family in runs.values() for curve in family.values()]))
    return made


def _switches(runs: Mapping[str, Curve]) -> list[Claim]:
    """Return for each switch what it does to the best loss and to the largest gradient of the exact gate as it is."""
    if "exact-gate" not in runs:
        return []
    base = runs["exact-gate"]
    plain, usual = _figures(base)
    made = []
    for name, curve in runs.items():
        if curve is base:
            continue
        bits, steep = _figures(curve)
        rough = name == "paper-gate"
        what = "the paper's gate is worse than the exact one" if rough else f"{name.replace('-', ' ')} would help"
        says = f"{what}: {bits:.3f} against {plain:.3f} bits per byte, largest gradient {steep:.1f} against {usual:.1f}"
        made.append(Claim(says, bits > plain if rough else bits < plain, ours=True))
    return made


def _figures(curve: Curve) -> tuple[float, float]:
    lowest = best(curve.rows)
    assert lowest is not None
    return lowest["bits_per_byte"], max(row["grad_norm"] for row in curve.rows)


def _worst_gap(curves: Sequence[Curve]) -> Claim:
    gated = [curve.rows[-1] for curve in curves if curve.settings.mixer == "sv"]
    gap, failed = (max((row[name] for row in gated), default=0.0) for name in ("worst_gap", "failed"))
    says = f"all gates of all steps are certified optima: worst gap {gap:.1e} in {len(gated)} runs, {failed:.0f} failed"
    return Claim(says, gap <= 1e-10 and failed == 0 if gated else None, ours=True)
