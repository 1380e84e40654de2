"""The layer in a model of your own: a forecaster for a long stream, with one line that differs from softmax attention.

python examples/own_model.py
"""

import torch
from torch import nn

from svmem.nn import HybridSVAttention, SVCache


class Forecaster(nn.Module):
    """Predicts the next value of a stream from all values so far."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.inputs = nn.Linear(1, width)
        self.attention = HybridSVAttention(width, num_heads=2, chunk=32)  # was: nn.MultiheadAttention(width, 2)
        self.output = nn.Linear(width, 1)

    def forward(self, x: torch.Tensor, cache: SVCache | None = None) -> torch.Tensor:
        """Return predictions (b, t, 1) for values (b, t, 1)."""
        h = self.inputs(x)
        return self.output(h + self.attention(h, cache=cache))


torch.manual_seed(0)
time = torch.arange(513) / 16
stream = torch.stack([torch.sin(time * (1 + 0.1 * k)) + 0.1 * torch.randn(513) for k in range(8)]).unsqueeze(2)
model, loss = Forecaster(), torch.zeros(())
optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
for _ in range(60):
    loss = (model(stream[:, :-1]) - stream[:, 1:]).square().mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
seen = model.attention.statistics
assert seen is not None  # there was a forward pass
print(f"loss {loss.item():.3f}; {seen.mean_support:.0f} keys carry a gate; all optimal to {seen.worst_gap:.0e}")

cache = SVCache(model.attention, exact=False)  # one value at a time: memory stays at support + chunk
with torch.no_grad():
    forecasts = [model(value, cache=cache).item() for value in stream[:1, :200].split(1, dim=1)]
print(f"next value {forecasts[-1]:.2f}; {cache.report()}")
