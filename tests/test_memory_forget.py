"""Forgetting: what is named goes and nothing else, exactly, once, and with the true count."""

from collections.abc import Sequence

import numpy as np
import pytest

import svmem
from svmem.core.solution import Status
from svmem.errors import InvalidInput, NotFound
from svmem.memory import Memory
from tests.cases.record import Record, assert_equals_fresh

pytestmark = [pytest.mark.usefixtures("compiled_memory"), pytest.mark.timeout(600, func_only=True)]

PROBLEM = svmem.Problem(svmem.RBF(2.0), C=0.1)


def made(n: int, owners: Sequence[str | None] | None = None, seed: int = 0) -> Memory:
    random = np.random.default_rng(seed)
    memory = Memory(PROBLEM, key_dim=2, value_dim=1)
    memory.add(random.standard_normal((n, 2)), random.standard_normal((n, 1)), owners=owners)
    return memory


def contents(memory: Memory) -> dict[int, Record]:
    return {i: Record(tuple(k), tuple(v)) for i, k, v in zip(memory.ids, memory.keys, memory.values, strict=True)}


@pytest.mark.parametrize("batch", [[0], [39], [3, 17, 5], list(range(20)), list(range(35)), list(range(40))])
def test_what_is_forgotten_leaves_no_trace(batch):
    memory = made(40)
    expected = {i: record for i, record in contents(memory).items() if i not in batch}
    memory.digest()
    memory.read(np.zeros((1, 2)))
    memory.forget(ids=batch)
    assert contents(memory) == expected
    assert_equals_fresh(memory, expected, PROBLEM, 2, seed=1)


def test_the_receipt_counts_and_times():
    memory = made(12)
    receipt = memory.forget(ids=np.array([3, 1, 7]))
    assert receipt.ids == (3, 1, 7)
    assert (receipt.count, receipt.n_before, receipt.n_after, receipt.repairs) == (3, 12, 9, 0)
    assert (receipt.status_before, receipt.status_after) == (Status.OPTIMAL, Status.COLLECTING)
    assert 0 < receipt.elapsed_s < 60
    data = receipt.to_json()
    assert "ids" not in data
    assert data["count"] == 3
    assert data["exact_relative_to"] == "all records ever added"
    assert str(receipt).startswith("3 forgotten, 9 retained, as if never seen relative to all records ever added")


def test_a_record_that_was_added_under_an_id_of_ones_own_is_forgotten_by_it():
    memory = Memory(PROBLEM, 1, 1)
    memory.add([[0.0], [1.0]], [[0.0], [1.0]], ids=[7, 1_000_000_007])
    memory.forget(ids=[np.int64(1_000_000_007)])
    assert memory.ids == [7]


@pytest.mark.parametrize("ids", [[99], [0, 99], [99, 0], [-0, 40]])
def test_an_unknown_id_is_not_found_and_nothing_changes(ids):
    memory = made(40)
    before = memory.digest()
    with pytest.raises(NotFound, match="no record has the id"):
        memory.forget(ids=ids)
    assert memory.digest() == before
    assert len(memory) == 40


def test_what_was_forgotten_is_not_found_again():
    memory = made(40)
    memory.forget(ids=[5])
    with pytest.raises(NotFound):
        memory.forget(ids=[5])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "either ids or an owner"),
        ({"ids": [1], "owner": "a"}, "either ids or an owner"),
        ({"ids": []}, "at least one"),
        ({"ids": [1, 2, 1]}, "ids must be distinct, got 1 more than once"),
        ({"ids": [1.0]}, "ids must be ints"),
        ({"ids": "12"}, "list of ints"),
        ({"ids": 1}, "list of ints"),
        ({"ids": [-1]}, "ids must lie in"),
        ({"owner": ""}, "not empty"),
        ({"owner": 3}, "must be a string"),
    ],
)
def test_a_request_that_is_unclear_changes_nothing(arguments, words):
    memory = made(40, owners=["a"] * 40)
    before = memory.digest()
    with pytest.raises(InvalidInput, match=words):
        memory.forget(**arguments)
    assert memory.digest() == before


def test_owners_match_exactly_or_not_at_all():
    owners = ["ab", "abc", "AB", "ab ", "a", "b", "äb", "a\u0308b", "%", "ab"]
    memory = made(10, owners=list(owners))
    for near in ("abcd", "aB", " ab", "a%", "_b", "*", "ab\0"):
        with pytest.raises(NotFound, match="no record has this owner"):
            memory.forget(owner=near)
    assert len(memory) == 10
    assert memory.forget(owner="ab").ids == (0, 9)
    assert memory.owners == owners[1:9]
    assert memory.forget(owner="äb").ids == (6,)
    assert memory.forget(owner="%").ids == (8,)
    with pytest.raises(NotFound):
        memory.forget(owner="ab")


