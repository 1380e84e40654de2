"""What all baselines promise: one way to make and call them, the published formula, its gradient, no look ahead."""

import inspect
import subprocess
import sys

import pytest
import torch
from torch import nn

from svmem import baselines
from svmem.baselines import (
    LSTM,
    DeltaNet,
    FistaAttention,
    LinearAttention,
    SelectiveSSM,
    SlidingWindowAttention,
    SoftmaxAttention,
    TokenMixer,
    linear_attention,
)
from svmem.errors import InvalidInput
from svmem.nn import HybridSVAttention
from tests.oracles.mixing import (
    delta_reference,
    fista_reference,
    linear_reference,
    lstm_reference,
    selective_reference,
    softmax_reference,
)

NAMES = {
    "LSTM",
    "DeltaNet",
    "FistaAttention",
    "LinearAttention",
    "SelectiveSSM",
    "SlidingWindowAttention",
    "SoftmaxAttention",
    "TokenMixer",
}

MIXERS = {
    "softmax": SoftmaxAttention,
    "window of 1": lambda *a, **k: SlidingWindowAttention(*a, **k, window=1),
    "window of 5": lambda *a, **k: SlidingWindowAttention(*a, **k, window=5),
    "window of 40": lambda *a, **k: SlidingWindowAttention(*a, **k, window=40),
    "linear": LinearAttention,
    "linear in chunks of 8": lambda *a, **k: LinearAttention(*a, **k, chunk=8),
    "delta": DeltaNet,
    "delta in chunks of 8": lambda *a, **k: DeltaNet(*a, **k, chunk=8),
    "delta in chunks of 1 without neighbours": lambda *a, **k: DeltaNet(*a, **k, chunk=1, conv=1),
    "FISTA": FistaAttention,
    "FISTA in chunks of 8": lambda *a, **k: FistaAttention(*a, **k, chunk=8, C=0.4, learn_sigma=False),
    "LSTM": LSTM,
    "selective": SelectiveSSM,
    "selective in chunks of 8": lambda *a, **k: SelectiveSSM(*a, **k, chunk=8, state=3),
    "selective in chunks of 1 without neighbours": lambda *a, **k: SelectiveSSM(*a, **k, chunk=1, conv=1, expand=1),
}
SHAPES = {  # b, t, width, heads
    "one token": (2, 1, 8, 2),
    "odd length": (2, 7, 8, 2),
    "one head": (1, 41, 6, 1),
    "heads of one number": (1, 9, 4, 4),
    "several blocks": (1, 70, 4, 2),
}


def reference(module, x):
    if isinstance(module, DeltaNet):
        return delta_reference(module, x)
    if isinstance(module, LinearAttention):
        return linear_reference(module, x, epsilon=linear_attention.EPSILON)
    if isinstance(module, FistaAttention):
        return fista_reference(module, x)
    if isinstance(module, LSTM):
        return lstm_reference(module, x)
    if isinstance(module, SelectiveSSM):
        return selective_reference(module, x)
    return softmax_reference(module, x, window=getattr(module, "window", x.shape[1]))


def made(mixer, shape, *, bias=True):
    torch.manual_seed(5)
    b, t, width, heads = shape
    return mixer(width, heads, bias).double(), torch.randn(b, t, width, dtype=torch.float64, requires_grad=True)


@pytest.fixture(params=MIXERS.values(), ids=list(MIXERS))
def mixer(request):
    return request.param


def test_the_public_names_are_exactly_these_and_each_is_there():
    assert set(baselines.__all__) == NAMES
    assert len(baselines.__all__) == len(NAMES)
    assert {getattr(baselines, name).__name__ for name in NAMES} == NAMES
    assert set(dir(baselines)) >= NAMES
    with pytest.raises(AttributeError, match=r"'svmem.baselines' has no attribute 'Mamba'"):
        _ = baselines.Mamba  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("package", ["selection", "forgetting"])
