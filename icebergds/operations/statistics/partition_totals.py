"""Adds up files by partition for partition statistics (spec: Partition Statistics File)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from icebergds.formats.manifests.columns import EntryColumns, Int64s
from icebergds.operations.metadata_tables.partition_groups import partition_groups
from icebergds.spec.manifest import (
    FileContent,
    ManifestEntryStatus,
    PartitionKey,
    partition_key,
)
from icebergds.spec.types import StructType

_SUMS = 8


@dataclass(slots=True)
class PartitionStats:
    """The statistics of one partition.

    Attributes:
        sums: rows and files of data, their bytes, rows and files of position deletes, rows and
            files of equality deletes, and deletion vectors, whose rows are among those of position
            deletes.
        updated_ms: when a file was last added or removed; -1 if that snapshot has expired.
    """

    partition: tuple[Any, ...]
    spec_id: int
    sums: Int64s
    updated_ms: int = -1
    snapshot_id: int | None = None


class PartitionTotals:
    """Adds up files by their partitions and specs.

    Args:
        partition_type: fields of all partition specs.
        committed_ms: when each snapshot was committed, by its id.
        known: statistics that the files are added to.
    """

    def __init__(
        self,
        partition_type: StructType,
        committed_ms: Mapping[int, int],
        known: Iterable[PartitionStats] = (),
    ) -> None:
        self._type, self._committed_ms = partition_type, committed_ms
        self._found: dict[PartitionKey, PartitionStats] = {}
        for part in known:
            self._add(part)

    def add_all(self, columns: EntryColumns) -> None:
        """Adds all files that a manifest of the snapshot has."""
        self._add_entries(columns, columns.status != ManifestEntryStatus.DELETED.value)

    def add_changes(self, columns: EntryColumns, snapshot_id: int) -> None:
        """Adds the files that a snapshot added or deleted, from a manifest that it added."""
        is_change = columns.status != ManifestEntryStatus.EXISTING.value
        changed = columns.filter(is_change & (columns.snapshot_id == snapshot_id))
        is_added = changed.status == ManifestEntryStatus.ADDED.value
        self._add_entries(changed, np.where(is_added, 1, -1))

    def partitions(self) -> list[PartitionStats]:
        """The statistics, ascending by partition and then by spec, nulls first."""
        return sorted(
            self._found.values(),
            key=lambda part: (*map(_order, part.partition), (1, part.spec_id)),
        )

    def _add_entries(self, columns: EntryColumns, times: npt.NDArray[Any]) -> None:
        """Adds each entry the given number of times: 1, 0, or -1 for a removed file."""
        if not len(columns):
            return
        found = partition_groups(columns, self._type, self._committed_ms)
        sums = _sums(columns, found.of_entries, len(found.values), times.astype(np.int64))
        for values, own, updated_ms, snapshot_id in zip(
            found.values, sums, found.updated_ms, found.snapshot_ids, strict=True
        ):
            self._add(PartitionStats(values, columns.spec_id, own, updated_ms, snapshot_id))

    def _add(self, part: PartitionStats) -> None:
        known = self._found.setdefault(partition_key(part.spec_id, part.partition), part)
        if known is part:
            return
        known.sums = known.sums + part.sums
        if part.updated_ms > known.updated_ms:
            known.updated_ms, known.snapshot_id = part.updated_ms, part.snapshot_id


def _sums(columns: EntryColumns, groups: Int64s, count: int, times: Int64s) -> Int64s:
    sums = np.zeros((count, _SUMS), np.int64)
    is_vector = columns.is_vector

    def add(at: int, chosen: npt.NDArray[np.bool_], values: Int64s) -> None:
        np.add.at(sums[:, at], groups[chosen], (times * values)[chosen])

    is_data, is_position, is_equality = (
        columns.content == content.value
        for content in (
            FileContent.DATA,
            FileContent.POSITION_DELETES,
            FileContent.EQUALITY_DELETES,
        )
    )
    each = np.ones_like(times)
    add(0, is_data, columns.record_count)
    add(1, is_data, each)
    add(2, is_data, columns.file_size_in_bytes)
    add(3, is_position, columns.record_count)
    add(4, is_position & ~is_vector, each)
    add(5, is_equality, columns.record_count)
    add(6, is_equality, each)
    add(7, is_position & is_vector, each)
    return sums


def _order(value: Any) -> tuple[int, Hashable]:
    """Orders values of one partition field: null first, NaN last."""
    if value is None:
        return 0, 0
    return (2, 0) if value != value else (1, value)
