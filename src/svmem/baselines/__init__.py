"""Published ways to mix tokens, one a file: modules (b, t, width) -> (b, t, width) that never look ahead.

All but one are a `TokenMixer`; `FistaAttention` is `svmem.nn.HybridSVAttention` with another gate.

A name is looked up when it is asked for, so that the selectors and ways to forget beside them come without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from svmem.baselines.deltanet import DeltaNet
    from svmem.baselines.fista_attention import FistaAttention
    from svmem.baselines.linear_attention import LinearAttention
    from svmem.baselines.lstm import LSTM
    from svmem.baselines.mixer import TokenMixer
    from svmem.baselines.selective_ssm import SelectiveSSM
    from svmem.baselines.sliding_window import SlidingWindowAttention
    from svmem.baselines.softmax import SoftmaxAttention

__all__ = [
    "LSTM",
    "DeltaNet",
    "FistaAttention",
    "LinearAttention",
    "SelectiveSSM",
    "SlidingWindowAttention",
    "SoftmaxAttention",
    "TokenMixer",
]

_FILES = {
    "DeltaNet": "deltanet",
    "FistaAttention": "fista_attention",
    "LSTM": "lstm",
    "LinearAttention": "linear_attention",
    "SelectiveSSM": "selective_ssm",
    "SlidingWindowAttention": "sliding_window",
    "SoftmaxAttention": "softmax",
    "TokenMixer": "mixer",
}


if not TYPE_CHECKING:  # a type checker shall see the imports above, and what is not among them as a mistake

    def __getattr__(name: str) -> Any:
        if name not in _FILES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
