"""Compiling everything once, so that nobody waits at a first training step."""

import torch

from svmem.nn.cache import SVCache
from svmem.nn.layer import HybridSVAttention

__all__ = ["compile_once"]


def compile_once() -> None:
    """Call all that is compiled for gates, gradients and caches, on a few tokens. The first time takes minutes."""
    layer = HybridSVAttention(8, 1, chunk=8)
    x = torch.linspace(-1, 1, 144 * 8).sin().reshape(1, 144, 8)
    with torch.enable_grad():
        layer(x[:, :20]).square().mean().backward()
    layer(x[:, :20], cache=SVCache(layer, exact=False))
    cache = SVCache(layer)
    layer(x, cache=cache)  # more keys than there is room for at first
    cache.forget([0])
