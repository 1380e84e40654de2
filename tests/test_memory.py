"""What goes into a memory and comes out again: ids, owners, numbers, and what is refused."""

import re

import numpy as np
import pytest

import svmem
from svmem.checker import check
from svmem.core.solution import Status
from svmem.errors import InvalidInput, NotFitted, SvmemError
from svmem.kernels import Cosine, Laplacian, Linear, Precomputed
from svmem.memory import Memory
from tests.cases.record import Record, assert_equals_fresh
from tests.memories import PROBLEM, filled, rows

pytestmark = [pytest.mark.usefixtures("compiled_memory"), pytest.mark.timeout(600, func_only=True)]


def test_ids_rise_and_are_never_used_again():
    memory = Memory(PROBLEM, 2, 1)
    assert memory.add(rows(3), rows(3, 1)) == [0, 1, 2]
    memory.forget(ids=[2])
    assert memory.add(rows(1), rows(1, 1)) == [3]
    assert memory.add(rows(2), rows(2, 1), ids=[10, 20]) == [10, 20]
    memory.forget(ids=[20])
    for used in ([20], [10], [2], [21, 21], [23, 22]):
        with pytest.raises(InvalidInput, match="ids must rise, from 21"):
            memory.add(rows(len(used)), rows(len(used), 1), ids=used)
    assert memory.add(rows(1), rows(1, 1)) == [21]
    assert memory.ids == [0, 1, 3, 10, 21]


def test_forgetting_everything_leaves_an_empty_memory_that_works_and_remembers_its_ids():
    memory = filled(20)
    receipt = memory.forget(ids=memory.ids)
    assert (receipt.n_before, receipt.n_after, len(memory), memory.ids) == (20, 0, 0, [])
    assert memory.digest() == Memory(PROBLEM, 2, 1).digest()
    assert memory.solution.status is Status.COLLECTING
    assert memory.add(rows(20), rows(20, 1, seed=1)) == list(range(20, 40))
    assert memory.digest() == filled(20).digest()


def test_a_record_that_comes_back_is_there_again_under_a_new_id():
    memory = filled(20)
    before = memory.digest()
    memory.forget(ids=[4])
    assert memory.add(rows(20)[4:5], rows(20, 1, seed=1)[4:5], owners="p1") == [20]
    assert memory.digest() == before


def test_numbers_of_any_type_are_kept_as_float64():
    memory = Memory(PROBLEM, 2, 1)
    for kind in (np.int8, np.uint16, np.float16, np.float32, np.int64, bool):
        memory.add(np.eye(2, dtype=kind), np.ones((2, 1), dtype=kind))
    assert memory.keys.dtype == memory.values.dtype == np.float64
    assert memory.keys.tolist() == np.eye(2).tolist() * 6
    memory.add([[1, 2]], [[3]])
    assert memory.keys[-1].tolist() == [1.0, 2.0]


def test_the_memory_keeps_and_gives_copies():
    keys, values = rows(10), rows(10, 1)
    memory = Memory(PROBLEM, 2, 1)
    memory.add(keys, values)
    digest = memory.digest()
    keys[:], values[:] = 7.0, 7.0
    memory.keys[:], memory.values[:], memory.owners[0] = 8.0, 8.0, "x"
    memory.ids.clear()
    memory.solution.alpha[:] = 9.0
    assert memory.digest() == digest
    assert np.array_equal(memory.keys, rows(10))
    fresh = Memory(PROBLEM, 2, 1)
    fresh.add(rows(10), rows(10, 1))
    assert memory.read(rows(3)).tobytes() == fresh.read(rows(3)).tobytes()


def test_minus_zero_is_zero():
    one, other = Memory(PROBLEM, 1, 1), Memory(PROBLEM, 1, 1)
    one.add([[0.0], [-0.0], [1.0]], [[-0.0], [0.0], [1.0]])
    other.add([[-0.0], [0.0], [1.0]], [[-0.0], [-0.0], [1.0]])
    assert one.digest() == other.digest()
    assert not np.signbit(one.values).any()
    assert one.read([[0.1]]).tobytes() == other.read([[0.1]]).tobytes()