def test_selectors_and_ways_to_forget_come_without_torch(package):
    script = f"import sys, svmem.baselines.{package}; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert f"svmem.baselines.{package}" in ran.stdout.split()
    assert "torch" not in ran.stdout.split()


def test_each_public_layer_is_asked_here_and_all_are_made_alike(mixer):
    assert {type(each(4, 2)).__name__ for each in MIXERS.values()} == NAMES - {"TokenMixer"}
    module = mixer(4, 2, False)
    assert isinstance(module, TokenMixer | HybridSVAttention)
    assert (module.embed_dim, module.num_heads) == (4, 2)
    assert isinstance(module.out_proj, nn.Linear)
    arguments = list(inspect.signature(type(module)).parameters.values())
    assert [one.name for one in arguments[:3]] == ["embed_dim", "num_heads", "bias"]
    assert all(one.kind is one.KEYWORD_ONLY for one in arguments[3:])


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_outputs_and_gradients_are_those_of_the_formula(mixer, shape):
    module, x = made(mixer, shape)
    ours, theirs = module(x), reference(module, x)
    exact = not isinstance(module, FistaAttention)  # whose gate is in float32 whatever comes
    torch.testing.assert_close(ours, theirs, rtol=1e-9 if exact else 1e-5, atol=1e-11 if exact else 1e-7)
    weights = torch.randn_like(ours)
    inputs = [x, *(one for one in module.parameters() if one.requires_grad)]
    for got, expected in zip(
        torch.autograd.grad((ours * weights).sum(), inputs, materialize_grads=True),
        torch.autograd.grad((theirs * weights).sum(), inputs, materialize_grads=True),
        strict=True,
    ):
        torch.testing.assert_close(got, expected, rtol=1e-7 if exact else 1e-4, atol=1e-9 if exact else 1e-5)


def test_single_precision_agrees_with_double(mixer):
    module, x = made(mixer, (2, 83, 8, 2))
    expected = module(x)
    torch.testing.assert_close(module.float()(x.float()).double(), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("t", [2, 33, 83])
def test_changing_a_token_leaves_every_earlier_output_as_it_was_bit_for_bit(mixer, t):
    module, x = made(mixer, (2, t, 8, 2))
    module, x = module.float(), x.detach().float()
    before = module(x)
    for j in {0, 1, t // 2, t - 1}:
        changed = x.clone()
        changed[:, j] += 100 * torch.randn(2, 8)
        after = module(changed)
        if isinstance(module, FistaAttention):  # all chunks share the width of the widest support, and so its rounding
            torch.testing.assert_close(after[:, :j], before[:, :j], rtol=1e-5, atol=1e-6)
        else:
            assert torch.equal(after[:, :j], before[:, :j])
        assert not torch.equal(after[:, j], before[:, j])


def test_each_sequence_of_a_batch_is_mixed_by_itself(mixer):
    module, x = made(mixer, (3, 45, 8, 2))
    exact = not isinstance(module, FistaAttention)  # whose gate is in float32, where products round by batch
    rtol, atol = (1e-12, 1e-14) if exact else (1e-5, 1e-7)
    torch.testing.assert_close(module(x)[1:2], module(x[1:2]), rtol=rtol, atol=atol)


def test_without_bias_zero_stays_zero(mixer):
    module, x = made(mixer, (1, 5, 8, 2), bias=False)
    assert [name for name, _ in module.named_parameters() if "bias" in name] == []
    assert torch.equal(module(0 * x), torch.zeros_like(x))


@pytest.mark.parametrize("shape", [(2, 5, 7), (2, 0, 8), (5, 8)])
def test_an_input_of_another_shape_is_refused(mixer, shape):
    with pytest.raises(InvalidInput, match=r"shape \(b, t, 8\), t at least 1; got"):
        mixer(8, 2)(torch.zeros(shape))


def test_heads_that_do_not_divide_the_width_are_refused(mixer):
    with pytest.raises(InvalidInput, match=r"(of|must divide) (num_heads|embed_dim).*, got 8(,| and) 3"):
        mixer(8, 3)
