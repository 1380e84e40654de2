"""The values of a gate: the optimum of every prefix, as the cold solve, fifty digits and general programmes have it."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

import svmem
from svmem.nn import GateStatus, gate
from tests.cases import Case, problem_of, truth
from tests.cases.gates import KEY_SETS, RBF_CASES, Prefix, prefix_of, reach
from tests.oracles import duality_gap, fewest, float_gram, residuals
from tests.oracles.agreement import assert_agrees, assert_optimal
from tests.oracles.gates import reference_gate
from tests.oracles.setting import Setting

named = pytest.mark.parametrize("case", RBF_CASES, ids=lambda case: case.name)
families = pytest.mark.parametrize("family", list(KEY_SETS))
BOUNDARIES = [0, 1, 2, 3, 4, 5, 8, 13, 16, 17, 21, 30, 34, 40, 49, 51, 64]


def gate_of(keys, boundaries, setting, **options):
    return gate(keys, boundaries, C=setting.C, sigma=setting.sigma, ridge=setting.ridge, **options)


def whole(case: Case, ridge: float | None = None) -> tuple[Prefix, Setting]:
    setting = case.setting if ridge is None else replace(case.setting, ridge=ridge)
    n = len(case.keys)
    return prefix_of(gate_of(torch.tensor(case.keys)[None, None], [n], setting), (0, 0, 0), n, setting.C), setting


def make(family: str, t: int, d: int, seed: int = 0) -> np.ndarray:
    return KEY_SETS[family](np.random.default_rng([seed, t, d]), t, d)


def assert_is_the_cold_solve(answer: Prefix, keys: np.ndarray, setting: Setting) -> None:
    solution = svmem.solve(keys, problem_of(setting))
    distance = reach(keys, solution.margin, setting)
    assert np.abs(answer.alpha - solution.alpha).max() <= distance
    assert abs(answer.offset - solution.offset) <= 1e-12 + distance**2
    if len(keys) >= fewest(setting.C):
        assert answer.margin.tolist() == solution.margin.tolist()
        assert answer.bound.tolist() == solution.bound.tolist()


@named
def test_a_named_case_has_the_fifty_digit_optimum(case: Case) -> None:
    answer, setting = whole(case)
    assert_agrees(answer, truth(case), case.keys, setting)


@named
@pytest.mark.parametrize("ridge", [None, 1e-8, 1e-6, 1e-2])
def test_a_named_case_is_feasible_and_optimal_and_equals_the_cold_solve(case: Case, ridge: float | None) -> None:
    answer, setting = whole(case, ridge)
    assert_optimal(answer, case.keys, setting)
    assert_is_the_cold_solve(answer, case.keys, setting)


@families
def test_every_prefix_is_optimal_and_equals_the_cold_solve(family: str) -> None:
    for k, (C, ridge) in enumerate(product((0.02, 0.0625, 0.25, 1 / 3, 1.0), (1e-8, 1e-6, 1e-4, 1e-2))):
        setting = Setting(C, sigma=1.5, ridge=ridge)
        keys = make(family, 64, (2, 16, 3)[k % 3])
        found = gate_of(torch.tensor(keys)[None, None], BOUNDARIES, setting)
        for k, n in enumerate(BOUNDARIES[1:], 1):
            answer = prefix_of(found, (0, 0, k), n, C)
            assert_optimal(answer, keys[:n], setting)
            assert_is_the_cold_solve(answer, keys[:n], setting)


@families
def test_a_general_programme_polished_in_extended_precision_finds_the_same(family: str) -> None:
    keys, setting = make(family, 40, 3), Setting(0.15, sigma=1.5, ridge=1e-4)
    found = gate_of(torch.tensor(keys)[None, None], [5, 7, 22, 40], setting)
    for k, n in enumerate([5, 7, 22, 40]):
        answer, other = prefix_of(found, (0, 0, k), n, setting.C), reference_gate(keys, n, 0.15, 1.5, 1e-4)
        assert np.abs(answer.alpha - other.alpha).max() <= reach(keys[:n], answer.margin, setting)
        assert answer.offset == pytest.approx(other.offset, abs=1e-13)
        if other.slack > 1e-9:
            assert (tuple(answer.margin), tuple(answer.bound)) == (other.margin, other.bound)


@pytest.mark.parametrize(
    ("n", "d", "sigma", "ridge", "seeds"),
    [
        (26, 1, 5.0, 1e-4, (135, 183, 285, 1156, 2990)),
        (17, 2, 5.0, 1e-6, (697,)),
        (20, 2, 5.0, 1e-6, (169, 872)),
        (20, 2, 50.0, 1e-6, (448,)),
    ],
)
def test_two_margin_keys_that_share_exactly_one_cap_are_solved(
    n: int, d: int, sigma: float, ridge: float, seeds: tuple[int, ...]
) -> None:
    setting = Setting(1 / 3, sigma=sigma, ridge=ridge)  # on the way, one reaches 0 just as the other reaches C
    for seed in seeds:
        keys = np.random.default_rng(seed).standard_normal((n, d))
        answer = prefix_of(gate_of(torch.tensor(keys)[None, None], [n], setting), (0, 0, 0), n, setting.C)
        assert (len(answer.margin), len(answer.bound)) == (2, 2)
        assert_is_the_cold_solve(answer, keys, setting)


def test_keys_of_64_dimensions_in_many_heads_are_each_solved_for_themselves() -> None:
    keys = np.random.default_rng(1).standard_normal((3, 4, 48, 64))
    sigma = torch.tensor([6.0, 8.0, 11.0, 15.0], dtype=torch.float64)
    found = gate(torch.tensor(keys), [16, 48], C=0.0625, sigma=sigma, ridge=1e-6)
    for i, j, (k, n) in product(range(3), range(4), enumerate([16, 48])):
        setting = Setting(0.0625, sigma=float(sigma[j]), ridge=1e-6)
        assert_is_the_cold_solve(prefix_of(found, (i, j, k), n, 0.0625), keys[i, j, :n], setting)


def test_keys_beyond_the_length_of_an_item_do_not_exist() -> None:
    keys, lengths = torch.tensor(make("random", 40, 3)).expand(5, 2, 40, 3).clone(), [0, 1, 7, 23, 40]
    keys += torch.arange(10).view(5, 2, 1, 1) / 7
    for i, n in enumerate(lengths):
        keys[i, :, n:] = torch.nan
    setting = Setting(0.2, sigma=1.5, ridge=1e-5)
    for given in (lengths, torch.tensor(lengths), tuple(lengths)):
        found = gate_of(keys, [0, 4, 16, 32, 40], setting, lengths=given)
        for i, j, (k, s) in product(range(5), range(2), enumerate([0, 4, 16, 32, 40])):
            n = min(s, lengths[i])
            if n == 0:
                assert found.counts[i, j, k] == 0
                assert found.status[i, j, k] == GateStatus.COLLECTING
            else:
                assert_is_the_cold_solve(prefix_of(found, (i, j, k), n, 0.2), keys[i, j, :n].numpy(), setting)


@pytest.mark.parametrize("C", [0.02, 0.3, 1 / 3, 0.5, 1.0])
def test_status_says_collecting_exactly_where_the_cap_leaves_too_few_keys(C: float) -> None:
    n_min = svmem.Problem(svmem.RBF(1.5), C=C).n_min
    keys = torch.tensor(make("random", n_min + 2, 2))[None, None]
    found = gate(keys, range(n_min + 3), C=C, sigma=1.5)
    expected = [GateStatus.COLLECTING] * n_min + [GateStatus.OPTIMAL] * 3
    assert found.status.flatten().tolist() == [int(s) for s in expected]
    for n in range(1, n_min):
        assert found.indices[0, 0, n, :n].tolist() == list(range(n))
        assert found.alpha[0, 0, n, :n].tolist() == [1 / n] * n
        f = torch.exp(-torch.cdist(keys[0, 0, :n], keys[0, 0, :n]).square() / 1.5**2).sum(1) / n
        assert found.offset[0, 0, n].item() == pytest.approx(f.max().item() + 1e-6 / n - 0.5, abs=1e-14)


def test_boundary_zero_has_no_support_and_collects() -> None:
    found = gate(torch.tensor(make("random", 30, 2)).view(2, 3, 5, 2), [0], C=1.0, sigma=1.0)
    assert found.counts.tolist() == [[[0]] * 3] * 2
    assert (found.status == GateStatus.COLLECTING).all()
    assert (found.dense(5) == 0).all()


def test_a_repeated_boundary_repeats_its_answer() -> None:
    found = gate(torch.tensor(make("random", 20, 3))[None, None], [0, 0, 12, 12, 12, 20, 20], C=0.3, sigma=1.5)
    for field in (found.indices, found.alpha, found.counts, found.offset, found.gap, found.status):
        assert torch.equal(field[:, :, 2], field[:, :, 3])
        assert torch.equal(field[:, :, 2], field[:, :, 4])
        assert torch.equal(field[:, :, 5], field[:, :, 6])


@pytest.mark.parametrize("shape", [(0, 2, 5, 3), (2, 0, 5, 3), (2, 2, 0, 3)])
def test_empty_batches_and_sequences_give_empty_gates(shape: tuple[int, ...]) -> None:
    found = gate(torch.zeros(shape, dtype=torch.float64), [0], C=0.5, sigma=1.0)
    assert found.counts.shape == (*shape[:2], 1)
    assert found.dense(5).shape == (*shape[:2], 1, 5)
    assert (found.counts == 0).all()


def test_no_boundaries_give_a_gate_of_none() -> None:
    found = gate(torch.zeros(2, 3, 5, 2), [], C=0.5, sigma=1.0)
    assert found.counts.shape == found.offset.shape == (2, 3, 0)
    assert found.dense(5).shape == (2, 3, 0, 5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_fields_have_the_stated_shapes_and_dtypes(dtype: torch.dtype) -> None:
    found = gate(torch.tensor(make("random", 72, 4)).view(2, 3, 12, 4).to(dtype), [0, 6, 12], C=0.3, sigma=2.0)
    real = torch.float64 if dtype == torch.float64 else torch.float32
    w = found.indices.shape[-1]
    assert w <= 12
    assert found.indices.shape == found.alpha.shape == (2, 3, 3, w)
    assert found.counts.shape == found.offset.shape == found.gap.shape == found.status.shape == (2, 3, 3)
    assert (found.indices.dtype, found.counts.dtype, found.status.dtype) == (torch.int64, torch.int64, torch.int8)
    assert (found.alpha.dtype, found.offset.dtype, found.gap.dtype) == (real, real, torch.float64)


def test_the_four_states_have_their_numbers() -> None:
    assert {s.name: int(s.value) for s in GateStatus} == {"OPTIMAL": 0, "COLLECTING": 1, "INVALID": 2, "FAILED": 3}


@families
def test_the_gap_is_below_1e_12_and_bounds_the_distance_to_the_optimum(family: str) -> None:
    keys, setting = make(family, 48, 4), Setting(0.1, sigma=1.5, ridge=1e-6)
    found = gate_of(torch.tensor(keys)[None, None], [10, 31, 48], setting)
    for k, n in enumerate([10, 31, 48]):
        answer, gram = prefix_of(found, (0, 0, k), n, setting.C), float_gram(keys[:n], setting)
        proven = svmem.certify(keys[:n], answer.alpha, problem_of(setting), offset=answer.offset)
        assert answer.gap <= 1e-12
        assert proven.gap <= 1e-12
        assert answer.gap == pytest.approx(duality_gap(answer.alpha, gram, setting), abs=2e-15)
        assert proven.max_kkt <= 1e-12
        distance = answer.alpha - reference_gate(keys, n, setting.C, 1.5, 1e-6).alpha
        energy = distance @ gram @ distance + 1e-6 * distance @ distance
        assert energy <= max(answer.gap, 0) + 1e-15
        assert residuals(answer.alpha, answer.offset, gram, setting).box == 0


def test_dense_puts_each_coefficient_at_its_key() -> None:
    found = gate(torch.tensor(make("random", 24, 3)).view(2, 1, 12, 3), [3, 8, 12], C=0.3, sigma=1.5)
    for t in (12, 15):
        dense = torch.zeros(2, 1, 3, t, dtype=torch.float64)
        for place in product(range(2), range(1), range(3)):
            for index, a in list(zip(found.indices[place], found.alpha[place], strict=True))[: found.counts[place]]:
                dense[place][index] = a
        assert torch.equal(found.dense(t), dense)


def test_the_score_is_twice_f_less_a_half_less_the_offset() -> None:
    keys, points = torch.tensor(make("random", 24, 3)).view(1, 2, 12, 3), torch.tensor(make("random", 18, 3)) * 2
    points, sigma = points.view(1, 2, 9, 3), torch.tensor([1.0, 2.5], dtype=torch.float64)
    found = gate(keys, [2, 8, 12], C=0.3, sigma=sigma)
    gram = torch.exp(-(points[:, :, :, None] - keys[:, :, None]).square().sum(-1) / sigma.view(1, 2, 1, 1) ** 2)
    expected = 2 * (torch.einsum("bhmt,bhnt->bhnm", gram, found.dense(12)) - 0.5 - found.offset[..., None])
    assert found.score(points).shape == (1, 2, 3, 9)
    torch.testing.assert_close(found.score(points), expected, rtol=0, atol=1e-14)


def test_support_keys_at_the_cap_score_at_most_zero_and_silent_keys_at_least_zero() -> None:
    keys, setting = torch.tensor(make("random", 40, 2))[None, None], Setting(0.1, sigma=1.5, ridge=1e-8)
    found = gate_of(keys, [40], setting)
    answer, score = prefix_of(found, (0, 0, 0), 40, 0.1), found.score(keys)[0, 0, 0].numpy()
    assert len(answer.bound) > 0
    assert len(answer.reserve) > 0
    assert score[answer.bound].max() <= 1e-12
    assert score[answer.reserve].min() >= -1e-12
    assert np.abs(score[answer.margin]).max() <= 2 * setting.ridge