@pytest.mark.parametrize(
    ("keys", "values", "more", "words"),
    [
        ([[1.0, 2.0]], [[1.0], [2.0]], {}, "one row a record, got 1 keys and 2 values"),
        ([1.0, 2.0], [[1.0]], {}, r"keys must have shape \(rows, 2\), got \(2,\); pass a single row as \[keys\]"),
        ([[1.0, 2.0]], [1.0], {}, r"values must have shape \(rows, 1\), got \(1,\)"),
        ([[1.0, 2.0, 3.0]], [[1.0]], {}, r"keys must have shape \(rows, 2\), got \(1, 3\)"),
        ([[1.0, 2.0], [1.0]], [[1.0], [1.0]], {}, "rectangular"),
        ([["a", "b"]], [[1.0]], {}, "real numbers"),
        ([[1j, 0]], [[1.0]], {}, "real numbers"),
        ([[1.0, float("nan")]], [[1.0]], {}, "keys must be finite"),
        ([[1.0, 2.0]], [[float("inf")]], {}, "values must be finite"),
        ([[1.0, 2.0]], [[1.0]], {"ids": [-1]}, "ids must lie"),
        ([[1.0, 2.0]], [[1.0]], {"ids": [2**62]}, "ids must lie"),
        ([[1.0, 2.0]], [[1.0]], {"ids": [40.0]}, "ids must be ints, got float"),
        ([[1.0, 2.0]], [[1.0]], {"ids": [True]}, "ids must be ints, got bool"),
        ([[1.0, 2.0]], [[1.0]], {"ids": "4"}, "list of ints"),
        ([[1.0, 2.0]], [[1.0]], {"ids": 44}, "list of ints"),
        ([[1.0, 2.0]], [[1.0]], {"ids": [50, 51]}, "name each of 1 records, got 2"),
        ([[1.0, 2.0]], [[1.0]], {"ids": [3]}, "never used again"),
        ([[1.0, 2.0]], [[1.0]], {"owners": ["a", "b"]}, "one for each of 1 records; got 2"),
        ([[1.0, 2.0]], [[1.0]], {"owners": [3]}, "owner must be a string"),
        ([[1.0, 2.0]], [[1.0]], {"owners": ""}, "not empty"),
        ([[1.0, 2.0]], [[1.0]], {"owners": [""]}, "not empty"),
    ],
)
def test_bad_input_changes_nothing_and_says_what_must_hold(keys, values, more, words):
    memory = filled()
    before = memory.digest(), memory.ids, memory.owners
    with pytest.raises(InvalidInput, match=words):
        memory.add(keys, values, **more)
    assert (memory.digest(), memory.ids, memory.owners) == before
    assert memory.add(rows(1), rows(1, 1)) == [40]


@pytest.mark.parametrize(
    "arguments", [{"key_dim": 0}, {"value_dim": 0}, {"key_dim": 1.5}, {"key_dim": True}, {"value_dim": "2"}]
)
def test_a_memory_needs_whole_widths(arguments):
    with pytest.raises(InvalidInput, match="whole number"):
        Memory(PROBLEM, **({"key_dim": 2, "value_dim": 1} | arguments))


def test_a_memory_needs_a_kernel_of_keys():
    with pytest.raises(InvalidInput, match="computed from keys"):
        Memory(svmem.Problem(Precomputed(), C=0.5), 2, 1)
    with pytest.raises(InvalidInput, match="Problem"):
        Memory(svmem.RBF(1.0), 2, 1)  # type: ignore[arg-type]


def test_adding_nothing_does_nothing():
    memory = filled()
    before = memory.digest()
    assert memory.add(np.empty((0, 2)), np.empty((0, 1))) == []
    assert memory.add(np.empty((0, 2)), np.empty((0, 1)), ids=[], owners=[]) == []
    assert memory.digest() == before


