"""A memory and the plain dict of what it should hold, changed side by side."""

import numpy as np

import svmem
from tests.cases.case import Case, problem_of
from tests.cases.record import Record, assert_equals_fresh
from tests.oracles.agreement import assert_optimal
from tests.oracles.setting import Setting

__all__ = ["History", "filled"]


class History:
    """A memory and, beside it, the plain dict of what it should hold."""

    def __init__(self, setting: Setting, d: int) -> None:
        self.setting, self.d, self.problem = setting, d, problem_of(setting)
        self.memory = svmem.Memory(self.problem, key_dim=d, value_dim=1)
        self.records: dict[int, Record] = {}

    def add(self, keys: np.ndarray) -> list[int]:
        keys = np.atleast_2d(keys)
        values = np.arange(float(len(keys)))[:, None]
        ids = self.memory.add(keys, values)
        self.records |= {i: Record(tuple(k), tuple(v)) for i, k, v in zip(ids, keys, values, strict=True)}
        return ids

    def forget(self, ids: list[int]) -> None:
        self.memory.forget(ids=ids)
        for i in ids:
            del self.records[i]

    @property
    def keys(self) -> np.ndarray:
        return np.array([self.records[i].key for i in sorted(self.records)])

    def check(self, seed: int = 0) -> None:
        assert_equals_fresh(self.memory, self.records, self.problem, self.d, seed)
        if self.records:
            assert_optimal(self.memory.solution, self.keys, self.setting)


def filled(case: Case) -> History:
    history = History(case.setting, case.keys.shape[1])
    history.add(case.keys)
    return history
