"""Decoding with an exact cache: equal to the forward pass, whatever was forgotten, cropped or reordered before."""

from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from svmem.errors import InvalidInput
from svmem.nn import HybridSVAttention, SVAttention, SVCache
from tests.strategies import examples

both = pytest.mark.parametrize("kind", [SVAttention, HybridSVAttention], ids=["rbf", "hybrid"])
chunks = pytest.mark.parametrize("chunk", [1, 4])


def layer_of(kind: type[SVAttention], **options: Any) -> SVAttention:
    """Return a layer of 8 channels, in double precision unless options say otherwise."""
    torch.manual_seed(0)
    return kind(8, options.pop("num_heads", 2), **{"chunk": 4, "C": 0.3, "dtype": torch.float64} | options)


def tokens(b: int, t: int, seed: int = 0) -> Tensor:
    """Return tokens (b, t, 8)."""
    return torch.randn(b, t, 8, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def decode(layer: SVAttention, cache: SVCache, x: Tensor, cuts: list[int], padding: Tensor | None = None) -> Tensor:
    """Return the outputs of x taken up in pieces."""
    ends = [0, *sorted(cuts), x.shape[1]]
    out = [
        layer(x[:, i:j], None if padding is None else padding[:, i:j], cache=cache) for i, j in pairwise(ends) if i < j
    ]
    return torch.cat(out, dim=1)


def mask(x: Tensor, positions: list[int]) -> Tensor:
    """Return a padding mask (b, t) with these positions."""
    out = torch.zeros(x.shape[:2], dtype=torch.bool)
    out[:, positions] = True
    return out


def assert_close(one: Tensor, other: Tensor, tolerance: float = 1e-11) -> None:
    torch.testing.assert_close(one, other, rtol=0, atol=tolerance)


@both
@pytest.mark.parametrize(
    "options",
    [{}, {"chunk": 1}, {"num_heads": 4, "num_kv_heads": 2, "normalize_keys": True}, {"chunk": 3, "C": 1.0}, {"C": 0.1}],
    ids=str,
)
@pytest.mark.parametrize("padded", [False, True])
def test_token_by_token_equals_the_forward_pass(kind: type[SVAttention], options: dict[str, Any], padded: bool) -> None:
    layer, x = layer_of(kind, **options), tokens(3, 21)
    padding = mask(x, [])
    if padded:
        padding[0, :6] = padding[1, 3] = padding[1, 9:12] = padding[2, 17:] = True
    out = decode(layer, SVCache(layer, 3), x, list(range(21)), padding)
    assert not out.requires_grad
    assert_close(out[~padding], layer(x, padding)[~padding].detach())
    layer, x = layer.float(), x.float()  # keys differ in their last bit then, and a small ridge makes more of that
    out = decode(layer, SVCache(layer, 3), x, list(range(21)), padding)
    assert_close(out[~padding], layer(x, padding)[~padding].detach(), 5e-5 if layer.normalize_keys else 1e-6)


@settings(max_examples=examples(40))
@given(st.lists(st.integers(0, 21), max_size=6), st.sampled_from([1, 2, 4, 30]))
def test_any_split_of_the_sequence_equals_the_forward_pass(cuts: list[int], chunk: int) -> None:
    layer, x = layer_of(HybridSVAttention, chunk=chunk), tokens(2, 21)
    assert_close(decode(layer, SVCache(layer, 2), x, cuts), layer(x).detach())


@both
@chunks
@pytest.mark.parametrize("gone", [[0], [3, 7, 8], [9], [0, 1, 2, 3], [8, 9], list(range(10)), []], ids=str)
def test_later_tokens_read_as_if_forgotten_ones_had_never_been(
    kind: type[SVAttention], chunk: int, gone: list[int]
) -> None:
    layer, x = layer_of(kind, chunk=chunk), tokens(2, 19)
    cache = SVCache(layer, 2)
    decode(layer, cache, x[:, :10], [3, 7])
    cache.forget(gone)
    cache.forget(gone)  # twice is once
    out = decode(layer, cache, x[:, 10:], [1, 2, 6])
    assert_close(out, layer(x, mask(x, gone))[:, 10:].detach())


@chunks
def test_forgetting_again_later_equals_forgetting_all_at_once(chunk: int) -> None:
    layer, x = layer_of(HybridSVAttention, chunk=chunk), tokens(2, 22)
    cache = SVCache(layer, 2)
    decode(layer, cache, x[:, :9], [5])
    cache.forget([1, 8])
    decode(layer, cache, x[:, 9:14], [])
    cache.forget([8, 10, 13])
    out = decode(layer, cache, x[:, 14:], [3])
    assert_close(out, layer(x, mask(x, [1, 8, 10, 13]))[:, 14:].detach())


@pytest.mark.parametrize("bad", [[-1], [10], [0, 11]])
def test_positions_that_have_not_come_are_refused_and_change_nothing(bad: list[int]) -> None:
    layer, x = layer_of(HybridSVAttention), tokens(1, 14)
    cache = SVCache(layer)
    layer(x[:, :10], cache=cache)
    with pytest.raises(InvalidInput, match="positions"):
        cache.forget(bad)
    assert_close(layer(x[:, 10:], cache=cache), layer(x)[:, 10:].detach())


@both
@chunks
def test_going_back_to_any_length_equals_never_having_gone_on(kind: type[SVAttention], chunk: int) -> None:
    layer, x, other = layer_of(kind, chunk=chunk), tokens(2, 13), tokens(2, 13, seed=1)
    for length in range(14):
        cache = SVCache(layer, 2)
        decode(layer, cache, x, [6])
        cache.crop(length)
        assert cache.length == cache.report().tokens == length
        mixed = torch.cat([x[:, :length], other], dim=1)
        assert_close(decode(layer, cache, other, [1, 5]), layer(mixed)[:, length:].detach())


def test_going_back_keeps_what_was_forgotten_forgotten() -> None:
    layer, x = layer_of(HybridSVAttention), tokens(1, 24)
    for length in (4, 5, 8, 9, 11):
        cache = SVCache(layer)
        layer(x[:, :14], cache=cache)
        cache.forget([1, 4, 9])
        cache.crop(length)
        y = torch.cat([x[:, :length], x[:, 14:]], dim=1)
        out = layer(x[:, 14:], cache=cache)
        assert_close(out, layer(y, mask(y, [p for p in (1, 4, 9) if p < length]))[:, length:].detach())


@pytest.mark.parametrize("length", [-1, 11])
def test_lengths_that_were_never_reached_are_refused(length: int) -> None:
    layer = layer_of(HybridSVAttention)
    cache = SVCache(layer)
    layer(tokens(1, 10), cache=cache)
    with pytest.raises(InvalidInput, match="length"):
        cache.crop(length)


@both
@chunks
def test_a_reordered_cache_goes_on_as_the_chosen_sequences_would(kind: type[SVAttention], chunk: int) -> None:
    layer, x = layer_of(kind, chunk=chunk), tokens(3, 20)
    cache = SVCache(layer, 3)
    layer(x[:, :10], cache=cache)
    cache.reorder(torch.tensor([2, 0, 0, 2]))
    assert cache.batch_size == 4
    mixed = torch.cat([x[[2, 0, 0, 2], :10], tokens(4, 10, seed=2)], dim=1)
    assert_close(layer(mixed[:, 10:], cache=cache), layer(mixed)[:, 10:].detach())


@pytest.mark.parametrize("exact", [True, False])
def test_a_token_is_forgotten_in_every_copy_of_a_sequence(exact: bool) -> None:
    layer, x = layer_of(HybridSVAttention), tokens(1, 17)
    cache = SVCache(layer, exact=exact)
    layer(x[:, :8], cache=cache)
    cache.reorder([0, 0, 0])
    cache.forget([0, 5])
    for item in range(3):
        for head in range(2):
            assert not {0, 5} & set(cache.support(item, head)[0].tolist())
    out = layer(x[:, 8:].expand(3, -1, -1), cache=cache)
    assert torch.equal(out[0], out[1])
    assert torch.equal(out[0], out[2])


@pytest.mark.parametrize("items", [[], [2], [-1]])
def test_sequences_that_are_not_there_are_refused(items: list[int]) -> None:
    with pytest.raises(InvalidInput, match="items"):
        SVCache(layer_of(HybridSVAttention), 2).reorder(items)


@both
def test_a_token_that_is_not_finite_marks_its_own_sequence_until_it_is_forgotten(kind: type[SVAttention]) -> None:
    layer, x = layer_of(kind), tokens(2, 20)
    spoiled, cache = x.clone(), SVCache(layer, 2)
    spoiled[1, 2] = torch.nan
    out = decode(layer, cache, spoiled[:, :9], [4])
    assert_close(out[0], layer(x)[0, :9].detach())
    assert out[1, 2:].isnan().all()
    assert cache.support(1, 0)[1].isnan().all()
    cache.forget([2])
    assert_close(layer(x[:, 9:], cache=cache), layer(x, mask(x, [2]))[:, 9:].detach())


def test_support_is_that_of_the_gate_and_the_report_counts_tokens() -> None:
    layer, x = layer_of(HybridSVAttention), tokens(2, 18)
    cache = SVCache(layer, 2)
    layer(x, cache=cache)
    packed = layer.project(x)
    found = layer.gate_of(packed, torch.ones(2, 18, dtype=torch.bool))
    assert found is not None
    for item in range(2):
        for head in range(2):
            index, alpha = cache.support(item, head)
            assert index.tolist() == found.indices[item, head, -1, : found.counts[item, head, -1]].tolist()
            assert_close(alpha, found.alpha[item, head, -1, : len(alpha)].detach(), 1e-12)
    report = cache.report()
    assert (report.tokens, report.kept, report.proved, report.horizon) == (18, 16, True, None)


def test_caches_and_layers_that_do_not_fit_are_refused() -> None:
    layer, x = layer_of(HybridSVAttention), tokens(2, 5)
    for size in (0, -1, 1.5):
        with pytest.raises(InvalidInput, match="batch_size"):
            SVCache(layer, size)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInput, match="gate"):
        SVCache(layer_of(HybridSVAttention, gate=False))
    with pytest.raises(InvalidInput, match="cache"):
        layer(x, cache=SVCache(layer, 3))
    with pytest.raises(InvalidInput, match="cache"):
        layer(x, cache=SVCache(layer_of(HybridSVAttention, chunk=5), 2))
