"""Error-free sums and products of floats, the building blocks of arithmetic with about 31 decimal digits.

A doubled number is an unevaluated sum (high, low) of two floats with |low| <= ulp(high) / 2. [Dekker1971]
[OgitaRumpOishi2005]
"""

from numba import njit

SPLITTER = 134217729.0  # 2^27 + 1


@njit(cache=True, nogil=True)
def two_sum(a, b):
    """Return (s, e) with s = fl(a + b) and s + e = a + b exactly."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@njit(cache=True, nogil=True)
def fast_two_sum(a, b):
    """Return what `two_sum` does, for |a| >= |b|."""
    s = a + b
    return s, b - (s - a)


@njit(cache=True, nogil=True)
def two_product(a, b):
    """Return (p, e) with p = fl(a b) and p + e = a b exactly, without a fused multiply-add."""
    p = a * b
    t = SPLITTER * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = SPLITTER * b
    b_high = t - (t - b)
    b_low = b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


@njit(cache=True, nogil=True)
def add(a_high, a_low, b_high, b_low):
    """Return the doubled sum of two doubled numbers."""
    s, e = two_sum(a_high, b_high)
    t, f = two_sum(a_low, b_low)
    s, e = fast_two_sum(s, e + t)
    return fast_two_sum(s, e + f)


@njit(cache=True, nogil=True)
def multiply(a_high, a_low, b_high, b_low):
    """Return the doubled product of two doubled numbers."""
    p, e = two_product(a_high, b_high)
    return fast_two_sum(p, e + (a_high * b_low + a_low * b_high))


@njit(cache=True, nogil=True)
def divide(a_high, a_low, b_high, b_low):
    """Return the doubled quotient of two doubled numbers."""
    q = a_high / b_high
    p, e = multiply(q, 0.0, b_high, b_low)
    r, f = add(a_high, a_low, -p, -e)
    q2 = r / b_high
    p, e = multiply(q2, 0.0, b_high, b_low)
    r, f = add(r, f, -p, -e)
    q3 = r / b_high
    q, q2 = fast_two_sum(q, q2)
    return add(q, q2, q3, 0.0)
