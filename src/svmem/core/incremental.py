"""The working set: the nodes that the solver computes with, kept at the optimum while records come and go.

It holds keys only. Where values, ids and owners live, and whether every record is a node here, is the caller's affair.
"""

import math

import numpy as np

from svmem._jit import work as jit
from svmem._jit.cold import reconcile, sum_bound
from svmem._jit.finish import finish
from svmem._jit.rows import PRECOMPUTED, self_kernel
from svmem._jit.settle import settle
from svmem._jit.update import change
from svmem.core.buffers import allocate, resize
from svmem.core.cold import approach, filled, plain_grad, start
from svmem.core.problem import Problem
from svmem.core.solution import Status
from svmem.errors import SolverError
from svmem.types import Coefficients, Ids, Keys

__all__ = ["WorkingSet"]

MANY = 16  # changed nodes from which pair selection goes ahead of the exact steps
ROUNDS = 100  # of settling and finishing; more than one only where room ran out or float64 misled the steps
STALE = 10_000  # updates after which the doubled sums over the bound are taken anew, before their rounding adds up
_FAILED = {
    jit.STALLED: "the solver did not reach the optimum within its step limit; scale the keys or raise the ridge",
    jit.SINGULAR: "the margin's Gram matrix is not positive definite at ridge {ridge:g}; raise the ridge",
}


