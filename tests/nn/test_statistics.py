"""What the gates of a model were like, against counts by hand."""

import torch
from torch import nn

from svmem.nn import GateStatistics, GateStatus, HybridSVAttention, gate_statistics

COUNTS = torch.tensor([[0, 3, 5], [1, 7, 2]])
GAPS = torch.tensor([[0.0, 0.0, 1e-9], [torch.nan, 1e-12, torch.nan]], dtype=torch.float64)
STATES = torch.tensor(
    [
        [GateStatus.COLLECTING, GateStatus.COLLECTING, GateStatus.OPTIMAL],
        [GateStatus.INVALID, GateStatus.OPTIMAL, GateStatus.FAILED],
    ]
)


class Gated(nn.Module):
    def __init__(self, statistics: GateStatistics | None) -> None:
        super().__init__()
        self.statistics = statistics


def test_gates_are_counted_by_their_state() -> None:
    found = GateStatistics.of(COUNTS, GAPS, STATES)
    assert found == GateStatistics(problems=5, certified=2, failed=2, mean_support=6.0, max_support=7, worst_gap=1e-9)


def test_the_gates_of_all_layers_are_taken_together() -> None:
    parts = [GateStatistics.of(COUNTS[k : k + 1], GAPS[k : k + 1], STATES[k : k + 1]) for k in range(2)]
    model = nn.Sequential(Gated(parts[0]), nn.Linear(2, 2), Gated(parts[1]), Gated(None))
    assert gate_statistics(model) == GateStatistics.of(COUNTS, GAPS, STATES)


def test_a_model_without_gates_has_no_statistics() -> None:
    assert gate_statistics(nn.Linear(2, 2)) is None
    assert gate_statistics(HybridSVAttention(4, 1, gate=False)) is None


def test_statistics_of_a_model_are_those_of_its_last_pass() -> None:
    layer = HybridSVAttention(4, 2, chunk=4)
    layer(torch.randn(1, 17, 4, generator=torch.Generator().manual_seed(0)))
    assert gate_statistics(nn.Sequential(layer)) == layer.statistics
    assert layer.statistics is not None
    assert layer.statistics.failed == 0


def test_a_sequence_that_is_not_finite_is_counted_as_failed() -> None:
    layer, x = HybridSVAttention(4, 1, chunk=4), torch.ones(2, 9, 4)
    x[0, 0, 0] = torch.inf
    layer(x)
    assert layer.statistics is not None
    assert (layer.statistics.problems, layer.statistics.failed) == (4, 2)
