"""A layer learns what a fixed layer of the same shape does.

    python -m experiments.teacher --figure docs/figures/teacher.svg

The teacher has random weights, the student others; both are of one kind, with the hybrid or with the RBF readout. The
student sees new random tokens in each step, and learns through the gate's exact derivative. [Ramesh2026]
"""

import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from matplotlib.figure import Figure
from torch.nn.functional import mse_loss

from experiments import ledger
from experiments.ledger import Claim, Experiment, Tick, done, plain, silent
from experiments.probe import gate_figures, probed
from svmem.errors import InvalidInput
from svmem.nn import HybridSVAttention, SVAttention
from svmem.types import Json

__all__ = ["Config", "arms", "claim", "draw", "main", "run"]

KINDS = {"hybrid": HybridSVAttention, "rbf": SVAttention}


@dataclass(frozen=True, slots=True)
class Config:
    """Sizes: ours; the steps are those of [Ramesh2026]."""

    seeds: tuple[int, ...] = (0, 1, 2)
    width: int = 32
    heads: int = 2
    tokens: int = 128
    chunk: int = 32
    C: float = 0.25
    batch: int = 16
    steps: int = 200
    lr: float = 5e-2
    every: int = 10

    def __post_init__(self) -> None:
        if min(self.steps, self.batch, self.every, self.tokens) < 1:
            raise InvalidInput("steps, batch, tokens and every must be at least 1")


SAYS = {
    "seeds": "seeds of weights and tokens",
    "width": "width of the layers",
    "heads": "heads of the layers",
    "tokens": "tokens of a sequence",
    "chunk": "tokens between two gates",
    "C": "cap of a coefficient",
    "batch": "sequences a step",
    "steps": "training steps",
    "lr": "learning rate at the start; it falls to nothing along a cosine",
    "every": "steps between two rows",
}


def arms(config: Config) -> list[str]:
    """Return the names of what is trained, in order."""
    return [f"{kind}/{seed}" for seed in config.seeds for kind in KINDS]


def run(config: Config, *, finished: Sequence[Json] = (), tick: Tick = silent) -> Iterator[Json]:
    """Yield rows of the arms that are not finished: one every few steps."""
    for arm in arms(config):
        if done(finished, arm):
            tick(arm, 1.0)
            continue
        yield from _learn(config, arm, tick)


def _learn(config: Config, arm: str, tick: Tick) -> Iterator[Json]:
    kind, seed = arm.split("/")[0], int(arm.split("/")[1])
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    teacher, student = (KINDS[kind](config.width, config.heads, chunk=config.chunk, C=config.C) for _ in range(2))
    optimiser = torch.optim.Adam(student.parameters(), lr=config.lr)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, config.steps)
    start = time.perf_counter()
    with probed(student) as flow:
        for step in range(config.steps + 1):
            x = torch.randn(config.batch, config.tokens, config.width, generator=generator)
            with torch.no_grad():
                aim = teacher(x)
            loss = mse_loss(student(x), aim)
            optimiser.zero_grad()
            loss.backward()
            share, through = float(loss.detach() / aim.var()), flow.take()
            ended = step == config.steps or not math.isfinite(share)
            if step % config.every == 0 or ended:
                numbers = {"loss": plain(float(loss.detach())), "share": plain(share), "gate_grad": plain(through)}
                row = {"arm": arm, "readout": kind, "seed": seed, "step": step} | numbers | gate_figures(student)
                status = "ok" if math.isfinite(share) else "diverged: the loss is no number"
                yield row | {"seconds": time.perf_counter() - start, "status": status, "last": ended}
            if ended:
                return
            optimiser.step()
            rates.step()
            tick(arm, (step + 1) / config.steps)


def claim(rows: Sequence[Json]) -> list[Claim]:
    """Return the sentence of [Ramesh2026] for each arm: 200 steps take 99 % off the loss."""
    made = []
    for arm in dict.fromkeys(row["arm"] for row in rows):
        mine = [row for row in rows if row["arm"] == arm]
        first, last = mine[0], mine[-1]
        text = f"{arm}: the loss is down by 99 % in {last['step']} steps"
        if first["loss"] is None or last["loss"] is None:
            made.append(Claim(f"{text}: it diverged", False))
            continue
        down = 1 - last["loss"] / first["loss"]
        made.append(Claim(f"{text}: by {down:.2%}", down >= 0.99))
    return made


def draw(rows: Sequence[Json]) -> Figure:
    """Draw loss, gradient through the gate and gap over the steps."""
    from experiments.pictures import teacher_figure

    return teacher_figure(rows)


EXPERIMENT = Experiment("teacher", __doc__ or "", Config, SAYS, run, arms, claim, draw)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and return its exit code."""
    return ledger.main(EXPERIMENT, argv)


if __name__ == "__main__":
    sys.exit(main())
