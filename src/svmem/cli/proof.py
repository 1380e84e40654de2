"""`svmem certificate`, `svmem export` and `svmem verify`: what a third party gets, and what it does with it."""

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from svmem.checker import Unreadable, check, read_certificate, read_records
from svmem.cli import option
from svmem.cli.files import check_target, draft, load
from svmem.cli.output import lines, note, show
from svmem.core import state_file
from svmem.errors import InvalidInput, SvmemError
from svmem.report.page import at_most
from svmem.types import Keys, Values

__all__ = ["certificate", "export", "verify"]

UNREAD = 2  # as of the checker's own command: nothing was decided


def certificate(
    memory: option.MemoryFile,
    out: Annotated[Path, typer.Option(help="The .json file to write.")],
    horizon: Annotated[
        str | None,
        typer.Option(
            metavar="M[,R]", help="Also certify what stays silent under any M additions and R (or M) forgets."
        ),
    ] = None,
    force: option.Force = False,
    as_json: option.AsJson = False,
) -> None:
    """Write a certificate of the present state: how far it can be from the optimum, for every query at once.

    It commits to problem, records, coefficients and offset by digests, and holds no key, no value, no id and no owner.
    """
    check_target(out, force=force, source=memory)
    source = load(memory)
    selection = None if horizon is None else source.selection(option.horizon_in(horizon))
    document = source.certificate(selection=selection)
    with draft(out) as place:
        place.write_text(json.dumps(document) + "\n", encoding="utf-8")
    bounds = document["optimality"]
    text = [
        ("certificate", f"{out} ({document['kind']})"),
        ("records", f"{document['n']:,}"),
        ("status", document["status"]),
        ("gap", f"at most {at_most(bounds['gap'])}"),
        ("gate score", f"off by at most {at_most(bounds['score_bound'])}, for every query"),
        *([] if selection is None else [("selection", selection.status)]),
        ("state digest", document["state_digest"]),
    ]
    names = ("kind", "n", "status", "state_digest", "records_root", "self_digest")
    show({"file": str(out)} | {name: document[name] for name in names} | bounds, lines(text), as_json=as_json)


def export(
    memory: option.MemoryFile,
    out: Annotated[Path, typer.Option(help="The .npz file to write.")],
    force: option.Force = False,
    as_json: option.AsJson = False,
) -> None:
    """Write keys and values to an .npz file, without ids and owners: what an auditor needs to recheck a certificate."""
    if out.suffix.lower() != ".npz":
        raise InvalidInput(f"records are exported to an .npz file, got {out}")
    check_target(out, force=force, source=memory)
    source = load(memory)
    with draft(out) as place, open(place, "wb") as file:
        np.savez_compressed(file, keys=source.keys, values=source.values)
    text = [("records", f"{len(source):,}"), ("file", out)]
    show({"file": str(out), "n": len(source)}, lines(text), as_json=as_json)


def verify(
    records: Annotated[Path, typer.Argument(metavar="RECORDS", help="An .npz or .csv of records, or a memory file.")],
    certificate: Annotated[Path, typer.Argument(metavar="CERTIFICATE", help="A certificate in JSON.")],
    as_json: option.AsJson = False,
) -> None:
    """Recheck a certificate from the records alone, by code that shares nothing with the solver.

    Ends with 0 if every statement is borne out, 1 if any is refused, 2 if a file could not be read. Of a memory file
    only the records are used. The checker runs without svmem too: python -m svmem.checker.
    """
    try:
        (keys, values), document = _records(records), read_certificate(str(certificate))
    except (Unreadable, SvmemError, OSError) as error:
        said = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
        note(f"svmem: {said}")
        raise typer.Exit(UNREAD) from None
    found = check(keys, values, document)
    data = {
        "borne_out": not found,
        "findings": [{"field": finding.field, "reason": finding.reason} for finding in found],
        "n": len(keys),
    }
    if found:
        show(data, "\n".join(f"refused: {finding}" for finding in found), as_json=as_json)
        raise typer.Exit(1)
    what = f"every statement of this {document['kind']} certificate holds for {len(keys):,} records"
    show(data, f"borne out: {what}", as_json=as_json)


def _records(path: Path) -> tuple[Keys, Values]:
    if path.suffix.lower() in (".npz", ".csv"):
        return read_records(str(path))
    try:
        contents, _ = state_file.read(path)
    except SvmemError as error:
        raise Unreadable(f"{path}: {error}") from None
    return contents.keys, contents.values
