"""No finite keys make a gate fail: close, far, few, many, at and around every cap."""

import pytest
import torch

from svmem.nn import GateStatus, gate


@pytest.mark.parametrize("spread", [1e-6, 0.03, 0.1, 0.3, 1.0, 30.0])
@pytest.mark.parametrize("n", [6, 8, 12, 24, 64])
def test_random_keys_of_any_spread_have_a_proved_optimum(spread: float, n: int) -> None:
    generator = torch.Generator().manual_seed(n)
    keys = spread * torch.randn(150, 1, n, 8, generator=generator)
    for C, ridge in ((0.25, 1e-3), (0.25, 1e-6), (1 / 3, 1e-6), (0.17, 1e-2)):
        found = gate(keys, [n // 2, n], C=C, sigma=2.0, ridge=ridge)
        assert (found.status != GateStatus.FAILED).all()
        assert found.gap.max() <= 1e-12
        assert torch.allclose(found.alpha.double().sum(3)[found.counts > 0], torch.ones(()).double(), atol=1e-6)


def test_a_cap_that_many_keys_reach_at_once_is_no_circle() -> None:
    keys = torch.stack([torch.arange(64.0) * step for step in (0.01, 0.1, 0.5, 2.0)])[:, None, :, None].double()
    for k in (3, 5, 10, 30):
        found = gate(keys, [k, k + 1, 2 * k, 64], C=1 / k, sigma=1.5, ridge=1e-8)
        assert (found.status == GateStatus.OPTIMAL).all()
        assert found.gap.max() <= 1e-12
