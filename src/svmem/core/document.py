"""The certificate as a JSON document that `svmem.checker` checks against the records. Format: docs/digest.md."""

import hashlib
import json
import platform
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata

import numpy as np
from numpy.typing import NDArray

from svmem.core.certificate import OptimalityCertificate
from svmem.core.selection import SelectionCertificate
from svmem.errors import InvalidInput
from svmem.types import Coefficients, Ids, Json, Keys

__all__ = ["FORMAT", "VERSION", "Commitment", "Removal", "Scope", "build", "canonical_json", "seal"]

FORMAT, VERSION = "svmem-certificate", 1


class Scope(StrEnum):
    """The set of records against which "as if never seen" is exact."""

    EVERYTHING = "all records ever added"
    RETAINED = "retained records"


@dataclass(frozen=True, slots=True)
class Commitment:
    """What ties a document to the records: their digests in hexadecimal, and the width of the values."""

    value_dim: int
    records_root: str
    state_digest: str


@dataclass(frozen=True, slots=True)
class Removal:
    """What a deletion certificate adds. `erased` says in a sentence what was physically erased, and where."""

    count: int
    exact_relative_to: Scope
    erased: str


def build(
    keys: Keys,
    alpha: Coefficients,
    optimality: OptimalityCertificate,
    commitment: Commitment,
    *,
    selection: SelectionCertificate | None = None,
    removal: Removal | None = None,
) -> Json:
    """Return the document for these records, in any order: numbers and digests, no ids, keys or values.

    Nodes (distinct keys) are named by their position in canonical order, ascending by the coordinates.
    """
    node, size = _nodes(keys)
    if optimality.n != len(alpha) or len(keys) != len(alpha):
        raise InvalidInput(
            f"the certificate is for {optimality.n} records, got {len(keys)} keys and {len(alpha)} alpha"
        )
    document: Json = {
        "format": FORMAT,
        "version": VERSION,
        "kind": "deletion" if removal else "selection" if selection else "optimality",
        "problem": optimality.problem.to_json(),
        "n": optimality.n,
        "key_dim": int(keys.shape[1]),
        "value_dim": commitment.value_dim,
        "status": str(optimality.status),
        "records_root": commitment.records_root,
        "state_digest": commitment.state_digest,
        "offset": optimality.offset,
        "active": _active(node, size, alpha),
        "optimality": _without(optimality.to_json(), "n", "problem", "offset", "status"),
        "selection": None if selection is None else _selection(node, selection, optimality),
        "removed": None if removal is None else _removed(removal),
        "versions": _versions(),
    }
    return seal(document)


def seal(document: Json) -> Json:
    """Return the document with `self_digest`, the digest of everything else in it."""
    body = _without(document, "self_digest")
    return body | {"self_digest": hashlib.sha256(canonical_json(body)).hexdigest()}


def canonical_json(data: Json) -> bytes:
    """Return plain data as bytes: keys sorted, no spaces, ASCII, floats as Python's repr, NaN and infinity refused."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def _nodes(keys: Keys) -> tuple[Ids, Ids]:
    """Return the node of each record and the number of records in each node."""
    if not len(keys):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    _, node, size = np.unique(keys + 0.0, axis=0, return_inverse=True, return_counts=True)  # + 0.0 makes -0 to 0
    return node.reshape(-1), size


def _active(node: Ids, size: Ids, alpha: Coefficients) -> Json:
    """Return the coefficients, one for each node whose records carry any; equal keys carry equal coefficients."""
    share: NDArray[np.float64] = np.zeros(len(size))
    share[node] = alpha
    if not np.array_equal(share[node], alpha):
        raise InvalidInput("records with equal keys must carry equal coefficients, as they do at the optimum")
    chosen = np.flatnonzero(share)
    return {"node": chosen.tolist(), "multiplicity": size[chosen].tolist(), "alpha": share[chosen].tolist()}


def _selection(node: Ids, selection: SelectionCertificate, optimality: OptimalityCertificate) -> Json:
    if selection.n != optimality.n or selection.problem != optimality.problem:
        raise InvalidInput(
            "the selection certificate speaks of other records or another problem than the optimality one"
        )
    nodes, first = np.unique(node[selection.droppable], return_index=True)
    data = _without(selection.to_json(), "n", "problem", "droppable", "slack")
    return data | {"node": nodes.tolist(), "slack": selection.slack[first].tolist()}


def _removed(removal: Removal) -> Json:
    return {
        "count": removal.count,
        "exact_relative_to": str(Scope(removal.exact_relative_to)),
        "erased": removal.erased,
    }


def _versions() -> Json:
    try:
        svmem = metadata.version("svmem")
    except metadata.PackageNotFoundError:  # run from a source tree that is not installed
        svmem = "unknown"
    return {"svmem": svmem, "python": platform.python_version(), "numpy": np.__version__}


def _without(data: Json, *names: str) -> Json:
    return {name: value for name, value in data.items() if name not in names}
