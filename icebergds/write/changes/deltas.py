"""Defines what a task of a row-level change returns; finds keys that several tasks change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from icebergds.errors import InvalidDataError
from icebergds.formats.deletes.key_hash import Hashes, distinct_hashes
from icebergds.spec.manifest import DataFile, DataFileRef

NO_HASHES: Hashes = np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class KeyHashes:
    """Sorted, distinct 64-bit hashes of one task's keys.

    Attributes:
        seed: of the hashes; equal in all tasks of a change.
    """

    hashes: Hashes
    seed: int = 0

    @classmethod
    def of(cls, parts: Sequence[Hashes], seed: int = 0) -> KeyHashes:
        """The distinct hashes of all parts."""
        return cls(distinct_hashes(parts), seed)


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
    hashes = np.concatenate([NO_HASHES, *(part.hashes for part in parts)])
    hashes.sort()
    shared = int(np.count_nonzero(hashes[1:] == hashes[:-1]))
    if shared:
        raise InvalidDataError(
            f"table {table}: {shared} keys have rows in more than one task, so it is not known "
            "which row of a key is the last; use table.upsert(), which brings the rows of a key "
            "together, or repartition the rows by the key columns before writing"
        )


@dataclass(frozen=True, slots=True)
class DeltaFiles:
    """The files of a row-level change.

    Attributes:
        files: data files.
        deletes: position delete files, deletion vectors and equality delete files.
        replaced: older position delete files and vectors whose deletes are all in `deletes`, too.
        referenced: data files of earlier commits whose rows `deletes` delete by position.
        counts: numbers of changed rows by kind, such as `inserted` and `deleted`.
        keys: the distinct keys of the task's rows, if rows are changed by key.
        deleted_keys: the keys among them whose last change deletes them, if others have rows.
    """

    files: tuple[DataFile, ...] = ()
    deletes: tuple[DataFile, ...] = ()
    replaced: tuple[DataFile, ...] = ()
    referenced: tuple[DataFileRef, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    keys: KeyHashes | None = None
    deleted_keys: KeyHashes | None = None

    @property
    def all_files(self) -> tuple[DataFile, ...]:
        """All written files."""
        return self.files + self.deletes


def merge_deltas(parts: Iterable[DeltaFiles]) -> DeltaFiles:
    """Merges deltas: all files, the sums of counts, the deleted keys, no others."""
    parts = tuple(parts)
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update(part.counts)
    deleted = [part.deleted_keys for part in parts if part.deleted_keys is not None]
    return DeltaFiles(
        files=tuple(file for part in parts for file in part.files),
        deletes=tuple(file for part in parts for file in part.deletes),
        replaced=tuple(file for part in parts for file in part.replaced),
        referenced=tuple(ref for part in parts for ref in part.referenced),
        counts=dict(counts),
        deleted_keys=_merged(deleted) if deleted else None,
    )


def _merged(parts: Sequence[KeyHashes]) -> KeyHashes:
    return KeyHashes.of([part.hashes for part in parts], parts[0].seed)
