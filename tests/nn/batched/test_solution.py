"""The batched gates: the optimum of the cold solve, problem by problem, and nothing of one problem in another."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings

import svmem
from svmem._jit.rows import RBF, kernel_row
from svmem.nn.batched import solution as module
from svmem.nn.batched.gate import gate_on_device
from svmem.nn.batched.gram import gram_batched
from svmem.nn.batched.solution import COLLECTING, FAILED, INVALID, OPTIMAL, solve_batched
from tests.cases import ALL, Case, problem_of
from tests.nn.batched.on_device import DEVICE, assert_same, batched, numbers, one_thread, padded  # noqa: F401
from tests.oracles import Setting
from tests.strategies import examples, problems

pytestmark = pytest.mark.usefixtures("compiled", "one_thread")

SMALLEST_RIDGE = 1e-8  # that the batched solver takes
CASES = [case for case in ALL if case.setting.kernel == "rbf" and case.setting.ridge >= SMALLEST_RIDGE]
Keys = np.ndarray


def rbf(sigma: float = 1.0, C: float = 0.25, ridge: float = 1e-6) -> svmem.Problem:
    return svmem.Problem(kernel=svmem.RBF(sigma), C=C, ridge=ridge)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_case_has_the_optimum_of_the_cold_solve(case: Case) -> None:
    found = batched([case.keys], [case.setting.sigma], case.problem)
    assert_same(found, 0, case.keys, case.problem)


@settings(max_examples=examples(60))
@given(problems(most=24))
def test_degenerate_problems_have_the_optimum_of_the_cold_solve(drawn: tuple[Keys, Setting]) -> None:
    keys, setting = drawn
    problem = problem_of(Setting(setting.C, "rbf", setting.sigma, max(setting.ridge, SMALLEST_RIDGE)))
    assert_same(batched([keys], [setting.sigma], problem), 0, keys, problem)


def sphere(random: np.random.Generator, n: int, d: int) -> Keys:
    keys = random.standard_normal((n, d))
    return keys / np.linalg.norm(keys, axis=1, keepdims=True)


def cloud(random: np.random.Generator, n: int, d: int) -> Keys:
    return random.standard_normal((n, d))


def clusters(random: np.random.Generator, n: int, d: int) -> Keys:
    centres = random.standard_normal((4, d))
    return centres[random.integers(4, size=n)] + 10.0 ** random.uniform(-8, -1) * random.standard_normal((n, d))


def twins(random: np.random.Generator, n: int, d: int) -> Keys:
    keys = random.standard_normal((n, d))
    return np.concatenate([keys[: n // 2], keys[: n - n // 2] + 1e-9 * random.standard_normal((n - n // 2, d))])


def line(random: np.random.Generator, n: int, d: int) -> Keys:
    return np.outer(random.standard_normal(n), random.standard_normal(d))


def repeats(random: np.random.Generator, n: int, d: int) -> Keys:
    return random.standard_normal((n // 3 + 1, d))[random.integers(n // 3 + 1, size=n)]


@pytest.mark.parametrize("C", [1.0, 0.25, 0.02])
@pytest.mark.parametrize("family", [sphere, cloud, clusters, twins, line, repeats], ids=lambda f: f.__name__)
def test_random_families_have_the_optimum_of_the_cold_solve(family: Callable[..., Keys], C: float) -> None:
    random = np.random.default_rng(7)
    for d in (2, 16, 64):
        sets = [family(random, int(random.integers(55, 97)), d) for _ in range(6)]
        sigma = [float(np.sqrt(d) * 10.0 ** random.uniform(-1, 1.5)) for _ in sets]
        found = batched(sets, sigma, rbf(C=C))
        for k, keys in enumerate(sets):
            assert_same(found, k, keys, rbf(sigma[k], C))


def test_kernel_values_have_the_bits_of_the_core() -> None:
    random = np.random.default_rng(1)
    keys = np.concatenate([random.standard_normal((30, 5)), 1e3 * random.standard_normal((10, 5)), np.zeros((3, 5))])
    gram = gram_batched(torch.tensor(keys, device=DEVICE), torch.tensor(1.7, dtype=torch.float64, device=DEVICE)).cpu()
    row = np.empty(len(keys))
    for k, key in enumerate(keys):
        kernel_row(RBF, 1.7 * 1.7, key, np.ascontiguousarray(keys.T), len(keys), row)
        assert gram[k].numpy().tobytes() == row.tobytes()


def test_equal_keys_get_the_same_bits() -> None:
    keys = np.random.default_rng(2).standard_normal((8, 2))
    found = batched([np.concatenate([keys, keys[:5], keys[:5]])], [2.0], rbf(C=0.1))
    assert found.status.item() == OPTIMAL
    for again in (found.alpha[0, 8:13], found.alpha[0, 13:]):
        assert torch.equal(again, found.alpha[0, :5])


def prefixes(n: int, stops: list[int]) -> torch.Tensor:
    return torch.arange(n, device=DEVICE) < torch.tensor(stops, device=DEVICE)[:, None]


def test_prefixes_that_share_a_matrix_are_solved_like_sets_of_their_own() -> None:
    keys, stops = cloud(np.random.default_rng(3), 60, 4), [0, 3, 10, 35, 60]
    gram = gram_batched(torch.tensor(keys, device=DEVICE), torch.tensor(2.0, dtype=torch.float64, device=DEVICE))
    together = solve_batched(gram[None], prefixes(60, stops)[None], **numbers(rbf()))
    apart = solve_batched(gram.expand(5, -1, -1), prefixes(60, stops), **numbers(rbf()))
    assert together.status[0].tolist() == [COLLECTING, COLLECTING, OPTIMAL, OPTIMAL, OPTIMAL]
    assert torch.equal(together.zone[0], apart.zone)
    torch.testing.assert_close(together.alpha[0], apart.alpha, rtol=0, atol=1e-13)


def test_a_collecting_problem_is_equal_shares_and_the_largest_slope() -> None:
    keys = cloud(np.random.default_rng(4), 3, 2)
    found = batched([keys, cloud(np.random.default_rng(5), 9, 2)], [1.0, 1.0], rbf(C=0.2))
    assert found.status.tolist() == [COLLECTING, OPTIMAL]
    assert_same(found, 0, keys, rbf(C=0.2))


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
def test_a_key_that_is_not_finite_changes_no_bit_of_other_problems(poison: float) -> None:
    random = np.random.default_rng(6)
    keys, valid = padded([cloud(random, 40, 3) for _ in range(4)])
    sigma = torch.full((4,), 2.0, dtype=torch.float64, device=DEVICE)
    posed = valid[:, None] & prefixes(40, [10, 25, 40])
    sound = solve_batched(gram_batched(keys, sigma), posed, **numbers(rbf()))
    keys[1, 20, 0] = poison
    found = solve_batched(gram_batched(keys, sigma), posed, **numbers(rbf()))
    spoilt = torch.zeros(4, 3, dtype=torch.bool, device=DEVICE)
    spoilt[1, 1:] = True
    assert (found.status == torch.where(spoilt, INVALID, OPTIMAL)).all()
    assert found.alpha[spoilt].isnan().all()
    assert found.offset[spoilt].isnan().all()
    for name in ("alpha", "zone", "offset", "gap"):
        assert torch.equal(getattr(found, name)[~spoilt], getattr(sound, name)[~spoilt])


def test_a_problem_has_the_same_answer_alone_and_among_others() -> None:
    random = np.random.default_rng(8)
    sets = [family(random, 48, 3) for family in (sphere, cloud, clusters, line) for _ in range(16)]
    many = batched(sets, [1.5] * 64, rbf())
    assert (many.status == OPTIMAL).all()
    for k in range(0, 64, 7):
        one = batched([sets[k]], [1.5], rbf())
        assert torch.equal(one.zone[0], many.zone[k])
        torch.testing.assert_close(one.alpha[0], many.alpha[k], rtol=0, atol=1e-13)


def test_a_batch_in_chunks_has_the_answers_of_a_batch_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(9)
    keys = torch.tensor(random.standard_normal((3, 30, 2)), device=DEVICE)
    gram = gram_batched(keys, torch.ones(3, dtype=torch.float64, device=DEVICE))
    posed = prefixes(30, [8, 15, 20, 30]).expand(3, -1, -1)
    whole = solve_batched(gram, posed, **numbers(rbf()))
    for name in ("HOST_ENTRIES", "DEVICE_ENTRIES"):
        monkeypatch.setattr(module, name, 3 * 30 * 30)
    parts = solve_batched(gram, posed, **numbers(rbf()))
    assert torch.equal(parts.zone, whole.zone)
    torch.testing.assert_close(parts.alpha, whole.alpha, rtol=0, atol=1e-13)


def test_too_few_steps_are_reported_and_leave_no_number() -> None:
    found = batched([line(np.random.default_rng(10), 60, 2)], [1.0], rbf(C=0.05), iterations=1)
    assert found.status.item() == FAILED
    assert found.alpha.isnan().all()
    assert found.offset.isnan().all()


@pytest.mark.parametrize("family", [cloud, clusters, repeats, line], ids=lambda f: f.__name__)
def test_more_keys_than_the_width_are_solved_in_rounds(family: Callable[..., Keys]) -> None:
    keys = family(np.random.default_rng(14), 260, 4)
    found = batched([keys, keys[:180]], [6.0, 6.0], rbf(6.0, 0.1), width=96)
    assert_same(found, 0, keys, rbf(6.0, 0.1))
    assert_same(found, 1, keys[:180], rbf(6.0, 0.1))


def test_a_support_beyond_the_width_is_reported() -> None:
    found = batched([10.0 * np.arange(40.0)[:, None]], [1.0], rbf(), width=16)
    assert found.status.item() == FAILED
    assert found.alpha.isnan().all()


def test_sequences_give_every_prefix_its_optimum() -> None:
    random = np.random.default_rng(13)
    keys = random.standard_normal((2, 2, 30, 3))
    keys[1, 1, 10] = np.nan
    tensor, sigma = torch.tensor(keys, device=DEVICE), torch.tensor([1.0, 2.0], device=DEVICE)
    valid = torch.ones(2, 30, dtype=torch.bool, device=DEVICE)
    valid[0, 22:] = False
    valid[1, 3] = False
    stops = [0, 5, 20, 30]
    setting = (sigma, 0.3, 1.0, 4, 1e-6)
    found = gate_on_device(tensor, valid, stops, *setting)
    other = gate_on_device(tensor, valid, torch.tensor(stops, device=DEVICE), *setting)
    assert torch.equal(found.zone, other.zone)
    torch.testing.assert_close(found.alpha, other.alpha, rtol=0, atol=1e-13, equal_nan=True)
    for i, j in np.ndindex(2, 2):
        for k, s in enumerate(stops):
            there = np.flatnonzero(valid[i, :s].cpu().numpy())
            if len(there) and np.isfinite(keys[i, j, there]).all():
                truth = svmem.solve(keys[i, j, there], rbf([1.0, 2.0][j], 0.3))
                np.testing.assert_allclose(found.alpha[i, j, k, there].cpu(), truth.alpha, rtol=0, atol=1e-12)
    assert found.status[1, 1].tolist() == [COLLECTING, OPTIMAL, INVALID, INVALID]
    assert found.alpha[1, 1, 2:].isnan().all()
