"""Checks a certificate against the records, sharing no code with the memory that wrote it. Needs this file and numpy.

    python checker.py RECORDS CERTIFICATE        0: borne out, 1: refused, 2: could not be read

RECORDS: .npz with keys (n, d) and values (n, v), or .csv whose columns key... and value... hold them; rows in any order.
Every number is recomputed, residuals in doubled float64 arithmetic (100 bits, kernel entries to 2^-72).
Formats: docs/digest.md. Bounds: docs/derivations/optimality.md and horizon.md.
"""

import csv
import hashlib
import json
import math
import struct
import sys
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

__all__ = ["Finding", "check", "main"]

ERROR = 2.0**-68  # above the error of every residual here, for mass 1 and kernel entries up to 1
SAFE = 1 + 1e-12  # covers the float64 roundings after the residuals; a certificate leaves room for it
FORM: dict[str, Any] = {
    **dict.fromkeys(("format", "kind", "status", "records_root", "state_digest", "self_digest"), str),
    **dict.fromkeys(("version", "n", "key_dim", "value_dim"), int),
    "problem": {"kernel": dict, "C": float, "ridge": float},
    "offset": float,
    "active": {"node": [int], "multiplicity": [int], "alpha": [float]},
    "optimality": {
        **dict.fromkeys(("gap", "w_bound", "offset_bound", "score_bound", "alpha_bound", "max_kkt", "sum_error"), float),
        "readout_epsilon": (float,),
    },
    "selection": (
        {
            **dict.fromkeys(("admissions", "deletions", "reserve"), int),
            **dict.fromkeys(("movement", "w_bound"), float),
            "level": (float,),
            "node": [int],
            "slack": [float],
            "status": str,
        },
    ),
    "removed": ({"count": int, "exact_relative_to": str, "erased": str},),
    "versions": dict,
}  # a tuple: or null; a list: of any length
Pair = tuple[Any, Any]  # the unevaluated sum of two float64 arrays


@dataclass(frozen=True)
class Finding:
    """A field of the certificate that the records do not bear out, and why."""

    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}"


def check(keys: Any, values: Any, certificate: Any) -> list[Finding]:
    """Return what is wrong; an empty list says that every statement holds for these records (n, d) and (n, v)."""
    if misfit := _misfit(certificate, FORM, "certificate"):
        return [Finding(misfit, "is missing, unknown or of the wrong type")]
    keys, values = (np.asarray(array, np.float64) + 0.0 for array in (keys, values))  # + 0.0 makes -0 to 0
    keys, values = (array[np.lexsort(keys.T[::-1])] for array in (keys, values))
    starts = np.flatnonzero(np.r_[True, (keys[1:] != keys[:-1]).any(axis=1)][: len(keys)])
    size = np.diff(np.r_[starts, len(keys)])
    found = _identity(keys, values, certificate) or _coefficients(size, certificate)
    if found:  # bounds for other records or coefficients would say nothing
        return found
    model = _Model(keys[starts], size, certificate)
    found = _commitment(keys, values, model, certificate) + _bounds(model, certificate["optimality"])
    return found + (_droppable(model, certificate) if certificate["selection"] else [])


def _misfit(data: Any, form: Any, name: str) -> str:
    """Return the name of the first field of `data` that is not of the form, or nothing."""
    if isinstance(form, tuple):
        return "" if data is None else _misfit(data, form[0], name)
    if isinstance(form, dict):
        if not isinstance(data, dict) or set(data) != set(form):
            odd = sorted(set(form) ^ set(data)) if isinstance(data, dict) else []
            return ".".join([name, *odd[:1]])
        return next(filter(None, (_misfit(data[key], part, f"{name}.{key}") for key, part in form.items())), "")
    if isinstance(form, list):
        fits = isinstance(data, list) and not any(_misfit(item, form[0], name) for item in data)
    elif form is float:
        fits = isinstance(data, int | float) and not isinstance(data, bool) and math.isfinite(data)
    else:
        fits = isinstance(data, form) and not isinstance(data, bool) and (form is not int or 0 <= data < 2**62)
    return "" if fits else name