class WorkingSet:
    """Distinct keys with multiplicities, their masses and the partition, at the canonical optimum after every call.

    Keys are distinct as the kernel sees them. A handle names a node (a distinct key) for as long as a record of it is
    there; afterwards it may be used again.
    `repairs` counts how often the incremental steps failed and a cold solve took over.
    """

    def __init__(self, problem: Problem, key_dim: int) -> None:
        self.problem = problem
        self._least = problem.n_min
        self.records = 0
        self.repairs = 0
        self.offset = 0.0
        self._work = allocate(problem, key_dim)
        self._handle_of_key: dict[bytes, int] = {}
        self._keys: list[bytes] = []  # by handle
        self._node_of: list[int] = []  # by handle
        self._handle_at: list[int] = []  # by node
        self._free: list[int] = []

    @property
    def status(self) -> Status:
        """Whether there are enough records for (P) to have a feasible point."""
        return Status.COLLECTING if self.records < self._least else Status.OPTIMAL

    def insert(self, keys: Keys) -> Ids:
        """Add records with these keys (k, d), and return the handle of each; equal keys share one.

        Raises SolverError, with nothing changed, when no optimum can be proved.
        """
        features = self.problem.kernel.features(keys) + 0.0  # -0 becomes 0
        before, cold = self.records, self._wants_cold(len(keys))
        handles, grown, fresh = self._assign(features)
        self.records += len(keys)
        try:
            self._apply(grown, len(fresh), cold=cold or before < self._least)
        except SolverError:
            self.records = before
            self._undo(handles)
            raise
        return handles

    def remove(self, handles: Ids) -> None:
        """Take one record a handle away (two if given twice). Raises SolverError when no optimum can be proved."""
        nodes: dict[int, int] = {}
        for handle in handles:
            node = self._node_of[handle]
            nodes[node] = nodes.get(node, 0) + 1
        self.records -= len(handles)
        mult = self._work.node[jit.MULT]
        falling = sorted(nodes, reverse=True)
        self._apply({node: float(mult[node]) - nodes[node] for node in falling}, 0, cold=False)

    def alpha_of(self, handles: Ids) -> Coefficients:
        """Return the coefficient of one record of each handle's key."""
        if self.status is Status.COLLECTING:
            return np.full(len(handles), 1.0 / max(self.records, 1))
        return self._work.node[jit.ALPHA, [self._node_of[handle] for handle in handles]]

    def zone_of(self, handles: Ids) -> np.ndarray:
        """Return the zone of each handle's key: 0 reserve, 1 margin, 2 bound (and for every key while collecting)."""
        if self.status is Status.COLLECTING:
            return np.full(len(handles), jit.BOUND, np.int8)
        return self._work.tag[jit.ZONE, [self._node_of[handle] for handle in handles]]

    def active(self) -> tuple[Ids, Coefficients]:
        """Return the handles with a positive coefficient, in no particular order, and their coefficients."""
        n = int(self._work.counts[jit.NODES])
        if self.status is Status.COLLECTING:
            return np.array(self._handle_at[:n], np.int64), np.full(n, 1.0 / max(self.records, 1))
        nodes = np.flatnonzero(self._work.node[jit.ALPHA, :n] > 0)
        return np.array(self._handle_at, np.int64)[nodes], self._work.node[jit.ALPHA, nodes]

    def gap(self) -> float:
        """Return the duality gap in floating point; zero while collecting, when (P) has no feasible point."""
        if self.status is Status.COLLECTING:
            return 0.0
        return duality_gap(self._work)

    def _wants_cold(self, arriving: int) -> bool:
        return arriving > max(32, self.records // 2)

    def _assign(self, features: Keys) -> tuple[Ids, dict[int, float], list[int]]:
        """Give each key a node, new ones behind the present columns. Return handles, new multiplicities, new nodes."""
        n = int(self._work.counts[jit.NODES])
        self._work = resize(self._work, n + len(features), 0)
        work = self._work
        handles, grown, fresh = np.empty(len(features), np.int64), {}, []
        merge = self.problem.kernel.code != PRECOMPUTED  # rows of a Gram matrix stand for keys that are not known
        for i, feature in enumerate(features):
            name = feature.tobytes() if merge else (n + i).to_bytes(8, "little")
            handle = self._handle_of_key.get(name)
            if handle is None:
                node = n + len(fresh)
                handle = self._new_handle(name, node)
                work.xt[:, node] = feature
                work.node[jit.HALF, node] = 0.5 * self_kernel(self.problem.kernel.code, feature, node)
                work.node[jit.MULT, node] = 1.0
                fresh.append(node)
            else:
                node = self._node_of[handle]
                if node >= n:
                    work.node[jit.MULT, node] += 1.0
                else:
                    grown[node] = grown.get(node, float(work.node[jit.MULT, node])) + 1.0
            handles[i] = handle
        return handles, grown, fresh

    def _new_handle(self, name: bytes, node: int) -> int:
        if self._free:
            handle = self._free.pop()
            self._keys[handle], self._node_of[handle] = name, node
        else:
            handle = len(self._keys)
            self._keys.append(name)
            self._node_of.append(node)
        self._handle_of_key[name] = handle
        self._handle_at.append(handle)
        return handle

    def _apply(self, mults: dict[int, float], arrivals: int, *, cold: bool) -> None:
        """Change multiplicities and attach arrivals, then return to the optimum."""
        work, count = self._work, self._work.counts
        collecting = self.records < self._least
        nodes = np.array(sorted(mults, reverse=True), np.int64)
        values = np.array([mults[node] for node in nodes])
        if arrivals:
            self._measure(int(count[jit.NODES]) + arrivals)
        if cold or collecting:
            self._set_plainly(nodes, values, arrivals)
            self._renumber(nodes, values)
            self._measure(int(count[jit.NODES]))
            if not collecting:
                self._solve_cold()
            else:
                self.offset = collecting_offset(self._work, self.records)
            return
        if count[jit.SUM_UPDATES] > STALE:
            sum_bound(work)
        self._work = resize(work, 0, int(count[jit.IN_MARGIN]) + len(nodes) + 4)
        code, touched = change(self._work, nodes, values, arrivals)
        self._renumber(nodes, values)
        self._measure(int(count[jit.NODES]))
        if touched and code == jit.OK and len(nodes) + arrivals > MANY:
            code = self._reconcile(approach(self._work, self.problem))
        if touched:
            self._optimise(code, repair=True)

    def _measure(self, nodes: int) -> None:
        """Note the largest kernel value, which tolerances are relative to. It is 1 for bounded kernels."""
        half = self._work.node[jit.HALF, :nodes]
        self._work.real[jit.SIZE] = 1.0 if self.problem.kernel.bounded else 2.0 * half.max(initial=0.0)

    def _set_plainly(self, nodes: Ids, values: np.ndarray, arrivals: int) -> None:
        """Change the columns without solving; the caller solves from nothing."""
        work = self._work
        work.counts[jit.NODES] += arrivals
        for node, value in zip(nodes, values, strict=True):
            work.node[jit.MULT, node] = value
            if value == 0.0:
                last = int(work.counts[jit.NODES]) - 1
                work.node[:, node] = work.node[:, last]
                work.xt[:, node] = work.xt[:, last]
                work.xt[:, last] = 0.0
                work.counts[jit.NODES] = last

    def _renumber(self, nodes: Ids, values: np.ndarray) -> None:
        """Follow the moves of `detach`: the last node takes the place of one that left."""
        for node, value in zip(nodes.tolist(), values.tolist(), strict=True):
            if value == 0.0:
                gone = self._handle_at[node]
                last = self._handle_at.pop()
                if last != gone:
                    self._handle_at[node] = last
                    self._node_of[last] = node
                del self._handle_of_key[self._keys[gone]]
                self._keys[gone] = b""
                self._free.append(gone)

    def _limit(self) -> int:
        return 1000 + 20 * int(self._work.counts[jit.NODES])

    def _optimise(self, code: int = jit.OK, *, repair: bool) -> None:
        """Return to the canonical optimum, making room where it lacks; repair a failure by a cold solve, or raise."""
        for _ in range(ROUNDS):
            if code in (jit.OK, jit.AGAIN):
                code = settle(self._work, self._limit())
            if code == jit.OK:
                code, offset = finish(self._work)
                if code == jit.OK:
                    self.offset = offset + 0.0  # -0 becomes 0
                    return
            if code == jit.FULL:
                self._work = resize(self._work, 0, self._work.order.shape[1] + 2)
                code = jit.AGAIN
            elif code != jit.AGAIN:
                break
        if not repair:
            raise SolverError(_FAILED.get(code, _FAILED[jit.STALLED]).format(ridge=self.problem.ridge))
        self.repairs += 1
        self._solve_cold()

    def _solve_cold(self) -> None:
        self._optimise(self._reconcile(start(self._work, self.problem)), repair=False)

    def _reconcile(self, margin: int) -> int:
        """Make room for a margin of that size and a few more, and bring everything in line with the masses."""
        self._work = resize(self._work, 0, margin + 16)
        return reconcile(self._work)

    def _undo(self, handles: Ids) -> None:
        """Take back an insertion that could not be solved."""
        lost: dict[int, float] = {}
        for handle in handles:
            node = self._node_of[handle]
            lost[node] = lost.get(node, float(self._work.node[jit.MULT, node])) - 1.0
        self._apply(lost, 0, cold=True)


def collecting_offset(work: jit.Work, records: int) -> float:
    """Return the offset while collecting: the largest f + ridge alpha - kappa/2 over all keys, each with 1/n."""
    n = int(work.counts[jit.NODES])
    if n == 0:
        return 0.0
    order = np.lexsort(work.xt[::-1, :n])  # canonical, so that the sum does not depend on arrival
    work.node[jit.ALPHA, :n] = 1.0 / records
    plain_grad(work, order, work.node[jit.MULT, order] / records)
    return float(work.node[jit.GRAD, :n].max())


def duality_gap(work: jit.Work) -> float:
    """Return r . alpha - min over the capped simplex of r . beta, r the half gradient, in floating point.

    All sums go in canonical order, so that it too is a function of the records.
    """
    n, s = int(work.counts[jit.NODES]), int(work.counts[jit.IN_MARGIN])
    order = np.lexsort(np.vstack([work.node[jit.MULT, :n], work.xt[::-1, :n]]))
    place = work.tag[jit.PLACE, order]
    cap, mass = work.node[jit.MULT, order] * work.real[jit.CAP], work.node[jit.MASS, order]
    r = work.real[jit.CAP] * work.node[jit.SUM_HIGH, order] - work.node[jit.HALF, order]
    for node in order[(place >= 0) & (place < s)]:
        r += work.node[jit.MASS, node] * work.rows[work.order[jit.SLOT, work.tag[jit.PLACE, node]], order]
    r += work.real[jit.RIDGE] * (mass / work.node[jit.MULT, order])
    rising = np.argsort(r, kind="stable")
    best = filled(cap[rising], work.real[jit.TOTAL])
    return max(math.fsum(r * mass) - math.fsum(r[rising] * best), 0.0)
