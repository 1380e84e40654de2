"""`svmem forget` and `svmem evict`: what leaves a memory file."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from svmem.cli import option
from svmem.cli.files import check_target, draft, held
from svmem.cli.output import agree, lines, note, show

__all__ = ["evict", "forget"]


def forget(
    memory: option.MemoryFile,
    owner: Annotated[str | None, typer.Option(help="Forget all records of this owner, letter for letter.")] = None,
    ids: Annotated[str | None, typer.Option(help="Forget the records with these ids, commas between them.")] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="Write a deletion certificate here, for svmem verify.")
    ] = None,
    yes: option.Yes = False,
    force: option.Force = False,
    as_json: option.AsJson = False,
) -> None:
    """Take records out as if they had never been there, and print a receipt without their names.

    The file then holds, bit for bit, the memory of the other records: the digest in the receipt is that of a memory
    which never held the forgotten ones. It is replaced in one step. What was copied from it earlier, backups among it,
    is not touched.
    """
    if (owner is None) == (ids is None):
        raise typer.BadParameter("give either --owner or --ids", param_hint="--owner")
    chosen = None if ids is None else option.ids_in(ids, "--ids")
    if certificate is not None:
        check_target(certificate, force=force, source=memory)
    with held(memory) as source:
        receipt = source.forget(ids=chosen, owner=owner)
        agree(f"{receipt.count:,} of {receipt.n_before:,} records would be forgotten for good", yes=yes)
        proof = source.certificate(removed=receipt) if certificate is not None else None
        # The certificate takes its place last: there is none unless the records are out of the file.
        with nullcontext() if certificate is None else draft(certificate) as place:
            if place is not None:
                place.write_text(json.dumps(proof) + "\n", encoding="utf-8")
            source.save(memory)
    digest = source.digest()
    written = None if certificate is None else str(certificate)
    text = [("receipt", receipt), ("digest", digest), *([("certificate", written)] if written else [])]
    show(receipt.to_json() | {"digest": digest, "certificate": written}, lines(text), as_json=as_json)
    note(f"copies, exports and backups of {memory} made earlier still hold the forgotten records")


def evict(
    memory: option.MemoryFile,
    horizon: Annotated[
        str, typer.Option(metavar="M[,R]", help="Drop what stays silent under any M additions and R (or M) forgets.")
    ] = "0",
    keep: Annotated[str | None, typer.Option(help="Ids to keep all the same, commas between them.")] = None,
    yes: option.Yes = False,
    as_json: option.AsJson = False,
) -> None:
    """Drop the reserve records that are proven to change no answer, and print how many went.

    With a horizon only those go that stay silent whatever is added or forgotten next. Afterwards "as if never seen"
    holds relative to the records that remain.
    """
    span = option.horizon_in(horizon)
    kept = None if keep is None else option.ids_in(keep, "--keep")
    with held(memory) as source:
        before = len(source)
        found = source.evict(keep=kept, horizon=span)
        count = before - len(source)
        if count:
            agree(f"{count:,} of {before:,} records would be dropped: {found.status}", yes=yes)
            source.save(memory)
    digest = source.digest()
    data = {
        "count": count,
        "n_before": before,
        "n_after": len(source),
        "reserve": found.reserve,
        "admissions": found.admissions,
        "deletions": found.deletions,
        "status": found.status,
        "digest": digest,
    }
    text = [("dropped", f"{count:,} of {before:,} records"), ("certified", found.status), ("digest", digest)]
    show(data, lines(text), as_json=as_json)
