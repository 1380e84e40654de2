"""What would make the gate stable, as code over rows: each sentence is ours."""

import math
import statistics
from collections.abc import Sequence

from experiments.ledger import Claim
from svmem.types import Json

__all__ = ["claim"]

SLACK = 0.02  # nats that a loss may be higher by and still be called no worse


def claim(rows: Sequence[Json]) -> list[Claim]:
    """Return each sentence, and whether the rows bear it out."""
    exact, rough, none = ([row for row in rows if row["gate"] == gate] for gate in ("exact", "approximate", "none"))
    small, wide, others = _sized(exact, False), _sized(exact, True), _sized(none, True)
    made = _spiking("small models", small, "the exact gate", _sized(none, False))
    made += [_steepest(small, unit) for unit in (False, True)]
    for name, other in (("unit_keys", "keys of length 1"), ("learn_sigma", "a learned width")):
        on, off = (_loss([row for row in small if row[name] is which]) for which in (True, False))
        text = f"{other} trains no worse, to {SLACK}: loss {on:.3f} against {off:.3f}"
        made.append(Claim(text, None if math.isnan(on + off) else on <= off + SLACK, ours=True))
    gaps = [max([row["worst_gap"] for row in some], default=math.nan) for some in (small, rough)]
    says = f"the approximate gate is off the optimum: gap {gaps[1]:.1e} against {gaps[0]:.1e}"
    made.append(Claim(says, gaps[1] > 1e3 * gaps[0] if small and rough else None, ours=True))
    made.append(_approximate("small models", small, _sized(rough, False)))
    size = "ten times as wide, twice as deep"
    made.append(_approximate(size, wide, _sized(rough, True)))
    made += _spiking(size, wide, "the exact gate", others)
    return made + _spiking(size, _sized(rough, True), "the approximate gate", others)


def _sized(rows: Sequence[Json], wide: bool) -> list[Json]:
    return [row for row in rows if row["wide"] is wide]


def _spiking(where: str, gated: Sequence[Json], gate: str, plainly: Sequence[Json]) -> list[Claim]:
    """Return whether runs with a gate spike no more often than those with softmax: on average, and the worst one."""
    if not gated or not plainly:
        return [
            Claim(f"{where}: spikes with {gate} and with softmax, {what}", None, True) for what in ("mean", "worst")
        ]
    ours, softmax = (statistics.mean(row["spikes"] for row in some) for some in (gated, plainly))
    worst, most = max(gated, key=lambda row: row["spikes"]), max(row["spikes"] for row in plainly)
    says = f"{where}: on average no more spikes with {gate} than with softmax: {ours:.1f} ({_runs(gated)})"
    at_worst = f"{where}: no run with {gate} has more spikes than softmax: at most {worst['spikes']} ({worst['arm']})"
    return [
        Claim(f"{says} against {softmax:.1f} ({_runs(plainly)})", ours <= softmax, ours=True),
        Claim(f"{at_worst} against {most}", worst["spikes"] <= most, ours=True),
    ]


def _steepest(rows: Sequence[Json], unit: bool) -> Claim:
    """Return whether the smallest ridge has the largest gradient through the gate, all other ridges a smaller one."""
    some, keys = [row for row in rows if row["unit_keys"] is unit], "keys of length 1" if unit else "raw keys"
    ridges = sorted({row["ridge"] for row in some})
    # A gradient that is no number is None in a row: larger than any.
    steep = {ridge: max(_number(row["gate_grad_max"]) for row in some if row["ridge"] == ridge) for ridge in ridges}
    said = ", ".join(f"{flow:.2g} at {ridge:g}" for ridge, flow in steep.items())
    holds = all(steep[ridges[0]] > steep[ridge] for ridge in ridges[1:]) if len(ridges) > 1 else None
    text = f"the largest gradient through the gate is at the smallest ridge, {keys}: at most {said or 'unknown'}"
    return Claim(text, holds, ours=True)


def _approximate(where: str, exact: Sequence[Json], rough: Sequence[Json]) -> Claim:
    """Return whether the approximate gate does better in training than the exact one in all else equal to it."""
    like = ("ridge", "unit_keys", "learn_sigma", "seed")
    pairs = [(a, e) for a in rough for e in exact if all(a[name] == e[name] for name in like)]
    text = (
        f"{where}: at equal ridge and width the approximate gate has fewer spikes and a lower loss than the exact one"
    )
    if not pairs:
        return Claim(text, None, ours=True)
    said = [
        f"{a['spikes']} spikes and {_loss([a]):.3f} against {e['spikes']} and {_loss([e]):.3f}"
        f" ({'keys of length 1' if a['unit_keys'] else 'raw keys'}, ridge {a['ridge']:g}, seed {a['seed']})"
        for a, e in pairs
    ]
    better = all(a["spikes"] < e["spikes"] and _loss([a]) < _loss([e]) for a, e in pairs)
    return Claim(f"{text}: {'; '.join(said)}", better, ours=True)


def _runs(rows: Sequence[Json]) -> str:
    return f"{len(rows)} run{'s' * (len(rows) > 1)}"


def _number(value: float | None) -> float:
    return math.inf if value is None else value


def _loss(rows: Sequence[Json]) -> float:
    losses = [_number(row["loss"]) for row in rows]
    return sum(losses) / len(losses) if losses else math.nan
