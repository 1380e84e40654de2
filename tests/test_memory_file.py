"""A memory on disk, in a pickle and as a copy: the same records, the same bits, or a refusal in one sentence."""

import copy
import hashlib
import json
import os
import pickle
import stat
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import svmem
from svmem.core import state_file
from svmem.core.document import Scope
from svmem.errors import FileRefused, InvalidInput
from svmem.kernels import RBF, Cosine, Laplacian, Linear
from svmem.memory import Memory

pytestmark = [pytest.mark.usefixtures("compiled_memory"), pytest.mark.timeout(600, func_only=True)]

PROBLEM = svmem.Problem(RBF(2.0), C=0.1)


def made(n: int = 30, problem: svmem.Problem = PROBLEM) -> Memory:
    random = np.random.default_rng(0)
    memory = Memory(problem, key_dim=2, value_dim=3)
    owners = ["ann", "bob\n☃", None, "ann"] * n
    memory.add(random.standard_normal((n, 2)), random.standard_normal((n, 3)), owners=owners[:n])
    if n > 8:
        memory.forget(ids=[0, 7])
    return memory


def same(one: Memory, other: Memory) -> None:
    """Check that two memories hold the same and answer the same, to the bit."""
    assert (one.problem, one.key_dim, one.value_dim) == (other.problem, other.key_dim, other.value_dim)
    assert (one.ids, one.owners) == (other.ids, other.owners)
    assert one.keys.tobytes() == other.keys.tobytes()
    assert one.values.tobytes() == other.values.tobytes()
    assert one.digest() == other.digest()
    assert one.solution.alpha.tobytes() == other.solution.alpha.tobytes()
    queries = np.random.default_rng(1).standard_normal((5, 2))
    if len(one) and one.problem.kernel.bounded:
        assert one.read(queries).tobytes() == other.read(queries).tobytes()
    if len(one):
        assert one.score(queries).tobytes() == other.score(queries).tobytes()


def saved_and_loaded(memory: Memory) -> Memory:
    path = Path(os.environ["PYTEST_TMP"]) / "memory.svmem"
    memory.save(path)
    return Memory.load(path)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTEST_TMP", str(tmp_path))
    return tmp_path


