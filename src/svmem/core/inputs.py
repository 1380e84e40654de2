"""Checks of arrays at the public edge: what must hold, and what came."""

import numpy as np
from numpy.typing import ArrayLike

from svmem.errors import InvalidInput
from svmem.types import Keys

__all__ = ["as_finite", "as_matrix"]


def as_finite(data: ArrayLike, name: str) -> Keys:
    """Return `data` as a new float64 array without NaN or infinity. Raises InvalidInput naming the first bad place."""
    try:
        raw = np.asarray(data)
    except ValueError as error:
        raise InvalidInput(f"{name} must be a rectangular array of numbers: {error}") from None
    if raw.dtype.kind not in "fiub":
        raise InvalidInput(f"{name} must hold real numbers, got dtype {raw.dtype}")
    array = np.array(raw, dtype=np.float64, order="C")
    if not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InvalidInput(f"{name} must be finite, got {array[place]} at index {place}")
    return array


def as_matrix(data: ArrayLike, name: str, width: int | None = None) -> Keys:
    """Return `data` as a (rows, width) float64 array; a missing `width` accepts any but zero."""
    array = as_finite(data, name)
    if array.ndim != 2 or array.shape[1] == 0:
        raise InvalidInput(f"{name} must have shape (rows, columns) with at least one column, got shape {array.shape}")
    if width is not None and array.shape[1] != width:
        raise InvalidInput(f"{name} must have {width} columns, got {array.shape[1]}")
    return array
