"""Implements a read-only hash table of 64-bit values, built and probed with whole arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from icebergds.formats.deletes.key_hash import NO_HASH

Values = npt.NDArray[np.uint64]
Payload = npt.NDArray[np.unsignedinteger]
Rows = npt.NDArray[np.intp]

# Marks a free slot. It is the largest value, so it ends every search.
FREE = NO_HASH

_LOAD = 0.5
# Memory for one value, without payload.
SLOT_BYTES = 8 / _LOAD

_MIN_SLOTS = 16
# After the last home slot, for values that collide there.
_SPARE_SLOTS = 64
_MAX_VALUES = 2**31
_CHUNK = 1 << 16
_HALF = np.uint64(32)


class HashTable:
    """Distinct values, each with an optional payload, in a table with open addressing.

    The home slot of a value is its upper 32 bits scaled to the number of slots. Values are placed
    in ascending order, each in the first free slot from its home on. So used slots are ascending, a
    search ends at the first slot that is not less, and values stay near their home slots if their
    upper bits are evenly spread.

    Args:
        values: distinct, ascending, without `FREE`, at most 2^31.
        payload: a number for each value; None if only membership matters.

    Attributes:
        displacement: the largest distance of a value from its home slot.
    """

    __slots__ = ("_payload", "_scale", "_slots", "displacement")

    def __init__(self, values: Values, payload: Payload | None = None) -> None:
        if len(values) > _MAX_VALUES:
            raise MemoryError(
                f"{len(values)} deleted keys are too many; at most 2^31 are supported"
            )
        self._scale = np.uint64(max(_MIN_SLOTS, int(len(values) / _LOAD)))
        self._slots = np.full(int(self._scale) + _SPARE_SLOTS, FREE)
        self._payload = None if payload is None else np.zeros(len(self._slots), payload.dtype)
        self.displacement = 0
        free = 0
        for start in range(0, len(values), _CHUNK):
            chunk = slice(start, start + _CHUNK)
            slots = self._assign_slots(values[chunk], free)
            free = int(slots[-1]) + 1
            self._make_room(free)
            self._slots[slots] = values[chunk]
            if payload is not None and self._payload is not None:
                self._payload[slots] = payload[chunk]

    def find(self, values: Values) -> tuple[Rows, Payload | None]:
        """Indices of the values that are in the table, in any order, and their payloads."""
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
        # A searched value may equal FREE, which is not a match.
        real = values[all_rows] != FREE
        if not real.all():
            all_rows, all_hits = all_rows[real], all_hits[real]
        return all_rows, None if self._payload is None else self._payload[all_hits]

    @property
    def nbytes(self) -> int:
        """Memory used, in bytes."""
        return self._slots.nbytes + (0 if self._payload is None else self._payload.nbytes)

    def _home(self, values: Values) -> Rows:
        home = values >> _HALF
        home *= self._scale
        home >>= _HALF
        return home.view(np.intp)

    def _assign_slots(self, values: Values, free: int) -> Rows:
        """The slots of values, given the first slot after those of earlier values."""
        home = self._home(values)
        index = np.arange(len(values))
        slots = home - index
        slots[0] = max(slots[0], free)
        np.maximum.accumulate(slots, out=slots)
        slots += index
        self.displacement = max(self.displacement, int((slots - home).max()))
        return slots

    def _make_room(self, used: int) -> None:
        """Extends the table so that it ends with a free slot."""
        missing = used + 1 - len(self._slots)
        if missing > 0:
            self._slots = np.concatenate((self._slots, np.full(missing, FREE)))
            if self._payload is not None:
                self._payload = np.concatenate(
                    (self._payload, np.zeros(missing, self._payload.dtype))
                )
