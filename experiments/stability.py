"""What keeps training through the gate stable: ridge, keys of length 1, a width that is learned, an exact optimum.

    python -m experiments.stability --figure docs/figures/stability.svg

Small language models on bytes, one an arm, with the same weights and batches at the start. Arms: each ridge, with raw
keys and with keys of length 1, with a fixed and a learned width; `approximate`, the gate that [Ramesh2026] trains with;
and models ten times as wide and twice as deep, with either gate and with softmax. A spike is a loss above the running
median by half a nat.
"""

import math
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import nn

from experiments import ledger
from experiments.language.text import Text, batch, read_text, wikipedia
from experiments.ledger import Experiment, Tick, done, plain, silent
from experiments.probe import gate_figures, probed
from experiments.stability_claims import claim
from svmem.baselines import FistaAttention, SoftmaxAttention
from svmem.errors import InvalidInput
from svmem.nn import HybridSVAttention
from svmem.nn.lm import LanguageModel, LMConfig, next_token_loss
from svmem.types import Json

__all__ = ["Arm", "Config", "arms", "claim", "count_spikes", "draw", "main", "run"]

SPIKE, BEHIND = 0.5, 25  # nats above the median of so many losses before
WIDER, DEEPER = 10, 2
UNIT_SIGMA, RAW_SIGMA = 1.0, 2.0  # of keys of length 1; of raw keys, as in the paper


@dataclass(frozen=True, slots=True)
class Config:
    """The smallest model that shows the effects; learning rate, C and clipping are those of [Ramesh2026]."""

    seeds: tuple[int, ...] = (0,)
    ridges: tuple[float, ...] = (1e-6, 1e-4, 1e-3, 1e-2)
    width: int = 64
    layers: int = 2
    head_dim: int = 32
    block: int = 128
    chunk: int = 32
    C: float = 0.25
    batch: int = 4
    steps: int = 300
    wide_steps: int = 120
    lr: float = 3e-3
    text: str = ""

    def __post_init__(self) -> None:
        if min(self.steps, self.wide_steps, self.batch, self.block, self.chunk) < 1:
            raise InvalidInput("steps, batch, block and chunk must be at least 1")
        if self.width % self.head_dim:
            raise InvalidInput(f"head_dim must divide width, got {self.head_dim} and {self.width}")


SAYS = {
    "seeds": "seeds of weights and batches",
    "ridges": "ridges of the problem",
    "width": "width of the model",
    "layers": "number of layers",
    "head_dim": "width of a head",
    "block": "bytes of a context",
    "chunk": "bytes between two gates",
    "C": "cap of a coefficient",
    "batch": "contexts a step",
    "steps": "training steps of the small models",
    "wide_steps": "training steps of the wide and deep ones",
    "lr": "peak learning rate",
    "text": "file to learn from (the Wikipedia pages inside gensim)",
}


@dataclass(frozen=True, slots=True)
class Arm:
    """One training. `gate` is exact, approximate or none."""

    seed: int
    gate: str = "exact"
    ridge: float = 1e-3
    unit: bool = False
    learn: bool = False
    wide: bool = False

    @property
    def name(self) -> str:
        """Its name among rows."""
        if self.gate == "none":
            return f"softmax wide/{self.seed}" if self.wide else f"softmax/{self.seed}"
        keys, width = "unit keys" if self.unit else "raw keys", "learned" if self.learn else "fixed"
        size = " wide" if self.wide else ""
        return f"{self.gate}{size}/ridge {self.ridge:g}/{keys}/{width} width/{self.seed}"


def _arms(config: Config) -> list[Arm]:
    made = [
        Arm(seed, "exact", ridge, unit, learn)
        for seed in config.seeds
        for ridge in config.ridges
        for unit in (False, True)
        for learn in (False, True)
    ]
    for seed in config.seeds:
        made += [Arm(seed, "approximate"), Arm(seed, "approximate", unit=True)]
        made += [Arm(seed, wide=True), Arm(seed, unit=True, wide=True), Arm(seed, "none", wide=True)]
        made += [Arm(seed, "approximate", wide=True), Arm(seed, "none")]
    return made


def arms(config: Config) -> list[str]:
    """Return the names of what is trained, in order."""
    return [arm.name for arm in _arms(config)]


def run(config: Config, *, finished: Sequence[Json] = (), tick: Tick = silent) -> Iterator[Json]:
    """Yield a row for each arm that is not finished."""
    text = _text(config)
    for arm in _arms(config):
        if done(finished, arm.name):
            tick(arm.name, 1.0)
            continue
        start = time.perf_counter()
        losses, flows, norms, figures = _train(config, arm, text, tick)
        yield _row(config, arm, text, losses, flows, norms) | figures | {"seconds": time.perf_counter() - start}


