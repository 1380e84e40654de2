"""Rows of an experiment in a file, each once: what is finished is not run again."""

import argparse
import hashlib
import json
import math
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from experiments.drawing import save
from experiments.files import add_row, read_rows, versions, write_rows
from svmem.errors import SvmemError
from svmem.report.page import Table
from svmem.types import Json

__all__ = ["Claim", "Experiment", "Tick", "complete", "conduct", "digest", "done", "main", "plain", "silent"]

ROOT = Path(__file__).parents[1]
EPILOG = "Ends with 0, with 1 for an error, with 2 for a command typed wrongly, with 130 when it was stopped."

# Called after each step with the arm at hand and the share of it that is behind.
Tick = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence with our numbers in it, and whether they bear it out; None where the rows cannot tell.

    ours: whether the sentence is ours alone, so that there is nothing of the paper's to reproduce.
    """

    text: str
    holds: bool | None
    ours: bool = False

    @property
    def verdict(self) -> str:
        """Whether the sentence holds, in words."""
        if self.holds is None:
            return "cannot be told"
        if self.ours:
            return "holds" if self.holds else "does not hold"
        return "reproduced" if self.holds else "not reproduced"

    def __str__(self) -> str:
        return f"{self.verdict}: {self.text}"


@dataclass(frozen=True)
class Experiment:
    """What a file of an experiment holds. `says` explains the fields of the config that are options."""

    name: str
    doc: str
    config: type[Any]
    says: Mapping[str, str]
    run: Callable[..., Iterator[Json]]  # of a config, and by keyword the rows there are and a tick
    arms: Callable[[Any], list[str]]  # that are trained, in order
    claim: Callable[[Sequence[Json]], list[Claim]]
    draw: Callable[[Sequence[Json]], Figure]
    table: Callable[[Sequence[Json]], Table] | None = None  # where numbers are to be looked up


def silent(arm: str, share: float) -> None:
    """Show no progress."""


def digest(config: Any) -> str:
    """Return twelve hexadecimal digits that differ where configs differ."""
    return hashlib.sha256(json.dumps(asdict(config), sort_keys=True, default=str).encode()).hexdigest()[:12]


def complete(rows: Sequence[Json]) -> list[Json]:
    """Return the rows of arms that came to their last one, leaving out what was cut short."""
    ended = {(row["config"], row["arm"]) for row in rows if row["last"]}
    return [row for row in rows if (row["config"], row["arm"]) in ended]


def done(rows: Iterable[Json], arm: str) -> bool:
    """Return whether an arm has its rows."""
    return any(row["arm"] == arm for row in rows)


def plain(number: float) -> float | None:
    """Return a number as JSON can hold it: None when it is infinite or no number."""
    return number if math.isfinite(number) else None


def conduct(experiment: Experiment, config: Any, path: Path, command: str, tick: Tick = silent) -> list[Json]:
    """Run what the file at `path` lacks, adding each row as it comes, and return all rows of this config.

    Rows of one arm come together, and its `last` one ends it: an arm that was cut short is run again.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    name = digest(config)
    found = read_rows(path)
    whole = complete(found)
    if len(whole) < len(found):
        write_rows(path, whole)
    rows = [row for row in whole if row["config"] == name]
    common = {"experiment": experiment.name, "config": name, "command": command, "threads": torch.get_num_threads()}
    for row in experiment.run(config, finished=tuple(rows), tick=tick):
        rows.append(row | common | versions())
        add_row(path, rows[-1])
    return rows


def main(experiment: Experiment, argv: Sequence[str] | None = None) -> int:
    """Run an experiment from its command line, and return the exit code."""
    argv = sys.argv[1:] if argv is None else argv
    options = _parser(experiment).parse_args(argv)
    given = {field.name: getattr(options, field.name) for field in fields(experiment.config)}
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    command = shlex.join(["python", "-m", f"experiments.{experiment.name}", *argv])
    threads = torch.get_num_threads()
    torch.set_num_threads(options.threads)
    try:
        config = experiment.config(**given)
        with _bar(experiment.name, len(experiment.arms(config))) as tick:
            rows = conduct(experiment, config, options.out, command, tick)
        for one in experiment.claim(rows):
            print(one)
        if options.figure is not None:
            save(experiment.draw(rows), options.figure)
    except (SvmemError, OSError) as error:
        print(f"experiments.{experiment.name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"experiments.{experiment.name}: interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    finally:
        torch.set_num_threads(threads)
    return 0


def _parser(experiment: Experiment) -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog=f"python -m experiments.{experiment.name}",
        description=experiment.doc,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    results = ROOT / "experiments" / "results" / f"{experiment.name}.jsonl"
    shown = results.relative_to(ROOT)
    top.add_argument("--out", type=Path, default=results, metavar="FILE", help=f"rows, added as they come ({shown})")
    top.add_argument("--figure", type=Path, metavar="FILE", help="also draw: svg, png or pdf by its ending")
    top.add_argument("--threads", type=int, default=1, help="threads of torch (%(default)s)")
    for field in fields(experiment.config):
        default, says = field.default, experiment.says[field.name]
        how: dict[str, Any] = {"type": type(default)}
        if isinstance(default, tuple):
            how = {"type": type(default[0]), "nargs": "+"}
        shown = " ".join(map(str, default)) if isinstance(default, tuple) else default
        top.add_argument(
            f"--{field.name.replace('_', '-')}",
            dest=field.name,
            default=default,
            help=says if default == "" else f"{says} ({shown})",
            metavar="X" if isinstance(default, tuple) else None,
            **how,
        )
    return top


@contextmanager
def _bar(title: str, arms: int) -> Iterator[Tick]:
    """Show a bar on stderr while the block runs, and give what moves it."""
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[arm]}")
    console = Console(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console) as progress:
        task = progress.add_task(title, total=arms, arm="")
        seen: list[str] = []

        def tick(arm: str, share: float) -> None:
            if arm not in seen:
                seen.append(arm)
            progress.update(task, completed=len(seen) - 1 + share, arm=arm)

        yield tick
