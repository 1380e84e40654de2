"""The checker on its own accepts the certificate and refuses the forgeries; nothing else ends the demo well."""

import json
from pathlib import Path

import numpy as np
import pytest

from svmem.core.document import seal
from svmem.core.problem import Problem
from svmem.demo.growth import grow
from svmem.demo.hours import Hours
from svmem.demo.proof import Held, prove
from svmem.errors import CertificateError
from svmem.kernels import RBF
from svmem.types import Json
from tests.demo.readings import walk

pytestmark = pytest.mark.usefixtures("compiled_memory")


@pytest.fixture(scope="module")
def hours() -> Hours:
    return walk({"a1": 30, "b1": 25})


@pytest.fixture(scope="module")
def certificate(hours: Hours) -> Json:
    memory, _ = grow(hours, Problem.from_nu(0.3, len(hours), RBF(3.0)), 64)
    return memory.certificate(removed=memory.forget(owner="b"))


def held(hours: Hours) -> Held:
    kept = hours.patient == "a"
    return Held(hours.keys[kept], hours.values[kept], hours.keys[~kept], hours.values[~kept])


def test_the_certificate_is_borne_out_and_each_forgery_refused(hours: Hours, certificate: Json, tmp_path: Path) -> None:
    calls: list[int] = []
    proof = prove(certificate, held(hours), tmp_path, calls.append)
    assert proof.verdict.startswith("borne out")
    assert [said.split(":")[0] for _, said in proof.forgeries] == ["refused"] * 3
    assert [said.split()[1] for _, said in proof.forgeries] == ["active.alpha", "records_root", "n"]
    assert calls == [1] * 4
    assert json.loads((tmp_path / "certificate.json").read_text(encoding="utf-8")) == certificate
    assert (proof.records, proof.size_bytes) == (30, (tmp_path / "certificate.json").stat().st_size)
    assert 0 < proof.score_bound < 1e-7
    with np.load(tmp_path / "records.npz") as records:
        np.testing.assert_array_equal(records["keys"], held(hours).keys)


def test_the_certificate_names_no_patient_and_holds_no_reading(hours: Hours, certificate: Json, tmp_path: Path) -> None:
    prove(certificate, held(hours), tmp_path)
    text = (tmp_path / "certificate.json").read_text(encoding="utf-8")
    assert '"a"' not in text
    assert '"b1"' not in text
    assert not any(repr(float(number)) in text for number in hours.keys.ravel() if abs(number) > 1e-3)


def test_a_certificate_that_does_not_hold_ends_the_demo(hours: Hours, certificate: Json, tmp_path: Path) -> None:
    optimality = {**certificate["optimality"], "gap": 0.0}
    with pytest.raises(CertificateError, match="refuses the certificate"):
        prove(seal({**certificate, "optimality": optimality}), held(hours), tmp_path)


def test_a_checker_that_accepts_everything_ends_the_demo(
    hours: Hours, certificate: Json, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gullible = tmp_path / "gullible"
    gullible.mkdir()
    (gullible / "__init__.py").write_text("", encoding="utf-8")
    (gullible / "__main__.py").write_text("print('fine')", encoding="utf-8")
    monkeypatch.setattr("svmem.checker.__file__", str(gullible / "__init__.py"))
    with pytest.raises(CertificateError, match="accepted a forgery: one coefficient halved"):
        prove(certificate, held(hours), tmp_path)
