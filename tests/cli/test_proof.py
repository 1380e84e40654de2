import json
from pathlib import Path

import numpy as np
import pytest

import svmem
from tests.cli.conftest import CANARY, N, Run


@pytest.fixture
def proof(run: Run, memory: Path, tmp_path: Path) -> Path:
    assert run("certificate", memory, "--out", tmp_path / "proof.json").code == 0
    return tmp_path / "proof.json"


def test_a_certificate_is_borne_out_by_the_memory_and_by_its_export(
    run: Run, memory: Path, proof: Path, tmp_path: Path
):
    assert run("export", memory, "--out", tmp_path / "records.npz", "--json").data["n"] == N
    for records in (memory, tmp_path / "records.npz"):
        done = run("verify", records, proof)
        assert done.code == 0
        assert done.out == "borne out: every statement of this optimality certificate holds for 24 records\n"
        assert run("verify", records, proof, "--json").data == {"borne_out": True, "findings": [], "n": N}


def test_a_tampered_certificate_is_refused_with_the_finding(run: Run, memory: Path, proof: Path):
    document = json.loads(proof.read_text())
    document["offset"] += 1e-6
    proof.write_text(json.dumps(document))
    done = run("verify", memory, proof, "--json")
    assert done.code == 1
    assert done.data["borne_out"] is False
    assert [finding["field"] for finding in done.data["findings"]] == ["self_digest"]
    assert "refused: self_digest" in run("verify", memory, proof).out


def test_what_cannot_be_read_is_neither_borne_out_nor_refused(run: Run, memory: Path, proof: Path, tmp_path: Path):
    (tmp_path / "no.json").write_text("{")
    (tmp_path / "no.svmem").write_text("nothing")
    for records, document in (
        (memory, tmp_path / "no.json"),
        (memory, tmp_path / "none.json"),
        (tmp_path / "no.svmem", proof),
        (tmp_path / "none.svmem", proof),
        (tmp_path / "none.npz", proof),
    ):
        done = run("verify", records, document)
        assert (done.code, done.out) == (2, "")
        assert len(done.err.splitlines()) == 1


def test_a_certificate_can_speak_of_a_horizon(run: Run, memory: Path, tmp_path: Path):
    done = run("certificate", memory, "--horizon", "0", "--out", tmp_path / "proof.json", "--json")
    assert done.data["kind"] == "selection"
    assert run("verify", memory, tmp_path / "proof.json").code == 0


def test_neither_certificate_nor_export_names_an_owner(run: Run, memory: Path, proof: Path, tmp_path: Path):
    assert run("export", memory, "--out", tmp_path / "records.npz").code == 0
    assert CANARY not in proof.read_text()
    with np.load(tmp_path / "records.npz") as file:
        assert sorted(file.files) == ["keys", "values"]
        assert np.array_equal(file["keys"], svmem.Memory.load(memory).keys)


def test_outputs_that_are_there_are_not_replaced(run: Run, memory: Path, proof: Path, tmp_path: Path):
    before = proof.read_bytes()
    assert run("certificate", memory, "--out", proof).code == 1
    assert proof.read_bytes() == before
    assert run("certificate", memory, "--out", proof, "--force").code == 0
    assert run("export", memory, "--out", tmp_path / "records.csv").code == 1


def test_info_says_what_the_memory_holds(run: Run, memory: Path):
    source = svmem.Memory.load(memory)
    data = run("info", memory, "--json").data
    assert (data["n"], data["owners"], data["without_owner"], data["digest"]) == (N, 5, 0, source.digest())
    assert data["problem"] == source.problem.to_json()
    assert data["margin"] + data["bound"] + data["reserve"] == N
    text = run("info", memory).out
    assert source.digest() in text
    assert "24, keys of 2 numbers, values of 1" in text
    assert CANARY not in text


def test_a_damaged_memory_is_refused_in_one_line(run: Run, memory: Path):
    data = bytearray(memory.read_bytes())
    data[-40] ^= 1
    memory.write_bytes(data)
    for command in (("info",), ("read", "--query", "1,2"), ("forget", "--ids", "1", "--yes")):
        done = run(command[0], memory, *command[1:])
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith(f"svmem: {memory}: the file is damaged")
        assert len(done.err.splitlines()) == 1
    assert memory.read_bytes() == bytes(data)


def test_the_report_is_a_page_that_stands_alone(run: Run, memory: Path, tmp_path: Path):
    pytest.importorskip("matplotlib")
    done = run("report", memory, "--out", tmp_path / "report.html", "--title", "Two <vitals>", "--json")
    assert done.code == 0, done.err
    page = (tmp_path / "report.html").read_text()
    assert "Two &lt;vitals&gt;" in page
    assert svmem.Memory.load(memory).digest() in page
