"""The records of a memory by slot, in id order, with holes where records left."""

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from svmem.core.inputs import as_finite
from svmem.core.problem import Problem
from svmem.errors import InvalidInput, NotFound
from svmem.types import Ids, Keys, Values

__all__ = ["LARGEST_ID", "LARGEST_WIDTH", "Arrivals", "Contents", "Records", "arrivals", "as_ids", "as_rows"]

_LEAST_ROOM = 64
LARGEST_ID, LARGEST_WIDTH = 2**62, 2**20
_NONE = -1  # in `ids`: a hole


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """Checked records on their way in. An owner for each, or None for each."""

    ids: list[int]
    keys: Keys
    values: Values
    owners: list[str | None]


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """All that makes a memory but what is computed from it, in id order. Every id ever given is below next_id."""

    problem: Problem
    ids: Ids
    keys: Keys
    values: Values
    owners: list[str | None]
    next_id: int
    evicted: bool


class Records:
    """Columns over slots; a slot is filled once, and overwritten with zeros when its record leaves.

    `append` and `drop` may be cut off anywhere and called again with the same arguments: the second call finishes them.
    """

    def __init__(self, key_dim: int, value_dim: int, room: int = _LEAST_ROOM) -> None:
        self.used = 0
        self.ids = np.full(room, _NONE, np.int64)
        self.keys = np.zeros((room, key_dim))
        self.values = np.zeros((room, value_dim))
        self.handles = np.zeros(room, np.int64)  # what the working set calls the record's key
        self.owners: list[str | None] = []
        self.slot_of: dict[int, int] = {}
        self.ids_of: dict[str, set[int]] = {}

    def __len__(self) -> int:
        return len(self.slot_of)

    def live(self) -> Ids:
        """Return the filled slots, which are in id order."""
        return np.flatnonzero(self.ids[: self.used] != _NONE)

    def slots(self, ids: list[int]) -> list[int]:
        """Return the slots of ids. Raises NotFound for an id that is not there, InvalidInput for one given twice."""
        found = [self.slot_of.get(i, _NONE) for i in ids]
        if _NONE in found:
            raise NotFound(f"no record has the id {ids[found.index(_NONE)]}; nothing was changed")
        if len(ids) > 1 and len(set(ids)) < len(ids):
            twice = next(i for i in ids if ids.count(i) > 1)
            raise InvalidInput(f"ids must be distinct, got {twice} more than once")
        return found

    def owned_by(self, owner: str | None) -> list[int]:
        """Return the ids of an owner, rising. Owners match exactly or not at all. Raises NotFound if there are none."""
        found = self.ids_of.get(_as_owner(owner))
        if not found:  # without the name: it is somebody's, and messages end up in logs
            raise NotFound("no record has this owner, letter for letter; nothing was changed")
        return sorted(found)

    def append(self, start: int, new: Arrivals, handles: Ids) -> None:
        """Fill the slots from `start`, which is where the used ones end."""
        stop = start + len(new.ids)
        self._make_room(stop)
        self.ids[start:stop], self.handles[start:stop] = new.ids, handles
        self.keys[start:stop], self.values[start:stop] = new.keys, new.values
        self.owners[start:] = new.owners
        self.slot_of.update(zip(new.ids, range(start, stop), strict=True))
        for i, owner in zip(new.ids, new.owners, strict=True):
            if owner is not None:
                self.ids_of.setdefault(owner, set()).add(i)
        self.used = stop

    def drop(self, ids: list[int], slots: list[int]) -> None:
        """Empty the slots of these ids."""
        where = slots[0] if len(slots) == 1 else slots  # an index is several times faster than a list of one
        self.ids[where] = _NONE
        self.keys[where] = 0.0
        self.values[where] = 0.0
        for i, slot in zip(ids, slots, strict=True):
            owner = self.owners[slot]
            if owner is not None:
                owned = self.ids_of.get(owner, set())
                owned.discard(i)
                if not owned:
                    self.ids_of.pop(owner, None)
                self.owners[slot] = None
            self.slot_of.pop(i, None)

    @property
    def sparse(self) -> bool:
        """Whether most slots are holes."""
        return self.used > 4 * len(self.slot_of) + _LEAST_ROOM

    def packed(self) -> "Records":
        """Return the same records without holes."""
        live = self.live()
        out = Records(self.keys.shape[1], self.values.shape[1], len(live) + _LEAST_ROOM)
        owners = [self.owners[slot] for slot in live.tolist()]
        out.append(0, Arrivals(self.ids[live].tolist(), self.keys[live], self.values[live], owners), self.handles[live])
        return out

    def _make_room(self, stop: int) -> None:
        self.ids = _grown(self.ids, stop)
        self.handles = _grown(self.handles, stop)
        self.keys = _grown(self.keys, stop)
        self.values = _grown(self.values, stop)