def test_records_without_an_owner_are_nobodys():
    memory = made(6, owners=["a", None, "a", None, None, "None"])
    assert memory.forget(owner="a").count == 2
    assert memory.forget(owner="None").count == 1
    assert memory.owners == [None, None, None]


def test_forgetting_one_owner_leaves_the_others_as_they_would_be_without():
    memory = made(60, owners=[f"p{i % 4}" for i in range(60)])
    expected = {i: record for i, record in contents(memory).items() if i % 4 != 2}
    memory.forget(owner="p2")
    assert_equals_fresh(memory, expected, PROBLEM, 2, seed=3)
    assert {*memory.owners} == {"p0", "p1", "p3"}


def test_all_10001_records_of_an_owner_go_in_one_call():
    random = np.random.default_rng(0)
    keys, values = random.standard_normal((10_101, 2)), random.standard_normal((10_101, 1))
    owners = ["big"] * 10_001 + ["small"] * 100
    order = random.permutation(10_101)
    memory = Memory(svmem.Problem(svmem.RBF(3.0), C=0.05), 2, 1)
    memory.add(keys[order], values[order], owners=[owners[i] for i in order])
    memory.digest()
    receipt = memory.forget(owner="big")
    assert (receipt.count, len(receipt.ids), receipt.n_before, receipt.n_after) == (10_001, 10_001, 10_101, 100)
    assert memory.owners == ["small"] * 100
    fresh = Memory(memory.problem, 2, 1)
    fresh.add(keys[10_001:], values[10_001:])
    assert memory.digest() == fresh.digest()
    with pytest.raises(NotFound):
        memory.forget(owner="big")


def test_the_forgotten_is_overwritten_in_the_memory_at_once():
    memory = Memory(PROBLEM, 1, 1)
    memory.add([[0.123456789], [1.0], [2.0]], [[9.87654321], [1.0], [2.0]], owners=["canary", "b", "b"])
    memory.forget(owner="canary")
    records = memory._retained.records
    assert 0.123456789 not in records.keys
    assert 9.87654321 not in records.values
    assert "canary" not in records.owners
    assert "canary" not in records.ids_of


def test_a_long_life_leaves_no_holes_behind():
    memory = made(10)
    random = np.random.default_rng(1)
    memory.add(random.standard_normal((600, 2)), random.standard_normal((600, 1)), owners="x")
    memory.forget(ids=list(range(10, 600)))
    for _ in range(3):
        memory.forget(ids=memory.ids[:1])
        memory.add(random.standard_normal((1, 2)), random.standard_normal((1, 1)), owners="y")
    assert memory._retained.records.used <= 4 * len(memory) + 64 + 3
    assert_equals_fresh(memory, contents(memory), PROBLEM, 2, seed=4)
    assert memory.forget(owner="x").count == 10
    assert memory.forget(owner="y").count == 3
    assert memory.ids == list(range(3, 10))


def test_a_random_life_ends_in_the_state_of_its_records():
    random = np.random.default_rng(5)
    memory, records = Memory(PROBLEM, 2, 1), {}
    for step in range(120):
        if len(records) < 5 or random.random() < 0.5:
            k = int(random.integers(1, 6))
            keys = random.integers(0, 4, (k, 2)) + random.choice([0.0, 1e-9, 0.3], (k, 1))
            values = random.integers(0, 3, (k, 1)).astype(float)
            ids = memory.add(keys, values)
            records |= {i: Record(tuple(a), tuple(b)) for i, a, b in zip(ids, keys, values, strict=True)}
        else:
            gone = random.choice(sorted(records), size=int(random.integers(1, 5)), replace=False).tolist()
            memory.forget(ids=gone)
            records = {i: record for i, record in records.items() if i not in gone}
        if step % 3 == 0:
            memory.digest()
        if step % 10 == 0:
            assert_equals_fresh(memory, records, PROBLEM, 2, seed=step)
    assert_equals_fresh(memory, records, PROBLEM, 2)


def test_a_receipt_certifies_only_the_state_it_led_to():
    memory = svmem.Memory(svmem.Problem(svmem.RBF(1.0), 0.3), 1, 1)
    memory.add(np.arange(8.0)[:, None], np.zeros((8, 1)))
    receipt = memory.forget(ids=[3])
    assert memory.certificate(removed=receipt)["removed"]["count"] == 1
    memory.add([[20.0]], [[0.0]])
    memory.forget(ids=[8])
    with pytest.raises(InvalidInput, match="last change"):
        memory.certificate(removed=receipt)
