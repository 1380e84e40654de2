"""A cache that drops the reserve: how much it keeps, and that what it claims of the memory it would have had is so."""

import math

import numpy as np
import pytest
import torch

from svmem import RBF, Problem
from svmem.errors import InvalidInput
from svmem.nn import HybridSVAttention, SVCache
from svmem.nn.head_memory import HeadMemory

STREAMS = ((4, 3, 0.02, 8), (4, 1, 0.02, 8), (2, 1, 0.3, 4), (4, 8, 0.2, 1), (3, 2, 0.5, 3))  # d, centres, noise, chunk
CAPS = (1.0, 0.5, 0.3, 0.25, 0.1, 0.05)


def redundant(seed: int, t: int, d: int, centres: int, noise: float) -> np.ndarray:
    """Return keys (t, d) around a few centres."""
    rng = np.random.default_rng(seed)
    middle = 2 * rng.standard_normal((centres, d))
    return middle[rng.integers(centres, size=t)] + noise * rng.standard_normal((t, d))


class Pair:
    """The gate of one head with all keys and with the support alone."""

    def __init__(self, d: int, C: float, sigma: float = 1.0) -> None:
        problem = Problem(RBF(sigma), C, 1e-3)
        self.whole, self.bounded, self.length = HeadMemory(d, problem, 2), HeadMemory(d, problem, 2), 0

    def admit(self, keys: np.ndarray) -> None:
        """Hand both the same chunk."""
        valid, origin = np.ones(len(keys), bool), np.arange(self.length, self.length + len(keys))
        for memory in (self.whole, self.bounded):
            memory.admit(keys, valid, origin)
        self.bounded.prune()
        self.length += len(keys)

    def forget(self, position: int) -> None:
        """Take one key out of both."""
        for memory in (self.whole, self.bounded):
            memory.forget(np.array([position]))

    def same(self) -> bool:
        """Say whether both have the same support and coefficients, bit for bit."""
        (i, a, *_), (j, b, *_) = self.whole.support(), self.bounded.support()
        return np.array_equal(self.whole.origin[i], self.bounded.origin[j]) and np.array_equal(a, b)

    def copy(self) -> "Pair":
        """Return an independent copy."""
        out = object.__new__(Pair)
        out.whole, out.bounded, out.length = self.whole.copy(), self.bounded.copy(), self.length
        return out


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("C", CAPS)
def test_what_is_said_to_be_proved_is_the_memory_with_nothing_dropped_bit_for_bit(C: float, seed: int) -> None:
    steps = 0
    for d, centres, noise, chunk in STREAMS:
        pair, keys = Pair(d, C), redundant(seed, 96, d, centres, noise)
        while pair.length < 96 and pair.bounded.proved:
            assert pair.same(), (d, centres, noise, chunk, pair.length)
            pair.admit(keys[pair.length : pair.length + chunk])
            steps += 1
        assert pair.same() or not pair.bounded.proved
    assert steps > 10


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("C", CAPS)
def test_what_is_said_to_be_proved_after_forgetting_is_so_bit_for_bit(C: float, seed: int) -> None:
    for d, centres, noise, chunk in STREAMS:
        pair, keys, rng = Pair(d, C), redundant(seed, 96, d, centres, noise), np.random.default_rng(seed)
        while pair.length < 96 and pair.bounded.proved:
            pair.admit(keys[pair.length : pair.length + chunk])
            if rng.random() < 0.3:
                pair.forget(int(rng.choice(pair.bounded.origin if seed % 2 else pair.length)))
            assert pair.same() or not pair.bounded.proved, (d, centres, noise, chunk, pair.length)


def sphere(seed: int, n: int) -> np.ndarray:
    """Return n keys near the unit sphere, which carry the gate, then 60 near its centre, which stay silent."""
    rng = np.random.default_rng(seed)
    shell = rng.standard_normal((n, 8))
    shell *= (1 + 0.005 * rng.standard_normal((n, 1))) / np.linalg.norm(shell, axis=1, keepdims=True)
    return np.concatenate([shell, rng.choice([0.1, 0.3]) * rng.standard_normal((60, 8))])


ATTACKS = {
    "far away": lambda keys, rng, m: 100 * rng.standard_normal((m, keys.shape[1])),
    "near twins": lambda keys, rng, m: keys[:1] + 1e-3 * rng.standard_normal((m, keys.shape[1])),
    "opposite": lambda keys, rng, m: np.resize(-1.5 * keys, (m, keys.shape[1])),
    "in the middle": lambda keys, rng, m: 0.6 * rng.standard_normal((m, keys.shape[1])),
}


