"""Files that hold no memory, or one that was damaged or made up, are refused in one sentence."""

import hashlib
import json
import pickle
import struct
from pathlib import Path
from typing import Any

import pytest

import svmem
from svmem.errors import FileRefused
from svmem.kernels import RBF
from svmem.memory import Memory

pytestmark = [pytest.mark.usefixtures("compiled_memory"), pytest.mark.timeout(600, func_only=True)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


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
