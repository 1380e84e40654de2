"""A run from its beginning, or from where its folder says it stands, to its end."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from experiments import files
from experiments.language import checkpoint
from experiments.language.settings import read_settings
from experiments.language.trainer import Trainer
from svmem.errors import InvalidInput
from svmem.types import Json

__all__ = ["Progress", "best", "matched_window", "open_run", "train"]


@dataclass(frozen=True, slots=True)
class Progress:
    """What a run asks the outside in each step, and tells it after: the loss, and tokens a second of late."""

    stop: Callable[[], bool]
    step: Callable[[float, float], None]


def open_run(trainer: Trainer, folder: Path, command: str) -> None:
    """Make the folder of a run, or bring the trainer to where the run in it stands.

    Rows beyond the checkpoint are dropped: they will come again. Raises InvalidInput when the folder holds a run with
    other settings or of another text.
    """
    path, settings, text = folder / files.RUN, trainer.settings, trainer.text
    if path.exists():
        run = files.read_json(path)
        changed = settings.differences(read_settings(run, path))
        changed += ["text"] if run.get("sha256") != text.digest else []
        if changed:
            raise InvalidInput(f"{folder} holds a run with another {', another '.join(changed)}: name another folder")
    elif trainer.world.first:
        folder.mkdir(parents=True, exist_ok=True)
        run = {"settings": asdict(settings), "text": text.name, "sha256": text.digest, "command": command}
        files.write_json(path, run | files.versions())
    if (folder / files.CHECKPOINT).exists():
        trainer.restore(checkpoint.read_arrays(folder / files.CHECKPOINT))
    if trainer.world.first:
        rows = files.read_rows(folder / files.ROWS)
        files.write_rows(folder / files.ROWS, [row for row in rows if row["step"] <= trainer.step])


def train(trainer: Trainer, folder: Path, command: str, progress: Progress) -> Iterator[Json]:
    """Yield the rows of the run that are still to come; each is in the folder before it is yielded.

    Ends at the last step, after the first in which `progress.stop` was true, or with a row whose status says that loss
    or gradient is no number any more. In the first two cases the checkpoint is of the step that the trainer is at.
    """
    settings, first = trainer.settings, trainer.world.first
    common = provenance(trainer, command)
    step, seconds, steepest = trainer.step, trainer.seconds, 0.0
    while trainer.step < settings.steps:
        taken = trainer.advance(progress.stop)
        speed = settings.batch * settings.block * (trainer.step - step) / (trainer.seconds - seconds)
        progress.step(taken.loss, speed)
        steepest = max(steepest, taken.grad_norm)
        finite = math.isfinite(taken.loss) and math.isfinite(taken.grad_norm)
        due = not finite or trainer.step % settings.every == 0 or trainer.step == settings.steps
        since = {"grad_norm_max": steepest if finite else None, "tokens_per_s": speed}  # since the row before
        row = measured(trainer, taken.loss, taken.grad_norm) | since | common if due else None
        if row and first:
            files.add_row(folder / files.ROWS, row)
        if first and finite and (due or taken.stop):
            checkpoint.write_arrays(folder / files.CHECKPOINT, trainer.snapshot())
        if row:
            yield row
            step, seconds, steepest = trainer.step, trainer.seconds, 0.0
        if taken.stop or not finite:
            return


def measured(trainer: Trainer, loss: float, grad_norm: float) -> Json:
    """Return what there is to say after a step."""
    finite = math.isfinite(loss) and math.isfinite(grad_norm)
    scored = trainer.validate() if finite else math.nan  # the weights are no numbers any more
    figures = {"loss": loss, "bits_per_byte": scored, "grad_norm": grad_norm, **trainer.gates()}
    status = "ok" if finite else "diverged: the loss or its gradient is no number"
    kept = {name: value if math.isfinite(value) else None for name, value in figures.items()}
    return {"step": trainer.step, "seconds": trainer.seconds, "status": status} | kept


def provenance(trainer: Trainer, command: str) -> Json:
    """Return what all rows of a run say of where they come from."""
    settings = trainer.settings
    return {
        "mixer": settings.mixer,
        "seed": settings.seed,
        "text": trainer.text.name,
        "parameters": trainer.model.size,
        "processes": trainer.world.size,
        "threads": torch.get_num_threads(),
        "device": trainer.world.device.type,
        "command": command,
    } | files.versions()


def best(rows: Sequence[Json]) -> Json | None:
    """Return the row with the fewest held-out bits per byte, None when there is none."""
    scored = [row for row in rows if row["bits_per_byte"] is not None]
    return min(scored, key=lambda row: row["bits_per_byte"], default=None)


def matched_window(folder: Path) -> int:
    """Return the sliding window with the state of a run with gates: mean support and own chunk. [Ramesh2026]"""
    settings = read_settings(files.read_json(folder / files.RUN), folder / files.RUN)
    supports = [row["mean_support"] for row in files.read_rows(folder / files.ROWS) if row.get("mean_support")]
    if not supports:
        raise InvalidInput(f"{folder} must hold rows of a run with --mixer sv, whose mean support is to be matched")
    return round(supports[-1]) + settings.chunk
