"""What all baselines promise: the published formula, its gradient, and no look ahead."""

import pytest
import torch

from svmem.baselines import DeltaNet, LinearAttention, SlidingWindowAttention, SoftmaxAttention, linear_attention
from svmem.errors import InvalidInput
from tests.oracles.mixing import delta_reference, linear_reference, softmax_reference

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
    return softmax_reference(module, x, window=getattr(module, "window", x.shape[1]))


def made(mixer, shape, *, bias=True):
    torch.manual_seed(5)
    b, t, width, heads = shape
    return mixer(width, heads, bias).double(), torch.randn(b, t, width, dtype=torch.float64, requires_grad=True)


@pytest.fixture(params=MIXERS.values(), ids=list(MIXERS))
def mixer(request):
    return request.param


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_outputs_and_gradients_are_those_of_the_formula(mixer, shape):
    module, x = made(mixer, shape)
    ours, theirs = module(x), reference(module, x)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)
    weights = torch.randn_like(ours)
    inputs = [x, *module.parameters()]
    for got, expected in zip(
        torch.autograd.grad((ours * weights).sum(), inputs),
        torch.autograd.grad((theirs * weights).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(got, expected, rtol=1e-7, atol=1e-9)


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
        assert torch.equal(after[:, :j], before[:, :j])
        assert not torch.equal(after[:, j], before[:, j])


def test_each_sequence_of_a_batch_is_mixed_by_itself(mixer):
    module, x = made(mixer, (3, 45, 8, 2))
    torch.testing.assert_close(module(x)[1:2], module(x[1:2]), rtol=1e-12, atol=1e-14)


def test_without_bias_zero_stays_zero(mixer):
    module, x = made(mixer, (1, 5, 8, 2), bias=False)
    assert [name for name, _ in module.named_parameters() if "bias" in name] == []
    assert torch.equal(module(0 * x), torch.zeros_like(x))


@pytest.mark.parametrize("shape", [(2, 5, 7), (2, 0, 8), (5, 8)])
def test_an_input_of_another_shape_is_refused(mixer, shape):
    with pytest.raises(InvalidInput, match=r"must have shape \(b, t, 8\)"):
        mixer(8, 2)(torch.zeros(shape))


def test_heads_that_do_not_divide_the_width_are_refused(mixer):
    with pytest.raises(InvalidInput, match="embed_dim must be a multiple of num_heads, got 8 and 3"):
        mixer(8, 3)
