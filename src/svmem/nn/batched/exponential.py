"""exp(-t) in torch, bit for bit as `_jit.exponential` computes it, so that every device has the core's Gram matrix.

Each operation below is one kernel of its own and IEEE: nothing is fused. (A compiler that fuses would have to leave it
alone, which it does inside a registered operator.)
"""

import math

import torch
from torch import Tensor

from svmem._jit.exponential import LARGEST, LN2_HIGH, LN2_LOW, LOG2_E, ROUND

__all__ = ["exp_neg"]

BITS_OF_K_PLUS_2048 = 4843621399236968448 - 2048
FRACTION_BITS = 52
COEFFICIENTS = [1 / math.factorial(k) for k in range(14)]


def exp_neg(t: Tensor) -> Tensor:
    """Return exp(-t) for t >= 0 in float64; not a number where t is not."""
    t = t.clamp(max=LARGEST)
    shifted = ROUND - t * LOG2_E
    k = shifted - ROUND
    high = -t - k * LN2_HIGH
    low = k * LN2_LOW
    r = high - low
    tail = (high - r) - low
    one = 1.0 + r
    y = one + (((1.0 - one) + r) + _polynomial(r, tail))
    shift = shifted.view(torch.int64) - BITS_OF_K_PLUS_2048
    half = shift >> 1
    first = ((half - 1) << FRACTION_BITS).view(torch.float64)
    second = ((shift - half - 1) << FRACTION_BITS).view(torch.float64)
    return (y * first) * second


def _polynomial(r: Tensor, tail: Tensor) -> Tensor:
    """Return exp(r) - 1 - r plus the tail of r."""
    c = COEFFICIENTS
    r2 = r * r
    r4 = r2 * r2
    p = (c[2] + c[3] * r) + (c[4] + c[5] * r) * r2
    q = (c[6] + c[7] * r) + (c[8] + c[9] * r) * r2
    s = (c[10] + c[11] * r) + (c[12] + c[13] * r) * r2
    return tail + r2 * (p + r4 * (q + r4 * s))
