"""The digests of docs/digest.md written down once more, with bit strings and structs, for comparison."""

import hashlib
import json
import struct
from collections import Counter
from typing import Any

import numpy as np

__all__ = ["records_root", "self_digest", "state_digest"]


def records_root(keys: Any, values: Any) -> str:
    """Return the root over all records in hexadecimal."""
    leaves = Counter(
        hashlib.sha256(b"svmem leaf 1" + _numbers(key) + _numbers(value)).digest()
        for key, value in zip(keys, values, strict=True)
    )
    return _node({f"{int.from_bytes(leaf, 'big'):0256b}": (leaf, count) for leaf, count in leaves.items()}, 0).hex()


def state_digest(problem: Any, keys: Any, value_dim: int, alpha: Any, offset: float, root: str) -> str:
    """Return the digest of the state; `problem` is the plain form with numbers."""
    kernel = {k: v.hex() if k == "sigma" else v for k, v in problem["kernel"].items()}
    hexed = {"kernel": kernel, "ridge": problem["ridge"].hex(), "C": problem["C"].hex()}
    text = json.dumps(hexed, sort_keys=True, separators=(",", ":")).encode()
    shares: dict[tuple[float, ...], list[float]] = {}
    for key, a in zip(np.asarray(keys).tolist(), alpha.tolist(), strict=True):
        shares.setdefault(tuple(x + 0.0 for x in key), []).append(a)
    active = b"svmem active 1"
    for key in sorted(shares):
        if shares[key][0] > 0:
            active += _numbers(key) + struct.pack("<Q", len(shares[key])) + struct.pack("<d", shares[key][0])
    state = b"svmem state 1" + hashlib.sha256(text).digest()
    state += b"".join(struct.pack("<Q", count) for count in (len(keys), np.shape(keys)[1], value_dim))
    state += bytes.fromhex(root) + hashlib.sha256(active).digest() + struct.pack("<d", offset)
    return hashlib.sha256(state).hexdigest()


def self_digest(document: Any) -> str:
    """Return the digest of a document without its own."""
    rest = {k: v for k, v in document.items() if k != "self_digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _numbers(row: Any) -> bytes:
    return b"".join(struct.pack("<d", float(x) + 0.0) for x in row)


def _node(leaves: dict[str, tuple[bytes, int]], depth: int) -> bytes:
    if not leaves:
        return b"\0" * 32
    if len(leaves) == 1:
        leaf, count = next(iter(leaves.values()))
        return hashlib.sha256(b"svmem rec 1" + leaf + struct.pack("<Q", count)).digest()
    sides = [{bits: item for bits, item in leaves.items() if bits[depth] == side} for side in "01"]
    return hashlib.sha256(b"svmem node 1" + b"".join(_node(side, depth + 1) for side in sides)).digest()
