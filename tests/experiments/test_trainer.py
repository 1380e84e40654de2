"""How a run is trained: the rate, what decays, and what the gates say."""

import pytest
import torch

from experiments.language.mixer import mixer
from experiments.language.settings import Settings
from experiments.language.trainer import adamw, learning_rate
from experiments.language.uniform import UniformSVAttention
from svmem.nn import HybridSVAttention
from svmem.nn.lm import LanguageModel
from tests.oracles.naive_attention import naive_hybrid_readout


def test_the_rate_rises_to_its_peak_and_falls_to_a_tenth():
    settings = Settings(steps=1000, lr=2.0, warmup=0.1)
    rates = [learning_rate(settings, step) for step in range(1000)]
    assert rates[0] == pytest.approx(0.02)
    assert rates[99] == rates[100] == 2.0
    assert rates[-1] == pytest.approx(0.2)
    assert rates[:100] == sorted(rates[:100])
    assert rates[100:] == sorted(rates[100:], reverse=True)


@pytest.mark.parametrize(("steps", "warmup"), [(1, 0.0), (1, 0.9), (2, 0.5), (3, 0.02)])
def test_the_shortest_runs_have_a_rate_too(steps, warmup):
    settings = Settings(steps=steps, lr=2.0, warmup=warmup)
    assert all(0 < learning_rate(settings, step) <= 2.0 for step in range(steps))


@pytest.mark.parametrize("name", ["softmax", "delta", "ssm"])
def test_matrices_decay_and_gains_and_biases_do_not(name):
    settings = Settings(mixer=name, width=16, layers=1, heads=2, block=8)
    model = LanguageModel(settings.model, mixer(settings))
    decaying, others = adamw(model, 1e-3).param_groups
    names = {id(p): name for name, p in model.named_parameters()}
    assert (decaying["weight_decay"], others["weight_decay"]) == (0.1, 0.0)
    still = ("norm", "bias", "offset", "skip", "log_decay")
    assert all(any(part in names[id(p)] for part in still) for p in others["params"])
    assert not any("norm" in names[id(p)] for p in decaying["params"])
    assert len(decaying["params"]) + len(others["params"]) == len(names)


def test_a_mixer_of_support_vectors_gets_its_settings():
    settings = Settings(mixer="sv", width=16, heads=2, chunk=8, C=0.5, sigma=3.0, ridge=0.25, normalize_keys=True)
    layer = mixer(settings)(settings.model, 0)
    assert isinstance(layer, HybridSVAttention)
    assert (layer.chunk, layer.C, layer.ridge, layer.normalize_keys) == (8, 0.5, 0.25, True)
    torch.testing.assert_close(layer.sigma, torch.full((2,), 3.0))
    assert not layer.log_sigma.requires_grad


def test_equal_coefficients_are_those_of_a_memory_that_chooses_nothing():
    torch.manual_seed(0)
    layer = UniformSVAttention(8, 2, chunk=4)
    x = torch.randn(2, 13, 8)
    q, k, v = (part.unflatten(2, (2, 4)).transpose(1, 2) for part in layer.qkv_proj(x).chunk(3, -1))
    alpha = torch.stack([(torch.arange(13) < stop) / stop for stop in (4, 8, 12)]).expand(2, 2, 3, 13)
    expected = naive_hybrid_readout(q, k, v, alpha, chunk=4).transpose(1, 2).flatten(2)
    torch.testing.assert_close(layer(x), layer.out_proj(expected), rtol=1e-5, atol=1e-6)
    assert layer.statistics is None
    assert layer(x[:, :3]).isfinite().all()  # no memory yet
