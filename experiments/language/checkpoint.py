"""Where a run stands, in one file of plain arrays: nothing in it can run code when it is read."""

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from experiments.files import replaced
from svmem.errors import FileRefused

__all__ = ["NUMBERS", "Arrays", "load_model", "read_arrays", "restore", "snapshot", "write_arrays"]

Arrays = Mapping[str, np.ndarray[Any, Any]]
NUMBERS = ("step", "seconds", "mean_support", "worst_gap", "failed")  # of the trainer
MODEL, ADAM, RNG = "model/", "adam/", "rng"


def snapshot(model: nn.Module, optimiser: torch.optim.Optimizer, numbers: Mapping[str, float]) -> Arrays:
    """Return all that a run needs to go on exactly: weights, the optimiser's state, torch's generator, and numbers.

    Batches are functions of seed and step, so that no generator of theirs is to be kept.
    """
    arrays = {MODEL + name: value.detach().cpu().numpy() for name, value in model.state_dict().items()}
    for number, state in optimiser.state_dict()["state"].items():
        arrays |= {f"{ADAM}{number}/{name}": value.detach().cpu().numpy() for name, value in state.items()}
    arrays[RNG] = torch.get_rng_state().numpy()
    return arrays | {name: np.asarray(value) for name, value in numbers.items()}


def restore(arrays: Arrays, model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    """Put model, optimiser and torch's generator where they were."""
    load_model(arrays, model)
    state: dict[int, dict[str, torch.Tensor]] = {}
    for key, value in arrays.items():
        if key.startswith(ADAM):
            number, name = key.removeprefix(ADAM).split("/")
            state.setdefault(int(number), {})[name] = torch.from_numpy(value.copy())
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
    torch.set_rng_state(torch.from_numpy(arrays[RNG].copy()))


def load_model(arrays: Arrays, model: nn.Module) -> None:
    """Put the weights into the model."""
    weights = {key.removeprefix(MODEL): value for key, value in arrays.items() if key.startswith(MODEL)}
    try:
        model.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in weights.items()})
    except RuntimeError as error:
        raise FileRefused(f"the checkpoint is one of another model: {' '.join(str(error).split())[:200]}") from None


def read_arrays(path: Path) -> Arrays:
    """Return the arrays of a checkpoint. Raises FileRefused when it is not one."""
    try:
        with path.open("rb") as file:
            found = np.load(file, allow_pickle=False)
            arrays = dict(found) if isinstance(found, np.lib.npyio.NpzFile) else {}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise FileRefused(f"{path} is not a checkpoint: {error}") from None
    if missing := {RNG, *NUMBERS} - arrays.keys():
        raise FileRefused(f"{path} is not a checkpoint: it must also hold {', '.join(sorted(missing))}")
    return arrays


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Write a checkpoint in the place of the one before, whole or not at all."""
    with replaced(path) as file:
        np.savez(file, allow_pickle=False, **arrays)
