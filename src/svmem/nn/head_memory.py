"""The gate of one head while its keys arrive: a compiled stream, with room that grows."""

from dataclasses import dataclass

import numpy as np

from svmem._jit import gate_output
from svmem._jit import gates as jit
from svmem._jit.cold_tier import SAFE, prune
from svmem._jit.stream import ADMITTED, CAREFUL, CROWDED, DRIFT, NORM2, PATH, RECORDS, Stream, rehash
from svmem._jit.work import FULL, GRAD, NODES, OFFSET, OK, Work
from svmem.core.buffers import allocate
from svmem.core.problem import Problem
from svmem.core.selection import movement
from svmem.errors import SolverError
from svmem.nn.compiled import allocate_stream, more_room
from svmem.types import Keys, Vector

__all__ = ["HeadMemory"]

ROOM = 128  # keys to make room for at first
MARGIN, NODES_AT_FIRST = 64, 264


class HeadMemory:
    """Keys of one head at the optimum, in float64; `origin` are the positions in the sequence of those held."""

    def __init__(self, key_dim: int, problem: Problem, extra: int) -> None:
        self.problem = problem
        self.least = problem.n_min + extra
        self.origin = np.empty(0, np.int64)
        self._dropped = Dropped()
        self._until = 0  # positions of the sequence taken up so far
        self._good_for = 0  # admissions from the last drop on through which the horizon alone proves it
        self.proved = True  # whether, so far, the dropped keys would all have stayed silent
        self.broken = False  # a key was not finite
        self._valid = np.empty(0, bool)
        self._stream = allocate_stream(key_dim, ROOM)
        self._work = allocate(problem, key_dim, nodes=NODES_AT_FIRST, margin=MARGIN)

    def admit(self, keys: Keys, valid: np.ndarray, origin: np.ndarray) -> None:
        """Take up keys (n, d) at these positions of the sequence, those that are valid, and find the optimum."""
        have, total = len(self.origin), len(self.origin) + len(keys)
        self._stream = _with_room(self._stream, total)
        self._stream.keys[have:total] = keys + 0.0  # -0 becomes 0
        self.origin, self._valid = np.append(self.origin, origin), np.append(self._valid, valid)
        self._until = int(origin[-1]) + 1
        self.broken = self.broken or not np.isfinite(keys[valid]).all()
        self._advance(total)
        self._good_for -= len(keys)
        silent = self._dropped.least_h(self._stream.way) >= SAFE
        self.proved = self.proved and (silent or self._good_for >= 0)

    def support(self) -> tuple[np.ndarray, Vector, int, float]:
        """Return where in `origin` the support is, its coefficients, the gate's status and gap."""
        size = len(self.origin)
        index, alpha, slot = np.zeros(size, np.int64), np.zeros(size), np.zeros(size, np.int64)
        if self.broken:
            return index[:1], np.full(1, np.nan), gate_output.INVALID, np.nan
        count = gate_output.emit(self._stream, self._work, self.least, index, alpha, slot)
        collecting = self._stream.state[RECORDS] < self.least
        status = gate_output.COLLECTING if collecting else gate_output.OPTIMAL
        gap = 0.0 if collecting else gate_output.gap_bound(self._work)
        return index[:count], alpha[:count], status, gap

    def prune(self) -> np.ndarray:
        """Drop the reserve for good, but not while collecting. Return where in `origin` the kept keys were."""
        size = len(self.origin)
        if self.broken or self._stream.state[RECORDS] < self.least:
            return np.arange(size)
        kept = np.zeros(size, np.int64)
        count, least = prune(self._stream, self._work, kept)
        self._dropped = self._dropped.joined(least, self._stream.way, self._work.real[OFFSET])
        self._good_for = max(self._room(), 0)
        if least < np.inf:
            self.least = self.problem.n_min  # the support suffices from now on, however few keys it has
        self.origin, self._valid = self.origin[kept[:count]], np.ones(count, bool)
        return kept[:count]

    def horizon(self) -> int | None:
        """Return how many keys can come, whatever they are, with all dropped keys silent; None: none was dropped.

        See docs/derivations/horizon.md: the offset can rise to the n_min-th smallest residual, and each admission moves
        at most C.
        """
        if self._dropped.least == np.inf:
            return None
        return max(self._room(), self._good_for, 0) if self.proved else 0

    def _room(self) -> int:
        """Return how many admissions the least h of the dropped keys leaves room for, as of now."""
        least = self._dropped.least_h(self._stream.way)
        residuals = np.sort(self._work.node[GRAD, : self._work.counts[NODES]])
        if len(residuals) < self.problem.n_min or not np.isfinite(least):
            return 0
        room = least + self._work.real[OFFSET] - residuals[self.problem.n_min - 1] - SAFE
        return int(room / movement(self.problem, 1, 0))

    def forget(self, positions: np.ndarray) -> bool:
        """Take keys at these positions out as if they had never been there. Return whether any was held."""
        if self._dropped.least < np.inf and (positions < self._until).any():
            self.proved, self._good_for = False, 0  # a key that was dropped may belong to the new optimum
        gone = np.isin(self.origin, positions) & self._valid
        if not gone.any():
            return False
        self._stream.keys[: len(self.origin)][gone] = 0.0
        self._valid[gone] = False
        self._refill()
        return True

    def held(self, positions: slice) -> tuple[Keys, np.ndarray]:
        """Return keys by place in `origin`, and which of them count."""
        return self._stream.keys[positions].copy(), self._valid[positions].copy()

    def crop(self, end: int) -> None:
        """Keep only the keys at positions of the sequence before `end`."""
        keep = self.origin < end
        if keep.all():
            return
        self._stream.keys[: keep.sum()] = self._stream.keys[: len(keep)][keep]
        self.origin, self._valid = self.origin[keep], self._valid[keep]
        self._refill()

    def copy(self) -> "HeadMemory":
        """Return an independent copy."""
        out = object.__new__(HeadMemory)
        out.__dict__.update(self.__dict__)
        out._stream = Stream(*(array.copy() for array in self._stream))
        out._work = Work(*(array.copy() for array in self._work))
        out.origin, out._valid = self.origin.copy(), self._valid.copy()
        return out

    def _refill(self) -> None:
        """Start from nothing with the keys that are held."""
        keys = self._stream.keys[: len(self.origin)]
        self.broken = not np.isfinite(keys[self._valid]).all()
        jit.reset(self._stream, self._work)
        self._advance(len(self.origin))

    def _advance(self, upto: int) -> None:
        """Solve, after a failure once more from nothing, with care. Raises SolverError where no optimum is proved."""
        state = self._stream.state
        state[CAREFUL] = 0
        while not self.broken:
            code = jit.advance(self._stream, self._work, self._valid, upto, self.least)
            if code == OK:
                return
            if code in (FULL, CROWDED):
                self._work = more_room(self._work, code)
                continue
            if state[CAREFUL] == 1:
                raise SolverError("the gate's optimum could not be proved; scale the keys or raise the ridge")
            jit.reset(self._stream, self._work)
            state[CAREFUL] = 1
            if self._dropped.least < np.inf:
                self.proved = False  # the path that tells how far the optimum has moved is lost
        state[ADMITTED] = upto