def _grown(column: np.ndarray, stop: int) -> np.ndarray:
    """Return the column with room for `stop` rows."""
    room = len(column)
    if stop <= room:
        return column
    more = np.zeros((max(stop, 2 * room) - room, *column.shape[1:]), column.dtype)
    return np.concatenate([column, more])


def arrivals(
    records: Records,
    next_id: int,
    keys: ArrayLike,
    values: ArrayLike,
    ids: Iterable[SupportsIndex] | None,
    owners: str | Iterable[str | None] | None,
) -> Arrivals:
    """Check what is to be added. Raises InvalidInput; -0 becomes 0, so that equal numbers are equal bits."""
    keys = as_rows(keys, "keys", records.keys.shape[1]) + 0.0
    values = as_rows(values, "values", records.values.shape[1]) + 0.0
    n = len(keys)
    if len(values) != n:
        raise InvalidInput(f"keys and values must hold one row a record, got {n} keys and {len(values)} values")
    given = list(range(next_id, next_id + n)) if ids is None else as_ids(ids)
    if len(given) != n:
        raise InvalidInput(f"ids must name each of {n} records, got {len(given)}")
    if ids is not None and n and not (next_id <= given[0] and all(map(operator.lt, given, given[1:]))):
        raise InvalidInput(
            f"ids must rise, from {next_id} or more: an id is never used again, and they are in order of arrival"
        )
    return Arrivals(given, keys, values, _as_owners(owners, n))


def as_rows(data: ArrayLike, name: str, width: int) -> Keys:
    """Return `data` as (rows, width) float64. Raises InvalidInput, with the remedy where a single row came."""
    array = as_finite(data, name)
    if array.ndim != 2 or array.shape[1] != width:
        remedy = f"; pass a single row as [{name}]" if array.ndim == 1 else ""
        raise InvalidInput(f"{name} must have shape (rows, {width}), got {array.shape}{remedy}")
    return array


def as_ids(ids: Iterable[SupportsIndex]) -> list[int]:
    """Return ids as a list of ints. Raises InvalidInput for anything that is no whole number in [0, 2^62)."""
    if isinstance(ids, np.ndarray):
        ids = ids.tolist()
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise InvalidInput(f"ids must be a list of ints, got {type(ids).__name__}")
    checked = []
    for i in ids:
        if type(i) is not int:
            if isinstance(i, bool | np.bool_) or not isinstance(i, int | np.integer):
                raise InvalidInput(f"ids must be ints, got {type(i).__name__}")
            i = int(i)
        if not 0 <= i < LARGEST_ID:
            raise InvalidInput(f"ids must lie in [0, 2^62), got {i}")
        checked.append(i)
    return checked


def _as_owners(owners: str | Iterable[str | None] | None, n: int) -> list[str | None]:
    if owners is None:
        return [None] * n
    if isinstance(owners, str):
        return [_as_owner(owners)] * n
    if not isinstance(owners, Iterable):
        raise InvalidInput(f"owners must be one string for all, or one for each record; got {type(owners).__name__}")
    listed = owners.tolist() if isinstance(owners, np.ndarray) else list(owners)
    if len(listed) != n:
        raise InvalidInput(f"owners must be one string for all, or one for each of {n} records; got {len(listed)}")
    return [None if owner is None else _as_owner(owner) for owner in listed]


def _as_owner(owner: str | None) -> str:
    """Return the owner as a plain str. Raises InvalidInput, without repeating what may be a name."""
    if not isinstance(owner, str) or not owner:
        came = "an empty one" if owner == "" else type(owner).__name__
        raise InvalidInput(f"an owner must be a string that is not empty, got {came}")
    return str(owner)
