"""The layer that mixes tokens, by the name that the command line gives it."""

from torch import nn

from experiments.language.settings import Settings
from svmem.baselines import DeltaNet, LinearAttention, SlidingWindowAttention, SoftmaxAttention
from svmem.nn import HybridSVAttention
from svmem.nn.lm import LMConfig, Mixer

__all__ = ["mixer"]


def mixer(settings: Settings) -> Mixer:
    """Return what makes the mixer of a layer."""
    made = {"sv": _sv, "softmax": _softmax, "window": _window, "linear": _linear, "delta": _delta}[settings.mixer]
    return lambda config, _: made(config, settings)


def _sv(config: LMConfig, settings: Settings) -> nn.Module:
    return HybridSVAttention(
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


def _softmax(config: LMConfig, _: Settings) -> nn.Module:
    return SoftmaxAttention(config.width, config.heads, config.bias)


def _window(config: LMConfig, settings: Settings) -> nn.Module:
    return SlidingWindowAttention(config.width, config.heads, config.bias, window=settings.window)


def _linear(config: LMConfig, _: Settings) -> nn.Module:
    return LinearAttention(config.width, config.heads, config.bias)


def _delta(config: LMConfig, _: Settings) -> nn.Module:
    return DeltaNet(config.width, config.heads, config.bias)
