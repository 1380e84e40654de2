"""Derivatives of a gate with respect to keys, sigma and C, its partition held fixed.

On the margin S, with A = K_SS + ridge, bound records E (coefficient C) and all of either kind indexed by b,
    A x - mu 1 = 1/2 - C K_SE 1,    1'x = 1 - C |E|.
For upstream gradients g of x and g_mu of the offset mu, the adjoint is
    A p + nu 1 = g,  -1'p = g_mu,   dL = -p' dK x  (the sum over S and all b)  + (nu' - ...) dC,
so one pair of triangular solves with the factor that found x gives everything. p does not change when a constant is
added to g: it is taken off first, so that the gradient of a sum of coefficients is exactly 0.

A node of m equal records is solved as one: its mass is m alpha and its ridge is ridge/m. What the records' own
gradients differ from their mean by meets the ridge alone, as their rows of K are equal:
    p_r = P/m + (g_r - mean g) / ridge.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from svmem._jit.exponential import exp_neg
from svmem._jit.factor import add_multiple, dot, solve_lower, solve_upper, total
from svmem._jit.rows import add_squares

COUNT, MARGIN, STATUS = 0, 1, 2  # as written by gates.run
OPTIMAL = 0


@njit(cache=True, nogil=True)
def unpack(flat, s, chol):
    """Write a packed upper triangle into chol[:s, :s]."""
    at = 0
    for k in range(s):
        for j in range(k, s):
            chol[k, j] = flat[at]
            at += 1


@njit(cache=True, nogil=True)
def node_gradients(g, slot, s, mean, mult):
    """Write each margin node's records and mean upstream gradient, less that of the first. Return what was taken off.

    Differences from a reference come first and sums after, so that equal gradients give exactly 0.
    """
    reference, found = 0.0, False
    for k in range(s):
        mean[k] = mult[k] = 0.0
    for r in range(slot.shape[0]):
        if slot[r] >= 0:
            if not found:
                reference, found = g[r], True
            mean[slot[r]] += g[r] - reference
            mult[slot[r]] += 1.0
    for k in range(s):
        mean[k] = mean[k] / mult[k]
    return reference


@njit(cache=True, nogil=True)
def solve_adjoint(chol, s, mean, g_offset, p, ones):
    """Write the nodes' p. Return nu, for upstream gradients from which the reference was taken off."""
    for k in range(s):
        p[k], ones[k] = mean[k], 1.0
    solve_lower(chol, s, p)
    solve_upper(chol, s, p)
    solve_lower(chol, s, ones)
    solve_upper(chol, s, ones)
    nu = (g_offset + total(p[:s])) / total(ones[:s])
    for k in range(s):
        p[k] -= nu * ones[k]
    return nu


@njit(cache=True, nogil=True)
def kernel_and_distance(xt, a, scale, t, kernel):
    """Write the exponents and kernel values of column a with the size - a - 1 columns behind it."""
    n = t.shape[0]
    for j in range(n):
        t[j] = 0.0
    add_squares(xt[:, a].copy(), xt, a + 1, t)
    for j in range(n):
        exponent = t[j] / scale
        kernel[j] = exp_neg(exponent)
        t[j] = min(exponent, 1e300)  # where a distance overflows the kernel is 0, and 0 times infinity no derivative


@njit(cache=True, nogil=True)
def weights(xt, p, mass, margin, scale, weight):
    """Write the symmetric weights q_ab = (p_a mass_b + p_b mass_a) kappa_ab of all differences of columns of xt.

    Return the gradient's parts: in sigma/2, and p_S' K_SE 1. The first `margin` columns are S.
    """
    size = xt.shape[1]
    sigma_part, bound_part = 0.0, 0.0
    t, kernel = np.empty(size), np.empty(size)
    for a in range(size):
        n = size - a - 1
        kernel_and_distance(xt, a, scale, t[:n], kernel[:n])
        if a < margin:
            bound_part += p[a] * total(kernel[margin - a - 1 : n])
        q, p_b, mass_b, k = weight[a, a + 1 : size], p[a + 1 : size], mass[a + 1 : size], kernel[:n]
        p_a, mass_a = p[a], mass[a]
        for j in range(n):
            q[j] = (p_a * mass_b[j] + p_b[j] * mass_a) * k[j]
        sigma_part -= dot(q, t[:n])
        weight[a, a] = 0.0
        for j in range(n):
            weight[a + 1 + j, a] = q[j]
    return sigma_part, bound_part


