"""What a memory may let go of, and the certificates that it gives of itself."""

import pytest

import svmem
from svmem.checker import check
from svmem.core.document import Scope
from svmem.errors import InvalidInput, NotFound
from svmem.memory import Memory
from tests.memories import PROBLEM, filled, rows

pytestmark = [pytest.mark.usefixtures("compiled_memory"), pytest.mark.timeout(600, func_only=True)]


def test_eviction_drops_reserve_records_and_changes_no_answer():
    memory = filled(200)
    queries = rows(50, seed=5)
    before, reserve, present = memory.solution, memory.solution.reserve.tolist(), memory.ids
    read, score = memory.read(queries), memory.score(queries)
    found = memory.evict()
    dropped = [present[i] for i in found.droppable]
    assert dropped
    assert set(dropped) <= set(reserve)
    assert memory.ids == [i for i in present if i not in set(dropped)]
    assert memory.read(queries).tobytes() == read.tobytes()
    assert memory.score(queries).tobytes() == score.tobytes()
    assert memory.solution.offset == before.offset
    assert memory.solution.margin.tolist() == before.margin.tolist()
    assert memory.solution.bound.tolist() == before.bound.tolist()


def test_eviction_never_drops_what_is_to_be_kept():
    memory = filled(200)
    reserve = memory.solution.reserve.tolist()
    free = memory.selection()
    found = memory.evict(keep=[reserve[0], reserve[2], reserve[2], int(memory.solution.margin[0])])
    assert reserve[0] in memory
    assert reserve[2] in memory
    assert len(found.droppable) == len(found.slack) == len(free.droppable) - 2
    assert "2 of them kept on request" in found.status
    with pytest.raises(NotFound, match="no record has the id 999"):
        memory.evict(keep=[999])
    with pytest.raises(InvalidInput, match="list of ints"):
        memory.evict(keep=7)  # type: ignore[arg-type]


def test_a_horizon_is_one_number_for_both_or_a_pair():
    memory = filled(300)
    now, both = memory.selection(), memory.selection(horizon=1)
    assert (now.horizon, both.horizon) == ((0, 0), (1, 1))
    assert memory.selection(horizon=(2, 0)).horizon == (2, 0)
    assert len(memory) == 300
    assert set(both.droppable.tolist()) <= set(now.droppable.tolist())
    with pytest.raises(InvalidInput, match="admissions"):
        memory.evict(horizon=-1)


def test_only_an_eviction_that_dropped_something_limits_what_receipts_say():
    memory = filled(5)  # collecting: nothing can be dropped
    memory.evict()
    assert memory.forget(ids=[0]).exact_relative_to is Scope.EVERYTHING
    memory = filled(100)
    memory.evict(keep=memory.ids)
    assert memory.forget(ids=[0]).exact_relative_to is Scope.EVERYTHING
    memory.evict()
    receipt = memory.forget(ids=memory.ids[:1])
    assert receipt.exact_relative_to is Scope.RETAINED
    assert receipt.to_json()["exact_relative_to"] == "retained records"
    memory.forget(ids=memory.ids)
    memory.add(rows(2), rows(2, 1))
    assert memory.forget(ids=memory.ids[:1]).exact_relative_to is Scope.RETAINED  # for good


def test_ten_thousand_reserve_records_are_evicted_at_once():
    memory = Memory(svmem.Problem(svmem.RBF(3.0), C=0.1), 2, 1)
    memory.add(rows(10_050), rows(10_050, 1))
    queries = rows(20, seed=8)
    before = memory.read(queries)
    found = memory.evict()
    assert len(found.droppable) > 10_000
    assert len(memory) == 10_050 - len(found.droppable)
    assert memory.read(queries).tobytes() == before.tobytes()


def test_certificates_are_borne_out_by_the_checker():
    memory = filled(60)
    assert check(memory.keys, memory.values, memory.certificate()) == []
    selection = memory.certificate(selection=memory.selection(horizon=(1, 0)))
    assert selection["kind"] == "selection"
    assert check(memory.keys, memory.values, selection) == []
    receipt = memory.forget(owner="p1")
    document = memory.certificate(removed=receipt)
    assert document["removed"]["count"] == 20
    assert document["state_digest"] == memory.digest()
    assert check(memory.keys, memory.values, document) == []
    assert memory.certify().status.startswith("proven")
    assert memory.certify().offset == memory.solution.offset
    wrong = memory.values.copy()
    wrong[0] += 1e-12
    assert check(memory.keys, wrong, document)


def test_a_certificate_of_a_removal_needs_the_receipt_that_led_to_the_state():
    memory = filled(60)
    receipt = memory.forget(ids=[3])
    memory.forget(ids=[4])
    with pytest.raises(InvalidInput, match="last change"):
        memory.certificate(removed=receipt)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_an_empty_or_collecting_memory_has_digest_and_certificate(n):
    memory = Memory(PROBLEM, 2, 1)
    memory.add(rows(6)[:n], rows(6, 1)[:n])
    assert check(memory.keys, memory.values, memory.certificate()) == []
    assert memory.certify().status.startswith("collecting")
    assert memory.evict().droppable.size == 0
    assert len(memory.solution.bound) == n
