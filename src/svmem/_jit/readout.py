"""Readout weights alpha_i kappa(q, x_i) / sum, at any distance of the query q, each query on its own.

With t_i the distance in the kernel's exponent, the weights are those of alpha_i exp(-(t_i - min t)): the nearest record
counts with its alpha, so the sum is never 0. t_i itself is known to eps t_i only. A query with min t > FAR, where the
kernel is nothing beside 1, gets the differences t_i - t_r to its nearest record r without the cancellation:
squared  (x_r - x_i) . ((q - x_i) + (q - x_r));  absolute  |p - x_i| - |p - x_r| with p = q cut to between x_i and x_r.
They hold to eps |x_r - x_i| |q|. Where a square overflows, all coordinates are first multiplied by SHRINK.
"""

import numpy as np
from numba import njit

from svmem._jit.exponential import exp_neg
from svmem._jit.factor import dot
from svmem._jit.rows import BLOCK, RBF, distances

FAR = 36.0  # exp(-36) < 2.4e-16
SHRINK, GROW = 2.0**-540, 2.0**540  # squares of shrunk coordinates lie below 2^970
ROUNDS = 4  # of looking for a nearer reference; each but the first only mends rounding


@njit(cache=True, nogil=True)
def differences(code, x, xt, reference, factor, out):
    """Write into out (n,) how much farther than column `reference` each column of xt (d, n) is from x (d,).

    In squared (RBF) or absolute distances, of coordinates multiplied by `factor`.
    """
    n = out.shape[0]
    for j in range(n):
        out[j] = 0.0
    for c in range(x.shape[0]):
        column = xt[c]
        here = factor * x[c]
        near = factor * column[reference]
        if code == RBF:
            for j in range(n):
                other = factor * column[j]
                out[j] += (near - other) * ((here - other) + (here - near))
        else:
            for j in range(n):
                other = factor * column[j]
                p = min(max(here, min(near, other)), max(near, other))
                out[j] += abs(p - other) - abs(p - near)


@njit(cache=True, nogil=True)
def least(row):
    """Return where the smallest entry is, the first among equals, and whether all are numbers above -infinity."""
    best = 0
    sound = row[0] > -np.inf
    for j in range(1, row.shape[0]):
        sound = sound and row[j] > -np.inf
        if row[j] < row[best]:
            best = j
    return best, sound


@njit(cache=True, nogil=True)
def far_exponents(code, scale, x, xt, row):
    """Replace the distances in row (n,) by t - min t, without cancellation or overflow."""
    factor, growth = 1.0, 1.0
    best, sound = least(row)
    for _attempt in range(2):
        for _round in range(ROUNDS):
            reference = best
            differences(code, x, xt, reference, factor, row)
            best, sound = least(row)
            if best == reference or not sound:
                break
        if sound:
            break
        factor, growth = SHRINK, GROW
        best = 0
    closest = row[best]
    for j in range(row.shape[0]):
        t = (row[j] - closest) * growth
        if code == RBF:
            t = t * growth
        row[j] = t / scale


@njit(cache=True, nogil=True)
def raw_weights(code, scale, x, xt, alpha, row):
    """Write into row (n,) the weights of x (d,), up to a common factor."""
    n = row.shape[0]
    for start in range(0, n, BLOCK):
        distances(code, scale, x, xt, start, row[start : min(start + BLOCK, n)])
    closest = row[least(row)[0]]
    if closest <= FAR:
        for j in range(n):
            row[j] = row[j] - closest
    else:
        far_exponents(code, scale, x, xt, row)
    for j in range(n):
        row[j] = alpha[j] * exp_neg(row[j])


@njit(cache=True, nogil=True)
def mean(row, vt, lowest, highest, out):
    """Write into out (v,) the means of the rows of vt (v + 1, n) under weights (n,). Return the sum of the weights.

    The last row of vt is ones. A mean is cut to between the lowest and the highest value: rounding can carry it a few
    ulps past them.
    """
    v = out.shape[0]
    total = dot(row, vt[v])
    for c in range(v):
        out[c] = min(max(dot(row, vt[c]) / total, lowest[c]), highest[c])
    return total


@njit(cache=True, nogil=True)
def read_rows(code, scale, queries, xt, alpha, vt, lowest, highest, out):
    """Write into out (m, v) the readout of each query (m, d)."""
    row = np.empty(xt.shape[1])
    for q in range(queries.shape[0]):
        raw_weights(code, scale, queries[q], xt, alpha, row)
        mean(row, vt, lowest, highest, out[q])


@njit(cache=True, nogil=True)
def weight_rows(code, scale, queries, xt, alpha, out):
    """Write into out (m, n) the weights of each query, up to a common factor a row."""
    for q in range(queries.shape[0]):
        raw_weights(code, scale, queries[q], xt, alpha, out[q])


@njit(cache=True, nogil=True)
def mean_rows(weights, vt, lowest, highest, out, totals):
    """Write into out (m, v) the means under rows of weights (m, n), and into totals (m,) the sums of the weights."""
    for q in range(weights.shape[0]):
        totals[q] = mean(weights[q], vt, lowest, highest, out[q])
