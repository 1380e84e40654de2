"""The layer that mixes tokens, by the name that the command line gives it."""

from collections.abc import Callable

from torch import nn

from experiments.language.settings import Settings
from experiments.language.uniform import UniformSVAttention
from svmem.baselines import (
    LSTM,
    DeltaNet,
    FistaAttention,
    LinearAttention,
    SelectiveSSM,
    SlidingWindowAttention,
    SoftmaxAttention,
)
from svmem.nn import HybridSVAttention
from svmem.nn.lm import LMConfig, Mixer

__all__ = ["mixer"]


def mixer(settings: Settings) -> Mixer:
    """Return what makes the mixer of a layer."""
    return lambda config, _: MADE[settings.mixer](config, settings)


def _gated(kind: type[HybridSVAttention], config: LMConfig, settings: Settings) -> nn.Module:
    return kind(
        config.width,
        config.heads,
        config.bias,
        chunk=settings.chunk,
        C=settings.C,
        sigma=settings.sigma,
        ridge=settings.ridge,
        normalize_keys=settings.normalize_keys,
        learn_sigma=settings.learn_sigma,
    )


def _plain(kind: Callable[[int, int, bool], nn.Module]) -> Callable[[LMConfig, Settings], nn.Module]:
    return lambda config, _: kind(config.width, config.heads, config.bias)


def _window(config: LMConfig, settings: Settings) -> nn.Module:
    return SlidingWindowAttention(config.width, config.heads, config.bias, window=settings.window)


MADE: dict[str, Callable[[LMConfig, Settings], nn.Module]] = {
    "sv": lambda config, settings: _gated(HybridSVAttention, config, settings),
    "softmax": _plain(SoftmaxAttention),
    "window": _window,
    "linear": _plain(LinearAttention),
    "delta": _plain(DeltaNet),
    "fista": lambda config, settings: _gated(FistaAttention, config, settings),
    "uniform": lambda config, settings: _gated(UniformSVAttention, config, settings),
    "ssm": _plain(SelectiveSSM),
    "lstm": _plain(LSTM),
}
