"""What a gate is written down as: its support in order of position, its factor, its offset and gap."""

from typing import NamedTuple

import numpy as np
from numba import njit

from svmem._jit.factor import copy
from svmem._jit.stream import ADMITTED, NODE_OF, NOWHERE, RECORDS, TWIN
from svmem._jit.work import (
    ALPHA,
    BOUND,
    CAP,
    GRAD,
    IN_MARGIN,
    MASS,
    MULT,
    NODES,
    OFFSET,
    PLACE,
    RESERVE,
    RIDGE,
    ZONE,
    node_row,
)

OPTIMAL, COLLECTING, INVALID, FAILED = 0, 1, 2, 3  # status of a gate


class Written(NamedTuple):
    """Gates of n sequences at B boundaries: what carries the readout, and what the gradient needs."""

    position: np.ndarray  # (n, B, w) int64, rising; 0 beyond the count
    alpha: np.ndarray  # (n, B, w) float64
    slot: np.ndarray  # (n, B, w) int64 place in the margin, -1 on the bound and while collecting
    sizes: np.ndarray  # (n, B, 3) int64: records, margin nodes, status
    numbers: np.ndarray  # (n, B, 2) float64: offset, gap
    factor: np.ndarray  # packed factors of the margins, one after the other; without room for one none is kept


@njit(cache=True, nogil=True)
def gap_bound(w):
    """Return the duality gap at the offset, in floating point; cold keys add nothing to it."""
    gap = 0.0
    for node in range(w.counts[NODES]):
        h = w.node[GRAD, node] - w.real[OFFSET]
        gap += w.node[MASS, node] * h - w.node[MULT, node] * w.real[CAP] * min(h, 0.0)
    return max(gap, 0.0)


@njit(cache=True, nogil=True)
def uniform_offset(s, w):
    """Return the largest f + ridge alpha - 1/2 where each record has alpha = 1 / records."""
    n = w.counts[NODES]
    row, best = np.empty(n), -np.inf
    share = 1.0 / s.state[RECORDS]
    for node in range(n):
        node_row(w, node, row)
        f = 0.0
        for k in range(n):
            f += row[k] * (w.node[MULT, k] * share)
        best = max(best, f + w.real[RIDGE] * share - 0.5)
    return best


@njit(cache=True, nogil=True)
def emit(s, w, least, index, alpha, slot):
    """Write the records that carry the readout, in order of position. Return how many; beyond the room none is written.

    slot: place of the record's node in the margin, or -1 on the bound and while collecting.
    """
    collecting = s.state[RECORDS] < least
    size, room = 0, index.shape[0]
    for position in range(s.state[ADMITTED]):
        first = s.place[TWIN, position]
        if first == NOWHERE:
            continue
        node = s.place[NODE_OF, first]
        if node == NOWHERE or (not collecting and w.tag[ZONE, node] == RESERVE):
            continue
        if size < room:
            index[size] = position
            alpha[size] = 1.0 / s.state[RECORDS] if collecting else w.node[ALPHA, node]
            slot[size] = -1 if collecting or w.tag[ZONE, node] == BOUND else w.tag[PLACE, node]
        size += 1
    return size


@njit(cache=True, nogil=True)
def emit_factor(w, out):
    """Write the rows of the factor's upper triangle one after the other. Return how many numbers that takes."""
    s = w.counts[IN_MARGIN]
    size = s * (s + 1) // 2
    if size <= out.shape[0]:
        at = 0
        for k in range(s):
            copy(out[at : at + s - k], w.chol[k, k:s])
            at += s - k
    return size


@njit(cache=True, nogil=True)
def blank(out, which, k, bad):
    """Write a gate that could not be had: one coefficient that is not a number, so that nothing goes on unnoticed."""
    out.position[which, k, 0] = max(bad, 0)
    out.alpha[which, k, 0] = np.nan
    out.slot[which, k, 0] = -1
    out.sizes[which, k, 0], out.sizes[which, k, 1] = 1, 0
    out.sizes[which, k, 2] = INVALID if bad >= 0 else FAILED
    out.numbers[which, k, 0] = out.numbers[which, k, 1] = np.nan


@njit(cache=True, nogil=True)
def write_gate(s, w, least, out, which, k, free):
    """Write one gate, its factor where it fits in. Return (support size, length of the factor)."""
    collecting = s.state[RECORDS] < least
    size = emit(s, w, least, out.position[which, k], out.alpha[which, k], out.slot[which, k])
    length = 0 if collecting or out.factor.shape[0] == 0 else emit_factor(w, free)
    out.sizes[which, k, 0] = size
    out.sizes[which, k, 1] = 0 if collecting else w.counts[IN_MARGIN]
    out.sizes[which, k, 2] = COLLECTING if collecting else OPTIMAL
    out.numbers[which, k, 0], out.numbers[which, k, 1] = w.real[OFFSET], 0.0
    if not collecting:
        out.numbers[which, k, 1] = gap_bound(w)
    elif size > 0:
        out.numbers[which, k, 0] = uniform_offset(s, w)
    return size, length
