"""Memory: records with keys, values, ids and owners, answering from the optimum of (P) over the keys it retains."""

import os
import time
from collections.abc import Iterable
from dataclasses import replace
from threading import Lock
from typing import Literal, SupportsIndex, overload

import numpy as np
from numpy.typing import ArrayLike

from svmem.core import proof, readout, state_file
from svmem.core.certificate import OptimalityCertificate
from svmem.core.explanation import Explanation, explain
from svmem.core.inputs import as_finite
from svmem.core.problem import Problem
from svmem.core.readout import View
from svmem.core.receipt import Receipt
from svmem.core.records import LARGEST_WIDTH, Contents, arrivals, as_ids, as_rows
from svmem.core.retained import Retained
from svmem.core.selection import SelectionCertificate
from svmem.core.solution import Solution
from svmem.errors import FileRefused, InvalidInput, NotFitted, SvmemError
from svmem.kernels import Precomputed
from svmem.types import Coefficients, Ids, Json, Keys, Values, Vector

__all__ = ["Memory"]


class Memory:
    """Records, and a state that is a function of the set of them, bit for bit: no order, no ids, nothing forgotten.

    Any number of threads may read while one writes; `read`, `score` and `explain` answer from the state before or after
    a write, never from between, and writes wait for each other. A write that fails or is interrupted leaves the state
    before it or, once it is decided, the one after it. Copies and pickles hold the records and are solved anew.
    """

    def __init__(self, problem: Problem, key_dim: int, value_dim: int) -> None:
        if not isinstance(problem, Problem) or isinstance(problem.kernel, Precomputed):
            raise InvalidInput(f"a memory needs a Problem whose kernel is computed from keys, got {problem!r}")
        self._lock = Lock()
        self._retained = Retained(problem, _as_count(key_dim, "key_dim"), _as_count(value_dim, "value_dim"))

    def add(
        self,
        keys: ArrayLike,
        values: ArrayLike,
        ids: Iterable[SupportsIndex] | None = None,
        owners: str | Iterable[str | None] | None = None,
    ) -> list[int]:
        """Add records with keys (n, key_dim) and values (n, value_dim); return their ids, rising and never used again.

        Ids of one's own must rise too, above every id ever given: no record is overwritten, but forgotten and added
        under a new id. `owners`: one string for all, or a string or None for each.
        Raises InvalidInput, and SolverError if no optimum can be proved; then nothing has changed.
        """
        with self._lock:
            self._retained.working()
            new = arrivals(self._retained.records, self._retained.next_id, keys, values, ids, owners)
            if new.ids:
                self._retained.insert(new)
            return new.ids

    @overload
    def read(
        self, queries: ArrayLike, *, top_k: int | None = None, return_weights: Literal[False] = False
    ) -> Values: ...
    @overload
    def read(
        self, queries: ArrayLike, *, top_k: int | None = None, return_weights: Literal[True]
    ) -> tuple[Values, Ids, Values]: ...
    def read(
        self, queries: ArrayLike, *, top_k: int | None = None, return_weights: bool = False
    ) -> Values | tuple[Values, Ids, Values]:
        """Return the readout (m, value_dim) of queries (m, key_dim): means of values under alpha_i kappa(q, x_i).

        Taken relative to the nearest record, so at any distance: far away the nearest one answers. `top_k` keeps the
        heaviest records and rescales; ties go in canonical order. `return_weights` adds the ids and weights, (m, k)
        each, heaviest first. Raises NotFitted for an empty memory and InvalidInput for a kernel that can be negative.
        """
        matrix, view = as_rows(queries, "queries", self.key_dim), self._view()
        if top_k is None and not return_weights:
            return readout.read(view, matrix)
        k = len(view.ids) if top_k is None else min(_as_count(top_k, "top_k"), len(view.ids))
        out, places, weights = readout.heaviest(view, matrix, k)
        return (out, view.ids[places], weights) if return_weights else out

    def score(self, points: ArrayLike) -> Vector:
        """Return the gate score of points (m, key_dim): positive inside the described region, negative outside.

        It is 2 (f(x) - kappa(x, x) / 2 - offset). Raises NotFitted for an empty memory.
        """
        return readout.score(self._view(), as_rows(points, "points", self.key_dim))

    def explain(self, query: ArrayLike, top_k: int = 10) -> Explanation:
        """Return the records behind the readout of one query (key_dim,), the heaviest first. Raises as `read`."""
        row = np.atleast_2d(as_finite(query, "query"))
        if len(row) != 1:
            raise InvalidInput(f"explain takes one query, got {len(row)}")
        return explain(self._view(), as_rows(row, "query", self.key_dim), _as_count(top_k, "top_k"))

    def forget(self, *, ids: Iterable[SupportsIndex] | None = None, owner: str | None = None) -> Receipt:
        """Take records out, by ids or all of an owner; the state is then that of a memory that never held them.

        Raises NotFound for an id or owner that is not there, matched exactly; InvalidInput for ids given twice and for
        an empty list; SolverError if no optimum can be proved. Then nothing has changed.
        """
        start = time.perf_counter()
        if (ids is None) == (owner is None):
            raise InvalidInput("forget takes either ids or an owner")
        with self._lock:
            retained = self._retained
            retained.working()
            status, repairs, before = retained.status, retained.repairs, len(retained.records)
            chosen = retained.records.owned_by(owner) if ids is None else as_ids(ids)
            if not chosen:
                raise InvalidInput("forget needs at least one id, got none")
            retained.remove(chosen)
            return Receipt(
                count=len(chosen),
                ids=tuple(chosen),
                n_before=before,
                n_after=len(retained.records),
                status_before=status,
                status_after=retained.status,
                exact_relative_to=proof.scope(retained),
                repairs=retained.repairs - repairs,
                elapsed_s=time.perf_counter() - start,
                change=retained.changes,
            )

    def evict(
        self, keep: Iterable[SupportsIndex] | None = None, horizon: int | tuple[int, int] = 0
    ) -> SelectionCertificate:
        """Drop the reserve records that are certified to stay silent, except the ids in `keep`; return the certificate.

        `horizon`: how many further admissions and deletions it has to cover, as a pair or one number for both. Its
        `droppable` are the dropped records' positions in `ids` as they were. Answers do not change. From then on "as if
        never seen" holds relative to retained records, which receipts say.
        """
        kept = list(dict.fromkeys(as_ids(keep if keep is not None else [])))
        with self._lock:
            present = self._retained.ids()
            self._retained.records.slots(kept)
            found = proof.selection(self._retained, horizon)
            drop = ~np.isin(present[found.droppable], np.array(kept, np.int64))
            if not drop.all():
                status = f"{found.status}; {int((~drop).sum())} of them kept on request"
                found = replace(found, droppable=found.droppable[drop], slack=found.slack[drop], status=status)
            if drop.any():
                self._retained.remove(present[found.droppable].tolist(), evict=True)
            return found

    def selection(self, horizon: int | tuple[int, int] = 0) -> SelectionCertificate:
        """Return the certificate of what `evict` would drop, and drop nothing. Positions are those in `ids`."""
        with self._lock:
            return proof.selection(self._retained, horizon)

    def certify(self) -> OptimalityCertificate:
        """Return the optimality certificate of the present state, computed from keys and coefficients alone."""
        with self._lock:
            return proof.optimality(self._retained)

    def certificate(self, *, removed: Receipt | None = None, selection: SelectionCertificate | None = None) -> Json:
        """Return the present state's certificate as a document for `svmem.checker`, without ids, keys or values.

        `removed`: the receipt of the forget that led to this state. `selection`: what `selection` returned for it.
        """
        with self._lock:
            return proof.document(self._retained, removed, selection)

    def digest(self) -> str:
        """Return the digest of problem, records, coefficients and offset; ids, owners and history play no part."""
        with self._lock:
            return self._retained.digest()[0]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the memory to one file, whole or not at all."""
        with self._lock:
            contents, digest = self._retained.contents(), self._retained.digest()[0]
        state_file.write(path, contents, digest)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Memory":
        """Return the memory in a file, solved anew. Raises FileRefused unless it gives the digest that it states."""
        contents, digest = state_file.read(path)
        memory = cls.__new__(cls)
        try:
            memory.__setstate__(contents)
        except SvmemError as error:
            raise FileRefused(f"the file holds no memory that can be solved: {error}") from None
        if memory.digest() != digest:
            raise FileRefused("the file is damaged or was made up: its records do not give the digest that it states")
        return memory

    @property
    def problem(self) -> Problem:
        """The problem, fixed for the life of the memory."""
        return self._retained.problem

    @property
    def key_dim(self) -> int:
        """Coordinates of a key."""
        return self._retained.records.keys.shape[1]

    @property
    def value_dim(self) -> int:
        """Numbers in a value."""
        return self._retained.records.values.shape[1]

    @property
    def solution(self) -> Solution:
        """Coefficients, offset, the three sets and the status, in id order."""
        with self._lock:
            return self._retained.solution()

    @property
    def alpha(self) -> Coefficients:
        """The coefficients in id order."""
        with self._lock:
            return self._retained.alpha()

    @property
    def repairs(self) -> int:
        """How often the incremental steps gave way to a cold solve, in this memory's life in this process."""
        return self._retained.repairs

    @property
    def offset(self) -> float:
        """The multiplier mu of the constraint on the sum: what the gate score is measured from."""
        with self._lock:
            return self._retained.working().offset

    @property
    def ids(self) -> list[int]:
        """The ids of the records, rising."""
        with self._lock:
            return self._retained.ids().tolist()

    @property
    def owners(self) -> list[str | None]:
        """The owner of each record, in id order."""
        return self._contents().owners

    @property
    def keys(self) -> Keys:
        """A copy of the keys (n, key_dim), in id order."""
        return self._contents().keys

    @property
    def values(self) -> Values:
        """A copy of the values (n, value_dim), in id order."""
        return self._contents().values

    def __len__(self) -> int:
        view = self._retained.view
        if view is not None:
            return view.n
        with self._lock:
            self._retained.working()
            return len(self._retained.records)

    def __contains__(self, i: object) -> bool:
        with self._lock:
            self._retained.working()
            return i in self._retained.records.slot_of

    def __repr__(self) -> str:
        problem = self.problem
        head = f"{len(self)} records, key_dim={self.key_dim}, value_dim={self.value_dim}, {problem.kernel!r}"
        return f"Memory({head}, C={problem.C:.6g}, ridge={problem.ridge:.3g})"

    def __getstate__(self) -> Contents:
        return self._contents()

    def __setstate__(self, contents: Contents) -> None:
        Memory.__init__(self, contents.problem, contents.keys.shape[1], contents.values.shape[1])
        self._retained = Retained.of(contents)

    def _contents(self) -> Contents:
        with self._lock:
            return self._retained.contents()

    def _view(self) -> View:
        """Return what to answer from. Raises NotFitted while there is nothing."""
        view = self._retained.view
        if view is None:
            with self._lock:
                view = self._retained.shown()
        if view.n == 0:
            raise NotFitted("the memory holds no record yet; add some first")
        return view


def _as_count(value: int, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= LARGEST_WIDTH:
        raise InvalidInput(f"{name} must be a whole number in [1, {LARGEST_WIDTH}], got {value!r}")
    return int(value)
