"""The cold solve on seeded families of near-singular problems, up to sixty keys and down to a ridge of 1e-12."""

from collections.abc import Callable

import numpy as np
import pytest

import svmem
from tests.cases import problem_of
from tests.oracles import Setting, precise
from tests.oracles.agreement import assert_agrees, assert_optimal

pytestmark = [pytest.mark.usefixtures("compiled"), pytest.mark.timeout(240, func_only=True)]

PROBLEMS = 80  # of each family under each kernel
CHECKED_TO_FIFTY_DIGITS = 10  # every so many, the problem also goes to the slow oracle
Keys = np.ndarray
AWAY_FROM_ZERO = 0.4375


def cloud(random: np.random.Generator, n: int, d: int) -> Keys:
    return random.standard_normal((n, d))


def grid(random: np.random.Generator, n: int, d: int) -> Keys:
    return random.integers(0, 4, (n, d)).astype(np.float64)


def clusters(random: np.random.Generator, n: int, d: int) -> Keys:
    centres = random.standard_normal((4, d))
    return centres[random.integers(4, size=n)] + 10.0 ** random.integers(-12, -1) * random.standard_normal((n, d))


def line(random: np.random.Generator, n: int, d: int) -> Keys:
    return 0.1 * np.outer(random.integers(0, 30, n), random.standard_normal(d))


def fine_grid(random: np.random.Generator, n: int, d: int) -> Keys:
    return 10.0 ** random.integers(-9, -2) * random.integers(0, 9, (n, d))


def near_nodes(random: np.random.Generator, n: int, _: int) -> Keys:
    return 1e-6 * random.integers(0, random.integers(2, 9), (n, 1))


def drawn_setting(random: np.random.Generator, n: int, kernel: str) -> Setting:
    """Draw a cap of exactly 1/k or somewhere between, a width and a ridge."""
    cap = 1 / random.integers(1, n + 1) if random.random() < 0.5 else 1 / random.uniform(1, n)
    sigma = float(random.choice([0.5, 2.0, 20.0, 500.0]))
    return Setting(C=float(cap), kernel=kernel, sigma=sigma, ridge=float(10.0 ** random.integers(-12, -1)))


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "cosine"])
@pytest.mark.parametrize("family", [cloud, grid, clusters, line, fine_grid, near_nodes], ids=lambda f: f.__name__)
def test_near_singular_problems_are_solved_to_rounding(family: Callable[..., Keys], kernel: str) -> None:
    failures = []
    for seed in range(PROBLEMS):
        random = np.random.default_rng(seed)
        n, d = int(random.integers(5, 60)), int(random.integers(1, 4))
        keys = family(random, n, d) + (AWAY_FROM_ZERO if kernel == "cosine" else 0.0)
        setting = drawn_setting(random, n, kernel)
        try:
            solution = svmem.solve(keys, problem_of(setting))
            assert_optimal(solution, keys, setting)
            if seed % CHECKED_TO_FIFTY_DIGITS == 0 and n <= 40:
                assert_agrees(solution, precise(keys, setting), keys, setting)
        except (AssertionError, svmem.errors.SolverError) as error:
            failures.append(
                f"seed {seed}, n {n}, d {d}, {setting}: {type(error).__name__} {str(error).splitlines()[:1]}"
            )
    assert not failures, "\n".join(failures)
