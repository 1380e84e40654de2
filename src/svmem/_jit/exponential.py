"""exp(-t) as one fixed sequence of IEEE operations, so that every machine gives the same bits, within 1 ulp.

Cody and Waite argument reduction -t = k ln 2 + r with |r| <= ln(2)/2, Taylor polynomial of degree 13 in a tree (short
chains of operations overlap), and a scaling by
2^k in two steps so that subnormal results are right. No library call and no fused multiply-add: each differs between
machines. Branches are minima and selections, so the loop vectorises.
"""

import numpy as np
from numba import njit

LOG2_E = 1.4426950408889634
LN2_HIGH = 6.93147180369123816490e-01  # 32 bits, so that k * LN2_HIGH is exact for |k| < 2^20
LN2_LOW = 1.90821492927058770002e-10
ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer, which then sits in the low bits
BITS_OF_K_PLUS_2048 = np.uint64(4843621399236968448 - 2048)
ONE = np.uint64(1)
FRACTION_BITS = np.uint64(52)
LARGEST = 746.0  # exp(-746) rounds to zero; also what an overflowed distance is cut to

C2, C3, C4, C5, C6, C7 = 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040
C8, C9, C10, C11, C12, C13 = 1 / 40320, 1 / 362880, 1 / 3628800, 1 / 39916800, 1 / 479001600, 1 / 6227020800


@njit(cache=True, nogil=True)
def exp_neg(t: float) -> float:
    """Return exp(-t) for 0 <= t <= infinity."""
    t = LARGEST if t > LARGEST else t
    shifted = ROUND - t * LOG2_E
    k = shifted - ROUND
    high = -t - k * LN2_HIGH
    low = k * LN2_LOW
    r = high - low
    tail = (high - r) - low  # what rounding r lost
    r2 = r * r
    r4 = r2 * r2
    p = (C2 + C3 * r) + (C4 + C5 * r) * r2
    q = (C6 + C7 * r) + (C8 + C9 * r) * r2
    s = (C10 + C11 * r) + (C12 + C13 * r) * r2
    p = tail + r2 * (p + r4 * (q + r4 * s))
    one = 1.0 + r
    y = one + (((1.0 - one) + r) + p)
    shift = np.float64(shifted).view(np.uint64) - BITS_OF_K_PLUS_2048  # k + 2048, unsigned: -1076 <= k <= 0
    half = shift >> ONE
    first = np.uint64((half - ONE) << FRACTION_BITS).view(np.float64)  # 2^(half - 1024)
    second = np.uint64((shift - half - ONE) << FRACTION_BITS).view(np.float64)
    return (y * first) * second


@njit(cache=True, nogil=True)
def exp_neg_inplace(t: np.ndarray) -> None:
    """Replace each t >= 0 by exp(-t)."""
    for i in range(t.shape[0]):
        t[i] = exp_neg(t[i])


# The same in float32, for first looks whose error is allowed for: constants of that type keep all of it in that type.
SINGLE = np.float32
S_LOG2_E, S_ROUND, S_LARGEST = SINGLE(1.442695041), SINGLE(12582912.0), SINGLE(87.0)
S_LN2_HIGH, S_LN2_LOW = SINGLE(0.693359375), SINGLE(-2.12194440e-4)  # the first has 9 bits
S1, S2, S3, S4, S5, S6 = SINGLE(1), SINGLE(1 / 2), SINGLE(1 / 6), SINGLE(1 / 24), SINGLE(1 / 120), SINGLE(1 / 720)
S_BITS_OF_K = np.uint32(0x4B400000 - 127)
S_FRACTION_BITS = np.uint32(23)


@njit(cache=True, nogil=True)
def exp_neg_single(t):
    """Return exp(-t) for float32 t >= 0, to a relative error of 4e-7; what is below exp(-87) as that."""
    t = S_LARGEST if t > S_LARGEST else t
    shifted = S_ROUND - t * S_LOG2_E
    k = shifted - S_ROUND
    r = (-t - k * S_LN2_HIGH) - k * S_LN2_LOW
    p = S1 + r * (S1 + r * (S2 + r * (S3 + r * (S4 + r * (S5 + r * S6)))))
    power = np.uint32((np.float32(shifted).view(np.uint32) - S_BITS_OF_K) << S_FRACTION_BITS)
    return p * power.view(np.float32)
