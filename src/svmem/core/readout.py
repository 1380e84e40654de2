"""What a memory answers from: its active records in canonical order, and the answers.

Every sum runs over them in this order, one query at a time, so an answer has the same bits alone and in a batch, and
whatever the history of the memory.
"""

from dataclasses import dataclass

import numpy as np

from svmem._jit.readout import mean_rows, read_rows, weight_rows
from svmem._jit.rows import weighted_sums
from svmem.core.problem import Problem
from svmem.errors import InvalidInput
from svmem.types import Coefficients, Ids, Keys, Queries, Values, Vector

__all__ = ["View", "canonical_order", "heaviest", "read", "score", "view_of"]

_ENTRIES = 1 << 20  # weights held at once


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """The active records of one state, a of n, in canonical order. Nothing in it ever changes.

    columns: features (d, a). rows: values (v + 1, a), the last row ones. lowest, highest: of the values (v,).
    """

    problem: Problem
    n: int
    offset: float
    ids: Ids
    owners: tuple[str | None, ...]
    keys: Keys
    alpha: Coefficients
    columns: Keys
    rows: Values
    lowest: Vector
    highest: Vector

    def zone_of(self, place: int) -> str:
        """Return whether the record is margin or bound; while collecting all are bound."""
        full = self.n < self.problem.n_min or self.alpha[place] == self.problem.C
        return "bound" if full else "margin"


def view_of(
    problem: Problem,
    n: int,
    offset: float,
    ids: Ids,
    owners: list[str | None],
    keys: Keys,
    values: Values,
    alpha: Coefficients,
) -> View:
    """Return the view of a state of n records from its active ones, given in id order; equal records stay in it."""
    order = canonical_order(keys, values)
    keys, values = keys[order], values[order]
    return View(
        problem=problem,
        n=n,
        offset=offset,
        ids=ids[order],
        owners=tuple(owners[i] for i in order.tolist()),
        keys=keys,
        alpha=alpha[order],
        columns=np.ascontiguousarray(problem.kernel.features(keys).T),
        rows=np.ascontiguousarray(np.vstack([values.T, np.ones(len(keys))])),  # one layout, one compilation
        lowest=values.min(axis=0, initial=np.inf),
        highest=values.max(axis=0, initial=-np.inf),
    )


def canonical_order(keys: Keys, values: Values) -> Ids:
    """Return the order by the coordinates of the keys, the first one first; among equal keys by the value's bytes.

    These are the little-endian bytes of the float64 numbers, first byte first. No number may be -0.
    """
    order = np.argsort(keys[:, 0], kind="stable")
    first = keys[order, 0]
    if not (first[1:] == first[:-1]).any():
        return order
    as_bytes = values.astype("<f8").view(">u8").astype(np.uint64)
    return np.lexsort((*as_bytes.T[::-1], *keys.T[::-1]))


def read(view: View, queries: Queries) -> Values:
    """Return the readout (m, v) of queries (m, d)."""
    _refuse_signed(view.problem)
    kernel, out = view.problem.kernel, np.empty((len(queries), len(view.lowest)))
    with np.errstate(over="ignore", invalid="ignore"):  # of interest to the uncompiled code only
        read_rows(
            kernel.code,
            float(kernel.scale),
            kernel.features(queries),
            view.columns,
            view.alpha,
            view.rows,
            view.lowest,
            view.highest,
            out,
        )
    return out


def heaviest(view: View, queries: Queries, k: int) -> tuple[Values, Ids, Values]:
    """Return the readout (m, v) over the k heaviest records of each query, their places in the view and weights (m, k).

    Heaviest first, ties in canonical order; the weights of a query sum to 1. With all records it is the readout.
    """
    _refuse_signed(view.problem)
    m, a = len(queries), len(view.ids)
    out, places, weights = np.empty((m, len(view.lowest))), np.empty((m, k), np.int64), np.empty((m, k))
    step = max(1, _ENTRIES // a)
    for start in range(0, m, step):
        part = slice(start, start + step)
        out[part], places[part], weights[part] = _heaviest_of(view, queries[part], k)
    return out, places, weights


def _heaviest_of(view: View, queries: Queries, k: int) -> tuple[Values, Ids, Values]:
    kernel, m = view.problem.kernel, len(queries)
    out, total, every = np.empty((m, len(view.lowest))), np.empty(m), np.empty((m, len(view.ids)))
    with np.errstate(over="ignore", invalid="ignore"):
        weight_rows(kernel.code, float(kernel.scale), kernel.features(queries), view.columns, view.alpha, every)
    places = np.argsort(-every, axis=1, kind="stable")[:, :k]
    weights = np.take_along_axis(every, places, axis=1)
    kept = np.zeros_like(every)
    np.put_along_axis(kept, places, weights, axis=1)
    mean_rows(kept, view.rows, view.lowest, view.highest, out, total)
    return out, places, weights / total[:, None]


def score(view: View, points: Queries) -> Vector:
    """Return the gate score 2 (f(x) - kappa(x, x) / 2 - offset) of points (m, d): positive inside, negative outside."""
    kernel, f = view.problem.kernel, np.empty(len(points))
    features = kernel.features(points)
    with np.errstate(over="ignore", invalid="ignore"):
        weighted_sums(kernel.code, float(kernel.scale), features, view.columns, view.alpha, f)
    return 2.0 * ((f - 0.5 * _own(view.problem, features)) - view.offset)


def _own(problem: Problem, features: Queries) -> Vector | float:
    """Return kappa(x, x), summed in the order of the coordinates."""
    if problem.kernel.bounded:
        return 1.0
    own = np.zeros(len(features))
    for column in features.T:
        own += column * column
    return own


def _refuse_signed(problem: Problem) -> None:
    if not problem.kernel.bounded:
        raise InvalidInput(
            f"a readout needs a kernel that is never negative, such as rbf or laplacian: with the {problem.kernel.name}"
            " kernel it would not be a weighted mean of values; score works with any kernel"
        )
