"""A memory through random histories: after every step it is the memory that only ever held the retained records."""

import copy
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, precondition, rule

import svmem
from svmem.errors import InvalidInput, NotFound
from tests.cases import problem_of
from tests.cases.record import Record, assert_equals_fresh
from tests.oracles import Setting
from tests.oracles.agreement import assert_optimal
from tests.strategies import TWIN_STEPS, examples, key_rows, settings_for

pytestmark = [pytest.mark.usefixtures("compiled_memory"), pytest.mark.timeout(1500, func_only=True)]

MOST_RECORDS = 24
D = 2
OWNERS = st.sampled_from(["ann", "an", "bob", None])
VALUES = st.sampled_from([0.0, -0.0, 1.0, -2.5, 1e9])
BAD = st.sampled_from([float("nan"), float("inf"), -float("inf")])


class MemoryMachine(RuleBasedStateMachine):
    """Rules change the memory and the plain dict of records beside it."""

    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.records: dict[int, Record] = {}
        self.steps = 0
        self.largest = -1
        self.setting = Setting(C=1.0)
        self.problem = problem_of(self.setting)
        self.memory = svmem.Memory(self.problem, key_dim=D, value_dim=1)

    @initialize(setting=st.integers(1, 8).flatmap(settings_for))
    def choose_a_problem(self, setting: Setting) -> None:
        self.setting, self.problem = setting, problem_of(setting)
        self.memory = svmem.Memory(self.problem, key_dim=D, value_dim=1)

    def _add(self, rows: list[list[float]], value: float, owner: str | None, ids: list[int] | None = None) -> None:
        keys = np.array(rows)
        values = np.full((len(rows), 1), value)
        owners = None if owner is None else [owner] * len(rows)
        given = self.memory.add(keys, values, ids=ids, owners=owners)
        assert len(set(given)) == len(rows)
        assert min(given) > self.largest  # rising, never reused
        assert list(given) == sorted(given)
        self.largest = max(given)
        self.records |= {i: Record(tuple(row), (value,), owner) for i, row in zip(given, rows, strict=True)}

    def _room(self) -> bool:
        return len(self.records) < MOST_RECORDS

    @precondition(_room)
    @rule(row=key_rows(D), value=VALUES, owner=OWNERS)
    def add_one(self, row: list[float], value: float, owner: str | None) -> None:
        self._add([row], value, owner)

    @precondition(_room)
    @rule(rows=st.lists(key_rows(D), min_size=2, max_size=8), value=VALUES, owner=OWNERS)
    def add_several(self, rows: list[list[float]], value: float, owner: str | None) -> None:
        self._add(rows, value, owner)

    @precondition(_room)
    @rule(row=key_rows(D), value=VALUES, gap=st.integers(1, 5))
    def add_under_a_chosen_id(self, row: list[float], value: float, gap: int) -> None:
        self._add([row], value, None, ids=[self.largest + gap])
        assert self.largest in self.records

    @precondition(lambda self: self.records and self._room())
    @rule(data=st.data(), step=st.sampled_from(TWIN_STEPS), count=st.integers(1, 3), value=VALUES)
    def add_twins(self, data: st.DataObject, step: float, count: int, value: float) -> None:
        key = list(self.records[data.draw(st.sampled_from(sorted(self.records)))].key)
        key[0] += step
        self._add([key] * count, value, None)

    @precondition(lambda self: self.records)
    @rule(data=st.data())
    def forget_some(self, data: st.DataObject) -> None:
        chosen = data.draw(st.lists(st.sampled_from(sorted(self.records)), min_size=1, max_size=6, unique=True))
        self.memory.forget(ids=chosen)
        for i in chosen:
            del self.records[i]

    @precondition(lambda self: self.records)
    @rule(data=st.data())
    def forget_one_active_or_reserve(self, data: st.DataObject) -> None:
        solution = self.memory.solution
        pools = [chosen.tolist() for chosen in (solution.margin, solution.bound, solution.reserve) if len(chosen)]
        victim = data.draw(st.sampled_from(data.draw(st.sampled_from(pools))))
        self.memory.forget(ids=[victim])
        del self.records[victim]

    @rule(owner=st.sampled_from(["ann", "an", "bob", "nobody"]))
    def forget_an_owner(self, owner: str) -> None:
        gone = [i for i, record in self.records.items() if record.owner == owner]
        if not gone:
            self._refused(NotFound, lambda: self.memory.forget(owner=owner))
            return
        self.memory.forget(owner=owner)
        for i in gone:
            del self.records[i]

    @precondition(lambda self: len(self.records) > 1)
    @rule()
    def forget_all_but_one(self) -> None:
        keep, *gone = sorted(self.records)
        self.memory.forget(ids=gone)
        self.records = {keep: self.records[keep]}

    @precondition(lambda self: self.records)
    @rule(horizon=st.sampled_from([0, 0, 1, 3]))
    def evict(self, horizon: int) -> None:
        before = self.memory.solution
        self.memory.evict(horizon=horizon)
        dropped = set(self.records) - {int(i) for i in self.memory.ids}
        assert dropped <= {int(i) for i in before.reserve}
        self.records = {i: record for i, record in self.records.items() if i not in dropped}
        after = self.memory.solution
        assert (after.margin.tolist(), after.bound.tolist()) == (before.margin.tolist(), before.bound.tolist())

    def _refused(self, error: type[Exception], act: Callable[[], object]) -> None:
        before = self.memory.digest()
        with pytest.raises(error):
            act()
        assert self.memory.digest() == before

    @rule(row=key_rows(D), bad=BAD)
    def refuse_a_bad_key(self, row: list[float], bad: float) -> None:
        keys = np.array([row, [row[0], bad]])
        self._refused(InvalidInput, lambda: self.memory.add(keys, np.zeros((2, 1))))

    @rule(offset=st.integers(1, 9))
    def refuse_an_unknown_id(self, offset: int) -> None:
        known = sorted(self.records)[:1]
        self._refused(NotFound, lambda: self.memory.forget(ids=[*known, self.largest + offset]))

    @rule()
    def save_and_load(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "memory.svmem"
            self.memory.save(path)
            self.memory = svmem.Memory.load(path)

    @rule()
    def pickle_and_unpickle(self) -> None:
        self.memory = pickle.loads(pickle.dumps(self.memory))

    @rule()
    def copy_and_spoil_the_original(self) -> None:
        original, self.memory = self.memory, copy.deepcopy(self.memory)
        original.add([[0.25, 0.75]], [[3.0]])

    @invariant()
    def the_memory_is_a_function_of_its_records(self) -> None:
        self.steps += 1
        assert_equals_fresh(self.memory, self.records, self.problem, D, seed=self.steps)

    @invariant()
    def the_solution_is_optimal(self) -> None:
        if self.records:
            keys = np.array([self.records[i].key for i in sorted(self.records)])
            assert_optimal(self.memory.solution, keys, self.setting)


TestMemoryMachine = MemoryMachine.TestCase
TestMemoryMachine.settings = settings(max_examples=examples(250))
