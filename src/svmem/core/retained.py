"""The retained records and what is computed from them: working set, record tree, and the view that readers share."""

from collections.abc import Callable
from functools import partial

import numpy as np

from svmem.core.digest import RecordTree, active_section, leaves, state_digest
from svmem.core.incremental import WorkingSet
from svmem.core.problem import Problem
from svmem.core.readout import View, view_of
from svmem.core.records import Arrivals, Contents, Records
from svmem.core.solution import Solution, Status
from svmem.core.solve import solution_of
from svmem.types import Coefficients, Ids

__all__ = ["Retained"]


class Retained:
    """Changed by one thread at a time, all or nothing. `view` alone may be read by others at any moment.

    While a change is under way `_working` is None, so that whatever ends it early, the next call solves the records
    anew. The records themselves change last, by a call that is kept in `_pending` until it is through.
    """

    def __init__(self, problem: Problem, key_dim: int, value_dim: int) -> None:
        self.problem = problem
        self._least = problem.n_min
        self.records = Records(key_dim, value_dim)
        self.next_id = 0
        self.evicted = False  # whether any record was ever dropped without being forgotten
        self.repairs = 0
        self.changes = 0
        self.view: View | None = None  # None once the state has changed, until somebody looks
        self._working: WorkingSet | None = WorkingSet(problem, key_dim)
        self._tree: RecordTree | None = RecordTree()
        self._pending: Callable[[], None] | None = None

    @classmethod
    def of(cls, contents: Contents) -> "Retained":
        """Return the state of these contents, solved from nothing."""
        out = cls(contents.problem, contents.keys.shape[1], contents.values.shape[1])
        if len(contents.ids):
            out.insert(Arrivals(contents.ids.tolist(), contents.keys, contents.values, contents.owners))
        out.next_id, out.evicted = contents.next_id, contents.evicted
        return out

    def contents(self) -> Contents:
        """Return copies of what makes this state."""
        self.working()
        records, live = self.records, self.records.live()
        return Contents(
            problem=self.problem,
            ids=records.ids[live],
            keys=records.keys[live],
            values=records.values[live],
            owners=[records.owners[slot] for slot in live.tolist()],
            next_id=self.next_id,
            evicted=self.evicted,
        )

    def working(self) -> WorkingSet:
        """Return the working set at the optimum of the records; after an interruption, first bring both in order."""
        if self._pending is not None:
            self._tree = None
            self._pending()
            self._pending = None
        if self._working is None:
            working = WorkingSet(self.problem, self.records.keys.shape[1])
            live = self.records.live()
            if len(live):
                self.records.handles[live] = working.insert(self.records.keys[live])
            self._working = working
        return self._working

    @property
    def status(self) -> Status:
        """Whether there are enough records for (P) to have a feasible point."""
        return Status.COLLECTING if len(self.records) < self._least else Status.OPTIMAL

    def insert(self, new: Arrivals) -> None:
        """Add records. Raises SolverError with nothing changed."""
        working = self.working()
        repairs, self._working = working.repairs, None
        handles = working.insert(new.keys)
        self._conclude(working, repairs, partial(self._take_in, self.records.used, new, handles))

    def remove(self, ids: list[int], *, evict: bool = False) -> None:
        """Take distinct records out in one step. Raises NotFound or SolverError with nothing changed."""
        working = self.working()
        slots = self.records.slots(ids)
        handles = self.records.handles[slots]
        repairs, self._working = working.repairs, None
        working.remove(handles)
        self._conclude(working, repairs, partial(self._take_out, ids, slots, evict))

    def shown(self) -> View:
        """Return the view of the present state."""
        if self.view is None:
            working, records = self.working(), self.records
            handles, shares = working.active()
            alpha_of = np.zeros(1 + int(handles.max(initial=-1)))
            alpha_of[handles] = shares
            live = records.live()
            live = live[records.handles[live] < len(alpha_of)]
            alpha = alpha_of[records.handles[live]]
            live, alpha = live[alpha > 0], alpha[alpha > 0]
            self.view = view_of(
                self.problem,
                len(records),
                working.offset,
                records.ids[live],
                [records.owners[slot] for slot in live.tolist()],
                records.keys[live],
                records.values[live],
                alpha,
            )
        return self.view

    def digest(self) -> tuple[str, bytes]:
        """Return the state digest and the records root."""
        view, records = self.shown(), self.records
        tree, self._tree = self._tree, None  # put back when it is in order again
        if tree is None:
            tree = RecordTree()
            tree.add(records.slot_of)
        root = tree.root(self._leaves)
        self._tree = tree
        shape = len(records), records.keys.shape[1], records.values.shape[1]
        return state_digest(self.problem, shape, root, active_section(view.keys, view.alpha), view.offset), root

    def ids(self) -> Ids:
        """Return the ids, rising."""
        self.working()
        return self.records.ids[self.records.live()]

    def alpha(self) -> Coefficients:
        """Return the coefficients in id order."""
        working = self.working()
        return working.alpha_of(self.records.handles[self.records.live()])

    def solution(self) -> Solution:
        """Return the state of the solver in id order."""
        working, live = self.working(), self.records.live()
        return solution_of(working, self.records.ids[live], self.records.handles[live])

    def _leaves(self, ids: list[int]) -> list[bytes]:
        slots = self.records.slots(ids)
        return leaves(self.records.keys[slots], self.records.values[slots])

    def _conclude(self, working: WorkingSet, repairs: int, change: Callable[[], None]) -> None:
        """Carry the change over to the records. Readers wait from the first line on; the second decides it."""
        self.view = None
        self._pending = change
        change()
        self._pending = None
        self.changes += 1
        self.repairs += working.repairs - repairs
        self._working = working
        if self.records.sparse:
            self.records = self.records.packed()

    def _take_in(self, start: int, new: Arrivals, handles: Ids) -> None:
        self.records.append(start, new, handles)
        self.next_id = new.ids[-1] + 1
        if self._tree is not None:
            self._tree.add(new.ids)

    def _take_out(self, ids: list[int], slots: list[int], evict: bool) -> None:
        self.evicted = self.evicted or evict
        self.records.drop(ids, slots)
        if self._tree is not None:
            self._tree.remove(ids)