@pytest.mark.parametrize("attack", list(ATTACKS))
@pytest.mark.parametrize("chunk", [1, 2])
def test_within_the_horizon_no_keys_whatever_make_a_difference(attack: str, chunk: int) -> None:
    reached = 0
    for seed in range(16):
        C = (0.05, 0.1)[seed % 2]
        keys, rng, pair = sphere(seed, int(1.2 / C)), np.random.default_rng(seed), Pair(8, C, (1.5, 2.0)[seed % 3 == 0])
        for start in range(0, len(keys) - chunk + 1, chunk):
            pair.admit(keys[start : start + chunk])
            horizon = pair.bounded.horizon()
            if horizon is None or horizon < chunk or start % 7:
                continue
            trial, reached = pair.copy(), reached + 1
            for _ in range(horizon // chunk):
                trial.admit(ATTACKS[attack](keys, rng, chunk))
                assert trial.same(), (seed, start, horizon, trial.length - pair.length)
    assert reached > 0


def test_it_keeps_the_support_and_the_present_chunk_at_most() -> None:
    torch.manual_seed(0)
    layer = HybridSVAttention(8, 2, chunk=4, C=0.1, dtype=torch.float64)
    x = torch.tensor(redundant(1, 200, 8, 4, 0.1))[None].repeat(2, 1, 1)
    x[1] = x[1].flip(0)
    bounded, exact = SVCache(layer, 2, exact=False), SVCache(layer, 2)
    for start in range(0, 200, 4):
        layer(x[:, start : start + 4], cache=bounded)
        layer(x[:, start : start + 4], cache=exact)
        sizes = [len(bounded.support(item, head)[0]) for item in range(2) for head in range(2)]
        assert bounded.report().kept <= max(max(sizes), math.ceil(1 / 0.1) + 1)
        if bounded.report().proved:
            assert bounded.report().proved_until == start + 4
    assert exact.report().kept == 200


def test_while_collecting_nothing_is_dropped() -> None:
    layer = HybridSVAttention(4, 1, chunk=2, C=0.1, dtype=torch.float64)
    cache, x = SVCache(layer, exact=False), torch.randn(1, 10, 4, dtype=torch.float64)
    for start in range(0, 10, 2):
        layer(x[:, start : start + 2], cache=cache)
        index, alpha = cache.support(0, 0)
        assert index.tolist() == list(range(start + 2))
        assert alpha.tolist() == [1 / (start + 2)] * (start + 2)
        assert cache.report().proved


def test_it_goes_back_within_the_present_chunk_only() -> None:
    torch.manual_seed(0)
    layer = HybridSVAttention(4, 1, chunk=4, C=0.3, dtype=torch.float64)
    cache, x = SVCache(layer, exact=False), torch.randn(1, 16, 4, dtype=torch.float64)
    layer(x[:, :11], cache=cache)
    for length in (0, 4, 7, 12, -1):
        with pytest.raises(InvalidInput, match=r"goes back|length"):
            cache.crop(length)
    once = layer(x[:, 11:12], cache=cache)
    assert cache.length == 12
    cache = SVCache(layer, exact=False)
    layer(x[:, :10], cache=cache)
    cache.crop(8)
    cache.crop(8)
    layer(x[:, 8:11], cache=cache)
    assert torch.equal(layer(x[:, 11:12], cache=cache), once)


def test_copies_of_a_sequence_are_independent() -> None:
    torch.manual_seed(0)
    layer = HybridSVAttention(4, 1, chunk=2, C=0.2, dtype=torch.float64)
    x, alone = torch.randn(2, 30, 4, dtype=torch.float64), SVCache(layer, exact=False)
    x[1, :12] = x[0, :12]
    cache = SVCache(layer, exact=False)
    layer(x[:1, :12], cache=cache)
    layer(x[:1, :12], cache=alone)
    cache.reorder([0, 0])
    both = layer(x[:, 12:], cache=cache)
    torch.testing.assert_close(both[:1], layer(x[:1, 12:], cache=alone), rtol=0, atol=1e-13)
    assert cache.support(0, 0)[0].tolist() == alone.support(0, 0)[0].tolist()


def test_a_token_that_is_not_finite_marks_its_own_sequence() -> None:
    torch.manual_seed(0)
    layer = HybridSVAttention(4, 1, chunk=2, C=0.2, dtype=torch.float64)
    x, alone = torch.randn(2, 20, 4, dtype=torch.float64), SVCache(layer, exact=False)
    cache = SVCache(layer, 2, exact=False)
    expected = layer(x[:1], cache=alone)
    x[1, 11] = torch.nan
    out = layer(x, cache=cache)
    torch.testing.assert_close(out[:1], expected, rtol=0, atol=1e-13)
    assert out[1, 11:].isnan().all()
    assert cache.support(1, 0)[1].isnan().all()
