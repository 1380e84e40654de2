"""The gradients of all gates of a sequence, one after the other, with the factors that the solver left."""

from typing import NamedTuple

import numpy as np
from numba import njit

from svmem._jit.factor import factorise
from svmem._jit.gate_adjoint import Nodes, highest, node_gradients, pull, solve_adjoint, spread, unpack, weights
from svmem._jit.rows import RBF, kernel_row

COLLECTING, OPTIMAL = 1, 0


class Upstream(NamedTuple):
    """What the gradient of n sequences at B boundaries starts from."""

    alpha: np.ndarray  # (n, B, w)
    offset: np.ndarray  # (n, B)
    starts: np.ndarray  # (n, B) int64 where each gate's factor starts; negative where it was not kept
    scales: np.ndarray  # (n,) sigma^2


@njit(cache=True, nogil=True)
def columns(keys, index, slot, alpha, margin, xt, mass, place):
    """Lay out the nodes: margin nodes by their place, then bound records one by one. Return how many there are."""
    size = margin
    for k in range(margin):
        mass[k] = 0.0
    for r in range(index.shape[0]):
        k = slot[r]
        if k < 0:
            k = size
            mass[k] = 0.0
            size += 1
        place[r] = k
        mass[k] += alpha[r]
        for c in range(keys.shape[1]):
            xt[c, k] = keys[index[r], c]
    return size


@njit(cache=True, nogil=True)
def one_gate(keys, gate, flat, upstream, scale, ridge, grad):
    """Add the part of one gate (index, slot, alpha, margin nodes) to grad (t, d). Return its parts in sigma/2 and in C.

    upstream: the gradients of alpha and of the offset.
    """
    index, slot, alpha, margin = gate
    g, g_offset = upstream
    n, d = index.shape[0], keys.shape[1]
    xt, mass, place, p = np.empty((d, n)), np.empty(n), np.empty(n, np.int64), np.zeros(n)
    mean, mult, ones = np.empty(margin), np.empty(margin), np.empty(margin)
    size = columns(keys, index, slot, alpha, margin, xt, mass, place)
    xt = xt[:, :size].copy()
    out = np.zeros((d, size))
    reference, nu, sigma_part, bound_part = 0.0, 0.0, 0.0, 0.0
    if margin > 0:
        chol = np.empty((margin, margin))
        reference = node_gradients(g, slot, margin, mean, mult)
        if flat.shape[0] > 0:
            unpack(flat, margin, chol)
        else:
            factorise_again(xt, mult, scale, ridge, chol)
        nu = solve_adjoint(chol, margin, mean, g_offset, p, ones)
    elif g_offset != 0.0:
        p[highest(xt, mass, scale)] = -g_offset
    cap_part = offset_cap(xt, p, scale, ridge) if margin == 0 else 0.0
    if np.any(p[:size] != 0.0):
        weight = np.empty((size, size))
        sigma_part, bound_part = weights(xt, p, mass, margin, scale, weight)
        pull(xt, weight, scale, out)
    spread(Nodes(index, slot, place, mult, xt, mass), out, g - reference, mean, scale, ridge, grad)
    if margin > 0:
        cap_part = -bound_part - nu * (size - margin)
    for r in range(n):
        if slot[r] < 0:
            cap_part += g[r] - reference
    return sigma_part, cap_part


@njit(cache=True, nogil=True)
def factorise_again(xt, mult, scale, ridge, chol):
    """Write the factor of the margin's matrix, whose nodes are the first columns of xt, with these records each."""
    s = chol.shape[0]
    for k in range(s):
        kernel_row(RBF, scale, xt[:, k].copy(), xt, s, chol[k])
        chol[k, k] += ridge / mult[k]
    factorise(chol, s, 0.0)


@njit(cache=True, nogil=True)
def offset_cap(xt, p, scale, ridge):
    """Return the derivative in C of p . -(f + ridge C) where every coefficient is C."""
    out = 0.0
    for a in range(xt.shape[1]):
        if p[a] != 0.0:
            out -= p[a] * ridge
            for b in range(xt.shape[1]):
                t = 0.0
                for c in range(xt.shape[0]):
                    t += (xt[c, a] - xt[c, b]) * (xt[c, a] - xt[c, b])
                out -= p[a] * np.exp(-t / scale)
    return out


@njit(cache=True, nogil=True)
def backward(keys, gates, upstream, ridge, grad, parts):
    """Fill grad (n, t, d) and parts (n, 2: in sigma, in C) for sequences (n, t, d)."""
    for which in range(keys.shape[0]):
        scale = upstream.scales[which]
        for k in range(gates.sizes.shape[1]):
            size, margin, status = gates.sizes[which, k, 0], gates.sizes[which, k, 1], gates.sizes[which, k, 2]
            g_offset = upstream.offset[which, k]
            if status > COLLECTING or size == 0 or (status == COLLECTING and g_offset == 0.0):
                continue
            start = upstream.starts[which, k]
            flat = gates.factor[start : start + margin * (margin + 1) // 2] if start >= 0 else gates.factor[:0]
            gate = gates.position[which, k, :size], gates.slot[which, k, :size], gates.alpha[which, k, :size], margin
            g = upstream.alpha[which, k, :size]
            sigma_part, cap_part = one_gate(keys[which], gate, flat, (g, g_offset), scale, ridge, grad[which])
            parts[which, 0] += 2.0 / np.sqrt(scale) * sigma_part
            if status == OPTIMAL:
                parts[which, 1] += cap_part
