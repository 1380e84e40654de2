"""The command line as a whole: help, exit codes, missing packages, pipes and interrupts."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import svmem
from svmem.cli import main, output
from svmem.cli.app import COMMANDS
from svmem.cli.doctor import EXTRAS, warm_up
from tests.cli.conftest import Run

ROOT = Path(__file__).parents[2]
IN_PYPROJECT = {"scikit-learn": "sklearn"}  # name to install -> name to import
PROCESS = [sys.executable, "-m", "svmem"]


def test_the_version_is_printed(run: Run):
    assert run("--version").out == f"{svmem.__version__}\n"


def test_help_names_every_command(run: Run):
    done = run("--help")
    assert done.code == 0
    for one in COMMANDS:
        assert one.short in done.out


@pytest.mark.parametrize("one", COMMANDS, ids=lambda one: one.function.__name__)
def test_every_command_explains_itself_with_an_example_that_parses(run: Run, one):
    _, name, *arguments = one.example.split()
    text = run(name, "--help")
    assert text.code == 0
    assert one.example in text.out
    assert len(" ".join(text.out.split()).split("Options:")[0]) > 150  # a paragraph
    options = [argument for argument in arguments if argument.startswith("--")]
    assert [option for option in options if option not in text.out] == []


def test_what_is_typed_wrongly_ends_with_two(run: Run):
    for arguments in (
        ("reed",),
        ("read",),
        ("info", "M.svmem", "--colour"),
        ("explain", "M", "--query", "1", "--top-k", "0"),
    ):
        done = run(*arguments)
        assert (done.code, done.out) == (2, "")
        assert "svmem" in done.err


def test_a_memory_that_is_not_there_is_named(run: Run, tmp_path: Path):
    for command in (("info",), ("score", "--query", "1"), ("forget", "--ids", "1", "--yes"), ("evict",)):
        done = run(command[0], tmp_path / "M.svmem", *command[1:])
        assert (done.code, done.err) == (1, f"svmem: {tmp_path / 'M.svmem'}: No such file or directory\n")


@pytest.mark.parametrize(
    ("module", "arguments", "extra"),
    [
        ("typer", ("--help",), "cli"),
        ("pyarrow", ("score", "MEMORY", "--queries", "q.parquet"), "tables"),
        ("matplotlib", ("report", "MEMORY", "--out", "r.html"), "report"),
        ("pandas", ("demo", "--out", "out"), "demo"),
    ],
)
def test_a_missing_package_is_one_sentence_with_the_remedy(
    memory: Path, tmp_path: Path, module: str, arguments: tuple[str, ...], extra: str
):
    given = [str(memory) if argument == "MEMORY" else argument for argument in arguments]
    script = f"import sys; sys.modules[{module!r}] = None; from svmem.cli import main; sys.exit(main({given!r}))"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"needs the package {module}: pip install 'svmem[{extra}]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_interrupt_is_quiet(run: Run, memory: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupted(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(svmem.Memory, "load", interrupted)
    done = run("info", memory)
    assert (done.code, done.out, done.err) == (130, "", "")


def test_doctor_prints_versions_and_what_is_missing(run: Run, monkeypatch: pytest.MonkeyPatch, compiled_memory: None):
    from svmem.cli import doctor

    monkeypatch.setattr(doctor, "_missing", lambda *modules: [m for m in modules if m == "matplotlib"])
    done = run("doctor")
    assert done.code == 0, done.err
    assert svmem.__version__ in done.out
    assert "missing matplotlib: pip install 'svmem[report]'" in done.out
    data = run("doctor", "--json").data
    assert data["extras"]["report"] == ["matplotlib"]
    assert data["python"] == ".".join(map(str, sys.version_info[:3]))


def test_doctor_knows_the_extras():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for name, packages in extras.items():
        if name in ("dev", "test"):
            continue
        plain = [package.split(">")[0] for package in packages if not package.startswith("svmem")]
        if plain:
            assert tuple(IN_PYPROJECT.get(package, package) for package in plain) == EXTRAS[name]
        else:
            assert name in EXTRAS


def test_the_steps_of_doctor_run_one_after_the_other(compiled_memory: None):
    for step in warm_up():
        step()


def test_json_is_strict(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(ValueError, match="Out of range float"):
        output.show({"x": float("nan")}, "", as_json=True)


def test_the_module_runs_as_a_program(memory: Path):
    done = subprocess.run([*PROCESS, "info", memory, "--json"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert svmem.Memory.load(memory).digest() in done.stdout


def test_a_closed_pipe_is_quiet(memory: Path):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*PROCESS, "info", memory], stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


def test_importing_the_way_in_loads_no_extra():
    script = "import sys, svmem.cli; print([name for name in ('typer', 'rich', 'pandas') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_main_without_arguments_takes_those_of_the_process(monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.setattr(sys, "argv", ["svmem", "--version"])
    assert main() == 0
    assert capsys.readouterr().out == f"{svmem.__version__}\n"


def test_demo_hands_over_its_options_and_prints_what_was_found(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    demo, table = pytest.importorskip("svmem.demo"), pytest.importorskip("svmem.demo.table")
    asked = []

    class Found:
        def to_json(self) -> dict[str, int]:
            return {"hours": 3}

    def job(output: Path, **options: object) -> Found:
        asked.append((output, options))
        return Found()

    monkeypatch.setattr(demo, "run", job)
    monkeypatch.setattr(table, "summary", lambda result: f"{result.to_json()['hours']} hours")
    assert run("demo", "--out", tmp_path, "--clif", tmp_path / "c").out == "3 hours\n"
    assert run("demo", "--out", tmp_path, "--quick", "--mimic", tmp_path / "m", "--json").data == {"hours": 3}
    quick = demo.Settings(trials=20, patients=20)
    assert asked == [
        (tmp_path, {"clif": tmp_path / "c", "mimic": None, "settings": None}),
        (tmp_path, {"clif": None, "mimic": tmp_path / "m", "settings": quick}),
    ]


AFTER_DOCTOR = """
import importlib, pkgutil
import numpy as np, svmem, svmem._jit
from svmem.cli.doctor import warm_up

