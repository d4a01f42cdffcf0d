"""Defines what a task of a row-level change returns to the driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from icebergds.spec.manifest import DataFile, DataFileRef
from icebergds.write.changes.key_hashes import KeyHashes


@dataclass(frozen=True, slots=True)
class DeltaFiles:
    """The files of a row-level change.

    Attributes:
        files: data files.
        deletes: position delete files, deletion vectors and equality delete files.
        replaced: older position delete files and vectors whose deletes are all in `deletes` too.
        referenced: data files of earlier commits whose rows `deletes` delete by position.
        counts: numbers of changed rows by kind, such as `inserted` and `deleted`.
        keys: the distinct keys of the task's rows, if rows are changed by key.
    """

    files: tuple[DataFile, ...] = ()
    deletes: tuple[DataFile, ...] = ()
    replaced: tuple[DataFile, ...] = ()
    referenced: tuple[DataFileRef, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    keys: KeyHashes | None = None

    @property
    def all_files(self) -> tuple[DataFile, ...]:
        """All written files."""
        return self.files + self.deletes


def merge_deltas(parts: Iterable[DeltaFiles]) -> DeltaFiles:
    """Merges deltas: all files, the sums of counts, no keys."""
    parts = tuple(parts)
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update(part.counts)
    return DeltaFiles(
        files=tuple(file for part in parts for file in part.files),
        deletes=tuple(file for part in parts for file in part.deletes),
        replaced=tuple(file for part in parts for file in part.replaced),
        referenced=tuple(ref for part in parts for ref in part.referenced),
        counts=dict(counts),
    )
