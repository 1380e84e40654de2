"""The layers: against plain loops over tokens with their own projections, and what they promise of their inputs."""

import copy
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize, scaled_dot_product_attention

from svmem.errors import InvalidInput
from svmem.nn import HybridSVAttention, SVAttention, gate
from tests.oracles.naive_attention import naive_hybrid_readout, naive_rbf_readout

both = pytest.mark.parametrize("kind", [SVAttention, HybridSVAttention], ids=["rbf", "hybrid"])


def layer_of(kind: type[SVAttention], seed: int = 0, **options: Any) -> SVAttention:
    """Return a layer of 8 channels in double precision."""
    torch.manual_seed(seed)
    return kind(8, options.pop("num_heads", 2), **{"chunk": 4, "C": 0.3, "dtype": torch.float64} | options)


def tokens(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Return tokens (*shape, 8)."""
    return torch.randn(*shape, 8, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def coefficients(layer: SVAttention, keys: Tensor, padding: Tensor) -> Tensor:
    """Return the coefficients (b, h, B, t) at each chunk's start, one prefix at a time; 1/n below n_min + 2 keys."""
    b, g, t, _ = keys.shape
    least = -int(-1 // layer.C) + 2
    out = keys.new_zeros(b, g, len(range(layer.chunk, t, layer.chunk)), t)
    for i, (k, stop) in product(range(b), enumerate(range(layer.chunk, t, layer.chunk))):
        there = (~padding[i, :stop]).nonzero().flatten()
        n = len(there)
        if n >= least:
            setting = {"C": layer.C, "sigma": layer.sigma, "ridge": layer.ridge}
            out[i, :, k, there] = gate(keys[i : i + 1, :, there], [n], **setting).dense(n)[0, :, 0]
        elif n:
            out[i, :, k, there] = 1 / n
    return out.repeat_interleave(layer.num_heads // g, 1)


def by_hand(layer: SVAttention, x: Tensor, padding: Tensor | None = None) -> Tensor:
    """Return what the layer does, token by token."""
    h, g, d = layer.num_heads, layer.num_kv_heads, layer.head_dim
    parts = layer.qkv_proj(x).split([h * d, g * d, g * d], dim=2)
    query, key, value = (part.unflatten(2, (-1, d)).transpose(1, 2) for part in parts)
    short = normalize(key, dim=-1) if layer.normalize_keys else key
    alpha = coefficients(layer, short, torch.zeros(x.shape[:2], dtype=torch.bool) if padding is None else padding)
    wide = [y.repeat_interleave(h // g, 1) for y in (key, short, value)]
    if isinstance(layer, HybridSVAttention):
        out = naive_hybrid_readout(query, wide[0], wide[2], alpha, chunk=layer.chunk, padding=padding)
    else:
        query = normalize(query, dim=-1) if layer.normalize_keys else query
        options = {"sigma": layer.sigma.repeat_interleave(h // g), "C": layer.C, "chunk": layer.chunk}
        out = naive_rbf_readout(query, wide[1], wide[2], alpha, padding=padding, **options)
    return layer.out_proj(out.transpose(1, 2).flatten(2))


@both
@pytest.mark.parametrize(
    ("t", "options"),
    [
        (23, {}),
        (3, {}),
        (1, {}),
        (4, {}),
        (17, {"num_heads": 4, "num_kv_heads": 2, "normalize_keys": True}),
        (11, {"num_heads": 8, "num_kv_heads": 1, "chunk": 3, "bias": False}),
        (9, {"chunk": 1, "C": 0.6}),
        (13, {"C": 1.0, "sigma": 0.7, "normalize_keys": True}),
        (13, {"C": 0.05}),
    ],
    ids=str,
)
def test_the_layer_is_its_parts_put_together_by_hand(kind: type[SVAttention], t: int, options: dict[str, Any]) -> None:
    layer, x = layer_of(kind, **options), tokens(2, t)
    with torch.no_grad():
        layer.log_sigma.add_(torch.linspace(-0.3, 0.4, layer.num_kv_heads))  # a width for each head
    out = layer(x)
    assert out.shape == x.shape
    torch.testing.assert_close(out, by_hand(layer, x), rtol=0, atol=1e-11)


@both
def test_gradients_are_those_of_loops_over_tokens(kind: type[SVAttention]) -> None:
    layer, x = layer_of(kind, num_heads=4, num_kv_heads=2), tokens(1, 14)
    other = copy.deepcopy(layer)
    for one, out in ((layer, layer(x)), (other, by_hand(other, x))):
        (out * torch.arange(out.numel()).view(out.shape).sin()).sum().backward()
        assert all(p.grad is not None for p in one.parameters())
    for (name, one), two in zip(layer.named_parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one.grad, two.grad, rtol=1e-8, atol=1e-9, msg=lambda m, n=name: f"{n}: {m}")


@both
@pytest.mark.parametrize("gated", [True, False])
def test_no_output_depends_on_a_later_token(kind: type[SVAttention], gated: bool) -> None:
    layer, x = layer_of(kind, gate=gated), tokens(2, 15)
    out = layer(x)
    for j in range(1, 15):
        moved = x.clone()
        moved[:, j] += tokens(2, seed=j)
        torch.testing.assert_close(layer(moved)[:, :j], out[:, :j], rtol=0, atol=1e-13)


def test_the_hybrid_layer_without_a_gate_is_plain_causal_attention() -> None:
    layer, x = layer_of(HybridSVAttention, gate=False), tokens(2, 15)
    query, key, value = (y.unflatten(2, (2, 4)).transpose(1, 2) for y in layer.qkv_proj(x).chunk(3, dim=2))
    plain = scaled_dot_product_attention(query, key, value, is_causal=True).transpose(1, 2).flatten(2)
    torch.testing.assert_close(layer(x), layer.out_proj(plain), rtol=0, atol=1e-13)
    assert layer.statistics is None


@both
@pytest.mark.parametrize("normalized", [True, False])
def test_padding_anywhere_is_read_by_nobody(kind: type[SVAttention], normalized: bool) -> None:
    layer, x = layer_of(kind, normalize_keys=normalized), tokens(3, 18)
    padding = torch.zeros(3, 18, dtype=torch.bool)
    padding[0, :9] = padding[1, 2:7] = padding[1, 11] = padding[2, 13:] = True
    out, expected = layer(x, padding), by_hand(layer, x, padding)
    torch.testing.assert_close(out[~padding], expected[~padding], rtol=0, atol=1e-11)


@both
@pytest.mark.parametrize("gated", [True, False])
def test_right_padding_changes_no_output(kind: type[SVAttention], gated: bool) -> None:
    layer, x = layer_of(kind, gate=gated), tokens(1, 22)
    for n in (1, 3, 4, 9, 16):
        padding = (torch.arange(22) >= n)[None]
        torch.testing.assert_close(layer(x, padding)[:, :n], layer(x[:, :n]), rtol=0, atol=1e-14)


@both
@pytest.mark.parametrize("gated", [True, False])
def test_left_padding_of_whole_chunks_changes_no_output(kind: type[SVAttention], gated: bool) -> None:
    layer, x = layer_of(kind, gate=gated), tokens(1, 22)
    for n in (4, 8, 20):
        padding = (torch.arange(22) < n)[None]
        torch.testing.assert_close(layer(x, padding)[:, n:], layer(x[:, n:]), rtol=0, atol=1e-13)


def test_a_fixed_width_gets_no_gradient() -> None:
    layer = layer_of(HybridSVAttention, learn_sigma=False, sigma=1.25)
    layer(tokens(1, 15)).sum().backward()
    assert layer.log_sigma.grad is None
    torch.testing.assert_close(layer.sigma, torch.full((2,), 1.25, dtype=torch.float64))


@both
def test_each_key_head_has_a_width_of_its_own(kind: type[SVAttention]) -> None:
    layer, x = layer_of(kind, num_heads=4, num_kv_heads=2), tokens(1, 15)
    assert layer.sigma.shape == (2,)
    with torch.no_grad():
        layer.out_proj.weight.copy_(torch.eye(8))
    before = layer(x)
    with torch.no_grad():
        layer.log_sigma[1] += 0.5
    after = layer(x)
    assert torch.equal(before[..., :4], after[..., :4])
    assert not torch.equal(before[..., 4:], after[..., 4:])


@both
def test_statistics_say_what_the_gates_were_like(kind: type[SVAttention]) -> None:
    layer, x = layer_of(kind), tokens(3, 19)
    assert layer.statistics is None
    padding = torch.zeros(3, 19, dtype=torch.bool)
    padding[1, :8] = True
    layer(x, padding)
    found = layer.statistics
    assert found is not None
    assert found.problems == 2 * (4 + 2 + 4)  # at 4, 8, 12, 16; no key is there at 4 and 8 in the padded item
    assert found.certified == 2 * (3 + 1 + 3)  # 4 keys are fewer than ceil(1 / 0.3) + 2
    alpha = coefficients(layer, layer.qkv_proj(x)[..., 8:16].unflatten(2, (2, 4)).transpose(1, 2), padding)
    sizes = (alpha > 0).sum(-1)[
        torch.tensor([[0, 1, 1, 1], [0, 0, 0, 1], [0, 1, 1, 1]]).bool()[:, None].expand(3, 2, 4)
    ]
    assert found.max_support == int(sizes.max())
    assert found.mean_support == pytest.approx(float(sizes.double().mean()))
    assert 0 <= found.worst_gap < 1e-12
    layer(x[:, :3])
    assert layer.statistics is not None
    assert (layer.statistics.problems, layer.statistics.certified, layer.statistics.max_support) == (0, 0, 0)


@both
def test_autocast_to_bfloat16_stays_close_and_has_finite_gradients(kind: type[SVAttention]) -> None:
    layer, x = layer_of(kind, dtype=torch.float32), tokens(2, 15, dtype=torch.float32).requires_grad_()
    plain = layer(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = layer(x)
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.float(), plain, rtol=0, atol=0.05)
    out.float().square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in (x, *layer.parameters()))


@both
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_output_has_the_type_of_the_weights(kind: type[SVAttention], dtype: torch.dtype) -> None:
    layer, x = layer_of(kind, dtype=dtype), tokens(2, 15)
    out = layer(x.to(dtype))
    assert out.dtype == dtype
    torch.testing.assert_close(out.double(), layer.double()(x), rtol=0, atol=0.05 if dtype == torch.bfloat16 else 1e-5)


@both
def test_a_state_dict_makes_an_equal_layer(kind: type[SVAttention]) -> None:
    one, other, x = layer_of(kind), layer_of(kind, seed=1), tokens(2, 15)
    with torch.no_grad():
        one.log_sigma.add_(0.3)
    one(x).sum().backward()
    other.load_state_dict(one.state_dict())
    assert torch.equal(one(x), other(x))
    assert torch.equal(one(x), copy.deepcopy(one)(x))


@both
def test_repeated_tokens_have_finite_outputs_and_gradients(kind: type[SVAttention]) -> None:
    layer = layer_of(kind)
    for x in (tokens(2, 1).expand(2, 21, 8), tokens(2, 3).repeat(1, 7, 1), torch.zeros(2, 21, 8, dtype=torch.float64)):
        x = x.clone().requires_grad_()
        layer.zero_grad()
        layer(x).square().sum().backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in (x, *layer.parameters()))


@both
def test_a_token_that_is_not_finite_leaves_the_other_items_as_they_are(kind: type[SVAttention]) -> None:
    layer, x = layer_of(kind), tokens(3, 18)
    out, spoiled = layer(x), x.clone()
    for bad in (torch.nan, torch.inf):
        spoiled[1, 5, 2] = bad
        other = layer(spoiled)
        assert torch.equal(other[[0, 2]], out[[0, 2]])
        torch.testing.assert_close(other[1, :4], out[1, :4], rtol=0, atol=1e-14)  # the chunks before
        assert other[1, 5:].isnan().all()


@both
@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"num_heads": 3}, "num_heads"),
        ({"num_heads": 0}, "num_heads"),
        ({"num_heads": 4, "num_kv_heads": 3}, "num_kv_heads"),
        ({"num_kv_heads": 0}, "num_kv_heads"),
        ({"chunk": 0}, "chunk"),
        ({"chunk": 2.5}, "chunk"),
        ({"C": 0.0}, "C"),
        ({"C": 1.5}, "C"),
        ({"sigma": 0.0}, "sigma"),
        ({"sigma": -1.0}, "sigma"),
        ({"ridge": 0.0}, "ridge"),
    ],
    ids=str,
)
def test_options_that_make_no_layer_are_refused(kind: type[SVAttention], change: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidInput, match=rf"\b{word}\b") as caught:
        layer_of(kind, **change)
    assert "\n" not in str(caught.value)


@both
def test_tokens_and_masks_of_another_shape_are_refused(kind: type[SVAttention]) -> None:
    layer, x = layer_of(kind), tokens(2, 9)
    for bad in (x[0], x[..., :7], x[:, :0]):
        with pytest.raises(InvalidInput, match=r"\bx\b"):
            layer(bad)
    for mask in (torch.zeros(2, 9), torch.zeros(2, 8, dtype=torch.bool), torch.zeros(9, dtype=torch.bool)):
        with pytest.raises(InvalidInput, match="key_padding_mask"):
            layer(x, mask)
