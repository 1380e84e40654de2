"""What an answer of the subject has to satisfy, as assertions. The subject's solution is read by its fields only."""

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tests.oracles.conditions import duality_gap, residuals
from tests.oracles.exact import Optimum
from tests.oracles.quadratic import float_gram
from tests.oracles.setting import Setting, fewest

__all__ = ["Answer", "assert_agrees", "assert_feasible", "assert_optimal", "positions"]

Array = NDArray[np.float64]
Places = NDArray[np.int64]

SUM_FUZZ = 1e-14
KKT_FUZZ = 1e-12  # what the project promises for the conditions
ROUNDING = 16 * np.finfo(np.float64).eps  # of a gradient of order 1: one kernel entry, one sum, one offset


class Answer(Protocol):
    """The fields of a solution."""

    @property
    def ids(self) -> NDArray[np.int64]: ...
    @property
    def alpha(self) -> Array: ...
    @property
    def offset(self) -> float: ...
    @property
    def margin(self) -> NDArray[np.int64]: ...
    @property
    def bound(self) -> NDArray[np.int64]: ...
    @property
    def reserve(self) -> NDArray[np.int64]: ...
    @property
    def gap(self) -> float: ...


def positions(answer: Answer) -> tuple[Places, Places, Places]:
    """Return margin, bound and reserve as positions in `alpha` instead of ids."""
    place = {int(i): k for k, i in enumerate(answer.ids)}
    sets = (answer.margin, answer.bound, answer.reserve)
    margin, bound, reserve = (np.array([place[int(i)] for i in chosen], dtype=np.int64) for chosen in sets)
    return margin, bound, reserve


def assert_feasible(answer: Answer, setting: Setting) -> None:
    """Check, without any tolerance but on the sum, that coefficients, sets and numbers are what they are said to be."""
    alpha, cap = answer.alpha, setting.C
    everyone = np.concatenate([answer.margin, answer.bound, answer.reserve])
    assert alpha.dtype == np.float64
    assert len(alpha) == len(answer.ids)
    assert sorted(everyone.tolist()) == answer.ids.tolist()
    assert all((np.diff(chosen) > 0).all() for chosen in (answer.margin, answer.bound, answer.reserve))
    assert np.isfinite(alpha).all()
    assert np.isfinite([answer.offset, answer.gap]).all()
    margin, bound, reserve = positions(answer)
    if len(alpha) < fewest(cap):
        assert len(margin) == len(reserve) == 0
        assert (alpha == 1 / len(alpha)).all()
    else:
        assert (alpha[bound] == cap).all()
        assert ((alpha[margin] > 0) & (alpha[margin] < cap)).all()
    assert (alpha[reserve] == 0).all()
    assert not np.signbit(alpha).any()
    assert abs(math.fsum(alpha) - 1) <= SUM_FUZZ


def assert_optimal(answer: Answer, keys: Array, setting: Setting, gram: Array | None = None) -> None:
    """Check feasibility, the conditions, the stated gap, and that equal keys carry equal coefficients."""
    assert_feasible(answer, setting)
    gram = float_gram(keys, setting) if gram is None else gram
    found = residuals(answer.alpha, answer.offset, gram, setting)
    # The ridge's own term, ridge * alpha, is rounded like any other.
    assert found.kkt <= KKT_FUZZ * (1 + setting.ridge * answer.alpha.max())
    if len(answer.alpha) >= fewest(setting.C):
        scale = 1 + np.abs(gram).max() + setting.ridge
        assert duality_gap(answer.alpha, gram, setting) <= KKT_FUZZ * scale
        assert answer.gap <= KKT_FUZZ * scale
    if setting.kernel != "precomputed":
        for group in _equal_rows(keys):
            assert len(set(answer.alpha[group].tolist())) == 1


def assert_agrees(answer: Answer, truth: Optimum, keys: Array, setting: Setting) -> None:
    """Check coefficients, offset and sets against the fifty-digit optimum, as closely as rounding of the kernel lets.

    A gradient off by r moves the node masses by at most r sqrt(n) / smallest eigenvalue on the margin.
    """
    margin, bound, reserve = positions(answer)
    moving = sorted({*truth.margin, *margin.tolist()})
    scale = max(1.0, max(abs(float(row[i])) for i, row in enumerate(truth.gram)), setting.ridge * setting.C)
    error = ROUNDING * scale * max(1.0, len(truth.alpha)) ** 0.5
    smallest = _smallest_eigenvalue(moving, keys, setting)
    distance = error / smallest
    assert np.abs(answer.alpha - truth.alpha64).max() <= distance + 1e-15
    gradient_fuzz = error + error * (scale / smallest) ** 0.5
    assert abs(answer.offset - float(truth.offset)) <= gradient_fuzz
    if len(truth.alpha) < fewest(setting.C):
        return
    sure_margin = (truth.alpha64 > distance) & (setting.C - truth.alpha64 > distance)
    assert set(np.flatnonzero(sure_margin)) <= set(margin.tolist())
    assert set(np.flatnonzero(truth.h64 > 2 * gradient_fuzz)) <= set(reserve.tolist())
    assert set(np.flatnonzero(truth.h64 < -2 * gradient_fuzz)) <= set(bound.tolist())


def _equal_rows(keys: Array) -> list[NDArray[np.intp]]:
    """Return the groups of equal keys, as positions; -0 equals 0."""
    _, group = np.unique(keys + 0.0, axis=0, return_inverse=True)
    group = group.reshape(-1)
    return [np.flatnonzero(group == g) for g in range(group.max(initial=-1) + 1)]


def _smallest_eigenvalue(moving: list[int], keys: Array, setting: Setting) -> float:
    """Return the least eigenvalue of the margin block; a node of m equal keys is one variable with ridge / m."""
    if not moving:
        return 1.0
    groups = (
        [g for g in _equal_rows(keys[moving])] if setting.kernel != "precomputed" else [[i] for i in range(len(moving))]
    )
    first = [moving[g[0]] for g in groups]
    gram = float_gram(keys, setting)[np.ix_(first, first)]
    ridges = np.array([setting.ridge / len(g) for g in groups])
    return max(float(np.linalg.eigvalsh(gram + np.diag(ridges))[0]), float(ridges.min()))
