"""The compiled gate and its gradient over numpy arrays, in parallel over sequences."""

import numpy as np

from svmem._jit import gates as jit
from svmem._jit.gate_backward import Upstream, backward
from svmem._jit.gate_output import Written
from svmem._jit.gates import Sequences
from svmem._jit.rows import GRAM
from svmem._jit.stream import CROWDED, Stream
from svmem._jit.work import CODE, FULL, OK, Work
from svmem.core.buffers import allocate, resize
from svmem.core.problem import Problem
from svmem.kernels import RBF
from svmem.nn.threads import in_parallel
from svmem.types import Keys

__all__ = ["allocate_stream", "features", "more_room", "solve_gates", "solve_gates_backward"]

SHORT = 256  # keys whose Gram matrix fits into the second cache
HOT_NODES = 1032  # nodes to make room for at first; no power of two, since rows so far apart share places in the cache
REFACTORISABLE = 1e-6  # ridge so far above rounding that every pivot is positive
MARGIN = 96  # margin nodes to make room for at first; more are made room for when needed


def factor_budget(t: int, d: int, ridge: float) -> int:
    """Return how many numbers in the factors of a sequence are kept for the gradient: as many as its keys have.

    That holds those of trained and of redundant keys. Where margins are larger, the rest is made again, in less time
    than the solution took. Under a small ridge that could fail, and all are kept.
    """
    return t * d if ridge >= REFACTORISABLE else np.iinfo(np.int64).max


def allocate_stream(key_dim: int, positions: int) -> Stream:
    """Return an empty stream with room for that many keys."""
    room = max(positions, 1)
    return Stream(
        keys=np.zeros((room, key_dim)),
        place=np.full((6, room), -1, np.int64),
        trace=np.full((5, room), np.inf),
        active=np.zeros(key_dim * room),
        masses=np.zeros(room),
        thin=np.zeros(key_dim * room, np.float32),
        row=np.zeros(room),
        thin_row=np.zeros(room, np.float32),
        thin_key=np.zeros(key_dim, np.float32),
        table=np.full(1 << (2 * room - 1).bit_length(), -1, np.int64),
        state=np.zeros(8, np.int64),
        way=np.zeros(7),
    )


def solve_gates(
    keys: np.ndarray,
    valid: np.ndarray,
    boundaries: np.ndarray,
    sigma: np.ndarray,
    *,
    problem: tuple[float, float],
    extra: int,
    unit: bool,
    keep_factor: bool,
) -> Written:
    """Return the gates of sequences keys (n, t, d) with valid (n, t) at boundaries (B,), widths sigma (n,).

    problem: C and ridge. unit: the kernel sees keys of length 1. A prefix is collecting with fewer than `extra` records
    more than (P) needs.
    """
    template = Problem(RBF(1.0), *problem)
    least = template.n_min + extra
    end = int(boundaries.max(initial=0))
    budget = factor_budget(keys.shape[1], keys.shape[2], problem[1]) if keep_factor else 0

    def slab(start: int, stop: int) -> Written:
        points = features(keys[start:stop, :end], unit)
        there = np.ascontiguousarray(valid[start:stop, :end])
        bad = ~np.isfinite(points).all(axis=2) & there
        first_bad = np.where(bad.any(axis=1), bad.argmax(axis=1), end + 1) if end else np.ones(stop - start, np.int64)
        todo = Sequences(points, there, first_bad, sigma[start:stop] ** 2, boundaries)
        return _solve_slab(template, least, todo, budget)

    return _joined(in_parallel(slab, len(keys)))


def features(keys: np.ndarray, unit: bool) -> Keys:
    """Return keys (..., d) as the solver sees them: float64, side by side, -0 as 0, and of length 1 if so wished."""
    points = np.array(keys, np.float64, order="C")
    points += 0.0
    if unit:
        points /= _lengths(points)
    return points


def _lengths(points: Keys) -> np.ndarray:
    """Return the lengths (..., 1), of a key that is 0 as 1."""
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.sqrt(np.einsum("...d,...d->...", points, points))[..., None]
    return np.where(length == 0, 1.0, length)


