"""Array names used in signatures. Axes: n stored, m queries, d key, v value."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.float64]  # (n, d), one key a row
Queries = NDArray[np.float64]  # (m, d)
Values = NDArray[np.float64]  # (n, v)
Coefficients = NDArray[np.float64]  # (n,), alpha
Vector = NDArray[np.float64]
Ids = NDArray[np.int64]
Json = dict[str, Any]