def compiled():
    modules = [importlib.import_module(f"svmem._jit.{m.name}") for m in pkgutil.iter_modules(svmem._jit.__path__)]
    found = [f for m in modules for f in vars(m).values() if hasattr(f, "signatures")]
    return {(f.__module__, f.__name__): f.signatures for f in found}

for step in warm_up():
    step()
before = compiled()
keys = np.random.default_rng(1).standard_normal((60, 3))
for kernel in (svmem.RBF(1.0), svmem.Laplacian(1.0), svmem.Linear()):
    memory = svmem.Memory(svmem.Problem(kernel, C=0.1), key_dim=3, value_dim=2)
    for part in (keys[:5], keys[5:9], keys[9:], keys[:2]):
        memory.add(part, part[:, :2])
    memory.forget(ids=[0, 20, 30])
    memory.score(np.asfortranarray(keys))
    if kernel.bounded:
        memory.read(keys * 1e6, top_k=3)
        memory.read(np.asfortranarray(keys))
        memory.explain(keys[0])
        memory.evict()
    memory.certificate()
    memory.forget(ids=memory.ids[5:])
import torch
from svmem.nn import HybridSVAttention, SVAttention, SVCache
for kind, size in ((HybridSVAttention, torch.float32), (SVAttention, torch.float64)):
    for chunk, length in ((4, 30), (64, 600)):
        layer = kind(16, 2, chunk=chunk, dtype=size)
        tokens = torch.randn(2, length, 16, dtype=size, requires_grad=True)
        layer(tokens).square().sum().backward()
        cache = SVCache(layer, 2, exact=chunk > 4)
        layer(tokens, cache=cache)
        cache.forget([0, length // 2])
        cache.crop(length - 1)
print([name for name, signatures in compiled().items() if signatures != before[name]])
"""


@pytest.mark.skipif(bool(os.environ.get("NUMBA_DISABLE_JIT")), reason="nothing is compiled")
def test_after_doctor_nothing_is_left_to_compile(compiled_memory: None):
    done = subprocess.run([sys.executable, "-c", AFTER_DOCTOR], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
