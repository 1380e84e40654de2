"""All experiments of the paper: run what is missing, and put our rows beside what the paper says.

    python -m experiments.paper run            # every experiment in turn; goes on where it was stopped
    python -m experiments.paper page           # docs/results.md, its figures and report.html, from the rows there are

`run` takes hours in all; `--only A C` picks experiments by their letters.
"""

import argparse
import importlib
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from rich.console import Console

from experiments.drawing import save
from experiments.files import read_rows
from experiments.ledger import Experiment, complete
from experiments.page import Chapter, Entry, Headline, html, markdown
from svmem.errors import InvalidInput, SvmemError
from svmem.types import Json

__all__ = ["chapter", "entries", "headlines", "main"]

ROOT = Path(__file__).parents[1]
GCIDE = Path("/usr/share/dictd/gcide.dict.dz")  # where Debian's dict-gcide puts it
TOLD = ROOT / "experiments" / "paper.toml"
RESULTS, FIGURES = ROOT / "experiments" / "results", ROOT / "docs" / "figures"


def entries(only: Sequence[str] = ()) -> list[Entry]:
    """Return the experiments, all or those of these letters. Raises InvalidInput for a letter that is none."""
    found = [Entry(**one) for one in tomllib.loads(TOLD.read_text())["experiment"]]
    unknown = set(only) - {entry.letter for entry in found}
    if unknown:
        letters = ", ".join(entry.letter for entry in found)
        raise InvalidInput(f"experiments have the letters {letters}; got {', '.join(sorted(unknown))}")
    return [entry for entry in found if not only or entry.letter in only]


def headlines() -> list[Headline]:
    """Return the lines of the table at the top of the page."""
    found = tomllib.loads(TOLD.read_text())["headline"]
    lists = ("sentences", "beside")
    return [Headline(**one | {name: tuple(one.get(name, ())) for name in lists}) for one in found]


def chapter(entry: Entry, results: Path = RESULTS, figures: Path = FIGURES) -> Chapter:
    """Return what there is to say of an experiment, and draw its figure."""
    if entry.module == "lm":
        return _language(entry, results, figures)
    experiment: Experiment = _module(entry).EXPERIMENT
    path = results / f"{entry.module}.jsonl"
    rows = complete(read_rows(path))
    rows = [row for row in rows if row["config"] == rows[-1]["config"]] if rows else []
    command = f"python -m experiments.{entry.module}"
    if not rows:
        return Chapter(entry, command)
    picture = figures / f"{entry.module}.svg"
    save(experiment.draw(rows), picture)
    seconds = sum(max((row.get("seconds") or 0.0) for row in rows if row["arm"] == arm) for arm in _arms(rows))
    table = experiment.table(rows) if experiment.table else None
    return Chapter(entry, command, tuple(experiment.claim(rows)), picture.name, path.name, seconds, table=table)


def _arms(rows: Sequence[Json]) -> list[str]:
    return list(dict.fromkeys(row["arm"] for row in rows))


def _language(entry: Entry, results: Path, figures: Path) -> Chapter:
    """Return the chapter of the language model, from the folders of its runs."""
    from experiments.language.chapter import COMMAND, described

    claims, seconds, spent = described(results / "lm", figures / "lm.svg")
    picture, rows = ("lm.svg", "lm") if claims else (None, None)
    return Chapter(entry, COMMAND, tuple(claims), picture, rows, seconds, spent)


def run(options: argparse.Namespace) -> int:
    """Run every experiment in turn."""
    chosen, console = entries(options.only), Console(stderr=True)
    for number, entry in enumerate(chosen, 1):
        console.rule(f"{number} of {len(chosen)}: {entry.letter}. {entry.title}")
        code = _language_runs(options) if entry.module == "lm" else _module(entry).main([])
        if code:
            return code
    return 0


def _language_runs(options: argparse.Namespace) -> int:
    from experiments import lm
    from experiments.language.chapter import run_missing

    data = options.data or (GCIDE if GCIDE.exists() else None)
    return run_missing(lm.main, RESULTS / "lm", data, options.device)


def _module(entry: Entry) -> ModuleType:
    return importlib.import_module(f"experiments.{entry.module}")


def make_page(options: argparse.Namespace) -> int:
    """Write docs/results.md and the page that needs nothing but itself."""
    chapters = [chapter(entry) for entry in entries()]
    (ROOT / "docs" / "results.md").write_text(markdown(chapters, headlines()))
    options.html.write_text(html(chapters, FIGURES, headlines()))
    print(f"docs/results.md\n{options.html}")
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the commands."""
    top = argparse.ArgumentParser(
        prog="python -m experiments.paper", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = top.add_subparsers(required=True, metavar="run | page")
    one = commands.add_parser("run", help="run what is missing")
    one.add_argument("--only", nargs="+", default=[], metavar="LETTER", help="experiments (all)")
    one.add_argument(
        "--data", type=Path, help=f"text for the language model ({GCIDE}, if Debian's dict-gcide is there)"
    )
    one.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="cuda: also the paper's full sizes (cpu)")
    one.set_defaults(work=run)
    one = commands.add_parser("page", help="write the results page from the rows")
    one.add_argument("--html", type=Path, default=Path("report.html"), help="the page in one file (%(default)s)")
    one.set_defaults(work=make_page)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = parser().parse_args(argv)
    try:
        return options.work(options)
    except (SvmemError, OSError) as error:
        print(f"experiments.paper: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("experiments.paper: interrupted; the same command goes on from here", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