def _identity(keys: Any, values: Any, certificate: Any) -> list[Finding]:
    """Compare the sizes with the records, and what the certificate says it is with what it is."""
    kernel, cap, ridge = (certificate["problem"][name] for name in ("kernel", "C", "ridge"))
    wide = kernel.get("name") in ("rbf", "laplacian") and isinstance(kernel.get("sigma"), int | float)
    known = set(kernel) == {"name", "sigma"} if wide else kernel in ({"name": "linear"}, {"name": "cosine"})
    if not (known and 1e-150 < kernel.get("sigma", 1) < 1e150 and 1e-9 <= cap <= 1 and 1e-14 <= ridge <= 1e6):
        return [Finding("problem", f"is none that can be checked: {certificate['problem']}")]
    expected = {
        "format": "svmem-certificate",
        "version": 1,
        "kind": "deletion" if certificate["removed"] else "selection" if certificate["selection"] else "optimality",
        "n": len(keys),
        "key_dim": keys.shape[1],
        "value_dim": values.shape[1],
        "status": "proven" if len(keys) >= _whole(cap)[0] else "collecting",
        "self_digest": _sha256(_json({key: value for key, value in certificate.items() if key != "self_digest"})).hex(),
    }
    said = certificate | {"status": certificate["status"].split(":")[0]}
    return [Finding(key, f"is {said[key]!r}, should be {right!r}") for key, right in expected.items() if said[key] != right]


def _coefficients(size: Any, certificate: Any) -> list[Finding]:
    """Check that the active coefficients lie on the capped simplex and speak of nodes that exist."""
    node, count, alpha = (certificate["active"][name] for name in ("node", "multiplicity", "alpha"))
    if not len(node) == len(count) == len(alpha) or node != sorted(set(node)) or (node and node[-1] >= len(size)):
        return [Finding("active", "must name rising nodes of the records, each with multiplicity and alpha")]
    if count != size[node].tolist():
        return [Finding("active.multiplicity", "differs from the number of equal keys in the records")]
    n, (least, total) = int(size.sum()), _whole(certificate["problem"]["C"])
    share = Fraction(1, max(n, 1))
    if n < least and (len(node) != len(size) or any(abs(a - share) > share * Fraction(1e-15) for a in map(Fraction, alpha))):
        return [Finding("active.alpha", f"must be 1/n for every record while there are fewer than {least}")]
    if n >= least and not all(0 < a <= certificate["problem"]["C"] for a in alpha):
        return [Finding("active.alpha", "must lie in (0, C]")]
    off = sum(Fraction(a) * m for a, m in zip(alpha, count, strict=True)) - (total if n >= least else min(n, 1))
    if abs(off) > 1e-12 or float(off) != certificate["optimality"]["sum_error"]:
        return [Finding("optimality.sum_error", f"the coefficients are off their sum by {float(off)!r}")]
    return []


