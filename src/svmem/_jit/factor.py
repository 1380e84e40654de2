"""The Cholesky factor U (upper, by rows) of A = K_SS + ridge on the margin: append, remove, solve. A = U'U.

Loops run over slices, since the compiler vectorises those and not loops with shifted indices.
"""

import math

from numba import njit


@njit(cache=True, nogil=True)
def dot(x, y):
    """Return the inner product in eight interleaved partial sums, which vectorise."""
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
    n = x.shape[0]
    whole = n - n % 8
    for i in range(0, whole, 8):
        u = x[i : i + 8]
        v = y[i : i + 8]
        a0 += u[0] * v[0]
        a1 += u[1] * v[1]
        a2 += u[2] * v[2]
        a3 += u[3] * v[3]
        a4 += u[4] * v[4]
        a5 += u[5] * v[5]
        a6 += u[6] * v[6]
        a7 += u[7] * v[7]
    for i in range(whole, n):
        a0 += x[i] * y[i]
    return ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7))


@njit(cache=True, nogil=True)
def add_multiple(target, factor, x):
    """Add factor * x to target."""
    for k in range(target.shape[0]):
        target[k] += factor * x[k]


@njit(cache=True, nogil=True)
def copy(target, x):
    """Copy x into target, first entry first."""
    for k in range(target.shape[0]):
        target[k] = x[k]


@njit(cache=True, nogil=True)
def total(x):
    """Return the sum, first entry first."""
    t = 0.0
    for k in range(x.shape[0]):
        t += x[k]
    return t


@njit(cache=True, nogil=True)
def solve_lower(chol, s, x):
    """Replace x[:s] by the solution y of U'y = x."""
    for j in range(s):
        y = x[j] / chol[j, j]
        x[j] = y
        add_multiple(x[j + 1 : s], -y, chol[j, j + 1 : s])


@njit(cache=True, nogil=True)
def solve_upper(chol, s, x):
    """Replace x[:s] by the solution z of U z = x."""
    for j in range(s - 1, -1, -1):
        x[j] = (x[j] - dot(chol[j, j + 1 : s], x[j + 1 : s])) / chol[j, j]


@njit(cache=True, nogil=True)
def solve_pair(chol, s, x, y):
    """Replace x[:s] and y[:s] by the solutions of U'U z = x and U'U z = y, reading U once for both."""
    for j in range(s):
        a, b = x[j] / chol[j, j], y[j] / chol[j, j]
        x[j], y[j] = a, b
        row, p, q = chol[j, j + 1 : s], x[j + 1 : s], y[j + 1 : s]
        for k in range(row.shape[0]):
            p[k] -= a * row[k]
            q[k] -= b * row[k]
    for j in range(s - 1, -1, -1):
        a, b = dot_pair(chol[j, j + 1 : s], x[j + 1 : s], y[j + 1 : s])
        x[j] = (x[j] - a) / chol[j, j]
        y[j] = (y[j] - b) / chol[j, j]


@njit(cache=True, nogil=True)
def dot_pair(row, x, y):
    """Return the inner products of a row with x and with y, each in four interleaved partial sums."""
    a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = 0.0
    n = row.shape[0]
    whole = n - n % 4
    for i in range(0, whole, 4):
        r = row[i : i + 4]
        u = x[i : i + 4]
        v = y[i : i + 4]
        a0 += r[0] * u[0]
        a1 += r[1] * u[1]
        a2 += r[2] * u[2]
        a3 += r[3] * u[3]
        b0 += r[0] * v[0]
        b1 += r[1] * v[1]
        b2 += r[2] * v[2]
        b3 += r[3] * v[3]
    for i in range(whole, n):
        a0 += row[i] * x[i]
        b0 += row[i] * y[i]
    return (a0 + a1) + (a2 + a3), (b0 + b1) + (b2 + b3)


@njit(cache=True, nogil=True)
def factorise(chol, s, floor):
    """Replace the upper triangle of A in chol[:s, :s] by U. False if a pivot is not above floor.

    Four rows go to the ones below in one pass, since loading and storing takes most of the time.
    """
    for k in range(0, s, 4):
        end = min(k + 4, s)
        for i in range(k, end):
            row = chol[i, i:s]
            for j in range(k, i):
                add_multiple(row, -chol[j, i], chol[j, i:s])
            if not row[0] > floor:
                return False
            root = math.sqrt(row[0])
            for j in range(row.shape[0]):
                row[j] = row[j] / root
        if end < k + 4:
            return True
        for i in range(end, s):
            row = chol[i, i:s]
            a, b, c, d = chol[k, i:s], chol[k + 1, i:s], chol[k + 2, i:s], chol[k + 3, i:s]
            p, q, r, t = a[0], b[0], c[0], d[0]
            for j in range(row.shape[0]):
                row[j] -= (p * a[j] + q * b[j]) + (r * c[j] + t * d[j])
    return True


@njit(cache=True, nogil=True)
def append(chol, s, column, diagonal, floor):
    """Add a row and column to A. Return False, with U as it was, if the pivot is not above floor.

    `column` (s,) is overwritten.
    The pivot is the squared distance of the new feature vector to the span of the others, plus ridge: never clamped.
    """
    solve_lower(chol, s, column)
    pivot = diagonal - dot(column[:s], column[:s])
    if not pivot > floor:
        return False
    for k in range(s):
        chol[k, s] = column[k]
    chol[s, s] = math.sqrt(pivot)
    return True


@njit(cache=True, nogil=True)
def remove(chol, s, position, carry):
    """Take row and column `position` out of A by Givens rotations; the others keep their order. `carry` is scratch."""
    for i in range(position):
        copy(chol[i, position : s - 1], chol[i, position + 1 : s])
    copy(carry[position : s - 1], chol[position, position + 1 : s])
    for i in range(position, s - 1):
        length = math.hypot(carry[i], chol[i + 1, i + 1])
        cosine, sine = carry[i] / length, chol[i + 1, i + 1] / length
        old = carry[i : s - 1]
        below = chol[i + 1, i + 1 : s]
        row = chol[i, i : s - 1]
        for j in range(row.shape[0]):
            a, b = old[j], below[j]
            row[j] = cosine * a + sine * b
            old[j] = cosine * b - sine * a
