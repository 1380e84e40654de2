"""Certificates to check: of named cases, and one of a hundred keys whose bounds are more than rounding."""

import copy
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from svmem.core.certificate import certify
from svmem.core.document import Commitment, Removal, Scope, build
from svmem.core.selection import certify_selection
from tests.cases import ALL, Case, truth
from tests.oracles import Setting, fewest, quadratic
from tests.oracles.digests import records_root, state_digest

__all__ = [
    "CASE",
    "DOCUMENT",
    "VALUES",
    "Path_",
    "certificate",
    "coefficients",
    "deletion",
    "leaves",
    "named",
    "record_values",
    "replaced",
]

Array = np.ndarray
Path_ = tuple[str | int, ...]
CHECKABLE = [case for case in ALL if case.setting.kernel != "precomputed"]
named = pytest.mark.parametrize("case", CHECKABLE, ids=lambda case: case.name)
ERASED = "the rows were overwritten in the one file; backups were not touched"


def coefficients(case: Case) -> Array:
    """Return the optimum as the nearest floats inside the box, the caps exactly."""
    optimum, setting = truth(case), case.setting
    if len(case.keys) < fewest(setting.C):
        return np.full(len(case.keys), 1 / len(case.keys))
    alpha = np.clip(optimum.alpha64, 0, setting.C)
    alpha[list(optimum.bound)], alpha[list(optimum.reserve)] = setting.C, 0.0
    return alpha


def record_values(case: Case) -> Array:
    return np.random.default_rng(len(case.keys)).integers(0, 3, (len(case.keys), 2)).astype(float)


def certificate(
    case: Case,
    values: Array,
    *,
    alpha: Array | None = None,
    horizon: tuple[int, int] | None = (0, 0),
    removal: Removal | None = None,
) -> dict[str, Any]:
    """Return the document for a case, with the digests of the reference; by default for the optimum."""
    problem = case.problem
    offset = float(truth(case).offset) if alpha is None else None
    alpha = coefficients(case) if alpha is None else alpha
    optimality = certify(case.keys, alpha, problem, offset=offset)
    selection = None
    if horizon is not None:
        selection = certify_selection(case.keys, alpha, problem, admissions=horizon[0], deletions=horizon[1])
    root = records_root(case.keys, values)
    state = state_digest(problem.to_json(), case.keys, values.shape[1], alpha, optimality.offset, root)
    commitment = Commitment(values.shape[1], root, state)
    return build(case.keys, alpha, optimality, commitment, selection=selection, removal=removal)


def deletion(case: Case) -> tuple[Array, dict[str, Any]]:
    values = record_values(case)
    return values, certificate(case, values, removal=Removal(2, Scope.EVERYTHING, ERASED))


def leaves(data: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Yield every number, text and null of a document with its place."""
    if isinstance(data, dict | list):
        for key, part in data.items() if isinstance(data, dict) else enumerate(data):
            yield from leaves(part, (*path, key))
    else:
        yield path, data


def replaced(document: dict[str, Any], path: Path_, value: Any) -> dict[str, Any]:
    document = copy.deepcopy(document)
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return document


def nearly_optimal(keys: Array, setting: Setting) -> Array:
    """Return coefficients on the simplex that are some 1e-9 from the optimum, so that bounds are more than rounding."""
    alpha = quadratic(keys, setting)
    alpha = np.where(alpha < 1e-7, 0, np.where(alpha > setting.C - 1e-7, setting.C, np.round(alpha, 9)))
    middle = int(np.argmin(np.abs(alpha - setting.C / 2)))
    alpha[middle] = 0
    alpha[middle] = 1 - math.fsum(alpha)
    return alpha


# 100 keys of a plane, so wide a kernel that one more key wakes few of them; a certificate for one admission.
CASE = Case("plane", "", np.random.default_rng(3).standard_normal((100, 2)), Setting(C=1 / 40.5, sigma=2.5))
VALUES = record_values(CASE)
DOCUMENT = certificate(
    CASE,
    VALUES,
    alpha=nearly_optimal(CASE.keys, CASE.setting),
    horizon=(1, 0),
    removal=Removal(2, Scope.EVERYTHING, ERASED),
)