class _Model:
    """Residuals and distances of the coefficients, once over nodes (distinct keys in canonical order).

    r and level are pairs; h = r - level, error, reach (bounds on |r - r*|) are (nodes,); w, gap, alpha as in the bounds.
    """

    def __init__(self, keys: Any, size: Any, certificate: Any) -> None:
        problem, active = certificate["problem"], certificate["active"]
        self.keys, self.size, self.offset, self.cap = keys, size, certificate["offset"], float(problem["C"])
        self.kernel, self.ridge = problem["kernel"], float(problem["ridge"])
        self.share, self.active = np.zeros(len(size)), np.array(active["node"], dtype=int)
        self.share[self.active] = active["alpha"]
        self.least, self.n = _whole(problem["C"])[0], int(size.sum())
        self.collecting = self.n < self.least
        self.radial = self.kernel["name"] in ("rbf", "laplacian")
        self.r, self.diagonal = self._residuals()
        self.level = self.smallest(self.r, self.n if self.collecting else self.least)
        self.h = _add(self.r, (-self.level[0], -self.level[1]))[0]
        largest = np.sqrt(self.diagonal * self.diagonal.max(initial=0))  # of |K_ij| in row i
        self.error = ERROR * (largest * (1 + self.share @ size) + self.ridge * self.share + self.diagonal)
        self.root = np.sqrt(self.diagonal + self.ridge)
        self.gap, self.w, self.alpha = self._distances(certificate["optimality"]["sum_error"])
        self.reach = self.root * self.w * SAFE

    def smallest(self, values: Pair, k: int) -> Pair:
        """Return the k-th smallest value over the records; infinity where there are fewer, 0 of none."""
        order = np.lexsort(values[::-1])
        place = int(np.searchsorted(np.cumsum(self.size[order]), k))
        if k == 0 or place == len(order):
            return (np.inf if k else 0.0), 0.0
        return values[0][order[place]], values[1][order[place]]

    def _residuals(self) -> tuple[Pair, Any]:
        """Return r = (K + ridge I) alpha - diag(K)/2, and diag(K) rounded up."""
        mass = _times((self.share[self.active], 0.0), (self.size[self.active].astype(float), 0.0))
        high, low = np.zeros(len(self.keys)), np.zeros(len(self.keys))
        diagonal = np.ones(len(self.keys)), np.zeros(len(self.keys))
        rows = max(1, (1 << 15) // max(len(self.active), 1))
        for start in range(0, len(self.keys), rows):
            part = self.keys[start : start + rows]
            entries = _kernel(part[:, None, :], self.keys[None, self.active, :], self.kernel)
            high[start : start + rows], low[start : start + rows] = _sum(_times(entries, mass))
            if self.kernel["name"] == "linear":
                diagonal[0][start : start + rows], diagonal[1][start : start + rows] = _kernel(part, part, self.kernel)
        own = _times((self.share, 0.0), (self.ridge, 0.0))
        r = _add(_add((high, low), own), (-diagonal[0] / 2, -diagonal[1] / 2))
        return r, diagonal[0] * SAFE if self.kernel["name"] == "linear" else diagonal[0]

    def _distances(self, sum_error: float) -> tuple[float, float, float]:
        """Return bounds on the gap, on |w - w*| and on |alpha - alpha*|."""
        if self.collecting:
            share = Fraction(1, max(self.n, 1))
            apart = np.array([abs(float(Fraction(a) - share)) for a in self.share.tolist()])
            return 0.0, float(self.size @ (apart * self.root)) * SAFE, math.sqrt(self.size @ apart**2) * SAFE
        above, below = np.maximum(self.h + self.error, 0), np.maximum(self.error - self.h, 0)
        gap = float(self.size @ (self.share * above + (self.cap - self.share) * below))
        worst = np.maximum(np.where(self.share > 0, above, 0), np.where(self.share < self.cap, below, 0))
        slip = abs(sum_error) * float(self.root.max())
        rest = abs(sum_error) * float(self.error.max())
        steep = math.sqrt(self.size @ worst**2) / math.sqrt(self.ridge) + slip
        w = SAFE * min((p + math.sqrt(p * p + 4 * q)) / 2 for p, q in ((slip, gap + rest), (steep, rest)))
        return (gap + rest + slip * w) * SAFE, w, w / math.sqrt(self.ridge) * SAFE


def _bounds(model: _Model, said: Any) -> list[Finding]:
    """Compare every bound with the one that the records support: it may be larger, never smaller."""
    error, reach = model.error.max(initial=0), model.reach.max(initial=0)
    off = float(abs(_add((model.offset, 0.0), (-model.level[0], -model.level[1]))[0])) + error + reach
    h = _add(model.r, (-model.offset, 0.0))[0]
    full = (model.share == model.cap) | model.collecting
    worst = np.maximum(np.where(model.share > 0, h + model.error, 0), np.where(full, 0, model.error - h))
    found = {
        "gap": model.gap,
        "w_bound": model.w,
        "offset_bound": off,
        "score_bound": 2 * (model.w + off),
        "alpha_bound": model.alpha,
        "max_kkt": float(worst.max(initial=0)),
    }
    if said["readout_epsilon"] is not None:
        found["readout_epsilon"] = _epsilon(model, error + reach)
    return [
        Finding(f"optimality.{name}", f"claims {said[name]!r}, the records support no less than {right!r}")
        for name, right in found.items()
        if not said[name] >= right
    ]


def _epsilon(model: _Model, room: float) -> float:
    """Return the relative accuracy of all coefficients; infinity where some zero may be none at the optimum."""
    silent, open_ = model.h - model.error - model.reach > room, model.share > 0
    if not model.radial or not model.n or not (silent | open_ | model.collecting).all():
        return math.inf
    open_ &= model.collecting | ~((model.share == model.cap) & (model.h + model.error + model.reach < -room))
    return model.alpha / float(model.share[open_].min()) if open_.any() else 0.0


def _droppable(model: _Model, certificate: Any) -> list[Finding]:
    """Compare the selection with what the records allow: each record listed must pass by its slack."""
    said, ridge = certificate["selection"], Decimal(model.ridge)
    with localcontext() as context:
        context.prec = 50
        deletion = (2 + ridge + (2 * (1 + ridge) * (2 + ridge)).sqrt()) / 2
        cost = Decimal(model.cap) * (said["admissions"] * (2 + ridge) / 4 + said["deletions"] * deletion)
    if Decimal(said["movement"]) < cost or (cost and not model.radial):
        return [Finding("selection.movement", f"claims {said['movement']!r}, the horizon costs {float(cost)!r}")]
    reserve = int(model.size[model.share == 0].sum())
    if said["reserve"] != reserve or said["w_bound"] != certificate["optimality"]["w_bound"]:
        return [Finding("selection", f"must state {reserve} reserve records and the w_bound of the optimality part")]
    node, bounds = said["node"], (model.error + model.reach, 0.0)
    level = _add(model.smallest(_add(model.r, bounds), model.least + said["deletions"]), (said["movement"], 0.0))
    if said["level"] is None or model.collecting or not said["level"] - level[0] - level[1] >= 0:
        silent = said["level"] is None and not node
        return [] if silent else [Finding("selection.level", f"claims {said['level']!r}, must be {float(level[0])!r}")]
    if len(node) != len(said["slack"]) or node != sorted(set(node)) or (node and node[-1] >= len(model.size)):
        return [Finding("selection.node", "must name rising nodes of the records, each with its slack")]
    lower = _add(_add(model.r, (-model.error - np.sqrt(model.diagonal) * model.w * SAFE, 0.0)), (-level[0], -level[1]))
    for j, slack in zip(node, said["slack"], strict=True):
        if model.share[j] > 0 or not 0 < slack <= lower[0][j]:
            return [Finding("selection.slack", f"node {j} does not stay silent by {slack!r}, but by {float(lower[0][j])!r}")]
    return []


def _commitment(keys: Any, values: Any, model: _Model, certificate: Any) -> list[Finding]:
    """Recompute both digests from the records and the coefficients."""
    wide = zip(keys.astype("<f8"), values.astype("<f8"), strict=True)
    root = _trie(sorted(_sha256(b"svmem leaf 1", key.tobytes(), value.tobytes()) for key, value in wide), 0)
    problem = certificate["problem"]
    kernel = {name: float(x).hex() if name == "sigma" else x for name, x in problem["kernel"].items()}
    numbers = {"C": float(problem["C"]).hex(), "ridge": float(problem["ridge"]).hex(), "kernel": kernel}
    parts = [
        model.keys[j].astype("<f8").tobytes() + struct.pack("<qd", int(model.size[j]), model.share[j])
        for j in model.active
    ]
    sizes = struct.pack("<qqq", model.n, keys.shape[1], values.shape[1])
    active, offset = _sha256(b"svmem active 1", *parts), struct.pack("<d", model.offset)
    state = _sha256(b"svmem state 1", _sha256(_json(numbers)), sizes, root, active, offset)
    right = {"records_root": root.hex(), "state_digest": state.hex()}
    wrong = [name for name in right if certificate[name] != right[name]]
    return [Finding(name, f"is {certificate[name]!r}, the records give {right[name]!r}") for name in wrong]


def _trie(leaves: list[bytes], depth: int) -> bytes:
    """Return the root of the Merkle trie over sorted leaves, equal ones included."""
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


def _whole(cap: float) -> tuple[int, Fraction]:
    """Return the fewest keys that carry everything, and what everything is: 1, or k C where C is the float of 1/k."""
    k, exact = round(1 / cap), Fraction(cap)
    return (k, k * exact) if abs(k * exact - 1) <= Fraction(4, 2**53) else (math.ceil(1 / exact), Fraction(1))


# Doubled arithmetic [Dekker1971]: about 2^-100 of the operands, on numbers whose squares neither overflow nor vanish.


def _two_sum(a: Any, b: Any) -> Pair:
    s = a + b
    v = s - a
    return s, (a - (s - v)) + (b - v)


def _two_product(a: Any, b: Any) -> Pair:
    p, (ah, al), (bh, bl) = a * b, *((h := c - (c - x), x - h) for x, c in ((a, 134217729.0 * a), (b, 134217729.0 * b)))
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def _add(x: Pair, y: Pair) -> Pair:
    s, e = _two_sum(x[0], y[0])
    return _two_sum(s, e + (x[1] + y[1]))


def _times(x: Pair, y: Pair) -> Pair:
    p, e = _two_product(x[0], y[0])
    return _two_sum(p, e + (x[0] * y[1] + x[1] * y[0]))


def _over(x: Pair, y: Pair) -> Pair:
    q = x[0] / y[0]
    p = _times((q, 0.0), y)
    return _two_sum(q, _add(x, (-p[0], -p[1]))[0] / y[0])


def _sum(terms: Pair) -> Pair:
    """Return the sum over the last axis, by halves."""
    high, low = terms
    while high.shape[1] > 1:
        half = high.shape[1] // 2
        odd = high[:, 2 * half :], low[:, 2 * half :]
        more = _add((high[:, :half], low[:, :half]), (high[:, half : 2 * half], low[:, half : 2 * half]))
        high, low = (np.concatenate(pair, axis=1) for pair in zip(more, odd, strict=True))
    return (high[:, 0], low[:, 0]) if high.shape[1] else (0.0, 0.0)
