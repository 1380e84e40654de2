"""Kernel rows, by coordinate differences in a fixed order: never |x|^2 + |y|^2 - 2xy, which cancels."""

import numpy as np
from numba import njit

from svmem._jit.exponential import exp_neg

RBF, LAPLACIAN, LINEAR, PRECOMPUTED = 0, 1, 2, 3
GRAM = 4  # for `Work` alone: its features are the symmetric Gram matrix of its nodes
BLOCK = 1024  # a block of distances stays in the first cache while the coordinates pass by


@njit(cache=True, nogil=True)
def add_squares(x, xt, start, out):
    """Add to out the squared coordinate differences, in the order of the coordinates.

    Four coordinates a pass, since loading and storing `out` takes most of the time; the order of additions is the same.
    """
    n, d = out.shape[0], x.shape[0]
    whole = d - d % 4
    for c in range(0, whole, 4):
        p, q, r, t = x[c], x[c + 1], x[c + 2], x[c + 3]
        first, second = xt[c, start : start + n], xt[c + 1, start : start + n]
        third, fourth = xt[c + 2, start : start + n], xt[c + 3, start : start + n]
        for j in range(n):
            e, f, g, h = p - first[j], q - second[j], r - third[j], t - fourth[j]
            out[j] = (((out[j] + e * e) + f * f) + g * g) + h * h
    for c in range(whole, d):
        column = xt[c, start : start + n]
        xc = x[c]
        for j in range(n):
            e = xc - column[j]
            out[j] += e * e


@njit(cache=True, nogil=True)
def distances(code, scale, x, xt, start, out):
    """Write into out the scaled distances (RBF: squared) of x (d,) to columns start, start + 1, ... of xt (d, n)."""
    n = out.shape[0]
    for j in range(n):
        out[j] = 0.0
    if code == RBF:
        add_squares(x, xt, start, out)
    else:
        for c in range(x.shape[0]):
            column = xt[c, start : start + n]
            xc = x[c]
            for j in range(n):
                out[j] += abs(xc - column[j])
    for j in range(n):
        out[j] = out[j] / scale


@njit(cache=True, nogil=True)
def products(x, xt, start, out):
    """Write into out the inner products of x (d,) with columns start, start + 1, ... of xt (d, n)."""
    n = out.shape[0]
    for j in range(n):
        out[j] = 0.0
    for c in range(x.shape[0]):
        column = xt[c, start : start + n]
        xc = x[c]
        for j in range(n):
            out[j] += xc * column[j]


@njit(cache=True, nogil=True)
def kernel_row(code, scale, x, xt, n, out):
    """Write into out[:n] the kernel of x (d,) with the first n columns of xt (d, capacity).

    For a precomputed Gram matrix x is its row and is copied.
    """
    if code == PRECOMPUTED:
        for j in range(n):
            out[j] = x[j]
        return
    for start in range(0, n, BLOCK):
        part = out[start : min(start + BLOCK, n)]
        if code == LINEAR:
            products(x, xt, start, part)
        else:
            distances(code, scale, x, xt, start, part)
            for j in range(part.shape[0]):
                part[j] = exp_neg(part[j])


@njit(cache=True, nogil=True)
def self_kernel(code, x, node):
    """Return kappa(x, x), with the same operations as `kernel_row`; for a Gram row, its entry at the node itself."""
    if code == PRECOMPUTED:
        return x[node]
    if code != LINEAR:
        return 1.0
    total = 0.0
    for c in range(x.shape[0]):
        total += x[c] * x[c]
    return total


@njit(cache=True, nogil=True)
def weighted_sums(code, scale, queries, xt, weights, out):
    """Write into out (m,) the sums over i of weights_i kappa(query, x_i), in the order of the columns of xt (d, n)."""
    n = xt.shape[1]
    row = np.empty(n)
    for q in range(queries.shape[0]):
        kernel_row(code, scale, queries[q], xt, n, row)
        total = 0.0
        for j in range(n):
            total += weights[j] * row[j]
        out[q] = total
