"""The digest against a recursive definition, and the record tree through random changes."""

import hashlib
import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svmem.core import digest
from svmem.core.digest import EMPTY, RecordTree, active_section, leaves, problem_bytes, state_digest
from svmem.core.problem import Problem
from svmem.kernels import RBF, Cosine, Laplacian, Linear
from tests.strategies import examples


def sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def naive_root(leaves: list[bytes], depth: int = 0) -> bytes:
    """Return node(leaves, depth) of the definition."""
    if not leaves:
        return bytes(32)
    if len(set(leaves)) == 1:
        return sha(b"svmem rec 1" + leaves[0] + len(leaves).to_bytes(8, "little"))
    bits = [f"{int.from_bytes(leaf, 'big'):0256b}"[depth] for leaf in leaves]
    zero = [leaf for leaf, bit in zip(leaves, bits, strict=True) if bit == "0"]
    one = [leaf for leaf, bit in zip(leaves, bits, strict=True) if bit == "1"]
    return sha(b"svmem node 1" + naive_root(zero, depth + 1) + naive_root(one, depth + 1))


def root_of(tree: RecordTree, leaf_of: dict[int, bytes]) -> bytes:
    return tree.root(lambda ids: [leaf_of[i] for i in ids])


def close_leaves() -> st.SearchStrategy[bytes]:
    """Draw leaves that share long beginnings, which hashes never do."""
    byte = st.sampled_from([0x00, 0x01, 0x80, 0xFF])
    return st.builds(
        lambda head, tail: bytes(head) + bytes(29) + bytes([tail]), st.lists(byte, min_size=2, max_size=2), byte
    )


def test_an_empty_tree_is_thirty_two_zero_bytes() -> None:
    assert RecordTree().root(lambda _: []) == EMPTY == bytes(32)


def test_one_record_and_copies_of_it_are_told_apart() -> None:
    leaf, roots = sha(b"x"), []
    for count in range(1, 4):
        tree = RecordTree()
        tree.add(range(count))
        roots.append(root_of(tree, dict.fromkeys(range(count), leaf)))
        assert roots[-1] == sha(b"svmem rec 1" + leaf + struct.pack("<q", count))
    assert len(set(roots)) == 3


def test_a_long_common_beginning_is_hashed_at_every_depth() -> None:
    first, second = bytes(32), bytes(31) + b"\x01"
    tree = RecordTree()
    tree.add([0, 1])
    expected = sha(
        b"svmem node 1"
        + sha(b"svmem rec 1" + first + struct.pack("<q", 1))
        + sha(b"svmem rec 1" + second + struct.pack("<q", 1))
    )
    for _ in range(255):
        expected = sha(b"svmem node 1" + expected + bytes(32))
    assert root_of(tree, {0: first, 1: second}) == expected


@given(st.data())
@settings(max_examples=examples(50))
def test_the_tree_follows_any_changes(data: st.DataObject) -> None:
    tree, held, names = RecordTree(), {}, iter(range(1000))
    for _ in range(data.draw(st.integers(1, 12))):
        kind = data.draw(st.sampled_from(["add", "add", "remove", "root"]))
        if kind == "add":
            new = {next(names): leaf for leaf in data.draw(st.lists(close_leaves(), max_size=6))}
            held |= new
            tree.add(list(new))
        elif kind == "remove" and held:
            gone = data.draw(st.lists(st.sampled_from(sorted(held)), unique=True))
            tree.remove(gone)
            held = {i: leaf for i, leaf in held.items() if i not in gone}
        else:
            assert root_of(tree, held) == naive_root(list(held.values()))
    assert root_of(tree, held) == naive_root(list(held.values()))


