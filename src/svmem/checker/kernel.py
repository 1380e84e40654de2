"""Kernel entries of the four kernels that a memory can have, each to 2^-72 of its row's largest."""

from typing import Any

import numpy as np

from .doubled import Pair, add, divide, exact_sum, exp_of_minus, multiply, root, square

__all__ = ["RADIAL", "entries", "is_known"]

RADIAL = ("rbf", "laplacian")
_FAR = 2000.0  # a coordinate difference of so many widths leaves nothing of the kernel


def is_known(kernel: Any) -> bool:
    """Return whether `kernel` is one of: rbf and laplacian with a positive sigma, linear, cosine."""
    if kernel in ({"name": "linear"}, {"name": "cosine"}):
        return True
    sigma = kernel.get("sigma")
    number = isinstance(sigma, int | float) and not isinstance(sigma, bool)
    return set(kernel) == {"name", "sigma"} and kernel["name"] in RADIAL and number and 1e-162 < sigma < 1e155


def entries(left: Any, right: Any, kernel: Any) -> Pair:
    """Return the kernel between rows that broadcast, (..., d) and (..., d)."""
    if kernel["name"] in RADIAL:
        return _radial(left, right, float(kernel["sigma"]), squared=kernel["name"] == "rbf")
    if kernel["name"] == "linear":
        return _inner(left, right)
    left, right = _scaled(left), _scaled(right)
    return divide(_inner(left, right), multiply(root(_inner(left, left)), root(_inner(right, right))))


def _radial(left: Any, right: Any, sigma: float, *, squared: bool) -> Pair:
    """Return exp(-|x - y|^2 / sigma^2), or exp(-|x - y|_1 / sigma), with all lengths in units of a power of two."""
    width, exponent = np.frexp(sigma)
    unit = np.ldexp(1.0, -exponent)
    shape = np.broadcast_shapes(left.shape, right.shape)[:-1]
    high, low, far = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=bool)
    for k in range(left.shape[-1]):
        with np.errstate(over="ignore", invalid="ignore"):  # a difference beyond the format is far
            step = exact_sum(left[..., k], -right[..., k])
            apart = ~(np.abs(step[0]) <= _FAR * sigma)
        if apart.any():
            far |= apart
            step = np.where(apart, 0.0, step[0]), np.where(apart, 0.0, step[1])
        step = step[0] * unit, step[1] * unit
        step = square(step) if squared else (np.abs(step[0]), np.where(step[0] < 0, -step[1], step[1]))
        high, error = exact_sum(high, step[0])
        low += error + step[1]
    scale = divide((1.0, 0.0), square((float(width), 0.0)) if squared else (float(width), 0.0))
    value = exp_of_minus(multiply(exact_sum(high, low), scale))
    return (np.where(far, 0.0, value[0]), np.where(far, 0.0, value[1])) if far.any() else value


def _inner(left: Any, right: Any) -> Pair:
    shape = np.broadcast_shapes(left.shape, right.shape)[:-1]
    product = (np.zeros(shape), np.zeros(shape))
    for k in range(left.shape[-1]):
        product = add(product, multiply((left[..., k], 0.0), (right[..., k], 0.0)))
    return product


def _scaled(keys: Any) -> Any:
    """Return the keys, each times the power of two that brings its largest coordinate to between 1/2 and 1."""
    return np.ldexp(keys, -np.frexp(np.abs(keys).max(axis=-1, keepdims=True))[1])
