"""Records of a memory, and the comparison of a memory with a fresh one that holds the same records."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import svmem
from svmem.core.problem import Problem
from svmem.core.solution import Solution

__all__ = ["Record", "assert_equals_fresh", "fresh_memory"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Record:
    """What goes into a memory under one id."""

    key: tuple[float, ...]
    value: tuple[float, ...] = (0.0,)
    owner: str | None = None


def _stack(records: list[Record]) -> tuple[Array, Array]:
    return np.array([r.key for r in records], dtype=np.float64), np.array([r.value for r in records], dtype=np.float64)


def fresh_memory(
    records: Mapping[int, Record], problem: Problem, key_dim: int, seed: int, value_dim: int = 1
) -> tuple["svmem.Memory", dict[int, int]]:
    """Return a memory filled in a random order under other ids, at once or one by one, and its ids by the old ones."""
    random = np.random.default_rng(seed)
    memory = svmem.Memory(problem, key_dim=key_dim, value_dim=value_dim)
    order = [int(i) for i in random.permutation(sorted(records))]
    if not order:
        return memory, {}
    keys, values = _stack([records[i] for i in order])
    owners = [f"other {i % 3}" for i in order]
    if seed % 2:
        names = memory.add(keys, values, owners=owners)
    else:
        names = []
        for row in range(len(order)):
            names += memory.add(keys[row : row + 1], values[row : row + 1], owners=owners[row : row + 1])
    return memory, dict(zip(order, names, strict=True))


def _by_id(solution: Solution) -> dict[int, str]:
    """Return the bits of each coefficient."""
    return {int(i): float(a).hex() for i, a in zip(solution.ids, solution.alpha, strict=True)}


def assert_equals_fresh(
    memory: "svmem.Memory", records: Mapping[int, Record], problem: Problem, key_dim: int, seed: int = 0
) -> None:
    """Check that a memory is, bit for bit, the one that only ever held these records."""
    assert [int(i) for i in memory.ids] == sorted(records)
    assert len(memory) == len(records)
    fresh, name = fresh_memory(records, problem, key_dim, seed)
    assert memory.digest() == fresh.digest()
    if not records:
        return
    one, other = memory.solution, fresh.solution
    expected = _by_id(other)
    assert _by_id(one) == {i: expected[name[i]] for i in records}
    assert one.offset.hex() == other.offset.hex()
    assert one.status == other.status
    for ours, theirs in ((one.margin, other.margin), (one.bound, other.bound), (one.reserve, other.reserve)):
        assert {name[int(i)] for i in ours} == {int(i) for i in theirs}
    order = sorted(records)
    cold = svmem.solve(_stack([records[i] for i in order])[0], problem)
    assert cold.alpha.tobytes() == one.alpha.tobytes()
    assert cold.offset.hex() == one.offset.hex()