def test_owners_are_one_for_all_or_one_each():
    memory = Memory(PROBLEM, 2, 1)
    memory.add(rows(2), rows(2, 1), owners="ann")
    memory.add(rows(3), rows(3, 1), owners=("bob", None, "ann"))
    memory.add(rows(2), rows(2, 1), owners=np.array(["cid", "ann"]))
    memory.add(rows(1), rows(1, 1))
    assert memory.owners == ["ann", "ann", "bob", None, "ann", "cid", "ann", None]
    assert {type(owner) for owner in memory.owners} == {str, type(None)}
    assert memory.forget(owner="ann").ids == (0, 1, 4, 6)
    assert memory.owners == ["bob", None, "cid", None]


def test_the_representation_tells_size_and_problem():
    assert repr(filled(3)) == "Memory(3 records, key_dim=2, value_dim=1, RBF(sigma=2.0), C=0.1, ridge=1e-08)"


def test_membership_is_by_id():
    memory = filled(5)
    memory.forget(ids=[3])
    assert [i in memory for i in range(6)] == [True, True, True, False, True, False]
    assert "p0" not in memory


def test_the_solution_is_that_of_a_cold_solve():
    memory = filled()
    memory.forget(ids=[1, 5, 30])
    cold = svmem.solve(memory.keys, PROBLEM)
    held = memory.solution
    assert held.ids.tolist() == memory.ids
    assert memory.alpha.tobytes() == held.alpha.tobytes()
    assert held.alpha.tobytes() == cold.alpha.tobytes()
    assert held.offset == cold.offset
    ids = np.array(memory.ids)
    for ours, theirs in ((held.margin, cold.margin), (held.bound, cold.bound), (held.reserve, cold.reserve)):
        assert ours.tolist() == ids[theirs].tolist()


@pytest.mark.parametrize("kernel", [Laplacian(1.0), Linear(), Cosine()], ids=str)
def test_any_kernel_of_keys_adds_forgets_and_scores(kernel):
    problem = svmem.Problem(kernel, C=0.1, ridge=1e-3)
    memory = filled(40, problem)
    memory.forget(ids=list(range(0, 40, 5)))
    records = {i: Record(tuple(k), tuple(v)) for i, k, v in zip(memory.ids, memory.keys, memory.values, strict=True)}
    assert_equals_fresh(memory, records, problem, 2, seed=2)
    assert np.isfinite(memory.score(rows(5, seed=3))).all()
    assert check(memory.keys, memory.values, memory.certificate()) == []
    if not kernel.bounded:
        with pytest.raises(InvalidInput, match="never negative"):
            memory.read(rows(5))
        with pytest.raises(InvalidInput, match="horizon"):
            memory.evict(horizon=1)


def test_a_key_that_the_kernel_cannot_take_changes_nothing():
    memory = filled(20, svmem.Problem(Cosine(), C=0.1, ridge=1e-3))
    before = memory.digest()
    with pytest.raises(InvalidInput, match="zero key"):
        memory.add([[1.0, 0.0], [0.0, 0.0]], [[0.0], [0.0]])
    with pytest.raises(InvalidInput, match="zero key"):
        memory.score([[0.0, 0.0]])
    assert memory.digest() == before


def test_an_empty_memory_has_no_answers():
    memory = Memory(PROBLEM, 2, 1)
    for ask in (lambda: memory.read(rows(1)), lambda: memory.score(rows(1)), lambda: memory.explain([0.0, 0.0])):
        with pytest.raises(NotFitted, match="no record"):
            ask()


def test_messages_hold_no_content():
    memory = Memory(PROBLEM, 2, 1)
    canary = "canary-7141"
    memory.add([[1.25, 2.5]] * 3, [[3.75]] * 3, owners=canary)
    said = [repr(memory)]
    for act in (
        lambda: memory.forget(owner=canary + "x"),
        lambda: memory.forget(owner=canary[:-1]),
        lambda: memory.forget(ids=[77]),
        lambda: memory.add([[1.25, 2.5]], [[3.75]], owners=[canary, canary]),
        lambda: memory.evict(keep=[5]),
    ):
        with pytest.raises(SvmemError) as caught:
            act()
        said.append(str(caught.value))
    receipt = memory.forget(owner=canary)
    said += [repr(receipt), str(receipt), str(receipt.to_json()), str(memory.certificate(removed=receipt))]
    assert not re.search(r"canary|1\.25|3\.75", " ".join(said))
