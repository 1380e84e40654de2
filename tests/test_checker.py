"""The independent checker: it bears out what is true, and names the field of everything that is not."""

import ast
import copy
import json
import math
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import svmem.checker
from svmem.checker import check
from svmem.checker.__main__ import main
from svmem.checker.doubled import exp_of_minus
from svmem.checker.model import Model
from svmem.core.certificate import certify
from svmem.core.document import Commitment, Removal, Scope, build, seal
from svmem.core.selection import certify_selection
from svmem.errors import InvalidInput
from tests.cases import ALL, BY_NAME, Case, problem_of, truth
from tests.oracles import Setting, fewest, quadratic
from tests.oracles.digests import records_root, self_digest, state_digest
from tests.oracles.distance import exact_residuals
from tests.oracles.exact import ctx, gram_matrix, number

Array = np.ndarray
Path_ = tuple[str | int, ...]
CHECKABLE = [case for case in ALL if case.setting.kernel != "precomputed"]
named = pytest.mark.parametrize("case", CHECKABLE, ids=lambda case: case.name)
FOLDER = Path(svmem.checker.__file__).parent
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


@named
def test_true_certificates_are_borne_out_in_any_order_of_the_records(case: Case) -> None:
    values, document = deletion(case)
    order = np.random.default_rng(0).permutation(len(values))
    assert check(case.keys, values, document) == []
    assert check(case.keys[order], values[order], json.loads(json.dumps(document))) == []


@pytest.mark.parametrize("horizon", [None, (1, 0), (0, 1), (5, 2)])
@pytest.mark.parametrize("name", ["stuck", "carried_forward", "paper_cloud", "collecting"])
def test_true_horizons_are_borne_out(name: str, horizon: tuple[int, int] | None) -> None:
    case = BY_NAME[name]
    values = record_values(case)
    document = certificate(case, values, horizon=horizon)
    assert document["kind"] == ("optimality" if horizon is None else "selection")
    assert check(case.keys, values, document) == []


def test_an_empty_memory_is_borne_out() -> None:
    keys, values, problem = np.empty((0, 3)), np.empty((0, 2)), problem_of(Setting(C=0.5))
    optimality = certify(keys, np.empty(0), problem)
    root = records_root(keys, values)
    assert root == "00" * 32
    state = state_digest(problem.to_json(), keys, 2, np.empty(0), 0.0, root)
    document = build(keys, np.empty(0), optimality, Commitment(2, root, state))
    assert check(keys, values, document) == []
    assert [finding.field for finding in check(np.zeros((1, 3)), np.zeros((1, 2)), document)] == ["n"]


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


def changed(value: Any) -> Any:
    """Return a value of the same type, as near as can be."""
    if value is None:
        return 0.5
    if isinstance(value, str):
        return value[:-1] + ("0" if value[-1] != "0" else "1")
    return value + 1 if isinstance(value, int) else math.nextafter(value, math.inf)


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
PLACES = [path for path, _ in leaves(DOCUMENT)]
# Words of the writer, which records cannot bear out or refute.
TESTIMONY = {("removed", "count"), ("removed", "exact_relative_to"), ("removed", "erased"), ("selection", "status")}


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


def test_larger_bounds_are_accepted_since_they_are_true() -> None:
    for name, value in DOCUMENT["optimality"].items():
        if name not in ("sum_error", "w_bound"):  # the selection part repeats the latter
            assert check(CASE.keys, VALUES, seal(replaced(DOCUMENT, ("optimality", name), 1.5 * value))) == []


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


def test_minus_zero_is_zero() -> None:
    case = BY_NAME["zero_and_minus_zero"]
    values, document = deletion(case)
    assert check(np.abs(case.keys), values, document) == []


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


# The document.


def test_the_document_holds_no_key_no_value_and_no_infinity() -> None:
    keys = np.array([[0.123456789], [7.654321], [3.5]])
    case = Case("canary", "", keys, Setting(C=0.5))
    text = json.dumps(certificate(case, np.full((3, 2), 9.87654321)), allow_nan=False)
    assert not [canary for canary in ("0.123456789", "7.654321", "9.87654321", "3.5") if canary in text]


def test_the_self_digest_is_the_one_described() -> None:
    assert DOCUMENT["self_digest"] == self_digest(DOCUMENT)


def test_unequal_coefficients_of_equal_keys_are_refused() -> None:
    case = BY_NAME["two_equal_keys"]
    alpha = np.array([0.25, 0.75])
    with pytest.raises(InvalidInput, match="equal keys must carry equal coefficients"):
        build(case.keys, alpha, certify(case.keys, alpha, case.problem), Commitment(1, "", ""))


def test_parts_that_do_not_belong_together_are_refused() -> None:
    case, other = BY_NAME["walk"], BY_NAME["stuck"]
    alpha = coefficients(case)
    optimality = certify(case.keys, alpha, case.problem)
    selection = certify_selection(other.keys, coefficients(other), other.problem)
    with pytest.raises(InvalidInput, match="other records or another problem"):
        build(case.keys, alpha, optimality, Commitment(1, "", ""), selection=selection)
    with pytest.raises(InvalidInput, match="the certificate is for 40 records"):
        build(case.keys[:9], alpha[:9], optimality, Commitment(1, "", ""))


