"""The digests of docs/digest.md, recomputed from the records."""

import hashlib
import json
import struct
from typing import Any

__all__ = ["records_root", "self_digest", "state_digest"]


def records_root(keys: Any, values: Any) -> str:
    """Return the root over the multiset of records, whatever their order."""
    rows = zip(keys.astype("<f8"), values.astype("<f8"), strict=True)
    return _trie(sorted(_sha256(b"svmem leaf 1", key.tobytes(), value.tobytes()) for key, value in rows), 0).hex()


def state_digest(nodes: Any, certificate: Any, root: str) -> str:
    """Return the digest of the whole state: problem, sizes, records, coefficients of the nodes, offset."""
    problem, active = certificate["problem"], certificate["active"]
    kernel = {name: float(part).hex() if name == "sigma" else part for name, part in problem["kernel"].items()}
    numbers = {"C": float(problem["C"]).hex(), "ridge": float(problem["ridge"]).hex(), "kernel": kernel}
    shares = zip(active["node"], active["multiplicity"], active["alpha"], strict=True)
    return _sha256(
        b"svmem state 1",
        _sha256(_json(numbers)),
        struct.pack("<qqq", certificate["n"], certificate["key_dim"], certificate["value_dim"]),
        bytes.fromhex(root),
        _sha256(
            b"svmem active 1", *(nodes[j].astype("<f8").tobytes() + struct.pack("<qd", m, a) for j, m, a in shares)
        ),
        struct.pack("<d", certificate["offset"]),
    ).hex()


def self_digest(certificate: Any) -> str:
    """Return the digest of everything in the certificate but the digest itself."""
    return _sha256(_json({name: part for name, part in certificate.items() if name != "self_digest"})).hex()


def _trie(leaves: list[bytes], depth: int) -> bytes:
    """Return the digest of sorted leaves, equal ones included, that agree in their first `depth` bits."""
    if not leaves:
        return bytes(32)
    if leaves[0] == leaves[-1]:
        return _sha256(b"svmem rec 1", leaves[0], struct.pack("<q", len(leaves)))
    byte, bit = divmod(depth, 8)
    zeros = sum(not leaf[byte] >> (7 - bit) & 1 for leaf in leaves)
    return _sha256(b"svmem node 1", _trie(leaves[:zeros], depth + 1), _trie(leaves[zeros:], depth + 1))


def _sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def _json(data: Any) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")
