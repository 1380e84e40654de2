"""What is not true is refused by the checker, which names the field."""

import math
from typing import Any

import numpy as np
import pytest

from svmem.checker import check
from svmem.core.document import seal
from tests.cases import BY_NAME, Case, problem_of
from tests.checker.documents import (
    CASE,
    DOCUMENT,
    VALUES,
    Path_,
    certificate,
    deletion,
    leaves,
    record_values,
    replaced,
)
from tests.oracles import Setting
from tests.oracles.digests import records_root, state_digest

PLACES = [path for path, _ in leaves(DOCUMENT)]
# Words of the writer, which records cannot bear out or refute.
TESTIMONY = {("removed", "count"), ("removed", "exact_relative_to"), ("removed", "erased"), ("selection", "status")}


def changed(value: Any) -> Any:
    """Return a value of the same type, as near as can be."""
    if value is None:
        return 0.5
    if isinstance(value, str):
        return value[:-1] + ("0" if value[-1] != "0" else "1")
    return value + 1 if isinstance(value, int) else math.nextafter(value, math.inf)


@pytest.mark.parametrize("path", PLACES, ids=lambda path: ".".join(map(str, path)))
def test_no_field_can_be_changed_by_a_bit(path: Path_) -> None:
    value = dict(leaves(DOCUMENT))[path]
    found = check(CASE.keys, VALUES, replaced(DOCUMENT, path, changed(value)))
    assert found
    names = " ".join(str(finding) for finding in found)
    assert "self_digest" in names or str(path[0]) in names


def lowered(value: Any) -> Any:
    return value / 2 if isinstance(value, float) and value > 0 else changed(value)


@pytest.mark.parametrize("path", PLACES, ids=lambda path: ".".join(map(str, path)))
def test_a_changed_field_is_named_even_if_the_document_is_sealed_again(path: Path_) -> None:
    if path in TESTIMONY or path[0] in ("versions", "self_digest", "status"):
        return
    value = dict(leaves(DOCUMENT))[path]
    forge = lowered if path[0] in ("optimality", "selection") and "slack" not in path else changed
    if path == ("selection", "level"):  # a level below 0: lower is farther from 0
        forge = lambda v: v * (1 + 1e-6)  # noqa: E731
    if "slack" in path:
        forge = lambda v: v + 1e-9  # noqa: E731
    found = check(CASE.keys, VALUES, seal(replaced(DOCUMENT, path, forge(value))))
    fields = {part for finding in found for part in finding.field.split(".")}
    derived = (
        {"state_digest", "active", "alpha", "multiplicity"} if path[0] in ("active", "offset", "problem") else set()
    )
    assert fields & ({str(part) for part in path} | derived), [str(finding) for finding in found]
    assert all(len(str(finding)) < 400 for finding in found)


def test_a_forged_status_of_proof_is_refused() -> None:
    case = BY_NAME["collecting"]
    values, document = deletion(case)
    found = check(case.keys, values, seal(document | {"status": "proven: the coefficients are optimal"}))
    assert [str(finding) for finding in found] == ["status is 'proven' but should be 'collecting'"]


@pytest.mark.parametrize("row", [0, 17])
def test_other_records_are_refused(row: int) -> None:
    n = len(VALUES)
    keys, values = CASE.keys.copy(), VALUES.copy()
    values[row, 0] += 1
    assert [f.field for f in check(keys, values, DOCUMENT)] == ["records_root", "state_digest"]
    keys[row, 0] = math.nextafter(keys[row, 0], 9)
    assert check(keys, VALUES, DOCUMENT)
    less, more = np.delete(np.arange(n), row), np.append(np.arange(n), row)
    for chosen in (less, more):
        assert "n" in {f.field for f in check(CASE.keys[chosen], VALUES[chosen], DOCUMENT)}
    swapped = np.where(np.arange(n) == row, (row + 1) % n, np.arange(n))
    assert check(CASE.keys[swapped], VALUES[swapped], DOCUMENT)


def test_a_reserve_record_that_is_no_longer_silent_is_refused() -> None:
    """A certificate of better coefficients than the records bear out: a key that should be active is called reserve."""
    keys, problem = np.array([[-1.0], [1.0], [0.0]]), problem_of(Setting(C=1.0, sigma=0.5))
    case = Case("forged", "", keys, Setting(C=1.0, sigma=0.5))
    values = record_values(case)
    document = certificate(case, values)
    alpha = np.array([0.5, 0.5, 0.0])
    forged = {"node": [0, 2], "multiplicity": [1, 1], "alpha": [0.5, 0.5]}
    document = document | {
        "active": forged,
        "optimality": document["optimality"] | {"sum_error": 0.0},
        "selection": document["selection"] | {"reserve": 1, "node": [1], "slack": [0.1]},
        "state_digest": state_digest(problem.to_json(), keys, 2, alpha, document["offset"], records_root(keys, values)),
    }
    found = {finding.field for finding in check(keys, values, seal(document))}
    assert {"optimality.gap", "optimality.w_bound", "optimality.max_kkt", "optimality.readout_epsilon"} <= found
    assert found & {"selection.level", "selection.slack"}


@pytest.mark.parametrize("path", [p for p in PLACES if len(p) < 3], ids=lambda path: ".".join(map(str, path)))
def test_wrong_types_are_named(path: Path_) -> None:
    for wrong in ([], {}, True, "x" if not isinstance(dict(leaves(DOCUMENT))[path], str) else 1):
        found = check(CASE.keys, VALUES, replaced(DOCUMENT, path, wrong))
        assert found
        assert found[0].field.split(".")[-1] in map(str, (*path, "certificate", "self_digest", path[0]))


@pytest.mark.parametrize("data", [None, 3, [], {}, "text", {"format": "svmem-certificate"}])
def test_what_is_no_certificate_is_refused(data: Any) -> None:
    assert "certificate" in str(check(CASE.keys, VALUES, data)[0])


def test_a_missing_and_an_unknown_field_are_named() -> None:
    less = {name: part for name, part in DOCUMENT.items() if name != "offset"}
    assert str(check(CASE.keys, VALUES, less)[0]).startswith("certificate.offset is missing")
    assert str(check(CASE.keys, VALUES, DOCUMENT | {"more": 1})[0]).startswith("certificate.more is missing, unknown")
