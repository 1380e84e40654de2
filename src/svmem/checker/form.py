"""The form of a certificate document, version 1."""

import math
from typing import Any

__all__ = ["misfit"]

_NUMBERS = ("gap", "w_bound", "offset_bound", "score_bound", "alpha_bound", "max_kkt", "sum_error")
_FORM: dict[str, Any] = {  # a tuple: or null; a list: of any length
    **dict.fromkeys(("format", "kind", "status", "records_root", "state_digest", "self_digest"), str),
    **dict.fromkeys(("version", "n", "key_dim", "value_dim"), int),
    "problem": {"kernel": dict, "C": float, "ridge": float},
    "offset": float,
    "active": {"node": [int], "multiplicity": [int], "alpha": [float]},
    "optimality": {**dict.fromkeys(_NUMBERS, float), "readout_epsilon": (float,)},
    "selection": (
        {
            **dict.fromkeys(("admissions", "deletions", "reserve"), int),
            **dict.fromkeys(("movement", "w_bound"), float),
            **{"level": (float,), "node": [int], "slack": [float], "status": str},
        },
    ),
    "removed": ({"count": int, "exact_relative_to": str, "erased": str},),
    "versions": dict,
}
_LARGEST = 2**53


def misfit(data: Any, form: Any = _FORM, name: str = "certificate") -> str:
    """Return the name of the first field that is missing, unknown or of the wrong type; nothing if all is right."""
    if isinstance(form, tuple):
        return "" if data is None else misfit(data, form[0], name)
    if isinstance(form, dict):
        if not isinstance(data, dict):
            return name
        odd = sorted(set(form) ^ set(data))
        parts = (misfit(data[key], part, f"{name}.{key}") for key, part in form.items() if key in data)
        return f"{name}.{odd[0]}" if odd else next(filter(None, parts), "")
    if isinstance(form, list):
        return name if not isinstance(data, list) or any(misfit(item, form[0], name) for item in data) else ""
    return "" if _is(data, form) else name


def _is(data: Any, form: type) -> bool:
    if isinstance(data, bool):
        return False
    if form is float:
        return isinstance(data, int | float) and math.isfinite(data)
    return isinstance(data, form) and (form is not int or 0 <= data <= _LARGEST)
