"""`svmem ingest`: a table becomes a memory, or is added to one."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from svmem.cli import option
from svmem.cli.files import check_target, held
from svmem.cli.output import bar, note, show
from svmem.cli.overview import facts, table_of
from svmem.cli.reader import names_in, read_columns
from svmem.core.problem import DEFAULT_RIDGE, Problem
from svmem.errors import InvalidInput
from svmem.kernels import RBF, Laplacian, median_sigma
from svmem.memory import Memory
from svmem.types import Keys, Values

__all__ = ["ingest"]

NU = 0.3
UNEVEN = 10.0  # spreads of key columns that differ by more than this are remarked on


class KernelName(StrEnum):
    """Kernels that `ingest` offers: those with a width, which a readout needs."""

    RBF = "rbf"
    LAPLACIAN = "laplacian"


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What a table gives: keys (n, d), values (n, v) and an owner or None for each."""

    keys: Keys
    values: Values
    owners: list[str | None] | None


def ingest(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="A .csv, .parquet or .npz file.")],
    keys: Annotated[str, typer.Option(help="Columns that are compared, with commas between them.")],
    values: Annotated[str, typer.Option(help="Columns that are answered.")],
    out: Annotated[Path, typer.Option(help="The memory file to write, or with --append to add to.")],
    owner: Annotated[str | None, typer.Option(help="Column that names whose record it is, for forget.")] = None,
    sigma: Annotated[
        str | None, typer.Option(help="Width of the kernel: a number in the unit of the keys, or median, the default.")
    ] = None,
    nu: Annotated[
        float | None, typer.Option(help=f"Share of these rows that may lie at or past the edge; {NU} by default.")
    ] = None,
    cap: Annotated[float | None, typer.Option("--C", help="Largest coefficient of a record, in place of --nu.")] = None,
    kernel: Annotated[
        KernelName | None, typer.Option(help="Gaussian, the default, or with absolute distances.")
    ] = None,
    ridge: Annotated[
        float | None, typer.Option(help=f"What makes the optimum unique; {DEFAULT_RIDGE:g} by default.")
    ] = None,
    append: Annotated[bool, typer.Option("--append", help="Add to the memory in --out, under its problem.")] = False,
    force: option.Force = False,
    as_json: option.AsJson = False,
) -> None:
    """Make a memory of the rows of a table.

    Each row becomes a record: a key, a value, and whose it is. A column of lists, or a two-dimensional array of an
    .npz, counts as that many columns. Messages count rows from 1, below the header. Kernel and cap are fixed for the
    life of the memory. Columns are taken as they are: one sigma serves them all, so bring them to like units first. No
    mean or scale is computed here, since the memory would go on holding it, and with it a trace of every row, after a
    row is forgotten.
    """
    settings = {"--sigma": sigma, "--nu": nu, "--C": cap, "--kernel": kernel, "--ridge": ridge}
    _check_choices({name for name, value in settings.items() if value is not None}, append=append, force=force)
    if not append:
        check_target(out, force=force)
    rows = _rows(table, keys, values, owner)
    if append:
        with held(out) as memory:
            first = _fill(memory, rows, out)
    else:
        problem = _problem(rows.keys, sigma, nu, cap, kernel or KernelName.RBF, ridge)
        memory = Memory(problem, rows.keys.shape[1], rows.values.shape[1])
        first = _fill(memory, rows, out)
    _remark(rows, owner)
    added = {"added": len(rows.keys), "first_id": first, "file": str(out)}
    data = added | facts(memory)
    text = [("added", f"{len(rows.keys):,} records, ids {first} to {first + len(rows.keys) - 1}"), ("file", out)]
    show(data, table_of(data, text), as_json=as_json)


def _check_choices(given: set[str], *, append: bool, force: bool) -> None:
    if append and given:
        said = f"the problem of a memory is fixed, so --append takes no {', '.join(sorted(given))}"
        raise typer.BadParameter(said, param_hint="--append")
    if append and force:
        raise typer.BadParameter("it adds to the file and --force replaces it; give one of them", param_hint="--append")
    if {"--nu", "--C"} <= given:
        raise typer.BadParameter("it follows from --nu; give one of them", param_hint="--C")


def _rows(table: Path, keys: str, values: str, owner: str | None) -> Rows:
    key_names, value_names = names_in(keys, "--keys"), names_in(values, "--values")
    if owner in (*key_names, *value_names):  # and if it were no number, a message would quote it
        raise typer.BadParameter(f"{owner!r} cannot be a key or a value too", param_hint="--owner")
    found = read_columns(table, list(dict.fromkeys([*key_names, *value_names])), owner)
    return Rows(found.matrix(key_names), found.matrix(value_names), found.owners)


def _problem(
    keys: Keys, sigma: str | None, nu: float | None, cap: float | None, kernel: KernelName, ridge: float | None
) -> Problem:
    """Return the problem that was asked for; what was chosen by itself is said on stderr."""
    width = _sigma(keys, sigma, kernel)
    chosen = RBF(width) if kernel is KernelName.RBF else Laplacian(width)
    more = {} if ridge is None else {"ridge": ridge}
    if cap is not None:
        return Problem(chosen, C=cap, **more)
    problem = Problem.from_nu(NU if nu is None else nu, len(keys), chosen, **more)
    note(f"C = {problem.C:.6g}, from nu = {NU if nu is None else nu:g} and {len(keys):,} rows")
    return problem


def _sigma(keys: Keys, sigma: str | None, kernel: KernelName) -> float:
    if sigma not in (None, "median"):
        try:
            return float(sigma)
        except ValueError:
            raise typer.BadParameter(f"it takes a number or median, got {sigma!r}", param_hint="--sigma") from None
    if kernel is not KernelName.RBF:
        raise typer.BadParameter(
            "median measures distances as the rbf kernel does; give a number for this kernel", param_hint="--sigma"
        )
    width = median_sigma(keys)
    note(f"sigma = {width:.6g}, the median distance between keys; --sigma sets another")
    return width


def _fill(memory: Memory, rows: Rows, out: Path) -> int:
    """Add the rows and save; return the first id. The file is as it was if any of them is refused."""
    widths = rows.keys.shape[1], rows.values.shape[1]
    if widths != (memory.key_dim, memory.value_dim):
        raise InvalidInput(
            f"{out} holds keys of {memory.key_dim} numbers and values of {memory.value_dim}, "
            f"the columns give {widths[0]} and {widths[1]}"
        )
    with bar("solving", None) as advance:  # all at once: in parts it would take several times as long
        ids = memory.add(rows.keys, rows.values, owners=rows.owners)
        advance(len(ids))
    memory.save(out)
    return ids[0]


def _remark(rows: Rows, owner: str | None) -> None:
    """Say what the user may not have meant."""
    spread = rows.keys.std(axis=0)
    spread = spread[spread > 0]
    if spread.size and spread.max() > UNEVEN * spread.min():
        note(
            f"the key columns differ in spread by a factor of {spread.max() / spread.min():.0f}; sigma treats them all "
            "alike, so the widest decides: dividing each by its spread beforehand makes them count the same"
        )
    nobodys = sum(1 for name in rows.owners or () if name is None)
    if nobodys:
        note(f"{nobodys:,} rows have an empty {owner!r}; they can be forgotten by id only")
