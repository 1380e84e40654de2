"""A memory on disk, in a pickle and as a copy: the same records, the same bits."""

import copy
import os
import pickle
import stat
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import svmem
from svmem.core import state_file
from svmem.core.document import Scope
from svmem.errors import InvalidInput
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
