"""The statements of a certificate, one after the other, against what the records say."""

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from .commitment import records_root, self_digest, state_digest
from .doubled import add, negative
from .form import misfit
from .kernel import is_known
from .model import SAFE, Model, sum_error, whole

__all__ = ["Finding", "check"]

SUM_TOLERANCE = 1e-12
SHARE_TOLERANCE = 1e-15


@dataclass(frozen=True, slots=True)
class Finding:
    """A field of the certificate that the records do not bear out, and why."""

    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.field} {self.reason}"


def check(keys: Any, values: Any, certificate: Any) -> list[Finding]:
    """Return what is wrong; an empty list says that every statement holds for these records (n, d) and (n, v)."""
    if field := misfit(certificate):
        return [Finding(field, "is missing, unknown or of the wrong type")]
    keys, values = (np.asarray(array, dtype=np.float64) + 0.0 for array in (keys, values))  # + 0.0 makes -0 to 0
    order = np.lexsort(keys.T[::-1])
    keys, values = keys[order], values[order]
    first = np.ones(len(keys), dtype=bool)
    first[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    size = np.diff(np.append(np.flatnonzero(first), len(keys)))
    found = _identity(keys, values, certificate) or _coefficients(size, certificate)
    found = found or _digests(keys, values, keys[first], certificate)
    if found:  # bounds for other records or coefficients would say nothing
        return found
    model = Model(keys[first], size, certificate)
    found = _optimality(model, certificate["optimality"])
    return found + (_selection(model, certificate) if certificate["selection"] else [])


def _identity(keys: Any, values: Any, certificate: Any) -> list[Finding]:
    """Compare the sizes with the records, and what the certificate calls itself with what it is."""
    kernel, cap, ridge = (certificate["problem"][name] for name in ("kernel", "C", "ridge"))
    if not (is_known(kernel) and 1e-9 <= cap <= 1 and 1e-14 <= ridge <= 1e6):
        return [Finding("problem", f"is none that can be checked: {certificate['problem']}")]
    if kernel["name"] == "cosine" and not keys.any(axis=1).all():
        return [Finding("problem.kernel", "cosine does not fit these records: one key is zero")]
    right = {
        "format": "svmem-certificate",
        "version": 1,
        "kind": "deletion" if certificate["removed"] else "selection" if certificate["selection"] else "optimality",
        "n": len(keys),
        "key_dim": keys.shape[1],
        "value_dim": values.shape[1],
        "status": "proven" if len(keys) >= whole(cap)[0] else "collecting",
        "self_digest": self_digest(certificate),
    }
    said = {name: certificate[name] for name in right}
    said["status"] = said["status"].split(":")[0]
    return [
        Finding(name, f"is {said[name]!r} but should be {right[name]!r}") for name in right if said[name] != right[name]
    ]


def _coefficients(size: Any, certificate: Any) -> list[Finding]:
    """Check that the coefficients lie on the capped simplex and speak of nodes that exist."""
    node, count, alpha = (certificate["active"][name] for name in ("node", "multiplicity", "alpha"))
    if not len(node) == len(count) == len(alpha) or not _rising(node, len(size)):
        return [Finding("active", "must name rising nodes of the records, each with multiplicity and alpha")]
    if count != [int(size[j]) for j in node]:
        return [Finding("active.multiplicity", "differs from the number of equal keys in the records")]
    n, cap, needed = int(size.sum()), certificate["problem"]["C"], whole(certificate["problem"]["C"])
    if n < needed[0]:
        equal = all(abs(Fraction(a) * n - 1) <= SHARE_TOLERANCE for a in alpha)
        if not equal or len(node) != len(size):
            return [Finding("active.alpha", f"must be 1/n for every record while there are fewer than {needed[0]}")]
    elif not all(0 < a <= cap for a in alpha):
        return [Finding("active.alpha", f"must lie in (0, {cap!r}]")]
    share = np.zeros(len(size))
    share[np.array(node, dtype=int)] = alpha
    off = sum_error(share, size, needed)
    return [] if abs(off) <= SUM_TOLERANCE else [Finding("active.alpha", f"must sum to 1, is off by {off!r}")]


def _digests(keys: Any, values: Any, nodes: Any, certificate: Any) -> list[Finding]:
    root = records_root(keys, values)
    right = {"records_root": root, "state_digest": state_digest(nodes, certificate, root)}
    return [
        Finding(name, f"is {certificate[name]!r} but the records give {right[name]!r}")
        for name in right
        if certificate[name] != right[name]
    ]


def _optimality(model: Model, said: Any) -> list[Finding]:
    """Compare every bound with the one that the records support: it may be larger, never smaller."""
    error, reach = model.error.max(initial=0.0), model.reach.max(initial=0.0)
    off = float(abs(add((model.offset, 0.0), negative(model.level))[0]) + error + reach)
    h = add(model.r, (-model.offset, 0.0))[0]
    full = (model.share == model.cap) | model.collecting
    worst = np.maximum(np.where(model.share > 0, h + model.error, 0), np.where(full, 0, model.error - h))
    right = {
        "gap": model.gap,
        "w_bound": model.w,
        "offset_bound": off,
        "score_bound": 2 * (model.w + off),
        "alpha_bound": model.alpha,
        "max_kkt": float(worst.max(initial=0.0)),
    }
    if said["readout_epsilon"] is not None:
        right["readout_epsilon"] = _epsilon(model, error + reach)
    wrong = [
        Finding(f"optimality.{name}", f"claims {said[name]!r} but the records support no less than {right[name]!r}")
        for name in right
        if not right[name] <= said[name] < math.inf
    ]
    if said["sum_error"] != model.sum_error:
        wrong.append(Finding("optimality.sum_error", f"claims {said['sum_error']!r} but is {model.sum_error!r}"))
    return wrong


def _epsilon(model: Model, room: float) -> float:
    """Return the relative accuracy of all coefficients; infinity where a zero may be none at the optimum."""
    silent, settled = model.h - model.error - model.reach > room, model.h + model.error + model.reach < -room
    if not (model.radial and model.n and ((model.share > 0) | silent).all()):
        return math.inf
    unsure = (model.share > 0) & ~((model.share == model.cap) & settled & (not model.collecting))
    return model.alpha / float(model.share[unsure].min()) if unsure.any() else 0.0


def _selection(model: Model, certificate: Any) -> list[Finding]:
    """Check that each node listed stays silent, by the slack stated for it."""
    said, reserve = certificate["selection"], model.share == 0
    node = said["node"]
    cost = _movement(model, said["admissions"], said["deletions"])
    if Decimal(said["movement"]) < cost or (cost and not model.radial):
        return [Finding("selection.movement", f"claims {said['movement']!r} but the horizon costs {float(cost)!r}")]
    if said["reserve"] != model.size[reserve].sum() or said["w_bound"] != certificate["optimality"]["w_bound"]:
        return [Finding("selection", "must state the number of reserve records and the w_bound of the optimality part")]
    if len(node) != len(said["slack"]) or not _rising(node, len(reserve)) or any(not reserve[j] for j in node):
        return [Finding("selection.node", "must name rising reserve nodes of the records, each with its slack")]
    upper = add(model.r, (model.error + model.reach, 0.0))
    level = add(model.smallest(upper, model.least + said["deletions"]), (said["movement"], 0.0))
    if said["level"] is None:
        return [Finding("selection.level", "is null, so no node can be listed")] if node else []
    if model.collecting or not said["level"] - level[0] - level[1] >= 0:
        return [
            Finding("selection.level", f"claims {said['level']!r} but is {'none' if model.collecting else level[0]!r}")
        ]
    room = -model.error - np.sqrt(model.diagonal) * model.w * SAFE
    slack = add(add(model.r, (room, 0.0)), negative(level))[0]
    wrong = [(j, s) for j, s in zip(node, said["slack"], strict=True) if not 0 < s <= slack[j]]
    return [Finding("selection.slack", f"claims {s!r} for node {j} but is {float(slack[j])!r}") for j, s in wrong[:1]]


def _movement(model: Model, admissions: int, deletions: int) -> Decimal:
    """Return what the horizon costs, to fifty digits."""
    with localcontext() as context:
        context.prec = 50
        ridge = Decimal(model.ridge)
        deletion = (2 + ridge + (2 * (1 + ridge) * (2 + ridge)).sqrt()) / 2
        return Decimal(model.cap) * (admissions * (2 + ridge) / 4 + deletions * deletion)


def _rising(node: list[int], count: int) -> bool:
    return all(a < b for a, b in pairwise([*node, count]))
