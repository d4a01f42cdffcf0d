"""Detects keys that more than one task changes, by the hashes of the tasks' keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from icebergds.errors import InvalidDataError
from icebergds.formats.deletes.key_hash import Hashes

_NO_HASHES: Hashes = np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class KeyHashes:
    """Sorted, distinct 64-bit hashes of one task's keys."""

    hashes: Hashes

    @classmethod
    def of(cls, parts: Sequence[Hashes]) -> KeyHashes:
        """The distinct hashes of all parts."""
        hashes = np.concatenate([_NO_HASHES, *parts])
        hashes.sort()
        return cls(hashes[np.append(True, hashes[1:] != hashes[:-1])] if hashes.size else hashes)


def refuse_shared_keys(parts: Sequence[KeyHashes], table: str) -> None:
    """Refuses rows with the same key in different tasks, because their order is not known.

    Different keys with the same hash are refused too; with ten million keys, this happens once in
    400,000 writes.

    Args:
        parts: the key hashes of each task.
        table: the table, for messages.

    Raises:
        InvalidDataError: two tasks have the same key.
    """
    hashes = np.concatenate([_NO_HASHES, *(part.hashes for part in parts)])
    hashes.sort()
    shared = int(np.count_nonzero(hashes[1:] == hashes[:-1]))
    if shared:
        raise InvalidDataError(
            f"table {table}: {shared} keys have rows in more than one task, so it is not known "
            "which row of a key is the last; use table.upsert(), which brings the rows of a key "
            "together, or repartition the rows by the key columns before writing"
        )
