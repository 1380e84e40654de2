"""The checker alone: it imports nothing of the package, runs as a copied folder, and answers on the command line."""

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import svmem.checker
from svmem.checker.__main__ import main
from tests.checker.documents import CASE, DOCUMENT, VALUES, replaced

Array = np.ndarray
FOLDER = Path(svmem.checker.__file__).parent


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
