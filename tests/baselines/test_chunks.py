"""What belongs to the baselines with a state of fixed size: chunks are a matter of speed, and the state remembers."""

import pytest
import torch

from svmem.baselines import DeltaNet, LinearAttention
from svmem.baselines.deltanet import delta_rule
from svmem.errors import InvalidInput


@pytest.mark.parametrize("mixer", [DeltaNet, LinearAttention])
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


@pytest.mark.parametrize("options", [{"chunk": 0}, {"conv": 0}])
def test_an_empty_chunk_or_convolution_is_refused(options):
    with pytest.raises(InvalidInput, match="must be at least 1"):
        DeltaNet(8, 2, **options)
    if "chunk" in options:
        with pytest.raises(InvalidInput, match="chunk must be at least 1"):
            LinearAttention(8, 2, **options)
