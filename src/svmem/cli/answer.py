"""`svmem read`, `svmem score` and `svmem explain`: what a memory answers."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from svmem.cli import option
from svmem.cli.files import load
from svmem.cli.output import numbers, show
from svmem.cli.reader import read_queries
from svmem.errors import InvalidInput
from svmem.memory import Memory
from svmem.types import Ids, Queries, Values

__all__ = ["explain", "read", "score"]

TopK = Annotated[int | None, typer.Option("--top-k", min=1, help="Answer from so many heaviest records only.")]


def read(
    memory: option.MemoryFile,
    query: option.Queries = None,
    queries: option.QueryFile = None,
    columns: option.Columns = None,
    top_k: TopK = None,
    weights: Annotated[bool, typer.Option("--weights", help="Also print which records count, and how much.")] = False,
    as_json: option.AsJson = False,
) -> None:
    """Answer queries: each answer is a weighted mean of stored values, printed as one line.

    A record counts the more the nearer its key is to the query and the larger its coefficient is; reserve records do
    not count at all. Far from all keys the nearest record answers: see score for whether a query lies inside.
    """
    source = load(memory)
    asked = _queries(source, query, queries, columns)
    if not weights:
        answers = source.read(asked, top_k=top_k)
        show({"answers": answers.tolist()}, _rows(answers), as_json=as_json)
        return
    answers, ids, shares = source.read(asked, top_k=top_k, return_weights=True)
    data = {"answers": answers.tolist(), "ids": ids.tolist(), "weights": shares.tolist()}
    show(data, _weighted(answers, ids, shares), as_json=as_json)


def score(
    memory: option.MemoryFile,
    query: option.Queries = None,
    queries: option.QueryFile = None,
    columns: option.Columns = None,
    as_json: option.AsJson = False,
) -> None:
    """Say how far inside or outside the known region queries lie: one number a line.

    The gate score is positive inside, negative outside, and 0 on the margin.
    """
    source = load(memory)
    scores = source.score(_queries(source, query, queries, columns)).tolist()
    show({"scores": scores}, "\n".join(map(repr, scores)), as_json=as_json)


def explain(
    memory: option.MemoryFile,
    query: Annotated[str, typer.Option(help="The query, as numbers with commas between them.")],
    top_k: Annotated[int, typer.Option("--top-k", min=1, help="List so many records.")] = 10,
    as_json: option.AsJson = False,
) -> None:
    """List the records behind one answer, the heaviest first.

    Each with its id, its owner, its weight in the answer, its kernel value and distance to the query, and whether it is
    on the margin or at the bound.
    """
    found = load(memory).explain(option.numbers_in(query, "--query"), top_k=top_k)
    show(found.to_json(), str(found), as_json=as_json)


def _queries(memory: Memory, given: list[str] | None, table: Path | None, columns: str | None) -> Queries:
    if (not given) == (table is None):
        raise typer.BadParameter("give queries either here or in a table with --queries", param_hint="--query")
    if table is not None:
        return read_queries(table, columns, memory.key_dim)
    if columns is not None:
        raise typer.BadParameter("it chooses columns of the table in --queries", param_hint="--columns")
    rows = [option.numbers_in(text, "--query") for text in given or ()]
    for row in rows:
        if len(row) != memory.key_dim:
            raise InvalidInput(f"a query of this memory has {memory.key_dim} numbers, got {len(row)}")
    return np.array(rows)


def _rows(answers: Values) -> str:
    return "\n".join(numbers(row) for row in answers.tolist())


def _weighted(answers: Values, ids: Ids, weights: Values) -> str:
    """Return each answer, and below it the records that count."""
    width = len(str(ids.max()))
    parts = []
    for answer, names, shares in zip(answers.tolist(), ids.tolist(), weights.tolist(), strict=True):
        parts.append(numbers(answer))
        parts += [f"  {name:>{width}}  {share:.6f}" for name, share in zip(names, shares, strict=True)]
    return "\n".join(parts)
