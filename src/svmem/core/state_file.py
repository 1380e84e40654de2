"""A memory as one file: little-endian, no pickle, written whole or not at all, refused when a byte is off.

magic (8 bytes), version and length of the header (8 bytes each)
header: JSON with problem, n, key_dim, value_dim, next_id, evicted, the distinct owners, the state digest
ids, owners as places in the header's list (-1: none), keys, values: 8 bytes a number
SHA-256 of all before it (32 bytes)
"""

import hashlib
import json
import math
import os
import secrets
import stat
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmem.core.inputs import as_finite
from svmem.core.problem import Problem
from svmem.core.records import LARGEST_ID, LARGEST_WIDTH, Contents
from svmem.errors import FileRefused, InvalidInput
from svmem.types import Json

__all__ = ["VERSION", "read", "write"]

MAGIC, VERSION = b"\x89svmem\r\n", 1  # not text: a transfer that changes line ends is seen at once
_PREFIX, _SEAL = struct.calcsize("<8sQQ"), 32
_FIELDS = {
    **dict.fromkeys(("n", "key_dim", "value_dim", "next_id"), int),
    "evicted": bool,
    "owners": list,
    "digest": str,
    "problem": dict,
}


def write(path: str | os.PathLike[str], contents: Contents, digest: str) -> None:
    """Write the file beside its place and move it there; an error or a crash leaves what was there before."""
    target = Path(os.path.realpath(path))  # a link stays a link
    data = _packed(contents, digest)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with open(draft, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            os.chmod(draft, stat.S_IMODE(target.stat().st_mode))
        os.replace(draft, target)
    except BaseException:
        with suppress(FileNotFoundError):
            draft.unlink()
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:  # the move itself is on disk only now
        os.fsync(folder)
    finally:
        os.close(folder)


def read(path: str | os.PathLike[str]) -> tuple[Contents, str]:
    """Return what `write` wrote. Raises FileRefused, in one sentence, for any other file; OSError if there is none."""
    with open(path, "rb") as file:
        prefix, size = file.read(_PREFIX), os.fstat(file.fileno()).st_size
        length = _header_length(prefix, size)
        data = prefix + file.read()
    if len(data) != size or hashlib.sha256(data[:-_SEAL]).digest() != data[-_SEAL:]:
        raise FileRefused("the file is damaged: its checksum differs; restore it from a backup")
    try:
        header = _header(data[_PREFIX : _PREFIX + length])
        return _contents(header, data[_PREFIX + length : -_SEAL]), header["digest"]
    except (InvalidInput, ValueError, RecursionError) as error:
        raise FileRefused(f"the file is no memory that this version writes: {error}") from None


def _packed(contents: Contents, digest: str) -> bytes:
    owners = sorted({owner for owner in contents.owners if owner is not None})
    place = {owner: i for i, owner in enumerate(owners)}
    header = {
        "problem": contents.problem.to_json(),
        "n": len(contents.ids),
        "key_dim": contents.keys.shape[1],
        "value_dim": contents.values.shape[1],
        "next_id": contents.next_id,
        "evicted": contents.evicted,
        "owners": owners,
        "digest": digest,
    }
    text = json.dumps(header, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")
    owner = np.array([-1 if name is None else place[name] for name in contents.owners], "<i8")
    columns = [contents.ids.astype("<i8"), owner, contents.keys.astype("<f8"), contents.values.astype("<f8")]
    data = struct.pack("<8sQQ", MAGIC, VERSION, len(text)) + text + b"".join(column.tobytes() for column in columns)
    return data + hashlib.sha256(data).digest()


def _header_length(prefix: bytes, size: int) -> int:
    """Return the length of the header, once the file can be one of ours."""
    if len(prefix) < _PREFIX or not prefix.startswith(MAGIC):
        raise FileRefused("the file is no svmem memory: it does not begin like one")
    _, version, length = struct.unpack("<8sQQ", prefix)
    if version != VERSION:
        raise FileRefused(
            f"the file has version {version}, this svmem reads version {VERSION}; use the svmem that wrote it"
        )
    if _PREFIX + length + _SEAL > size:
        raise FileRefused("the file is cut off: it ends before its header does")
    return length


def _header(text: bytes) -> Json:
    header = json.loads(text.decode("ascii"))
    if not isinstance(header, dict) or set(header) != set(_FIELDS):
        raise ValueError("its header has other fields")
    for name, kind in _FIELDS.items():
        if type(header[name]) is not kind:
            raise ValueError(f"{name} is of another type")
    widths = header["key_dim"], header["value_dim"]
    if not (header["n"] >= 0 and 0 <= header["next_id"] <= LARGEST_ID and all(0 < d <= LARGEST_WIDTH for d in widths)):
        raise ValueError("its sizes are impossible")
    names = header["owners"]
    if not all(type(name) is str and name for name in names) or len(set(names)) < len(names):
        raise ValueError("its owners are not distinct strings")
    return header


def _contents(header: Json, data: bytes) -> Contents:
    n, names = header["n"], header["owners"]
    width = 2 + header["key_dim"] + header["value_dim"]
    if len(data) != 8 * n * width:
        raise ValueError("its length does not match its sizes")
    ids, owner = (_column(data, n * i, (n,), "<i8", np.int64) for i in (0, 1))
    keys = _column(data, 2 * n, (n, header["key_dim"]), "<f8", np.float64)
    values = _column(data, n * (2 + header["key_dim"]), (n, header["value_dim"]), "<f8", np.float64)
    if n and not (ids[0] >= 0 and (np.diff(ids) > 0).all() and ids[-1] < header["next_id"]):
        raise ValueError("its ids do not rise")
    if n and not (owner.min() >= -1 and owner.max() < len(names)):
        raise ValueError("a record has an owner that is not there")
    return Contents(
        problem=Problem.from_json(header["problem"]),
        ids=ids,
        keys=as_finite(keys, "keys"),
        values=as_finite(values, "values"),
        owners=[None if i < 0 else names[i] for i in owner.tolist()],
        next_id=header["next_id"],
        evicted=header["evicted"],
    )


def _column(data: bytes, start: int, shape: tuple[int, ...], form: str, kind: Any) -> NDArray[Any]:
    return np.frombuffer(data, form, math.prod(shape), 8 * start).astype(kind).reshape(shape)