@njit(cache=True, nogil=True)
def pull(xt, weight, scale, out):
    """Write into out (d, n) the gradient of the columns x_b of xt: 2/scale times the sum over a of q_ab (x_b - x_a).

    As d kappa(x, y) / dx = -2/scale (x - y) kappa. Columns count from the first one, so that far keys do not cancel;
    four at a time go to all others.
    """
    d, size = xt.shape
    sums = np.zeros(size)
    for a in range(size):
        add_multiple(sums, 2.0 / scale, weight[a])
    for c in range(d):
        x = xt[c]
        start = x[0]
        row = out[c]
        for b in range(size):
            x[b] -= start
            row[b] = sums[b] * x[b]
    factor = -2.0 / scale
    whole = size - size % 4
    for a in range(0, whole, 4):
        f, g, h, k = weight[a], weight[a + 1], weight[a + 2], weight[a + 3]
        for c in range(d):
            x, row = xt[c], out[c]
            p, q, r, s = factor * x[a], factor * x[a + 1], factor * x[a + 2], factor * x[a + 3]
            for b in range(row.shape[0]):
                row[b] += (p * f[b] + q * g[b]) + (r * h[b] + s * k[b])
    for a in range(whole, size):
        for c in range(d):
            add_multiple(out[c], factor * xt[c, a], weight[a])


@njit(cache=True, nogil=True)
def field(xt, mass, a, scale, out):
    """Write into out (d,) the sum over b of mass_b kappa(a, b) 2/scale (x_a - x_b)."""
    for c in range(xt.shape[0]):
        out[c] = 0.0
    for b in range(xt.shape[1]):
        t = 0.0
        for c in range(xt.shape[0]):
            t += (xt[c, a] - xt[c, b]) * (xt[c, a] - xt[c, b])
        weight = mass[b] * exp_neg(t / scale) * (2.0 / scale)
        for c in range(xt.shape[0]):
            out[c] += weight * (xt[c, a] - xt[c, b])


@njit(cache=True, nogil=True)
def highest(xt, mass, scale):
    """Return the column of largest f, the first among equals."""
    best, where = -np.inf, 0
    for a in range(xt.shape[1]):
        f = 0.0
        for b in range(xt.shape[1]):
            t = 0.0
            for c in range(xt.shape[0]):
                t += (xt[c, a] - xt[c, b]) * (xt[c, a] - xt[c, b])
            f += mass[b] * exp_neg(t / scale)
        if f > best:
            best, where = f, a
    return where


class Nodes(NamedTuple):
    """The records of one gate and the nodes they belong to: margin nodes first, then bound records."""

    position: np.ndarray  # (r,) of each record
    slot: np.ndarray  # (r,) place in the margin, or -1
    place: np.ndarray  # (r,) its node
    mult: np.ndarray  # (margin,) records of each margin node
    xt: np.ndarray  # (d, nodes)
    mass: np.ndarray  # (nodes,)


@njit(cache=True, nogil=True)
def spread(nodes, out, g, mean, scale, ridge, grad):
    """Hand the nodes' gradients `out` (d, nodes) on to their records in grad (t, d); g and mean as taken off alike."""
    d = out.shape[0]
    push, had = np.empty(d), -1
    for r in range(nodes.position.shape[0]):
        k, share, rest = nodes.place[r], 1.0, 0.0
        if nodes.slot[r] >= 0:
            share = 1.0 / nodes.mult[k]
            rest = (g[r] - mean[k]) / ridge if nodes.mult[k] > 1.0 else 0.0
        for c in range(d):
            grad[nodes.position[r], c] += share * out[c, k]
        if rest != 0.0:
            if had != k:
                field(nodes.xt, nodes.mass, k, scale, push)
                had = k
            for c in range(d):
                grad[nodes.position[r], c] += rest * push[c]
