"""Ways to take one record out of a memory, and what each leaves behind."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from svmem import Memory, Problem
from svmem.baselines.forgetting import Decay, Forgetting, Scaling
from svmem.baselines.forgetting import State as Held
from svmem.types import Coefficients, Keys, Values, Vector

__all__ = ["ASCENT", "EVERY", "METHODS", "SIMPLE", "State", "edited", "forgotten", "gaussian", "probes", "solved_all"]

# The methods that solve nothing again.
SIMPLE: dict[str, Forgetting] = {"decay 0.1": Decay(0.1), "decay 0.01": Decay(0.01), "scaling": Scaling()}
METHODS = ("none", "exact", *SIMPLE)
ASCENT = "ascent"  # its gradient is that of a readout: of a model's weights, or of a memory's coefficients
EVERY = (*METHODS, ASCENT)
PROBE = 0.1  # noise on the keys that scores are compared at


@dataclass(frozen=True, slots=True)
class State:
    """Coefficients and offset of a memory. A record that is not held has coefficient 0."""

    alpha: Coefficients
    offset: float
    digest: str = ""

    def score(self, kernel: Values) -> Vector:
        """Return the gate score at points whose kernel with the records is (m, n), as `Memory.score`."""
        return 2 * (kernel @ self.alpha - 0.5 - self.offset)


def forgotten(
    keys: Keys, values: Values, secret: int, problem: Problem, simple: Mapping[str, Forgetting] = SIMPLE
) -> dict[str, State]:
    """Return the states after exact and simple methods have taken `secret` out, and those called none, again and never.

    none: it was left in; again: it was taken out exactly and put back; never: a memory that never held it.
    """
    n, rest = len(keys), np.arange(len(keys)) != secret
    memory = _holding(keys, values, np.ones(n, dtype=np.bool_), problem)
    none = _solved(memory, n)
    memory.forget(ids=[secret])
    states = {"none": none, "exact": _solved(memory, n)}
    memory.add(keys[[secret]], values[[secret]])  # under the id n
    back = _solved(memory, n + 1)
    states["again"] = replace(back, alpha=np.where(rest, back.alpha[:n], back.alpha[n]))
    states["never"] = _solved(_holding(keys, values, rest, problem), n)
    held = Held(keys, values, none.alpha, problem)
    return states | {name: State(method(held, [secret]), none.offset) for name, method in simple.items()}


def edited(keys: Keys, values: Values, secret: int, problem: Problem) -> dict[str, State]:
    """Return the states after the last record has taken the place of `secret`.

    exact: forgotten and added; refit: a memory that never held the secret; decay: the old coefficient is divided by
    100, and the new record gets what that sets free.
    """
    n, place = len(keys) - 1, np.arange(len(keys))
    memory = _holding(keys, values, place < n, problem)
    none = _solved(memory, n + 1)
    memory.forget(ids=[secret])
    memory.add(keys[n:], values[n:])  # under the id n
    alpha = none.alpha.copy()
    alpha[[secret, n]] = 0.01 * alpha[secret], 0.99 * alpha[secret]
    refit = _solved(_holding(keys, values, place != secret, problem), n + 1)
    return {"exact": _solved(memory, n + 1), "refit": refit, "decay 0.01": State(alpha, none.offset)}


def solved_all(keys: Keys, values: Values, problem: Problem) -> State:
    """Return the state of a memory that holds all records."""
    return _solved(_holding(keys, values, np.ones(len(keys), dtype=np.bool_), problem), len(keys))


def _holding(keys: Keys, values: Values, held: NDArray[np.bool_], problem: Problem) -> Memory:
    """Return a memory with these records of all; their ids are their places."""
    memory = Memory(problem, keys.shape[1], values.shape[1])
    memory.add(keys[held], values[held], ids=np.flatnonzero(held).tolist())
    return memory


def _solved(memory: Memory, n: int) -> State:
    """Return the state of a memory whose ids are places among n records."""
    alpha = np.zeros(n)
    alpha[memory.ids] = memory.alpha
    return State(alpha, memory.offset, memory.digest())


def probes(keys: Keys, rng: np.random.Generator) -> Keys:
    """Return the points (2 n, d) that scores are compared at: all keys, then points near them."""
    return np.concatenate([keys, keys + PROBE * rng.standard_normal(keys.shape)])


def gaussian(points: Keys, keys: Keys, sigma: float) -> Values:
    """Return the kernel (m, n) between points (m, d) and keys (n, d)."""
    exact = "donot_use_mm_for_euclid_dist"  # by differences
    distance = torch.cdist(torch.from_numpy(points), torch.from_numpy(keys), compute_mode=exact)
    return np.exp(-((distance.numpy() / sigma) ** 2))
