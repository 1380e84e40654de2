"""Threads that read while one writes, and writes that end early."""

import linecache
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import svmem
from svmem.core.incremental import WorkingSet
from svmem.errors import SolverError
from svmem.memory import Memory
from tests.cases.record import Record, assert_equals_fresh

pytestmark = [pytest.mark.usefixtures("compiled_memory"), pytest.mark.timeout(600, func_only=True)]

PROBLEM = svmem.Problem(svmem.RBF(2.0), C=0.1)
QUERIES = np.random.default_rng(7).standard_normal((4, 2))


def made(n: int = 40) -> Memory:
    random = np.random.default_rng(0)
    memory = Memory(PROBLEM, key_dim=2, value_dim=1)
    memory.add(random.standard_normal((n, 2)), random.standard_normal((n, 1)), owners=[f"p{i % 3}" for i in range(n)])
    return memory


def contents(memory: Memory) -> dict[int, Record]:
    parts = zip(memory.ids, memory.keys, memory.values, memory.owners, strict=True)
    return {i: Record(tuple(k), tuple(v), owner) for i, k, v, owner in parts}


def test_readers_see_the_state_before_or_after_a_write_and_never_between():
    """Two groups, of which always exactly one is there: each answer must be that of one of the two states."""
    random = np.random.default_rng(0)
    groups = {value: (random.standard_normal((25, 2)), np.full((25, 1), value)) for value in (1.0, 2.0)}
    memory = Memory(PROBLEM, 2, 1)
    both = np.concatenate([groups[1.0][0], groups[2.0][0]]), np.concatenate([groups[1.0][1], groups[2.0][1]])
    allowed, sizes = set(), {0, 25, 50}
    for keys, values in [*groups.values(), both]:
        fresh = Memory(PROBLEM, 2, 1)
        fresh.add(keys, values)
        allowed.add((fresh.read(QUERIES).tobytes(), fresh.score(QUERIES).tobytes()))
    reads, scores = {read for read, _ in allowed}, {score for _, score in allowed}
    memory.add(*groups[1.0], owners="one")
    done, wrong, seen = threading.Event(), [], set()

    def reader(ask: Callable[[], Any], good: Callable[[Any], bool]) -> None:
        while not done.is_set():
            answer = ask()
            seen.add(answer if isinstance(answer, int | str | bytes) else str(answer))
            if not good(answer):
                wrong.append(answer)

    owner_lists = [["one"] * 25, ["one"] * 25 + ["two"] * 25, ["two"] * 25, ["two"] * 25 + ["one"] * 25]
    questions: list[tuple[Callable[[], Any], Callable[[Any], bool]]] = [
        (lambda: memory.read(QUERIES).tobytes(), reads.__contains__),
        (lambda: memory.score(QUERIES).tobytes(), scores.__contains__),
        (lambda: len(memory), sizes.__contains__),
        (lambda: tuple(memory.owners), lambda owners: list(owners) in owner_lists),
        (lambda: len({share.owner for share in memory.explain(QUERIES[0], top_k=50).shares}), {1, 2}.__contains__),
    ]
    threads = [threading.Thread(target=reader, args=question) for question in questions]
    for thread in threads:
        thread.start()
    for _ in range(40):
        memory.add(*groups[2.0], owners="two")
        memory.forget(owner="one")
        memory.add(*groups[1.0], owners="one")
        memory.forget(owner="two")
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(seen) > len(questions)
    assert_equals_fresh(memory, contents(memory), PROBLEM, 2, seed=1)


def test_writers_wait_for_each_other():
    memory = made(30)
    given: list[list[int]] = []
    failed: list[BaseException] = []

    def writer(seed: int) -> None:
        random = np.random.default_rng(seed)
        try:
            for _ in range(15):
                ids = memory.add(random.standard_normal((3, 2)), random.standard_normal((3, 1)), owners=f"w{seed}")
                given.append(ids)
                memory.forget(ids=ids[:1])
                memory.digest()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=writer, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sorted(i for ids in given for i in ids) == list(range(30, 30 + 180))
    assert len(memory) == 30 + 4 * 15 * 2
    assert_equals_fresh(memory, contents(memory), PROBLEM, 2, seed=2)