WAYS: dict[str, Callable[[Memory], Memory]] = {
    "file": saved_and_loaded,
    "pickle": lambda memory: pickle.loads(pickle.dumps(memory)),
    "old pickle": lambda memory: pickle.loads(pickle.dumps(memory, protocol=2)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@ways
@pytest.mark.parametrize("n", [0, 1, 5, 30])
def test_what_comes_back_is_the_same_memory(way: Callable[[Memory], Memory], n: int) -> None:
    memory = made(n)
    same(memory, way(memory))


@ways
@pytest.mark.parametrize("kernel", [Laplacian(0.7), Linear(), Cosine()], ids=str)
def test_every_kernel_comes_back(way: Callable[[Memory], Memory], kernel: Laplacian | Linear | Cosine) -> None:
    memory = made(30, svmem.Problem(kernel, C=1 / 7, ridge=1e-3))
    same(memory, way(memory))


@ways
def test_life_goes_on_as_if_it_had_never_left(way: Callable[[Memory], Memory]) -> None:
    memory = made()
    other = way(memory)
    for one in (memory, other):
        assert one.add([[0.5, 0.5], [9.0, 9.0]], np.ones((2, 3)), owners="cid") == [30, 31]
        assert one.forget(owner="bob\n☃").count == 8
        assert one.forget(ids=[31]).exact_relative_to is Scope.EVERYTHING
        with pytest.raises(InvalidInput, match="from 32"):
            one.add([[0.0, 0.0]], np.ones((1, 3)), ids=[31])
    same(memory, other)


@ways
def test_a_copy_is_on_its_own(way: Callable[[Memory], Memory]) -> None:
    memory = made()
    before, other = memory.digest(), way(memory)
    other.forget(owner="ann")
    other.add([[0.5, 0.5]], np.ones((1, 3)))
    assert memory.digest() == before
    memory.forget(ids=[5])
    assert len(other) == len(way(other))


@ways
def test_an_eviction_is_remembered(way: Callable[[Memory], Memory]) -> None:
    memory = made(60)
    assert memory.evict().droppable.size
    assert way(memory).forget(ids=memory.ids[:1]).exact_relative_to is Scope.RETAINED


@ways
def test_ids_of_records_that_are_gone_stay_used(way: Callable[[Memory], Memory]) -> None:
    memory = made(5)
    memory.forget(ids=[4])
    assert way(memory).add([[0.0, 0.0]], np.ones((1, 3))) == [5]
    memory.forget(ids=memory.ids)
    assert way(memory).add([[0.0, 0.0]], np.ones((1, 3))) == [5]


def test_a_pickle_holds_records_and_nothing_forgotten():
    memory = made()
    memory.add([[0.123456789, 0.0]], np.ones((1, 3)), owners="canary")
    memory.forget(owner="canary")
    memory.digest()
    for data in (pickle.dumps(memory), Path(_save(memory)).read_bytes()):
        assert b"canary" not in data
        assert struct.pack("<d", 0.123456789) not in data
        assert struct.pack(">d", 0.123456789) not in data


def _save(memory: Memory, name: str = "m.svmem") -> str:
    path = os.path.join(os.environ["PYTEST_TMP"], name)
    memory.save(path)
    return path


def test_the_same_memory_gives_the_same_file(folder: Path) -> None:
    memory = made()
    one, other = _save(memory, "a"), _save(copy.copy(memory), "b")
    assert Path(one).read_bytes() == Path(other).read_bytes()
    assert sorted(path.name for path in folder.iterdir()) == ["a", "b"]


def test_a_memory_larger_than_its_holes_is_written_in_full(folder: Path) -> None:
    memory = Memory(svmem.Problem(RBF(3.0), C=0.1), 2, 1)
    random = np.random.default_rng(0)
    memory.add(
        random.standard_normal((3000, 2)), random.standard_normal((3000, 1)), owners=[f"o{i}" for i in range(3000)]
    )
    memory.forget(ids=list(range(0, 3000, 2)))
    path = folder / "m"
    memory.save(path)
    assert Memory.load(path).digest() == memory.digest()
    assert Memory.load(path).owners == memory.owners


def small(folder: Path) -> tuple[Path, bytes]:
    path = folder / "small.svmem"
    memory = Memory(svmem.Problem(RBF(1.0), C=0.5), 1, 1)
    memory.add([[0.0], [1.0], [3.0]], [[1.0], [2.0], [3.0]], owners=["a", None, "b"])
    memory.save(path)
    return path, path.read_bytes()


def test_a_file_with_any_byte_changed_is_refused(folder: Path) -> None:
    path, data = small(folder)
    for place in range(len(data)):
        for flip in (0x01, 0x80, 0xFF):
            path.write_bytes(data[:place] + bytes([data[place] ^ flip]) + data[place + 1 :])
            with pytest.raises(FileRefused) as caught:
                Memory.load(path)
            assert "\n" not in str(caught.value)


def test_a_file_cut_off_or_prolonged_anywhere_is_refused(folder: Path) -> None:
    path, data = small(folder)
    for shorter in range(len(data)):
        path.write_bytes(data[:shorter])
        with pytest.raises(FileRefused):
            Memory.load(path)
    for more in (b"\0", b"x" * 100, data):
        path.write_bytes(data + more)
        with pytest.raises(FileRefused):
            Memory.load(path)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        b"PK\x03\x04" + bytes(100),
        b"\x93NUMPY" + bytes(100),
        pickle.dumps({"a": 1}),
        b"SQLite format 3\0" * 9,
    ],
    ids=["empty", "zero", "zip", "npy", "pickle", "sqlite"],
)
def test_a_foreign_file_is_refused(folder: Path, data: bytes) -> None:
    path = folder / "foreign"
    path.write_bytes(data)
    with pytest.raises(FileRefused, match="no svmem memory"):
        Memory.load(path)


def forged(data: bytes, version: int = 1, **changes: Any) -> bytes:
    """Return the file with another header and a checksum that fits."""
    magic, _, length = struct.unpack("<8sQQ", data[:24])
    header = json.loads(data[24 : 24 + length])
    header |= changes
    header = {name: value for name, value in header.items() if value != "ABSENT"}
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    data = struct.pack("<8sQQ", magic, version, len(text)) + text + data[24 + length : -32]
    return data + hashlib.sha256(data).digest()


