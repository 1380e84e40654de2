"""Published ways to mix tokens, one a file: modules (b, t, width) -> (b, t, width) that never look ahead."""

from svmem.baselines.deltanet import DeltaNet
from svmem.baselines.linear_attention import LinearAttention
from svmem.baselines.sliding_window import SlidingWindowAttention
from svmem.baselines.softmax import SoftmaxAttention

__all__ = ["DeltaNet", "LinearAttention", "SlidingWindowAttention", "SoftmaxAttention"]