def test_a_reader_does_not_wait_for_a_write_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = made()
    before, size = memory.read(QUERIES).tobytes(), len(memory)
    inside, go_on = threading.Event(), threading.Event()
    plain = WorkingSet.remove

    def slow(self: WorkingSet, handles: Any) -> None:
        inside.set()
        assert go_on.wait(30)
        plain(self, handles)

    monkeypatch.setattr(WorkingSet, "remove", slow)
    thread = threading.Thread(target=lambda: memory.forget(owner="p0"))
    thread.start()
    assert inside.wait(30)
    assert memory.read(QUERIES).tobytes() == before
    assert len(memory) == size
    go_on.set()
    thread.join()
    assert memory.read(QUERIES).tobytes() != before
    assert len(memory) < size


@pytest.mark.parametrize("error", [SolverError("no proof"), KeyboardInterrupt(), MemoryError()], ids=repr)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("act", ["add", "forget", "evict"])
def test_a_solver_that_gives_up_leaves_everything_as_it_was(
    monkeypatch, error: BaseException, when: str, act: str
) -> None:
    memory = made()
    before, held = memory.digest(), contents(memory)
    answer = memory.read(QUERIES).tobytes()
    name = "insert" if act == "add" else "remove"
    plain = getattr(WorkingSet, name)

    def broken(self: WorkingSet, argument: Any) -> None:
        if when == "after":
            plain(self, argument)
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(WorkingSet, name, broken)
        with pytest.raises(type(error)):
            {
                "add": lambda: memory.add([[0.1, 0.2]], [[3.0]]),
                "forget": lambda: memory.forget(ids=[1, 2, 3]),
                "evict": lambda: memory.evict(),
            }[act]()
    assert memory.read(QUERIES).tobytes() == answer
    assert memory.digest() == before
    assert contents(memory) == held
    assert memory.forget(ids=[5]).exact_relative_to == "all records ever added"
    del held[5]
    assert_equals_fresh(memory, held, PROBLEM, 2, seed=1)
    assert memory.add([[0.1, 0.2]], [[3.0]]) == [40]


class _Interruption:
    """Raises KeyboardInterrupt at the k-th line that runs in the modules of the memory.

    Not at the line of a `with`: there tracing can cut in where a signal cannot, before a lock is given back.
    """

    def __init__(self, k: int) -> None:
        self.left, self.fired = k, False

    def __call__(self, frame: FrameType, event: str, _: object) -> Any:
        path = Path(frame.f_code.co_filename)
        if path.parent.name not in ("svmem", "core") or path.stem not in MODULES:
            return None
        if event == "line" and not linecache.getline(str(path), frame.f_lineno).strip().startswith("with "):
            self.left -= 1
            if self.left < 0 and not self.fired:
                self.fired = True
                raise KeyboardInterrupt
        return self


MODULES = ("memory", "retained", "records", "digest", "readout", "proof")
ACTS: dict[str, Callable[[Memory], Any]] = {
    "add": lambda memory: memory.add([[0.1, 0.2], [0.1, 0.2]], [[3.0], [4.0]], owners=["p0", "new"]),
    "add many": lambda memory: memory.add(np.zeros((70, 2)), np.zeros((70, 1)), owners="many"),
    "forget": lambda memory: memory.forget(ids=[1, 2, 15]),
    "forget an owner": lambda memory: memory.forget(owner="p0"),
    "forget nearly all": lambda memory: memory.forget(ids=memory.ids[3:]),
    "evict": lambda memory: memory.evict(),
    "digest": lambda memory: memory.digest(),
    "read": lambda memory: memory.read(QUERIES),
}


def lively() -> Memory:
    """Return a memory with holes, and with changes that are not hashed yet."""
    memory = made(20)
    memory.digest()
    memory.forget(ids=[19, 3])
    memory.add([[1.0, 1.0]], [[5.0]], owners="p1")
    return memory


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_an_interruption_at_any_line_leaves_the_state_before_or_after(act: Callable[[Memory], Any]) -> None:
    one, other = lively(), lively()
    act(other)
    states = [(contents(memory), memory.digest(), memory.read(QUERIES).tobytes()) for memory in (one, other)]
    seen, k, interruption = set(), -1, _Interruption(0)
    while k < 0 or interruption.fired:
        k += 1
        memory, interruption, previous = lively(), _Interruption(k), sys.gettrace()
        try:
            sys.settrace(interruption)
            act(memory)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(previous)
        state = contents(memory), memory.digest(), memory.read(QUERIES).tobytes()
        assert state in states
        seen.add(states.index(state))
        if k % 25 == 0:
            assert_equals_fresh(memory, state[0], PROBLEM, 2, seed=k)
        memory.forget(ids=memory.ids[:1])
        memory.add([[0.5, 0.5]], [[1.0]])
    assert k > 5
    assert seen == {0} if states[0] == states[1] else {0, 1}