def test_the_order_of_arrival_and_what_left_leave_no_trace() -> None:
    leaf_of = {i: sha(bytes([i % 90])) for i in range(120)}
    straight, winding = RecordTree(), RecordTree()
    straight.add(range(0, 120, 2))
    for i in np.random.default_rng(0).permutation(120).tolist():
        winding.add([i])
        root_of(winding, leaf_of)
    winding.remove(range(1, 120, 2))
    assert root_of(winding, leaf_of) == root_of(straight, leaf_of)
    winding.remove(range(0, 120, 2))
    assert root_of(winding, leaf_of) == EMPTY


def test_nothing_is_hashed_until_asked_and_a_change_costs_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, asked = [], []
    plain = digest._sha256
    monkeypatch.setattr(digest, "_sha256", lambda *parts: calls.append(1) or plain(*parts))
    leaf_of = {i: sha(i.to_bytes(4, "big")) for i in range(4001)}
    tree = RecordTree()
    tree.add(range(4000))
    tree.remove(range(100, 200))
    assert calls == []
    tree.root(lambda ids: asked.extend(ids) or [leaf_of[i] for i in ids])
    assert sorted(asked) == [*range(100), *range(200, 4000)]  # what left in between was never hashed
    calls.clear()
    assert root_of(tree, leaf_of) == root_of(tree, leaf_of)
    assert calls == []
    tree.remove([7])
    tree.add([4000])
    root_of(tree, leaf_of)
    assert 2 <= len(calls) <= 60  # two paths of about log2(4000) = 12 nodes


def test_a_leaf_covers_key_and_value_to_the_bit() -> None:
    keys, values = np.array([[1.5, -0.0], [0.1, 2.0]]), np.array([[0.0], [-0.0]])
    packed = [struct.pack("<ddd", 1.5, 0.0, 0.0), struct.pack("<ddd", 0.1, 2.0, 0.0)]
    assert leaves(keys, values) == [sha(b"svmem leaf 1" + data) for data in packed]


def test_the_active_section_joins_equal_keys() -> None:
    keys = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 2.0]])
    packed = struct.pack("<ddqd", 0.0, 1.0, 2, 0.25) + struct.pack("<ddqd", 0.0, 2.0, 1, 0.5)
    assert active_section(keys, np.array([0.25, 0.25, 0.5])) == sha(b"svmem active 1" + packed)
    assert active_section(np.empty((0, 2)), np.empty(0)) == sha(b"svmem active 1")


@pytest.mark.parametrize("kernel", [RBF(2), Laplacian(0.1), Linear(), Cosine()], ids=str)
def test_the_problem_is_canonical_json_with_exact_numbers(kernel: RBF | Laplacian | Linear | Cosine) -> None:
    text = problem_bytes(Problem(kernel, C=1, ridge=1e-8))
    data = json.loads(text)
    assert text == json.dumps(data, sort_keys=True, separators=(",", ":")).encode()
    assert (float.fromhex(data["C"]), float.fromhex(data["ridge"])) == (1.0, 1e-8)
    assert data["C"] == (1.0).hex()  # an int is the same number
    width = {"sigma": float(kernel.sigma).hex()} if isinstance(kernel, RBF | Laplacian) else {}
    assert data["kernel"] == {"name": kernel.name} | width


def test_the_state_digest_covers_every_part() -> None:
    problem, root, active = Problem(RBF(2.0), C=0.5), sha(b"root"), sha(b"active")
    expected = sha(
        b"svmem state 1"
        + sha(problem_bytes(problem))
        + struct.pack("<qqq", 3, 2, 1)
        + root
        + active
        + struct.pack("<d", 0.1)
    ).hex()
    digests = {
        state_digest(problem, (3, 2, 1), root, active, 0.1),
        state_digest(Problem(RBF(2.0), C=0.25), (3, 2, 1), root, active, 0.1),
        state_digest(problem, (3, 1, 2), root, active, 0.1),
        state_digest(problem, (3, 2, 1), active, root, 0.1),
        state_digest(problem, (3, 2, 1), root, active, 0.1 + 2**-56),
    }
    assert expected in digests
    assert len(digests) == 5
