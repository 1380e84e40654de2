"""Long streams, most of whose keys lie cold: the cold solve at every boundary, and nothing left behind for the next."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

import svmem
from svmem._jit.stream import COLD
from svmem._jit.work import NODES
from svmem.nn import Gate, GateStatus, gate
from svmem.nn.head_memory import HeadMemory

C, SIGMA, RIDGE, CHUNK = 0.1, 4.0, 1e-4, 64
PROBLEM = svmem.Problem(svmem.RBF(SIGMA), C, RIDGE)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Let all sequences pass through the same buffers."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def redundant(n: int, seed: int, d: int = 6, noise: float = 0.1) -> np.ndarray:
    """Return keys around a few centres, some of them seen before, of which new ones come up on the way."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((12, d))
    known = 4 + 8 * np.arange(n) // n
    keys = centres[rng.integers(known)] + noise * rng.standard_normal((n, d))
    again = rng.random(n) < 0.1
    again[0] = False
    keys[again] = keys[rng.integers(np.flatnonzero(again))]
    return keys


def assert_is_the_cold_solve(found: Gate, item: int, number: int, keys: np.ndarray) -> None:
    truth = svmem.solve(keys, PROBLEM)
    assert found.status[item, 0, number] == GateStatus.OPTIMAL
    assert found.dense(found.keys.shape[2])[item, 0, number, : len(keys)].numpy().tolist() == truth.alpha.tolist()


def test_most_keys_of_a_redundant_stream_lie_cold_and_change_no_bit() -> None:
    keys, memory = redundant(2048, 0), HeadMemory(6, PROBLEM, 0)
    most = 0
    for end in range(CHUNK, len(keys) + 1, CHUNK):
        memory.admit(keys[end - CHUNK : end], np.ones(CHUNK, bool), np.arange(end - CHUNK, end))
        cold, hot = int(memory._stream.state[COLD]), int(memory._work.counts[NODES])
        most = max(most, cold)
        assert cold + hot <= end
        if end % 512 == 0:
            index, values, _, _ = memory.support()
            alpha = np.zeros(end)
            alpha[index] = values
            assert alpha.tolist() == svmem.solve(keys[:end], PROBLEM).alpha.tolist()
    assert most > 500


def test_what_is_known_of_dropped_keys_holds_where_most_lay_cold() -> None:
    keys, memory = redundant(2048, 0), HeadMemory(6, PROBLEM, 0)
    for end in range(CHUNK, len(keys) + 1, CHUNK):
        memory.admit(keys[end - CHUNK : end], np.ones(CHUNK, bool), np.arange(end - CHUNK, end))
    assert memory._stream.state[COLD] > 100
    truth = svmem.solve(keys, PROBLEM)
    kernel = np.exp(-((keys[:, None] - keys[None]) ** 2).sum(2) / SIGMA**2)
    h = kernel @ truth.alpha - 0.5 - truth.offset
    kept = memory.prune()
    dropped = np.setdiff1d(np.arange(len(keys)), kept)
    assert 0 < memory._dropped.least <= h[dropped].min() + 1e-12


@pytest.mark.usefixtures("one_thread")
def test_what_lay_cold_in_one_sequence_is_no_key_of_the_next() -> None:
    long = redundant(1536, 1)
    twice = np.repeat(redundant(768, 2), 2, axis=0)  # every other position is a twin, which is no node of its own
    short = redundant(1536, 3)
    keys = torch.tensor(np.stack([long, twice, short]))[:, None]
    stops, lengths = [512, 1024, 1536], [1536, 1536, 600]
    found = gate(keys, stops, C=C, sigma=SIGMA, ridge=RIDGE, lengths=lengths)
    for item, length in enumerate(lengths):
        for number, stop in enumerate(stops):
            assert_is_the_cold_solve(found, item, number, keys[item, 0, : min(stop, length)].numpy())


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1e30, 1e200])
def test_keys_whose_coordinates_float32_does_not_hold_are_solved_all_the_same(scale: float) -> None:
    keys = scale * redundant(700, 4)
    sigma = SIGMA * min(scale, 1e150)
    problem = svmem.Problem(svmem.RBF(sigma), C, RIDGE)
    found = gate(torch.tensor(keys)[None, None], [400, 700], C=C, sigma=sigma, ridge=RIDGE)
    truth = svmem.solve(keys, problem)
    assert found.dense(700)[0, 0, 1].numpy().tolist() == truth.alpha.tolist()


def test_factors_that_were_not_kept_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for budget in (0, 700, 10**9):
        monkeypatch.setattr("svmem.nn.compiled.factor_budget", lambda *_, budget=budget: budget)
        keys = torch.tensor(np.stack([redundant(300, 5), redundant(300, 6)]))[:, None].requires_grad_()
        out = gate(keys, [50, 100, 300], C=C, sigma=SIGMA, ridge=RIDGE)
        (out.alpha * torch.linspace(-1, 1, out.alpha.shape[-1])).sum().backward()
        found.append(keys.grad)
    assert found[2].abs().max() > 1e-3
    for one in found[:2]:
        torch.testing.assert_close(one, found[2], rtol=1e-9, atol=1e-9)
