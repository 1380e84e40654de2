"""The digest of a state, and the Merkle trie over its records that one change costs O(log n) hashes. docs/digest.md."""

import hashlib
import json
import struct
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from svmem.core.problem import Problem
from svmem.kernels import RBF, Laplacian
from svmem.types import Coefficients, Keys, Values

__all__ = ["EMPTY", "RecordTree", "active_section", "leaves", "problem_bytes", "state_digest"]

EMPTY = bytes(32)


class RecordTree:
    """History-independent Merkle trie over the multiset of leaves, one leaf a record.

    Changes are only noted; `root` hashes what they touched. It keeps leaves, which are hashes, and never a record.
    """

    def __init__(self) -> None:
        self._top: _Node = None
        self._leaf_of: dict[int, bytes] = {}  # by id, of the records in the trie
        self._arrived: set[int] = set()
        self._gone: list[bytes] = []

    def add(self, ids: Iterable[int]) -> None:
        """Note records that arrived."""
        self._arrived.update(ids)

    def remove(self, ids: Iterable[int]) -> None:
        """Note records that left."""
        for i in ids:
            leaf = self._leaf_of.pop(i, None)
            if leaf is None:
                self._arrived.discard(i)
            else:
                self._gone.append(leaf)

    def root(self, leaves_of: Callable[[list[int]], Sequence[bytes]]) -> bytes:
        """Return the records root; `leaves_of` gives the leaves of the records that arrived since the last call."""
        for leaf in self._gone:
            self._top = _without(self._top, leaf, 0)
        self._gone.clear()
        arrived = list(self._arrived)
        for i, leaf in zip(arrived, leaves_of(arrived), strict=True):
            self._leaf_of[i] = leaf
            self._top = _with(self._top, leaf, 0)
        self._arrived.clear()
        return _hash_of(self._top)


class _Leaf:
    __slots__ = ("count", "digest", "leaf")

    def __init__(self, leaf: bytes, count: int) -> None:
        self.leaf, self.count = leaf, count
        self.digest: bytes | None = None


class _Branch:
    """Two or more distinct leaves, parted by one bit; a side may be empty."""

    __slots__ = ("digest", "sides")

    def __init__(self) -> None:
        self.sides: list[_Node] = [None, None]
        self.digest: bytes | None = None


_Node = _Leaf | _Branch | None


def _bit(leaf: bytes, depth: int) -> int:
    return leaf[depth >> 3] >> (7 - (depth & 7)) & 1


def _with(node: _Node, leaf: bytes, depth: int) -> _Node:
    """Return the subtree with one more of a leaf."""
    if node is None:
        return _Leaf(leaf, 1)
    if isinstance(node, _Leaf):
        if node.leaf == leaf:
            return _Leaf(leaf, node.count + 1)
        branch = _Branch()
        branch.sides[_bit(node.leaf, depth)] = node
        node = branch
    node.digest = None
    side = _bit(leaf, depth)
    node.sides[side] = _with(node.sides[side], leaf, depth + 1)
    return node


def _without(node: _Node, leaf: bytes, depth: int) -> _Node:
    """Return the subtree with one less of a leaf that it holds."""
    assert node is not None
    if isinstance(node, _Leaf):
        return _Leaf(leaf, node.count - 1) if node.count > 1 else None
    node.digest = None
    side = _bit(leaf, depth)
    node.sides[side] = _without(node.sides[side], leaf, depth + 1)
    here, there = node.sides
    if here is None and isinstance(there, _Leaf):
        return there
    if there is None and isinstance(here, _Leaf):
        return here
    return node


def _hash_of(node: _Node) -> bytes:
    if node is None:
        return EMPTY
    if node.digest is None:
        if isinstance(node, _Leaf):
            node.digest = _sha256(b"svmem rec 1", node.leaf, struct.pack("<q", node.count))
        else:
            node.digest = _sha256(b"svmem node 1", _hash_of(node.sides[0]), _hash_of(node.sides[1]))
    return node.digest


def leaves(keys: Keys, values: Values) -> list[bytes]:
    """Return the leaf of each record: the hash of its key and value, -0 as 0."""
    rows = (np.hstack([keys, values]) + 0.0).astype("<f8")
    return [_sha256(b"svmem leaf 1", row.tobytes()) for row in rows]


def active_section(keys: Keys, alpha: Coefficients) -> bytes:
    """Return the digest of active records (a, d), in canonical order: distinct keys, multiplicities, coefficients."""
    fresh = np.ones(len(keys), bool)
    fresh[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    start = np.flatnonzero(fresh)
    nodes = np.empty(len(start), [("key", "<f8", keys.shape[1:]), ("multiplicity", "<i8"), ("alpha", "<f8")])
    nodes["key"], nodes["alpha"] = keys[start], alpha[start]
    nodes["multiplicity"] = np.diff(start, append=len(keys))
    return _sha256(b"svmem active 1", nodes.tobytes())


def problem_bytes(problem: Problem) -> bytes:
    """Return the problem as canonical JSON whose numbers are exact."""
    kernel: dict[str, str] = {"name": problem.kernel.name}
    if isinstance(problem.kernel, RBF | Laplacian):
        kernel["sigma"] = float(problem.kernel.sigma).hex()
    data = {"C": float(problem.C).hex(), "ridge": float(problem.ridge).hex(), "kernel": kernel}
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode("ascii")


def state_digest(problem: Problem, shape: tuple[int, int, int], root: bytes, active: bytes, offset: float) -> str:
    """Return the digest of a state in hexadecimal; `shape` is (n, key_dim, value_dim)."""
    return _sha256(
        b"svmem state 1",
        _sha256(problem_bytes(problem)),
        struct.pack("<qqq", *shape),
        root,
        active,
        struct.pack("<d", offset),
    ).hex()


def _sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()
