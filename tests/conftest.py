"""Profiles of the random tests, and one compilation before any test is timed."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import svmem

# These modules make assertions for the tests; pytest then says what was compared.
pytest.register_assert_rewrite("tests.oracles.agreement", "tests.cases.record", "tests.cases.history")

# `pytest --hypothesis-profile=soak` draws new examples each time, and many of them.
_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile(
    "ci", deadline=None, derandomize=True, max_examples=100, stateful_step_count=30, suppress_health_check=_SLOW
)
settings.register_profile("soak", deadline=None, max_examples=1000, stateful_step_count=80, suppress_health_check=_SLOW)
settings.load_profile("ci")

_PROBLEM = svmem.Problem(kernel=svmem.RBF(1.0), C=0.25)
_KEYS = np.random.default_rng(0).standard_normal((12, 2))


@pytest.fixture(scope="session")
def compiled() -> None:
    """Compile the cold solve, so that a timeout measures the algorithm and not the compiler."""
    svmem.solve(_KEYS, _PROBLEM)


@pytest.fixture(scope="session")
def compiled_memory() -> None:
    """Compile what a memory uses."""
    memory = svmem.Memory(_PROBLEM, key_dim=2, value_dim=1)
    ids = memory.add(_KEYS, _KEYS[:, :1])
    memory.forget(ids=ids[:2])
    memory.read(_KEYS)
    memory.score(_KEYS)
