"""Two measures of what a choice of hours keeps of the rare ones."""

import numpy as np
from numpy.typing import NDArray

from svmem.baselines.selection.scene import dist2
from svmem.errors import InvalidInput
from svmem.types import Ids, Keys

__all__ = ["answered_share", "kept_share"]

Flags = NDArray[np.bool_]


def kept_share(event: Flags, kept: Ids) -> float:
    """Return the share of event hours that are kept."""
    _check_events(event)
    return float(event[kept].sum() / event.sum())


def answered_share(keys: Keys, event: Flags, kept: Ids) -> float:
    """Return the share of event hours whose nearest kept hour is an event hour, the earlier hour first among equals."""
    _check_events(event)
    nearest = dist2(keys[event], keys[kept]).argmin(axis=1)
    return float(event[kept][nearest].mean())


def _check_events(event: Flags) -> None:
    if not event.any():
        raise InvalidInput("a share of event hours needs at least one event hour")
