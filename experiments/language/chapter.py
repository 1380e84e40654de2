"""What the results page says of the language model, and running what is missing of it."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from experiments.drawing import save
from experiments.language.claims import Runs, claim
from experiments.language.figure import read_curve
from experiments.language.picture import language_figure
from experiments.language.plan import FAMILIES, finished
from experiments.ledger import Claim

__all__ = ["ARGUMENT", "COMMAND", "described", "read_runs", "run_missing"]

ARGUMENT = (
    "a text, as gcide.dict.dz: `apt-get download dict-gcide && dpkg-deb -x dict-gcide_*.deb gcide` puts it into "
    "gcide/usr/share/dictd"
)
COMMAND = "python -m experiments.paper run --only F --data gcide.dict.dz"


def read_runs(results: Path) -> Runs:
    """Return the runs below a folder that are finished."""
    found = {family.name: {run.name: results / family.name / run.name for run in family.runs} for family in FAMILIES}
    return {
        name: {run: read_curve(folder) for run, folder in folders.items() if finished(folder)}
        for name, folders in found.items()
        if any(map(finished, folders.values()))
    }


def described(results: Path, picture: Path) -> tuple[list[Claim], float, str]:
    """Return what the rows say, the seconds they took and on what; draw the picture when there are some."""
    runs = read_runs(results)
    if not runs:
        return [], 0.0, ""
    save(language_figure(runs), picture)
    seconds = {family: sum(curve.rows[-1]["seconds"] for curve in curves.values()) for family, curves in runs.items()}
    return claim(runs), sum(seconds.values()), _spent(runs, seconds)


def _spent(runs: Runs, seconds: Mapping[str, float]) -> str:
    """Return how much of the time each family took, of one core a run, with what else ran beside it."""
    titles = {family.name: family.title for family in FAMILIES}
    each = [f"{titles[name]} {took / 3600:.1f} in {len(runs[name])} runs" for name, took in seconds.items()]
    return f"Hours of one core each: {'; '.join(each)}. In all {sum(seconds.values()) / 3600:.1f}."


def run_missing(train: Callable[[list[str]], int], results: Path, data: Path | None, device: str = "cpu") -> int:
    """Train the models that are not there yet, each going on where it stands, and return an exit code."""
    for family in FAMILIES:
        lacks = f"--data: {ARGUMENT}" if family.dictionary and data is None else None
        lacks = "--device cuda" if family.gpu and device == "cpu" else lacks
        if lacks is not None:
            print(f"experiments.paper: left out: {family.title} needs {lacks}", file=sys.stderr)
            continue
        for number, run in enumerate(family.runs, 1):
            folder = results / family.name / run.name
            if not finished(folder):
                print(f"{family.title}: {run.name}, {number} of {len(family.runs)}", file=sys.stderr)
                code = train(family.command(run, results, data, device))
                if code and not finished(folder):  # a run that diverged is one that is told of
                    return code
    return 0