def test_a_newer_version_is_named(folder: Path) -> None:
    path, data = small(folder)
    path.write_bytes(forged(data, version=2))
    with pytest.raises(FileRefused, match="version 2, this svmem reads version 1"):
        Memory.load(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"n": 2**40},
        {"n": 2},
        {"n": -1},
        {"n": 3.0},
        {"n": True},
        {"n": None},
        {"key_dim": 2},
        {"key_dim": 0},
        {"key_dim": 2**60, "n": 0},
        {"next_id": 2},
        {"next_id": 2**63},
        {"evicted": 0},
        {"owners": ["a"]},
        {"owners": ["a", "a"]},
        {"owners": ["a", 1]},
        {"owners": ["a", ""]},
        {"owners": "ab"},
        {"digest": "0" * 64},
        {"digest": 5},
        {"problem": {}},
        {"problem": {"kernel": {"name": "rbf", "sigma": 1.0}, "C": 0.25, "ridge": 1e-8}},
        {"problem": {"kernel": {"name": "precomputed"}, "C": 0.5, "ridge": 1e-8}},
        {"problem": {"kernel": {"name": "other"}, "C": 0.5, "ridge": 1e-8}},
        {"problem": {"kernel": {"name": "rbf", "sigma": -1.0}, "C": 0.5, "ridge": 1e-8}},
        {"problem": {"kernel": {"name": "rbf", "sigma": 1.0}, "C": "x", "ridge": 1e-8}},
        {"problem": {"kernel": [], "C": [], "ridge": {}}},
        {"owners": "ABSENT"},
        {"more": 1},
    ],
    ids=repr,
)
def test_a_header_that_was_made_up_is_refused(folder: Path, changes: dict[str, Any]) -> None:
    path, data = small(folder)
    path.write_bytes(forged(data))
    assert len(Memory.load(path)) == 3
    path.write_bytes(forged(data, **changes))
    with pytest.raises(FileRefused):
        Memory.load(path)


def test_records_that_were_exchanged_do_not_give_the_digest(folder: Path) -> None:
    path, data = small(folder)
    other = data.replace(struct.pack("<d", 3.0), struct.pack("<d", 4.0))[:-32]
    path.write_bytes(other + hashlib.sha256(other).digest())
    with pytest.raises(FileRefused, match="digest"):
        Memory.load(path)
    for bad in (float("nan"), float("inf")):
        other = data.replace(struct.pack("<d", 3.0), struct.pack("<d", bad))[:-32]
        path.write_bytes(other + hashlib.sha256(other).digest())
        with pytest.raises(FileRefused, match="finite"):
            Memory.load(path)


@pytest.mark.parametrize("text", [b"[" * 100_000, b"1" * 10_000, b"null", b"\xff", b'{"n":NaN}', b""])
def test_a_header_that_is_no_header_is_refused(folder: Path, text: bytes) -> None:
    path, data = small(folder)
    other = data[:8] + struct.pack("<QQ", 1, len(text)) + text
    path.write_bytes(other + hashlib.sha256(other).digest())
    with pytest.raises(FileRefused):
        Memory.load(path)


def test_a_header_longer_than_the_file_is_refused_before_it_is_read(folder: Path) -> None:
    path, data = small(folder)
    for length in (len(data), 2**40, 2**64 - 1):
        path.write_bytes(data[:16] + struct.pack("<Q", length) + data[24:])
        with pytest.raises(FileRefused, match="cut off"):
            Memory.load(path)


def test_no_file_is_the_usual_error(folder: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Memory.load(folder / "none")
    with pytest.raises(FileNotFoundError):
        made(3).save(folder / "none" / "m")
    with pytest.raises(IsADirectoryError):
        Memory.load(folder)
    with pytest.raises(IsADirectoryError):
        made(3).save(folder)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(folder: Path, monkeypatch, step: str) -> None:
    path = folder / "m"
    memory = made()
    memory.save(path)
    before = path.read_bytes()
    memory.forget(ids=[3])

    def fail(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(state_file.os, step, fail)
    with pytest.raises(OSError, match="no space"):
        memory.save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in folder.iterdir()] == ["m"]


def test_a_save_keeps_the_permissions_and_the_link(folder: Path) -> None:
    path, link = folder / "m", folder / "link"
    memory = made()
    memory.save(path)
    os.chmod(path, 0o640)
    link.symlink_to(path)
    memory.forget(ids=[3])
    memory.save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    same(Memory.load(path), memory)
