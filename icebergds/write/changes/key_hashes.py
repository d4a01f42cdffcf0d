"""Hashes of the keys that tasks change, by which the driver sees that a key is in two tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from icebergds.errors import InvalidDataError
from icebergds.formats.deletes.key_hash import Hashes

_NO_HASHES: Hashes = np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class KeyHashes:
    """The distinct keys of one task, each as 64 bits, ascending and once."""

    hashes: Hashes

    @classmethod
    def of(cls, parts: Sequence[Hashes]) -> KeyHashes:
        """The hashes of all parts."""
        hashes = np.concatenate([_NO_HASHES, *parts])
        hashes.sort()
        return cls(hashes[np.append(True, hashes[1:] != hashes[:-1])] if hashes.size else hashes)


def refuse_shared_keys(parts: Sequence[KeyHashes], table: str) -> None:
    """Refuses rows of one key in two tasks, of which none knows which is the last.

    Keys that merely share a hash are refused as well: among ten million keys, once in 400,000
    writes.

    Args:
        parts: of each task.
        table: the table, for messages.

    Raises:
        InvalidDataError: two tasks have a key in common.
    """
    hashes = np.concatenate([_NO_HASHES, *(part.hashes for part in parts)])
    hashes.sort()
    shared = int(np.count_nonzero(hashes[1:] == hashes[:-1]))
    if shared:
        raise InvalidDataError(
            f"table {table}: {shared} keys have rows in more than one task, so that it is not "
            "known which row of a key is the last; use table.upsert(), which brings the rows of a "
            "key together, or repartition the rows by the key columns before they are written"
        )
