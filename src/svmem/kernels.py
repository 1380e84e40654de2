"""Kernels as frozen values. The compiled core reads their `code` and `scale`; everybody else reads their names."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np

from svmem.errors import InvalidInput
from svmem.types import Json, Keys

__all__ = ["RBF", "Cosine", "Kernel", "Laplacian", "Linear", "Precomputed", "kernel_from_json", "median_sigma"]


def as_number(value: object, name: str) -> float:
    """Return a real number as a float, so that it means the same wherever it is written. Raises InvalidInput."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidInput(f"{name} must be a number, got {value!r}")
    return float(value)


def _check_sigma(sigma: float) -> None:
    if not (sigma > 0 and math.isfinite(sigma) and sigma * sigma > 0 and math.isfinite(sigma * sigma)):
        raise InvalidInput(f"sigma must be positive and finite, and so must its square; got {sigma}")


@dataclass(frozen=True, slots=True)
class RBF:
    """Gaussian kernel exp(-|x - y|^2 / sigma^2). scikit-learn's gamma is 1 / sigma^2."""

    sigma: float
    name: ClassVar[str] = "rbf"
    code: ClassVar[int] = 0
    bounded: ClassVar[bool] = True  # 0 <= kappa <= 1 = kappa(x, x)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", as_number(self.sigma, "sigma"))
        _check_sigma(self.sigma)

    @property
    def scale(self) -> float:
        """What the compiled core divides the squared distance by."""
        return self.sigma * self.sigma

    def features(self, keys: Keys) -> Keys:
        """Return the keys as the compiled core wants them: here, as they are."""
        return keys


@dataclass(frozen=True, slots=True)
class Laplacian:
    """Laplacian kernel exp(-|x - y|_1 / sigma), with the sum of absolute coordinate differences."""

    sigma: float
    name: ClassVar[str] = "laplacian"
    code: ClassVar[int] = 1
    bounded: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", as_number(self.sigma, "sigma"))
        _check_sigma(self.sigma)

    @property
    def scale(self) -> float:
        """What the compiled core divides the distance by."""
        return self.sigma

    def features(self, keys: Keys) -> Keys:
        """Return the keys as they are."""
        return keys


@dataclass(frozen=True, slots=True)
class Linear:
    """Inner product x . y. Neither bounded nor positive, so it serves neither the horizon nor the readout."""

    name: ClassVar[str] = "linear"
    code: ClassVar[int] = 2
    bounded: ClassVar[bool] = False
    scale: ClassVar[float] = 1.0

    def features(self, keys: Keys) -> Keys:
        """Return the keys as they are, once their squared lengths are known to be finite."""
        with np.errstate(over="ignore"):
            length2 = np.square(keys).sum(axis=1)
        if not np.isfinite(length2).all():
            raise InvalidInput("the linear kernel needs keys whose squared length is finite; scale the keys down")
        return keys


@dataclass(frozen=True, slots=True)
class Cosine:
    """Cosine of the angle between x and y, the linear kernel of the normalised keys. Refuses the zero key."""

    name: ClassVar[str] = "cosine"
    code: ClassVar[int] = 2
    bounded: ClassVar[bool] = False
    scale: ClassVar[float] = 1.0

    def features(self, keys: Keys) -> Keys:
        """Return the keys divided by their length, largest coordinate first so that nothing overflows."""
        if keys.shape[0] == 0:
            return keys
        largest = np.abs(keys).max(axis=1, keepdims=True)
        if not (largest > 0).all():
            row = int(np.flatnonzero(largest[:, 0] == 0)[0])
            raise InvalidInput(f"the cosine kernel needs keys other than zero; row {row} is the zero key")
        scaled = keys / largest
        length2 = np.zeros((keys.shape[0], 1))
        for column in range(keys.shape[1]):  # a fixed order of summation, whatever the number of rows
            length2 += scaled[:, column : column + 1] ** 2
        return scaled / np.sqrt(length2)


@dataclass(frozen=True, slots=True)
class Precomputed:
    """The caller gives the (n, n) Gram matrix in place of keys. For `solve` and `certify` only."""

    name: ClassVar[str] = "precomputed"
    code: ClassVar[int] = 3
    bounded: ClassVar[bool] = False
    scale: ClassVar[float] = 1.0

    def features(self, keys: Keys) -> Keys:
        """Return the Gram matrix, once it is known to be square, symmetric and positive semi-definite."""
        n = keys.shape[0]
        if keys.shape != (n, n):
            raise InvalidInput(f"a precomputed Gram matrix must be square, got shape {keys.shape}")
        if not np.array_equal(keys, keys.T):
            raise InvalidInput("a precomputed Gram matrix must be exactly symmetric; pass (gram + gram.T) / 2")
        if n == 0:
            return keys
        eigenvalues = np.linalg.eigvalsh(keys)
        floor = -4 * n * np.finfo(np.float64).eps * float(np.abs(eigenvalues).max())  # rounding of the eigensolver
        if eigenvalues[0] < floor:
            raise InvalidInput(
                f"a Gram matrix must be positive semi-definite, got an eigenvalue of {eigenvalues[0]:.3g}: "
                "the problem would not be convex"
            )
        return keys


Kernel = RBF | Laplacian | Linear | Cosine | Precomputed
_WIDTH_KERNELS = {"rbf": RBF, "laplacian": Laplacian}
_PLAIN_KERNELS = {"linear": Linear, "cosine": Cosine, "precomputed": Precomputed}


def kernel_to_json(kernel: Kernel) -> Json:
    """Return the kernel as plain data, its width as a number that reads back to the same bits."""
    if isinstance(kernel, RBF | Laplacian):
        return {"name": kernel.name, "sigma": kernel.sigma}
    return {"name": kernel.name}


def kernel_from_json(data: Json) -> Kernel:
    """Return the kernel that `kernel_to_json` wrote. Raises InvalidInput for an unknown name or width."""
    name = data.get("name")
    if name in _WIDTH_KERNELS and isinstance(data.get("sigma"), int | float):
        return _WIDTH_KERNELS[name](float(data["sigma"]))
    if name in _PLAIN_KERNELS:
        return _PLAIN_KERNELS[name]()
    known = ", ".join([*_WIDTH_KERNELS, *_PLAIN_KERNELS])
    raise InvalidInput(f"kernel must be one of {known} (the first two with a number sigma), got {data!r}")


def median_sigma(keys: Keys, *, sample: int = 1000, seed: int = 0) -> float:
    """Return the median distance between distinct keys, a usual first guess for the width of an RBF kernel.

    Looks at all pairs of at most `sample` keys drawn without replacement with `seed`. Raises InvalidInput when no two
    of these keys differ, since then no width can be told from them.
    """
    try:
        keys = np.asarray(keys, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("keys must be an array of numbers of shape (n, d)") from None
    if keys.ndim != 2 or not np.isfinite(keys).all():
        raise InvalidInput(f"keys must be a finite array of shape (n, d), got shape {keys.shape}")
    if keys.shape[0] > sample:
        keys = keys[np.random.default_rng(seed).choice(keys.shape[0], sample, replace=False)]
    upper = np.triu_indices(keys.shape[0], k=1)
    dist2 = np.zeros(upper[0].size)
    for column in range(keys.shape[1]):
        dist2 += (keys[upper[0], column] - keys[upper[1], column]) ** 2
    apart = dist2[dist2 > 0]
    if apart.size == 0:
        raise InvalidInput(f"median_sigma needs two keys that differ, got {keys.shape[0]} equal keys")
    return float(np.sqrt(np.median(apart)))
