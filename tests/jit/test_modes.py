"""The compiled core gives the same bits compiled, uncompiled and with bounds checks, and lets other threads run."""

import json
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import svmem
from tests.jit.history import digests


def digests_elsewhere(**environment: str) -> list[str]:
    """Return what a fresh interpreter with these settings of numba computes."""
    code = "import json; from tests.jit.history import digests; print(json.dumps(digests()))"
    run = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_uncompiled_code_gives_the_same_bits():
    assert digests_elsewhere(NUMBA_DISABLE_JIT="1") == digests()


@pytest.mark.timeout(900)  # compiles everything anew
def test_bounds_checks_find_nothing_and_change_no_bit(tmp_path):
    assert digests_elsewhere(NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(tmp_path)) == digests()


def test_other_threads_run_while_the_core_computes():
    keys = np.random.default_rng(0).standard_normal((3000, 6))
    problem = svmem.Problem.from_nu(0.4, 3000, svmem.RBF(2.0))
    svmem.solve(keys[:50], svmem.Problem.from_nu(0.4, 50, svmem.RBF(2.0)))  # compiled beforehand
    seconds: list[float] = []

    def work() -> None:
        start = time.perf_counter()
        svmem.solve(keys, problem)
        seconds.append(time.perf_counter() - start)

    thread = threading.Thread(target=work)
    thread.start()
    longest, last = 0.0, time.perf_counter()
    while thread.is_alive():
        time.sleep(0.001)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    assert longest < 0.8 * seconds[0]  # holding the lock, one compiled call alone would take about all of it
