"""A stream of keys: the cold solve at every boundary where many keys are cold, in every mode of the compiler."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import svmem
from svmem.nn.head_memory import HeadMemory

PROBLEMS = [
    (0.25, 1.0, 3, 0.05),
    (0.1, 1.5, 2, 0.3),
    (0.05, 1.0, 4, 0.1),
    (0.3, 0.7, 6, 0.02),
]  # C, sigma, centres, noise
BOUNDARIES = range(8, 65, 8)


def stream(number: int) -> tuple[np.ndarray, svmem.Problem]:
    """Return keys around a few centres, some of them equal, and a problem for them."""
    C, sigma, centres, noise = PROBLEMS[number]
    rng = np.random.default_rng(number)
    keys = 2 * rng.standard_normal((centres, 2))[rng.integers(centres, size=64)] + noise * rng.standard_normal((64, 2))
    keys[20::9] = keys[3]
    return keys, svmem.Problem(svmem.RBF(sigma), C, 1e-4)


def answers() -> list[tuple[int, str]]:
    """Return how many keys are cold at each boundary, and the coefficients."""
    from svmem._jit.stream import COLD

    out = []
    for number in range(len(PROBLEMS)):
        keys, problem = stream(number)
        memory = HeadMemory(2, problem, 0)
        for end in BOUNDARIES:
            memory.admit(keys[end - 8 : end], np.ones(8, bool), np.arange(end - 8, end))
            index, values, _, _ = memory.support()
            alpha = np.zeros(end)
            alpha[index] = values
            out.append((int(memory._stream.state[COLD]), alpha.tobytes().hex()))
    return out


def elsewhere(setup: str, **environment: str) -> list[tuple[int, str]]:
    """Return the answers of a fresh interpreter with these settings of numba."""
    code = f"{setup}\nimport json; from tests.jit.test_stream import answers; print(json.dumps(answers()))"
    run = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return [(cold, alpha) for cold, alpha in json.loads(run.stdout)]


def solved() -> list[str]:
    """Return the coefficients of the cold solve at each boundary."""
    out = []
    for number in range(len(PROBLEMS)):
        keys, problem = stream(number)
        out += [svmem.solve(keys[:end], problem).alpha.tobytes().hex() for end in BOUNDARIES]
    return out


SMALL = """
from svmem._jit import admission, cold_tier, gates
admission.HOT = cold_tier.HOT = {hot}
cold_tier.STEPS_AHEAD = cold_tier.STEPS_AGAIN = {steps}
cold_tier.GROWN = 0.0
gates.ALL_IN = 5
"""


@pytest.mark.parametrize(("hot", "steps"), [(0, 0.0), (0, 0.2), (8, 0.2)])
def test_keys_that_lie_cold_change_no_bit_of_the_optimum(hot: int, steps: float) -> None:
    found = elsewhere(SMALL.format(hot=hot, steps=steps), NUMBA_DISABLE_JIT="1")
    assert max(cold for cold, _ in found) > 10
    assert [alpha for _, alpha in found] == solved()


def test_a_stream_has_the_bits_of_the_cold_solve_at_every_boundary() -> None:
    assert [alpha for _, alpha in answers()] == solved()


def test_uncompiled_code_gives_the_same_bits() -> None:
    assert elsewhere("", NUMBA_DISABLE_JIT="1") == answers()


@pytest.mark.slow  # compiles everything anew
@pytest.mark.timeout(1200)
def test_bounds_checks_find_nothing_and_change_no_bit(tmp_path) -> None:
    assert elsewhere("", NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(tmp_path)) == answers()