def _text(config: Config) -> Text:
    path = Path(config.text) if config.text else wikipedia()
    return read_text(path, limit_bytes=5_000_000, block=config.block)


def _model(config: Config, arm: Arm) -> LanguageModel:
    width, layers = config.width * (WIDER if arm.wide else 1), config.layers * (DEEPER if arm.wide else 1)
    kind = FistaAttention if arm.gate == "approximate" else HybridSVAttention

    def mixer(sizes: LMConfig, _: int) -> nn.Module:
        if arm.gate == "none":
            return SoftmaxAttention(sizes.width, sizes.heads, sizes.bias)
        sigma = UNIT_SIGMA if arm.unit else RAW_SIGMA
        choice = {"ridge": arm.ridge, "normalize_keys": arm.unit, "learn_sigma": arm.learn, "sigma": sigma}
        return kind(sizes.width, sizes.heads, sizes.bias, chunk=config.chunk, C=config.C, **choice)

    torch.manual_seed(arm.seed)
    return LanguageModel(
        LMConfig(width=width, layers=layers, heads=width // config.head_dim, block=config.block), mixer
    )


def _train(
    config: Config, arm: Arm, text: Text, tick: Tick
) -> tuple[list[float], list[float], list[float], dict[str, float]]:
    """Return losses, gradient norms through the gates and over all weights a step, and the gates' last figures."""
    model, steps = _model(config, arm), config.wide_steps if arm.wide else config.steps
    optimiser = torch.optim.AdamW(model.parameters(), lr=config.lr, betas=(0.9, 0.95), weight_decay=0.1)
    losses, flows, norms, gaps = [], [], [], [0.0]
    with probed(model) as flow:
        for step in range(steps):
            tokens = batch(text.train, block=config.block, size=config.batch, seed=arm.seed, step=step)
            loss = next_token_loss(model(tokens[:, :-1]), tokens[:, 1:])
            optimiser.zero_grad()
            loss.backward()
            norms.append(float(nn.utils.clip_grad_norm_(model.parameters(), 1.0)))
            losses.append(float(loss.detach()))
            flows.append(flow.take())
            gaps.append(gate_figures(model).get("worst_gap", 0.0))
            if not (math.isfinite(losses[-1]) and math.isfinite(norms[-1])):
                break
            for group in optimiser.param_groups:
                group["lr"] = config.lr * min(1.0, (step + 1) / 10)
            optimiser.step()
            tick(arm.name, (step + 1) / steps)
    return losses, flows, norms, gate_figures(model) | {"worst_gap": max(gaps)} if arm.gate != "none" else {}


def _row(config: Config, arm: Arm, text: Text, losses: list[float], flows: list[float], norms: list[float]) -> Json:
    ended = math.isfinite(losses[-1]) and math.isfinite(norms[-1])
    return {
        "arm": arm.name,
        "gate": arm.gate,
        "ridge": arm.ridge if arm.gate != "none" else None,
        "unit_keys": arm.unit,
        "learn_sigma": arm.learn,
        "wide": arm.wide,
        "seed": arm.seed,
        "text": text.name,
        "steps": len(losses),
        "loss": plain(sum(losses[-20:]) / len(losses[-20:])),
        "gate_grad_median": plain(statistics.median(flows)),
        "gate_grad_max": plain(max(flows)),
        "grad_max": plain(max(norms)),
        "spikes": count_spikes(losses),
        "losses": [plain(round(value, 4)) for value in losses],
        "status": "ok" if ended else "diverged: the loss or its gradient is no number",
        "last": True,
    }


def count_spikes(losses: Sequence[float]) -> int:
    """Return how many losses lie half a nat above the median of the 25 before; one that is no number counts."""
    count = 0
    for number in range(1, len(losses)):
        before = [value for value in losses[max(0, number - BEHIND) : number] if math.isfinite(value)]
        count += not losses[number] <= statistics.median(before or [math.inf]) + SPIKE
    return count


def draw(rows: Sequence[Json]) -> Figure:
    """Draw losses and gradient norms by ridge, and the losses of the wide models."""
    from experiments.pictures import stability_figure

    return stability_figure(rows)


EXPERIMENT = Experiment("stability", __doc__ or "", Config, SAYS, run, arms, claim, draw)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and return its exit code."""
    return ledger.main(EXPERIMENT, argv)


if __name__ == "__main__":
    sys.exit(main())
