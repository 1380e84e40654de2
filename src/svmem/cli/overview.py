"""`svmem info` and `svmem report`: what a memory holds, in words and in pictures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from svmem.cli import option
from svmem.cli.files import check_target, draft, load
from svmem.cli.output import lines, needs, show
from svmem.memory import Memory
from svmem.types import Json

__all__ = ["facts", "info", "report", "table_of"]


def info(memory: option.MemoryFile, as_json: option.AsJson = False) -> None:
    """Say what a memory holds: records, the three sets, the problem, and the digest of the state.

    Margin and bound records carry the answers, reserve records are silent. Two memories with the same digest hold the
    same records and give the same answers, bit for bit.
    """
    data = {"file": str(memory)} | facts(load(memory))
    show(data, table_of(data, [("file", memory)]), as_json=as_json)


def report(
    memory: option.MemoryFile,
    out: Annotated[Path, typer.Option(help="The .html file to write.")],
    title: Annotated[str, typer.Option(help="Its heading.")] = "A support-vector memory",
    force: option.Force = False,
    as_json: option.AsJson = False,
) -> None:
    """Write a page with figures of a memory; it loads nothing from elsewhere and opens in any browser.

    It names owners in a table of the largest shares. Needs the extra report.
    """
    with needs("report"):
        from svmem.report.memory import write_report
    check_target(out, force=force, source=memory)
    source = load(memory)
    with draft(out) as place:
        write_report(source, place, title=title)
    show({"file": str(out), "n": len(source)}, lines([("report", out)]), as_json=as_json)


def facts(memory: Memory) -> Json:
    """Return what `info` says of a memory, as plain data."""
    state, owners = memory.solution, memory.owners
    return {
        "n": len(memory),
        "key_dim": memory.key_dim,
        "value_dim": memory.value_dim,
        "margin": len(state.margin),
        "bound": len(state.bound),
        "reserve": len(state.reserve),
        "status": str(state.status),
        "offset": state.offset,
        "problem": memory.problem.to_json(),
        "n_min": memory.problem.n_min,
        "owners": len(set(owners) - {None}),
        "without_owner": owners.count(None),
        "digest": memory.digest(),
    }


def table_of(data: Json, first: Sequence[tuple[str, object]]) -> str:
    """Return these facts in words, one a line, below the lines in `first`."""
    problem, kernel = data["problem"], data["problem"]["kernel"]
    width = f", sigma {kernel['sigma']:.6g}" if "sigma" in kernel else ""
    nobodys = f"; {data['without_owner']:,} records have none" if data["without_owner"] else ""
    rows = [
        *first,
        ("records", f"{data['n']:,}, keys of {data['key_dim']} numbers, values of {data['value_dim']}"),
        ("owners", f"{data['owners']:,}{nobodys}"),
        ("margin", f"{data['margin']:,}"),
        ("bound", f"{data['bound']:,}"),
        ("reserve", f"{data['reserve']:,}"),
        ("status", data["status"]),
        ("kernel", kernel["name"] + width),
        ("C, ridge", f"{problem['C']:.6g}, {problem['ridge']:g}; selection starts at {data['n_min']:,} records"),
        ("digest", data["digest"]),
    ]
    return lines(rows)
