"""A read-only hash table of 64-bit values, built and probed by whole arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from icebergds.formats.deletes.key_hash import NO_HASH

Values = npt.NDArray[np.uint64]
Payload = npt.NDArray[np.unsignedinteger]
Rows = npt.NDArray[np.intp]

# Marks a free slot. No value is greater, so it ends every search.
FREE = NO_HASH

_LOAD = 0.5
# What a value takes, without payload.
SLOT_BYTES = 8 / _LOAD

_LEAST_SLOTS = 16
# Behind the last home, for values that crowd there.
_SPARE_SLOTS = 64
_MOST_VALUES = 2**31
_CHUNK = 1 << 16
_HALF = np.uint64(32)


class HashTable:
    """Distinct values, each with a payload, found by open addressing.

    The home of a value is its upper 32 bits scaled to the number of slots. Values are laid down in
    ascending order, each in the first slot from its home on that the ones before left free: slots
    in use ascend, a search ends at the first slot that is not less, and no value is far from home
    if upper bits are evenly spread.

    Args:
        values: distinct, ascending, without `FREE`, at most 2^31.
        payload: a number to be found with each value; None where only membership counts.
    """

    __slots__ = ("_payload", "_scale", "_slots", "displacement")

    def __init__(self, values: Values, payload: Payload | None = None) -> None:
        if len(values) > _MOST_VALUES:
            raise MemoryError(f"{len(values)} keys are more than one table of deleted keys holds")
        self._scale = np.uint64(max(_LEAST_SLOTS, int(len(values) / _LOAD)))
        self._slots = np.full(int(self._scale) + _SPARE_SLOTS, FREE)
        self._payload = None if payload is None else np.zeros(len(self._slots), payload.dtype)
        self.displacement = 0
        free = 0
        for start in range(0, len(values), _CHUNK):
            chunk = slice(start, start + _CHUNK)
            places = self._places(values[chunk], free)
            free = int(places[-1]) + 1
            self._make_room(free)
            self._slots[places] = values[chunk]
            if payload is not None and self._payload is not None:
                self._payload[places] = payload[chunk]

    def find(self, values: Values) -> tuple[Rows, Payload | None]:
        """Indices of the values that are in the table, in no order, and their payloads."""
        slots = self._home(values)
        found = self._slots.take(slots)
        at = np.flatnonzero(found == values)
        rows, hits = [at], [slots[at]]
        searched = np.flatnonzero(found < values)
        slots, wanted = slots[searched], values[searched]
        while searched.size:
            slots += 1
            found = self._slots.take(slots)
            at = np.flatnonzero(found == wanted)
            rows.append(searched[at])
            hits.append(slots[at])
            further = np.flatnonzero(found < wanted)
            searched, slots, wanted = searched[further], slots[further], wanted[further]
        all_rows, all_hits = np.concatenate(rows), np.concatenate(hits)
        # A value that happens to be FREE was "found" where its search ended.
        real = values[all_rows] != FREE
        if not real.all():
            all_rows, all_hits = all_rows[real], all_hits[real]
        return all_rows, None if self._payload is None else self._payload[all_hits]

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return self._slots.nbytes + (0 if self._payload is None else self._payload.nbytes)

    def _home(self, values: Values) -> Rows:
        home = values >> _HALF
        home *= self._scale
        home >>= _HALF
        return home.view(np.intp)

    def _places(self, values: Values, free: int) -> Rows:
        """The slots of values, given the first one that those before them left free."""
        home = self._home(values)
        index = np.arange(len(values))
        places = home - index
        places[0] = max(places[0], free)
        np.maximum.accumulate(places, out=places)
        places += index
        self.displacement = max(self.displacement, int((places - home).max()))
        return places

    def _make_room(self, used: int) -> None:
        """Lengthens the table so that a free slot stays behind those in use."""
        missing = used + 1 - len(self._slots)
        if missing > 0:
            self._slots = np.concatenate((self._slots, np.full(missing, FREE)))
            if self._payload is not None:
                self._payload = np.concatenate(
                    (self._payload, np.zeros(missing, self._payload.dtype))
                )