def _solve_slab(template: Problem, least: int, todo: Sequences, budget: int) -> Written:
    """Solve some sequences one after the other in the same buffers; budget: numbers in the factors kept of each."""
    n, t, d = todo.keys.shape
    stream = allocate_stream(d, t)
    # A short sequence keeps the Gram matrix of all its keys; a long one computes rows of those at hand, when needed.
    work = allocate(template, d if t > SHORT else max(t, 1), nodes=min(max(t, 1), HOT_NODES), margin=min(MARGIN, t + 8))
    if t <= SHORT:
        work.counts[CODE] = GRAM
    cursor = np.zeros(6, np.int64)
    shape, width = (n, len(todo.boundaries)), max(min(t, max(least, MARGIN)), 1)
    out = Written(
        position=np.zeros((*shape, width), np.int64),
        alpha=np.zeros((*shape, width)),
        slot=np.zeros((*shape, width), np.int64),
        sizes=np.zeros((*shape, 3), np.int64),
        numbers=np.zeros((*shape, 2)),
        factor=np.zeros(n * min(len(todo.boundaries) * min(t, 64) ** 2 // 2, budget) + 1 if budget else 0),
    )
    while True:
        code = jit.run(stream, work, cursor, todo, out, least, budget)
        if code == OK:
            return out._replace(factor=out.factor[: cursor[jit.USED]])
        if code in (FULL, CROWDED):
            work = more_room(work, code)
        else:
            out = _widened(out, max(out.position.shape[2], min(t, int(cursor[jit.NEED]) * 3 // 2)), _packed(work))


def more_room(work: Work, code: int) -> Work:
    """Return larger buffers, for more margin nodes (FULL) or for more nodes (CROWDED)."""
    return resize(work, 0, work.order.shape[1] + 16) if code == FULL else resize(work, 2 * work.node.shape[1], 0)


def _packed(work: Work) -> int:
    return work.order.shape[1] * (work.order.shape[1] + 1) // 2


def _widened(out: Written, width: int, factor: int) -> Written:
    """Return a copy with room for supports of that width, and for a factor of that length beyond twice the present."""

    def wide(array: np.ndarray) -> np.ndarray:
        return np.pad(array, ((0, 0), (0, 0), (0, width - array.shape[2])))

    longer = np.pad(out.factor, (0, len(out.factor) + factor)) if len(out.factor) else out.factor
    return out._replace(position=wide(out.position), alpha=wide(out.alpha), slot=wide(out.slot), factor=longer)


def _joined(slabs: list[Written]) -> Written:
    """Put slabs together, as wide as the largest support."""
    sizes = np.concatenate([slab.sizes for slab in slabs])
    width = max(int(sizes[:, :, 0].max(initial=0)), 1)

    def padded(name: str) -> np.ndarray:
        arrays = [getattr(slab, name) for slab in slabs]
        out = np.zeros((*sizes.shape[:2], width), arrays[0].dtype)
        start = 0
        for array in arrays:
            have = min(width, array.shape[2])
            out[start : start + len(array), :, :have] = array[:, :, :have]
            start += len(array)
        counts = sizes[:, :, :1]
        out[np.arange(width) >= counts] = 0  # an attempt that lacked room may have left something behind
        return out

    return Written(
        position=padded("position"),
        alpha=padded("alpha"),
        slot=padded("slot"),
        sizes=sizes,
        numbers=np.concatenate([slab.numbers for slab in slabs]),
        factor=np.concatenate([slab.factor for slab in slabs]),
    )


def solve_gates_backward(
    keys: np.ndarray,
    gates: Written,
    grads: tuple[np.ndarray, np.ndarray],
    sigma: np.ndarray,
    *,
    ridge: float,
    unit: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return gradients for keys (n, t, d) and, (n, 2), sigma and C, from those of alpha (n, B, w) and offset (n, B)."""
    out, parts = np.empty(keys.shape, keys.dtype), np.zeros((len(keys), 2))
    lengths = gates.sizes[:, :, 1] * (gates.sizes[:, :, 1] + 1) // 2
    held = np.where(np.cumsum(lengths, axis=1) <= factor_budget(keys.shape[1], keys.shape[2], ridge), lengths, 0)
    starts = np.where(held == lengths, (np.cumsum(held) - held.ravel()).reshape(held.shape), -1)
    g_alpha, g_offset = (np.ascontiguousarray(array, np.float64) for array in grads)

    def slab(start: int, stop: int) -> None:
        part = slice(start, stop)
        one = Written(*(array[part] for array in gates[:5]), factor=gates.factor)
        upstream = Upstream(g_alpha[part], g_offset[part], starts[part], sigma[part] ** 2)
        points = features(keys[part], unit)
        grad = np.zeros_like(points)
        backward(points, one, upstream, ridge, grad, parts[part])
        if unit:  # the part along the key changes nothing
            grad -= points * np.einsum("...d,...d->...", points, grad)[..., None]
            grad /= _lengths(np.asarray(keys[part], np.float64))
        out[part] = grad

    in_parallel(slab, len(keys))
    return out, parts
