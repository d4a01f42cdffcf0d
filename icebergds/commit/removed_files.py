"""Keeps the files that a commit removes from a manifest, without an object for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from icebergds.commit.selection import Mask
from icebergds.formats.manifests.columns import EntryColumns
from icebergds.formats.manifests.packed_entries import PackedEntries, PathIndex
from icebergds.spec.manifest import DataFile

_AT_A_TIME = 1024


class RemovedFiles(Protocol):
    """The files as the manifest describes them, without metrics; iterating creates objects."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[DataFile]: ...

    @property
    def paths(self) -> pa.Array:
        """The paths of the files."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class RemovedColumns:
    """Removed files as columns of their manifest."""

    columns: EntryColumns

    @classmethod
    def of(cls, columns: EntryColumns, is_removed: Mask) -> RemovedColumns:
        """The files of the entries for which a mask is true."""
        # Copied, so that all that was decoded with them can be freed.
        return cls(replace(columns, stats={}, all_stats={}).take(np.flatnonzero(is_removed)))

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[DataFile]:
        for start in range(0, len(self), _AT_A_TIME):
            some = np.arange(start, min(start + _AT_A_TIME, len(self)))
            for entry in self.columns.take(some).entries():
                yield entry.data_file

    @property
    def paths(self) -> pa.Array:
        return self.columns.file_path


@dataclass(frozen=True, slots=True, eq=False)
class RemovedEntries:
    """Removed files as packed entries of many manifests."""

    entries: PackedEntries

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[DataFile]:
        return (entry.data_file for entry in self.entries)

    @property
    def paths(self) -> pa.Array:
        return self.entries.paths


def index_of(removed: Sequence[RemovedFiles]) -> PathIndex:
    """Finds removed files by their paths."""
    packed = [part.entries for part in removed if isinstance(part, RemovedEntries)]
    if len(packed) == len(removed):
        return PackedEntries.concat(packed).index()
    return PathIndex.of([part.paths.cast(pa.string()) for part in removed])
