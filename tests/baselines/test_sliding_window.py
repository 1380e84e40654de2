"""What belongs to the sliding window alone: which tokens it sees, and what that costs."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from svmem.baselines import SlidingWindowAttention, SoftmaxAttention
from svmem.errors import InvalidInput


def test_a_window_as_long_as_the_text_is_softmax_attention():
    torch.manual_seed(0)
    window, softmax = SlidingWindowAttention(8, 2, window=50), SoftmaxAttention(8, 2)
    window.load_state_dict(softmax.state_dict())
    x = torch.randn(2, 50, 8)
    assert torch.equal(window(x), softmax(x))


@pytest.mark.parametrize("window", [1, 3, 40])
def test_a_token_sees_the_window_and_nothing_before_it(window):
    torch.manual_seed(0)
    module, x = SlidingWindowAttention(8, 2, window=window), torch.randn(1, 150, 8)
    changed = x.clone()
    changed[:, 60] += 1
    moved = (module(x) != module(changed)).any(-1)[0]
    assert torch.equal(moved.nonzero().flatten(), torch.arange(60, 60 + window))


def attention_flops(module, t):
    def count(q, k, v, *_, **__):
        return sdpa_flop_count(q, k, v)

    fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu  # torch counts only the kernels of a GPU
    with FlopCounterMode(display=False, custom_mapping={fused: count}) as counter:
        module(torch.randn(1, t, 8))
    return counter.get_flop_counts()["Global"][fused]


def test_the_cost_grows_with_the_length_and_not_with_its_square():
    softmax, window = SoftmaxAttention(8, 2), SlidingWindowAttention(8, 2, window=32)
    assert attention_flops(softmax, 4096) == 256 * attention_flops(softmax, 256)
    assert attention_flops(window, 4096) == 16 * attention_flops(window, 256)
    assert attention_flops(window, 4096) < attention_flops(softmax, 4096) / 60


def test_an_empty_window_is_refused():
    with pytest.raises(InvalidInput, match="window must be at least 1"):
        SlidingWindowAttention(8, 2, window=0)
