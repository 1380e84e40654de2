"""What [Ramesh2026] says of prediction from gated hours, with its numbers beside ours."""

from collections.abc import Mapping, Sequence

from experiments.ledger import Claim
from svmem.types import Json

__all__ = ["NAMES", "PAPER", "claim"]

# AUROC on 150 stays of another cohort, one seed. Which readout its support vectors have there it does not say.
PAPER = {"lstm": 0.783, "softmax": 0.751, "sv": 0.696}
ROUNDING = 5e-4  # half of the last digit the paper gives
NAMES = {
    "lstm": "LSTM",
    "softmax": "softmax",
    "sv": "SV, RBF readout",
    "hybrid": "SV, hybrid readout",
    "window": "sliding window",
    "linear": "linear attention",
    "delta": "DeltaNet",
    "selective": "selective SSM",
    "none": "each hour alone",
    "recent": "recent events",
    "now": "event now",
    "base": "base rate",
}
MODELS = {"bare": "mixer alone", "block": "mixer in a block with an MLP"}


def claim(rows: Sequence[Json]) -> list[Claim]:
    """Return each sentence, and whether the rows bear it out."""
    made: list[Claim] = []
    for part, says in MODELS.items():
        mixers = {row["mixer"]: row for row in rows if row["part"] == part}
        if not mixers:
            continue
        if part == "bare":
            made += [_value(mixers[name], said) for name, said in PAPER.items()]
        made += [_gap(mixers["softmax"], "lstm", says), _gap(mixers["sv"], "softmax", says)]
        made += [_no_gain(mixers, other, says) for other in ("softmax", "window")]
        made += [_above(mixers, other, says) for other in ("none", "recent")]
        made += [_unbeaten(mixers, says)]
    return made


def _value(row: Json, said: float) -> Claim:
    low, high = row["auroc_low"], row["auroc_high"]
    text = f"AUROC of {NAMES[row['mixer']]}: paper {said:.3f} on other stays, ours {_of(row, 'auroc')}"
    return Claim(f"{text}, AUPRC {_of(row, 'auprc')}", low - ROUNDING <= said <= high + ROUNDING)


def _gap(row: Json, other: str, says: str) -> Claim:
    """It holds where the interval lies below 0, and not where it lies above the paper's gap; else it may be either."""
    # Of its model the paper gives sizes only, so both of ours stand for it.
    mixer, column = row["mixer"], f"auroc_minus_{other}"
    said = PAPER[mixer] - PAPER[other]
    holds = True if row[f"{column}_high"] < 0 else False if row[f"{column}_low"] > said + 2 * ROUNDING else None
    text = f"{says}: {NAMES[mixer]} predicts worse than {NAMES[other]}: paper {said:.3f}, ours {_of(row, column)}"
    return Claim(text, holds)


def _no_gain(mixers: Mapping[str, Json], other: str, says: str) -> Claim:
    column = f"auroc_minus_{other}"
    found = [mixers[name] for name in ("sv", "hybrid")]
    numbers = ", ".join(f"{NAMES[row['mixer']]} {_of(row, column)}" for row in found)
    text = f"{says}: support vectors show no gain over {_called(other)} in prediction: {numbers}"
    return Claim(text, all(row[f"{column}_low"] <= 0 for row in found), ours=True)


def _above(mixers: Mapping[str, Json], other: str, says: str) -> Claim:
    """One that is surely worse ends the claim; one that may be leaves it open."""
    column = f"auroc_minus_{other}"
    kinds: dict[str, list[Json]] = {"surely": [], "perhaps": [], "worse": []}
    for name, row in mixers.items():
        if name != "none":
            kind = "surely" if row[f"{column}_low"] > 0 else "worse" if row[f"{column}_high"] < 0 else "perhaps"
            kinds[kind].append(row)
    told = [_listed(f"; {kind}", found, column) for kind, found in kinds.items()]
    holds = False if kinds["worse"] else None if kinds["perhaps"] else True
    return Claim(f"{says}: every mixer predicts better than {_called(other)}{''.join(told)}", holds, ours=True)


def _unbeaten(mixers: Mapping[str, Json], says: str) -> Claim:
    """A rival whose lead is no chance ends the claim; one whose lead may be leaves it open."""
    column = "auroc_minus_lstm"
    rivals = [row for name, row in mixers.items() if name != "lstm" and row[column] > 0]
    holds = False if any(row[f"{column}_low"] > 0 for row in rivals) else None if rivals else True
    text = f"{says}: no mixer here predicts better than LSTM, {_of(mixers['lstm'], 'auroc')}"
    return Claim(text + _listed("; more", rivals, column), holds, ours=True)


def _called(name: str) -> str:
    return "the share of event hours in the last six" if name == "recent" else NAMES[name]


def _listed(start: str, rows: Sequence[Json], column: str) -> str:
    said = ", ".join(f"{NAMES[row['mixer']]} by {_of(row, column)}" for row in rows)
    return f"{start}: {said}" if rows else ""


def _of(row: Json, name: str) -> str:
    return f"{row[name]:.3f} [{row[f'{name}_low']:.3f}, {row[f'{name}_high']:.3f}]"
