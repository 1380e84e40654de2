"""The commands by name, each with an example, and the parser that calls them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

import svmem
from svmem.cli.answer import explain, read, score
from svmem.cli.demo import demo
from svmem.cli.doctor import doctor
from svmem.cli.ingest import ingest
from svmem.cli.overview import info, report
from svmem.cli.proof import certificate, export, verify
from svmem.cli.removal import evict, forget

__all__ = ["COMMANDS", "Command", "command"]


@dataclass(frozen=True, slots=True)
class Command:
    """A command: the function behind it, what it does in a few words, and an example."""

    function: Callable[..., None]
    short: str
    example: str


COMMANDS = (
    Command(
        ingest,
        "Make a memory of the rows of a table.",
        "svmem ingest hours.csv --keys hr,sbp --values next_hr --owner patient --out hours.svmem",
    ),
    Command(read, "Answer queries.", "svmem read hours.svmem --query 0.1,-0.4 --top-k 5 --weights"),
    Command(score, "Say how far inside or outside queries lie.", "svmem score hours.svmem --queries new.csv"),
    Command(explain, "List the records behind one answer.", "svmem explain hours.svmem --query 0.1,-0.4"),
    Command(forget, "Take records out, exactly.", "svmem forget hours.svmem --owner P-017 --certificate P-017.json"),
    Command(evict, "Drop records proven to stay silent.", "svmem evict hours.svmem --horizon 10,2"),
    Command(certificate, "Write a certificate of the state.", "svmem certificate hours.svmem --out state.json"),
    Command(export, "Write keys and values for an auditor.", "svmem export hours.svmem --out records.npz"),
    Command(verify, "Recheck a certificate from the records.", "svmem verify records.npz state.json"),
    Command(report, "Write a page with figures.", "svmem report hours.svmem --out report.html"),
    Command(info, "Say what a memory holds.", "svmem info hours.svmem --json"),
    Command(doctor, "Compile once, and say what is missing.", "svmem doctor"),
    Command(demo, "Run the main job on real hours.", "svmem demo --out demo-output"),
)


def command() -> Any:
    """Return the parser with all commands."""
    # Plain text: a mistake is one line, and examples keep their line breaks.
    app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True)
    app.callback()(_root)
    for one in COMMANDS:
        app.command(short_help=one.short, epilog=f"Example:\n\n\b\n  {one.example}")(one.function)
    return typer.main.get_command(app)


def _version(wanted: bool) -> None:
    if wanted:
        print(svmem.__version__)
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", is_eager=True, callback=_version, help="Print the version.")]


def _root(version: Version = False) -> None:
    """A support-vector memory: certified selection, exact unlearning, answers that a third party can check.

    Results go to stdout, everything else to stderr. Ends with 0, with 1 for an error, with 2 for a command typed
    wrongly.
    """
