"""What the package as a whole promises: its names, its version, how little it imports, and files of one screen."""

import subprocess
import sys
import tomllib
from pathlib import Path

import svmem

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "svmem"

NAMES = {
    "RBF",
    "Cosine",
    "Laplacian",
    "Linear",
    "Memory",
    "OptimalityCertificate",
    "Precomputed",
    "Problem",
    "Receipt",
    "SelectionCertificate",
    "Solution",
    "Status",
    "__version__",
    "certify",
    "certify_selection",
    "errors",
    "median_sigma",
    "solve",
}
ABSENT = {
    *("fastapi", "matplotlib", "pandas", "pyarrow", "rich", "sklearn", "sqlite3", "torch", "typer", "uvicorn"),
    *("svmem.baselines", "svmem.cli", "svmem.cluster", "svmem.demo", "svmem.estimator", "svmem.nn", "svmem.report"),
    *("svmem.service", "svmem.store"),
}


def test_the_public_names_are_exactly_these():
    assert set(svmem.__all__) == NAMES


def test_every_public_name_is_there_once():
    assert len(svmem.__all__) == len(set(svmem.__all__))
    assert [name for name in svmem.__all__ if not hasattr(svmem, name)] == []


def test_importing_svmem_loads_none_of_the_extras():
    script = "import sys, svmem; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "svmem.memory" in ran.stdout.split()
    assert ABSENT & set(ran.stdout.split()) == set()


def test_the_version_is_the_one_in_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert svmem.__version__ == project["version"]


def test_no_file_of_the_package_is_longer_than_300_lines():
    lengths = {str(path.relative_to(PACKAGE)): len(path.read_text().splitlines()) for path in PACKAGE.rglob("*.py")}
    assert lengths
    assert {name: length for name, length in lengths.items() if length > 300} == {}
