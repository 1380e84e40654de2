"""Cases with very near and very far keys, extreme widths, ridges and dimensions."""

import numpy as np

from tests.cases.case import Case, rows
from tests.oracles.setting import Setting

__all__ = ["SPREAD"]


def _cloud(n: int, d: int, seed: int) -> np.ndarray:
    return 1.5 * np.random.default_rng(seed).standard_normal((n, d))


def _with_twins(keys: np.ndarray, distance: float) -> np.ndarray:
    return np.concatenate([keys, keys + distance])


_NEAR = (
    Case("near_twins_1e-9", "every key with a twin 1e-9 away", _with_twins(_cloud(8, 2, 1), 1e-9), Setting(C=0.2)),
    Case("near_twins_1e-13", "twins a few floats apart", _with_twins(_cloud(8, 2, 2), 1e-13), Setting(C=0.2)),
    Case(
        "near_triplets", "three keys within 2e-9 of each other", rows([0, 1e-9, 2e-9, 3, 3 + 1e-9, 7]), Setting(C=0.3)
    ),
    Case("denormals", "keys whose squared distance is zero", rows([0, 5e-324, 1e-323, 2e-323, 1]), Setting(C=0.4)),
    Case(
        "thirty_within_1e-7", "a cluster smaller than any width", rows(1e-7 * i / 29 for i in range(30)), Setting(C=0.1)
    ),
    Case(
        "nodes_1e-6_apart",
        "nine nodes 1e-6 apart, nearly all of them at the cap",
        rows(1e-6 * place for place, count in enumerate((4, 7, 8, 4, 8, 6, 4, 9, 5)) for _ in range(count)),
        Setting(C=0.021984821413090248, sigma=2.0, ridge=1e-12),
    ),
    Case(
        "nodes_1e-6_apart_few",
        "six nodes 1e-6 apart, under a ridge below the differences of the kernel",
        rows(1e-6 * place for place in (5, 5, 1, 3, 4, 0, 0, 3, 3, 0, 4, 0, 3, 2, 5)),
        Setting(C=0.10329746300182631, sigma=2.0, ridge=1e-13),
    ),
    Case("offset_1e8_grid", "an integer grid 1e8 away", rows(1e8 + i for i in range(8)), Setting(C=0.2, sigma=2.0)),
    Case("offset_1e5_cloud", "a cloud 1e5 away", _cloud(12, 3, 3) + 1e5, Setting(C=0.2, sigma=2.0)),
)

_FAR = (
    Case("far_1e200_pair", "two equal keys at 1e200", rows([1e200, 1e200, 0, 1, -1e200]), Setting(C=0.4)),
    Case("far_1e308", "a difference overflows", rows([1.7e308, -1.7e308, 0, 1]), Setting(C=0.4)),
    Case("far_laplacian", "a distance overflows", rows([1.7e308, -1.7e308, 0, 1]), Setting(C=0.4, kernel="laplacian")),
    Case(
        "two_far_clouds",
        "two clouds that do not see each other",
        np.concatenate([_cloud(9, 2, 4), _cloud(9, 2, 5) + 1e3]),
        Setting(C=0.1),
    ),
    Case(
        "narrow_kernel",
        "the Gram matrix is the identity",
        _cloud(12, 3, 6),
        Setting(C=0.25, sigma=1e-3),
        (1 / 12,) * 12,
        1 / 12,
    ),
    Case("wide_kernel", "the Gram matrix is all ones but 1e-11", _cloud(12, 3, 7), Setting(C=0.25, sigma=1e6)),
)

_SHAPES = (
    Case("one_dimension", "eight numbers", _cloud(8, 1, 8), Setting(C=0.2)),
    Case("two_dimensions", "eight points of a plane", _cloud(8, 2, 9), Setting(C=0.25, sigma=2.0)),
    Case("paper_cloud", "the paper's keys and width, nu = 0.4", _cloud(40, 6, 10), Setting(C=1 / 16, sigma=2.0)),
    Case("high_dimension", "more dimensions than keys", _cloud(12, 300, 11), Setting(C=0.125, sigma=30.0)),
    Case(
        "constant_columns",
        "two of four columns never change",
        np.insert(_cloud(14, 2, 12), [0, 2], [3.0, -7.25], axis=1),
        Setting(C=0.15),
    ),
    Case("laplacian_cloud", "the Laplacian kernel", _cloud(14, 3, 13), Setting(C=0.15, kernel="laplacian", sigma=2.0)),
    Case("linear_cloud", "the linear kernel, of low rank", _cloud(14, 3, 14), Setting(C=0.15, kernel="linear")),
    Case("linear_large", "a Gram matrix of 1e6", 1e3 * _cloud(10, 2, 15), Setting(C=0.3, kernel="linear")),
    Case("cosine_cloud", "the cosine kernel", _cloud(14, 3, 16), Setting(C=0.15, kernel="cosine")),
)

_RIDGES = (
    Case(
        "ridge_1e-12",
        "twins that only a tiny ridge parts",
        _with_twins(_cloud(6, 2, 17), 0.0),
        Setting(C=0.25, ridge=1e-12),
    ),
    Case("ridge_1e-2", "a ridge that one sees", _cloud(16, 2, 18), Setting(C=0.125, ridge=1e-2)),
    Case("ridge_1e6", "a ridge that outweighs the kernel", _cloud(9, 2, 19), Setting(C=0.25, ridge=1e6)),
)

SPREAD = (*_NEAR, *_FAR, *_SHAPES, *_RIDGES)