@dataclass(frozen=True, slots=True)
class Dropped:
    """What is known of keys that were dropped: see `_jit/cold_tier`, all of them taken together."""

    least: float = np.inf  # their h was at least that, when the stream's path and drift were these
    radius: float = 0.0  # largest distance from the centre then
    path: float = 0.0
    drift: float = 0.0

    def least_h(self, way: np.ndarray) -> float:
        """Return what their h is at least, now."""
        length = float(way[PATH]) - self.path
        return self.least + float(way[DRIFT]) - self.drift - (self.radius + 0.5 * length) * length

    def joined(self, least: float, way: np.ndarray, offset: float) -> "Dropped":
        """Return the same with more keys, whose h is at least `least` now: reserve keys lie within the ball."""
        ball = float(np.sqrt(max(way[NORM2] - 2.0 * offset, 0.0) + 1e-12))
        radius = max(ball, self.radius + float(way[PATH]) - self.path) if self.least < np.inf else ball
        return Dropped(min(least, self.least_h(way)), radius, float(way[PATH]), float(way[DRIFT]))


def _with_room(stream: Stream, positions: int) -> Stream:
    """Return a stream with room for that many positions."""
    room = stream.keys.shape[0]
    if positions <= room:
        return stream
    out = allocate_stream(stream.keys.shape[1], max(positions, 2 * room))
    for name in ("place", "trace"):
        getattr(out, name)[:, :room] = getattr(stream, name)
    for name in ("active", "thin"):
        getattr(out, name)[: len(stream.active)] = getattr(stream, name)
    out.keys[:room], out.masses[:room] = stream.keys, stream.masses
    out.state[:], out.way[:] = stream.state, stream.way
    rehash(out)
    return out
