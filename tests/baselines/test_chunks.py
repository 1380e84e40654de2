"""What belongs to the baselines with a state of fixed size: chunks are a matter of speed, and the state remembers."""

import pytest
import torch

from svmem.baselines import DeltaNet, LinearAttention, SelectiveSSM
from svmem.baselines.deltanet import delta_rule
from svmem.baselines.selective_ssm import scan
from svmem.errors import InvalidInput
from svmem.nn.lm import LanguageModel, LMConfig


@pytest.mark.parametrize("mixer", [DeltaNet, LinearAttention, SelectiveSSM])
@pytest.mark.parametrize("chunk", [1, 16, 44, 45, 46])
def test_chunks_do_not_change_the_result(mixer, chunk):
    torch.manual_seed(0)
    module, x = mixer(8, 2).double(), torch.randn(2, 45, 8, dtype=torch.float64)
    whole = module(x)
    module.chunk = chunk
    torch.testing.assert_close(module(x), whole, rtol=1e-9, atol=1e-12)


def test_the_delta_rule_answers_with_what_was_written_last_under_a_key():
    k = torch.eye(4, dtype=torch.float64)[[0, 1, 0, 2, 1]][None, None]
    v = torch.arange(10.0, dtype=torch.float64).view(1, 1, 5, 2)
    beta = torch.ones(1, 1, 5, 1, dtype=torch.float64)
    for chunk in (2, 5):
        reads = delta_rule(k[:, :, [0, 0, 0, 1, 0]], k, v, beta, chunk=chunk)
        torch.testing.assert_close(reads, v[:, :, [0, 0, 2, 1, 2]])


def test_a_weak_write_moves_the_answer_by_its_strength():
    k = torch.eye(2)[[0, 0]][None, None]
    v = torch.tensor([[[[8.0], [0.0]]]])
    beta = torch.tensor([[[[1.0], [0.25]]]])
    torch.testing.assert_close(delta_rule(k, k, v, beta, chunk=2), torch.tensor([[[[8.0], [6.0]]]]))


def test_linear_attention_survives_features_that_underflow():
    module = LinearAttention(4, 1)
    x = torch.full((1, 6, 4), 1e4, requires_grad=True)
    with torch.no_grad():
        module.qkv_proj.weight.fill_(-1.0)
    out = module(x)
    out.sum().backward()
    assert out.isfinite().all()
    assert x.grad is not None
    assert x.grad.isfinite().all()


def test_a_selective_state_forgets_at_the_rate_of_its_steps():
    step = torch.tensor([[[0.0], [2.0], [3.0], [0.0]]], dtype=torch.float64)  # (1, t, 1)
    x, ones = torch.tensor([[[7.0], [1.0], [0.0], [9.0]]], dtype=torch.float64), step.new_ones(1, 4, 1)
    expected = torch.tensor([0.0, 2.0, 2 * 0.5**3, 2 * 0.5**3], dtype=torch.float64)
    decay = torch.tensor([[0.5]], dtype=torch.float64).log()
    for chunk in (1, 2, 4):
        torch.testing.assert_close(scan(step, x, ones, ones, decay, chunk=chunk).flatten(), expected)


@pytest.mark.parametrize("chunk", [4, 64])
@pytest.mark.parametrize("size", [1e-30, 1e4, 1e30])
def test_a_selective_state_survives_steps_of_any_size(size, chunk):
    step = torch.full((1, 50, 3), size, requires_grad=True)
    x = torch.full((1, 50, 3), 1 / size)
    ones = torch.ones(1, 50, 2)
    out = scan(step, x, ones, ones, torch.full((2, 3), -1.0, requires_grad=True), chunk=chunk)
    out.sum().backward()
    assert out.isfinite().all()
    assert step.grad is not None
    assert step.grad.isfinite().all()
    assert out[0, -1, 0].item() == pytest.approx(100.0 if size < 1 else 2.0)


def test_a_selective_layer_starts_with_the_published_steps_and_rates_also_in_a_model():
    torch.manual_seed(0)
    config = LMConfig(width=64, heads=2, layers=1)
    model = LanguageModel(config, lambda c, _: SelectiveSSM(c.width, c.heads, c.bias, state=4))
    layer = model.layers[0].mixer
    assert isinstance(layer, SelectiveSSM)
    steps = torch.nn.functional.softplus(layer.step_offset)
    assert 1e-3 <= steps.min() < 2e-3
    assert 5e-2 < steps.max() <= 1e-1 * (1 + 1e-4)
    assert layer.step_weight.abs().max().item() == pytest.approx(0.5, rel=0.05)  # 1 / sqrt(64 / 16)
    torch.testing.assert_close(layer.log_decay.exp(), torch.tensor([1.0, 2.0, 3.0, 4.0])[:, None].repeat(1, 128))


@pytest.mark.parametrize("options", [{"state": 0}, {"expand": 0}, {"conv": 0}, {"chunk": 0}])
def test_a_selective_layer_without_state_width_neighbours_or_chunk_is_refused(options):
    with pytest.raises(InvalidInput, match="state, expand, conv and chunk must be at least 1"):
        SelectiveSSM(8, 2, **options)


@pytest.mark.parametrize("options", [{"chunk": 0}, {"conv": 0}])
def test_an_empty_chunk_or_convolution_is_refused(options):
    with pytest.raises(InvalidInput, match="must be at least 1"):
        DeltaNet(8, 2, **options)
    if "chunk" in options:
        with pytest.raises(InvalidInput, match="chunk must be at least 1"):
            LinearAttention(8, 2, **options)
