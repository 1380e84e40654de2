"""Doubled float64 arithmetic: a pair (high, low) stands for its exact sum, about 2^-100 relative to the operands.

[Dekker1971] For numbers whose squares neither overflow nor matter where they vanish.
"""

from decimal import Decimal, localcontext
from typing import Any

import numpy as np

__all__ = ["Pair", "add", "divide", "exact_sum", "exp_of_minus", "multiply", "negative", "root", "square", "total"]

Pair = tuple[Any, Any]  # float64 numbers or arrays
_SPLITTER = 134217729.0  # 2^27 + 1
_STEPS = 512  # of the table of exp, per unit
_VANISHED = 700.0  # exp(-700) = 1e-304 counts as 0


def exact_sum(a: Any, b: Any) -> Pair:
    """Return a + b without error."""
    s = a + b
    v = s - a
    return s, (a - (s - v)) + (b - v)


def _exact_product(a: Any, b: Any) -> Pair:
    p = a * b
    ta, tb = _SPLITTER * a, _SPLITTER * b
    ah, bh = ta - (ta - a), tb - (tb - b)
    al, bl = a - ah, b - bh
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def negative(x: Pair) -> Pair:
    """Return -x."""
    return -x[0], -x[1]


def add(x: Pair, y: Pair) -> Pair:
    """Return x + y."""
    s, e = exact_sum(x[0], y[0])
    return exact_sum(s, e + (x[1] + y[1]))


def multiply(x: Pair, y: Pair) -> Pair:
    """Return x y."""
    p, e = _exact_product(x[0], y[0])
    return exact_sum(p, e + (x[0] * y[1] + x[1] * y[0]))


def square(x: Pair) -> Pair:
    """Return x^2."""
    p, t = x[0] * x[0], _SPLITTER * x[0]
    high = t - (t - x[0])
    low = x[0] - high
    return p, ((high * high - p) + 2 * high * low + low * low) + 2 * x[0] * x[1]


def divide(x: Pair, y: Pair) -> Pair:
    """Return x / y."""
    q = x[0] / y[0]
    rest = add(x, negative(multiply((q, 0.0), y)))
    return exact_sum(q, rest[0] / y[0])


def root(x: Pair) -> Pair:
    """Return the square root of x > 0."""
    s = np.sqrt(x[0])
    rest = add(x, negative(multiply((s, 0.0), (s, 0.0))))
    return exact_sum(s, rest[0] / (2 * s))


def total(terms: Pair) -> Pair:
    """Return the sum over the last of two axes, by halves."""
    high, low = terms
    if not high.shape[1]:
        return np.zeros(len(high)), np.zeros(len(high))
    while high.shape[1] > 1:
        half = high.shape[1] // 2
        folded = add((high[:, :half], low[:, :half]), (high[:, half : 2 * half], low[:, half : 2 * half]))
        high = np.concatenate([folded[0], high[:, 2 * half :]], axis=1)
        low = np.concatenate([folded[1], low[:, 2 * half :]], axis=1)
    return high[:, 0], low[:, 0]


def exp_of_minus(t: Pair) -> Pair:
    """Return exp(-t) for t >= 0 with an error below 2^-76 exp(-t), and 0 from t = 700 on.

    -t = k log 2 + j/512 + s with |s| < 1/1000: a table for the middle part, and for exp(s) - 1 the series to s^7, its
    first two terms doubled.
    """
    near = t[0] < _VANISHED
    x = np.where(near, -t[0], 0.0), np.where(near, -t[1], 0.0)
    k = np.rint(x[0] / _LOG_2[0])
    rest = add(x, negative(multiply((k, 0.0), _LOG_2)))
    j = np.rint(rest[0] * _STEPS)
    s = add(rest, (-j / _STEPS, 0.0))
    h = s[0]
    squared = square((h, 0.0))
    tail = h * h * h * (1 / 6 + h * (1 / 24 + h * (1 / 120 + h * (1 / 720 + h / 5040))))
    grown = add(s, exact_sum(squared[0] / 2, squared[1] / 2 + tail + h * s[1]))
    place = j.astype(int) + _STEPS
    middle = _TABLE[0][place], _TABLE[1][place]
    value = add(middle, multiply(middle, grown))
    shift = k.astype(int)
    return np.ldexp(value[0], shift) * near, np.ldexp(value[1], shift) * near


def _constants() -> tuple[Pair, Pair]:
    with localcontext() as context:
        context.prec = 50
        exact = [Decimal(2).ln(), *((Decimal(j) / _STEPS).exp() for j in range(-_STEPS, _STEPS + 1))]
        high = np.array([float(x) for x in exact])
        low = np.array([float(x - Decimal(h)) for x, h in zip(exact, high.tolist(), strict=True)])
    return (float(high[0]), float(low[0])), (high[1:], low[1:])


_LOG_2, _TABLE = _constants()
