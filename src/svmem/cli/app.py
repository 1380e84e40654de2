"""The commands by name, each with an example, and the parser that calls them."""

from collections.abc import Callable
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

__all__ = ["EXAMPLES", "command"]

EXAMPLES: dict[Callable[..., None], str] = {
    ingest: "svmem ingest hours.csv --keys hr,sbp --values next_hr --owner patient --out hours.svmem",
    read: "svmem read hours.svmem --query 0.1,-0.4 --top-k 5 --weights",
    score: "svmem score hours.svmem --queries new.csv --columns hr,sbp",
    explain: "svmem explain hours.svmem --query 0.1,-0.4",
    forget: "svmem forget hours.svmem --owner P-017 --certificate P-017.json",
    evict: "svmem evict hours.svmem --horizon 100",
    certificate: "svmem certificate hours.svmem --out state.json",
    export: "svmem export hours.svmem --out records.npz",
    verify: "svmem verify records.npz state.json",
    report: "svmem report hours.svmem --out report.html",
    info: "svmem info hours.svmem --json",
    doctor: "svmem doctor",
    demo: "svmem demo --out demo-output",
}


def command() -> Any:
    """Return the parser with all commands."""
    # Plain text: a mistake is one line, and examples keep their line breaks.
    app = typer.Typer(
        rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True
    )
    app.callback()(_root)
    for function, example in EXAMPLES.items():
        app.command(epilog=f"Example:\n\n\b\n  {example}")(function)
    return typer.main.get_command(app)


def _root(version: Annotated[bool, typer.Option("--version", is_eager=True, callback=lambda v: _version(v), help="Print the version.")] = False) -> None:
    """A support-vector memory: certified selection, exact unlearning, answers that a third party can check.

    Results go to stdout, everything else to stderr. Ends with 0, with 1 for an error, with 2 for a command typed wrongly.
    """


def _version(wanted: bool) -> None:
    if wanted:
        print(svmem.__version__)
        raise typer.Exit
