"""The records behind an answer."""

import math
from dataclasses import asdict, dataclass

import numpy as np

from svmem._jit.rows import distances
from svmem.core.readout import View, heaviest, score
from svmem.kernels import RBF
from svmem.types import Json, Queries

__all__ = ["Explanation", "Share", "explain"]


@dataclass(frozen=True, slots=True)
class Share:
    """One record's part in an answer. distance: Euclidean for the RBF kernel, sum of absolutes for the Laplacian."""

    id: int
    owner: str | None
    weight: float
    kernel: float
    distance: float
    zone: str  # margin or bound


@dataclass(frozen=True, slots=True)
class Explanation:
    """An answer, the gate score of its query, and the records that carry it, heaviest first.

    The answer is the mean of the values under the weights; `rest` is the weight of active records that are not listed.
    """

    output: tuple[float, ...]
    score: float
    shares: tuple[Share, ...]
    active: int
    rest: float

    def to_json(self) -> Json:
        """Return the explanation as plain data."""
        return asdict(self) | {"output": list(self.output), "shares": [asdict(share) for share in self.shares]}

    def __str__(self) -> str:
        side = "inside" if self.score > 0 else "outside"
        head = f"answer ({', '.join(f'{x:.6g}' for x in self.output)}), gate score {self.score:.4g} ({side})"
        table = [("id", "owner", "weight", "kernel", "distance", "zone")]
        table += [
            (str(s.id), s.owner or "-", f"{s.weight:.4f}", f"{s.kernel:.4g}", f"{s.distance:.4g}", s.zone)
            for s in self.shares
        ]
        width = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(cell.rjust(w) for cell, w in zip(row, width, strict=True)) for row in table]
        others = self.active - len(self.shares)
        tail = [f"{others} more active records carry {self.rest:.4f}"] if others else []
        return "\n".join([head, *lines, *tail])


def explain(view: View, query: Queries, k: int) -> Explanation:
    """Return the k heaviest records behind the answer to one query (1, d), and the answer of all active records."""
    output, places, weights = heaviest(view, query, len(view.ids))
    chosen, kernel = places[0, :k], view.problem.kernel
    dist, columns = np.empty(len(chosen)), np.ascontiguousarray(view.columns[:, chosen])
    with np.errstate(over="ignore"):
        distances(kernel.code, float(kernel.scale), query[0], columns, 0, dist)
    shares = [
        Share(
            id=int(view.ids[place]),
            owner=view.owners[place],
            weight=float(weight),
            kernel=math.exp(-t),
            distance=_distance(view, query[0], int(place)),
            zone=view.zone_of(int(place)),
        )
        for place, weight, t in zip(chosen.tolist(), weights[0], dist.tolist(), strict=False)
    ]
    return Explanation(
        output=tuple(output[0].tolist()),
        score=float(score(view, query)[0]),
        shares=tuple(shares),
        active=len(view.ids),
        rest=math.fsum(weights[0, k:]),
    )


def _distance(view: View, query: np.ndarray, place: int) -> float:
    key = view.keys[place].tolist()
    if isinstance(view.problem.kernel, RBF):
        return math.dist(query.tolist(), key)
    return float(sum(abs(a - b) for a, b in zip(query.tolist(), key, strict=True)))
