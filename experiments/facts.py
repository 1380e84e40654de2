"""Sequences of facts to recall: with filler, with deletions, and what is asked of them."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

__all__ = ["BLANK", "KEYS", "NONE", "STRAYS", "VALUES", "Episode", "Task", "episode"]

KEYS, VALUES, STRAYS = 64, 16, 1024  # keys of facts, values, keys of filler after them
NONE = VALUES  # the answer after a deletion, and the value that a token of deletion bears
BLANK = VALUES + 1  # the value of a question
KINDS = 4  # of redundant filler in a sequence
QUIET = 0.05  # of a token's length: the noise on filler that makes copies near copies


@dataclass(frozen=True, slots=True)
class Episode:
    """Sequences of tokens (b, t): key, value, noise as a share of the token's length, and the answer; -1: not asked."""

    key: Tensor
    value: Tensor
    noise: Tensor
    target: Tensor


@dataclass(frozen=True, slots=True)
class Task:
    """What a sequence holds."""

    name: str
    facts: int
    filler: int = 0

    @property
    def told(self) -> int:
        """How many tokens come before the questions."""
        return self.facts + self.filler + (self.facts // 2 if self.name == "delete" else 0)

    @property
    def title(self) -> str:
        """Its name, with the number of facts where that is what varies."""
        return f"{self.name}{self.facts}" if self.name == "pairs" else self.name


def episode(task: Task, size: int, rng: np.random.Generator) -> Episode:
    """Return `size` sequences: facts (among filler), deletions of half of them, then a question for each fact."""
    made = [_sequence(task, rng) for _ in range(size)]
    key, value, target = (torch.tensor(np.stack(column)) for column in zip(*made, strict=True))
    noise = (key >= KEYS) * (QUIET if task.name == "copy" else 0.0)
    return Episode(key, value, noise, target)


def _sequence(task: Task, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    m, n = task.facts, task.filler
    keys, values = rng.permutation(KEYS)[:m], rng.integers(0, VALUES, m)
    kinds, strays = rng.permutation(STRAYS)[:n], rng.integers(0, VALUES, n)
    if task.name == "copy":  # redundant filler: four tokens, others in each sequence
        which = rng.integers(0, KINDS, n)
        kinds, strays = rng.permutation(STRAYS)[:KINDS][which], rng.integers(0, VALUES, KINDS)[which]
    where = np.sort(rng.permutation(m + n)[:m])  # of the facts
    key, value = np.empty(m + n, dtype=np.int64), np.empty(m + n, dtype=np.int64)
    key[where], value[where] = keys, values
    rest = np.setdiff1d(np.arange(m + n), where)
    key[rest], value[rest] = KEYS + kinds, strays
    gone = rng.permutation(m)[: m // 2] if task.name == "delete" else np.empty(0, dtype=np.int64)
    answers = values.copy()
    answers[gone] = NONE
    asked = rng.permutation(m)
    key = np.concatenate([key, keys[gone], keys[asked]])
    value = np.concatenate([value, np.full(len(gone), NONE), np.full(m, BLANK)])
    return key, value, np.concatenate([np.full(len(key) - m, -1), answers[asked]])
