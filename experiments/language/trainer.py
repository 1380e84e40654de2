"""Model and optimiser of a run, and its steps."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from experiments.language.checkpoint import NUMBERS, Arrays, restore, snapshot
from experiments.language.mixer import mixer
from experiments.language.settings import Settings
from experiments.language.text import Text, batch, windows
from experiments.language.world import World
from svmem.errors import InvalidInput
from svmem.nn import gate_statistics
from svmem.nn.lm import LanguageModel, bits_per_byte, next_token_loss
from svmem.types import Json

__all__ = ["Taken", "Trainer", "learning_rate"]

BETAS, DECAY, CLIP = (0.9, 0.95), 0.1, 1.0
LAST = 0.1  # of the peak learning rate, which the cosine ends at


@dataclass(frozen=True, slots=True)
class Taken:
    """What a step found: the loss in nats before it, the norm of the gradient before clipping, and a wish to stop."""

    loss: float
    grad_norm: float
    stop: bool


class Trainer:
    """Trains one model. Holds all that changes: weights, the optimiser's state, the step, and what came out so far.

    With several processes each takes its part of every batch, and all hold the same weights.
    """

    def __init__(self, settings: Settings, text: Text, world: World) -> None:
        if settings.batch % world.size:
            raise InvalidInput(
                f"batch must be a multiple of the number of processes, got {settings.batch} and {world.size}"
            )
        self.settings, self.text, self.world = settings, text, world
        torch.manual_seed(settings.seed)
        self.model = LanguageModel(settings.model, mixer(settings)).to(world.device)
        self.optimiser = adamw(self.model, settings.lr)
        self.parallel = DistributedDataParallel(self.model) if world.size > 1 else self.model
        self.step, self.seconds = 0, 0.0
        self.mean_support, self.worst_gap, self.failed = 0.0, 0.0, 0.0  # of the last step; of all steps; gates of all

    def advance(self, stop: Callable[[], bool] = lambda: False) -> Taken:
        """Take one step. All processes learn whether one of them was to stop by the end of it."""
        start, settings = time.perf_counter(), self.settings
        tokens = batch(self.text.train, block=settings.block, size=settings.batch, seed=settings.seed, step=self.step)
        loss = self._loss(self.parallel, tokens[self.world.rank :: self.world.size])
        self._note_gates()
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(settings, self.step)
        self.optimiser.step()
        shared = self.world.sum(torch.stack((loss.detach(), loss.new_tensor(float(stop())))))
        self.step += 1
        mean, asked = shared.tolist()
        self.seconds += time.perf_counter() - start
        return Taken(mean / self.world.size, norm.item(), asked > 0)

    @torch.no_grad()
    def validate(self) -> float:
        """Return the bits per byte of the held-out stretches."""
        block, size = self.settings.block, self.settings.batch
        held_out = windows(self.text.held_out, block=block, count=self.settings.windows)
        nats = torch.zeros((), dtype=torch.float64)
        for tokens in held_out.split(size)[self.world.rank :: self.world.size]:
            nats += self._loss(self.model, tokens).double().cpu() * len(tokens)
        return bits_per_byte(self.world.sum(nats).item() / len(held_out))

    def gates(self) -> Json:
        """Return what the gates were like, where the mixers have some."""
        if gate_statistics(self.model) is None:
            return {}
        return {"mean_support": self.mean_support, "worst_gap": self.worst_gap, "failed": self.failed}

    def _note_gates(self) -> None:
        """Take up what the gates of this step were like, those of the other processes too."""
        found = gate_statistics(self.model)
        if found is None:
            return
        sums = torch.tensor([found.mean_support, found.failed], dtype=torch.float64)
        support, failed = self.world.sum(sums).tolist()
        gap = self.world.largest(torch.tensor([found.worst_gap], dtype=torch.float64)).item()
        self.mean_support = support / self.world.size
        self.worst_gap, self.failed = max(self.worst_gap, gap), self.failed + failed

    def snapshot(self) -> Arrays:
        """Return all that `restore` needs to go on exactly."""
        return snapshot(self.model, self.optimiser, {name: getattr(self, name) for name in NUMBERS})

    def restore(self, arrays: Arrays) -> None:
        """Go on where a snapshot was taken."""
        restore(arrays, self.model, self.optimiser)
        self.step = int(arrays["step"])
        for name in NUMBERS[1:]:
            setattr(self, name, float(arrays[name]))

    def _loss(self, model: nn.Module, tokens: Tensor) -> Tensor:
        tokens = tokens.to(self.world.device)
        return next_token_loss(model(tokens[:, :-1]), tokens[:, 1:])


def adamw(model: nn.Module, lr: float) -> torch.optim.AdamW:
    """Return the optimiser: weights that are matrices decay; gains, biases and rates do not."""
    decaying: dict[bool, list[nn.Parameter]] = {True: [], False: []}
    for name, p in model.named_parameters():
        decaying[p.dim() > 1 and name.endswith("weight")].append(p)
    groups = [{"params": decaying[True], "weight_decay": DECAY}, {"params": decaying[False], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr, betas=BETAS)


def learning_rate(settings: Settings, step: int) -> float:
    """Return the rate of a step: rising to the peak in the first steps, then along a cosine down to a tenth of it."""
    rising = round(settings.warmup * settings.steps)
    if step < rising:
        return settings.lr * (step + 1) / rising
    share = (step - rising) / max(1, settings.steps - 1 - rising)
    return settings.lr * (LAST + (1 - LAST) * (1 + math.cos(math.pi * share)) / 2)