# The arithmetic of the checker.


def test_the_checkers_exponential_is_right_to_76_bits() -> None:
    t = np.concatenate([np.linspace(0, 3, 200), np.linspace(3, 699, 200), [0.0, 1e-300, 1 / 3, 700.0, 1e9]])
    low = t * 1e-17
    high, rest = exp_of_minus((t, low))
    for a, b, value, tail in zip(t, low, high, rest, strict=True):
        right = ctx.exp(-(number(a) + number(b)))
        assert abs(number(value) + number(tail) - right) <= max(right * ctx.mpf(2) ** -76, ctx.mpf(10) ** -303)


@named
def test_the_checkers_residuals_are_within_their_error(case: Case) -> None:
    document = certificate(case, record_values(case), horizon=None)
    keys, size = np.unique(case.keys + 0.0, axis=0, return_counts=True)
    model = Model(keys, size, document)
    order = [int(np.flatnonzero((case.keys == key).all(axis=1))[0]) for key in keys]
    exact = exact_residuals(coefficients(case), gram_matrix(case.keys, case.setting), case.setting.ridge)
    for k, i in enumerate(order):
        assert abs(number(model.r[0][k]) + number(model.r[1][k]) - exact[i]) <= number(model.error[k])


# Alone, on the command line.


def test_the_checker_imports_nothing_of_the_package() -> None:
    for file in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level < 2
                names = [] if node.level else [str(node.module)]
            assert all(name.split(".")[0] in {*sys.stdlib_module_names, "numpy"} for name in names)


def test_a_copied_folder_checks_on_its_own(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "checker")
    np.savez(tmp_path / "records.npz", keys=CASE.keys, values=VALUES)
    (tmp_path / "certificate.json").write_text(json.dumps(DOCUMENT))
    script = "import sys, checker.__main__ as m; print(m.main(sys.argv[1:]), 'svmem' in sys.modules)"
    command = [sys.executable, "-c", script, "records.npz", "certificate.json"]
    ran = subprocess.run(command, cwd=tmp_path, env={"PATH": ""}, capture_output=True, text=True, check=True)
    first, last = ran.stdout.splitlines()
    assert first == "borne out: every statement of this deletion certificate holds for these 100 records"
    assert last == "0 False"


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    np.savez(tmp_path / "records.npz", keys=CASE.keys, values=VALUES)
    (tmp_path / "certificate.json").write_text(json.dumps(DOCUMENT, indent=1))
    return str(tmp_path / "records.npz"), str(tmp_path / "certificate.json")


def test_the_command_says_borne_out_or_names_what_it_refuses(files: tuple[str, str], capsys: Any) -> None:
    assert main(files) == 0
    assert capsys.readouterr().out.startswith("borne out: ")
    Path(files[1]).write_text(json.dumps(replaced(DOCUMENT, ("offset",), DOCUMENT["offset"] + 1e-12)))
    assert main(files) == 1
    assert capsys.readouterr().out.startswith("refused: self_digest is ")


def test_records_may_come_as_csv(files: tuple[str, str], tmp_path: Path) -> None:
    names = ["id", *(f"key_{k}" for k in range(CASE.keys.shape[1])), "value_a", "value_b"]
    rows = [[str(i), *map(repr, row)] for i, row in enumerate(np.hstack([CASE.keys, VALUES]).tolist())]
    (tmp_path / "records.csv").write_text("\n".join(",".join(row) for row in [names, *rows]))
    assert main([str(tmp_path / "records.csv"), files[1]]) == 0


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"n": NaN}', '{"n": 1, "n": 2}', "[" * 100_000, "\xff"],
    ids=["empty", "cut", "nan", "twice", "deep", "bytes"],
)
def test_certificates_that_are_no_json_get_one_sentence(files: tuple[str, str], text: str, capsys: Any) -> None:
    Path(files[1]).write_bytes(text.encode("latin-1"))
    assert main(files) == 2
    assert "holds no certificate" in capsys.readouterr().err


@pytest.mark.parametrize(
    "keys", [np.full((100, 3), np.nan), np.zeros(100), np.zeros((99, 3)), np.array(["a"] * 100)[:, None]]
)
def test_records_that_are_none_get_one_sentence(files: tuple[str, str], keys: Array, capsys: Any) -> None:
    np.savez(files[0], keys=keys, values=VALUES)
    assert main(files) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04 nothing", b"\x93NUMPY", b"key,value\n1,2,3\n", b"key,value\n1,x\n"]
)
@pytest.mark.parametrize("name", ["records.npz", "records.csv"])
def test_files_that_hold_no_records_get_one_sentence(
    files: tuple[str, str], tmp_path: Path, name: str, content: bytes, capsys: Any
) -> None:
    (tmp_path / name).write_bytes(content)
    assert main([str(tmp_path / name), files[1]]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert main([str(tmp_path / "absent.npz"), files[1]]) == 2


@pytest.mark.parametrize("argv", [[], ["one"], ["one", "two", "three"]])
def test_misuse_prints_the_usage(argv: list[str], capsys: Any) -> None:
    assert main(argv) == 2
    assert capsys.readouterr().err.startswith("usage: ")
