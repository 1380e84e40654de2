"""Softmax attention over all earlier tokens."""

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from svmem.baselines.heads import MultiHead

__all__ = ["SoftmaxAttention"]


class SoftmaxAttention(MultiHead):
    """Causal softmax attention through torch's fused kernel: the yardstick. [VaswaniEtAl2017, section 3.2]"""

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return the mean of the values 0..i with weights softmax(q_i . k / sqrt(d))."""
        return scaled_dot_product_attention(q, k, v, is_causal=True)
