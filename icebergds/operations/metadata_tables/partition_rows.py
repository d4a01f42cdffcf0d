"""Makes the rows of `partitions`: what the live files of each partition add up to."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from icebergds.formats.manifests.columns import EntryColumns, Int64s
from icebergds.operations.metadata_tables.metadata_rows import Row
from icebergds.operations.metadata_tables.partition_groups import partition_groups
from icebergds.spec.manifest import FileContent
from icebergds.spec.partition_keys import values_key
from icebergds.spec.types import StructType

_SUMS = 7


@dataclass(slots=True)
class _Partition:
    """What files add up to.

    Attributes:
        known_fields: how many of the fields its partition spec has.
        sums: rows and files of data, their bytes, rows and files of position deletes, and of
            equality deletes.
        updated_ms: when the newest file was added; -1 if its snapshot has expired.
    """

    values: tuple[Any, ...]
    known_fields: int
    spec_id: int
    sums: Int64s
    updated_ms: int
    snapshot_id: int


class PartitionTotals:
    """Adds up files by their partitions.

    Args:
        partition_type: fields of all partition specs. Partitions of different specs are one if
            they have the same values in these, and equally many of them, as in Java Iceberg.
        committed_ms: when each snapshot was committed, by its id.
    """

    def __init__(self, partition_type: StructType, committed_ms: Mapping[int, int]) -> None:
        self._type, self._committed_ms = partition_type, committed_ms
        self._found: dict[tuple[Hashable, ...], _Partition] = {}

    def add(self, columns: EntryColumns) -> None:
        """Adds the files of a manifest."""
        if not len(columns):
            return
        found = partition_groups(columns, self._type, self._committed_ms)
        sums = _sums(columns, found.of_entries, len(found.values))
        for values, own, updated_ms, snapshot_id in zip(
            found.values, sums, found.updated_ms, found.snapshot_ids, strict=True
        ):
            spec = found.known_fields, columns.spec_id
            self._put(_Partition(values, *spec, own, updated_ms, snapshot_id))

    def rows(self) -> list[Row]:
        """The rows, in the order of `metadata_table_schema`."""
        return [self._row(part) for part in self._found.values()]

    def parts(self, part: int) -> list[Row]:
        """The rows of one of several parts, in the order of `partition_parts_schema`."""
        # Texts of keys are the same in all processes.
        return [(*self._row(found), repr(key).encode(), part) for key, found in self._found.items()]

    def _put(self, part: _Partition) -> None:
        known = self._found.setdefault((part.known_fields, *values_key(part.values)), part)
        if known is part:
            return
        known.sums = known.sums + part.sums
        if part.updated_ms > known.updated_ms:
            known.spec_id, known.updated_ms = part.spec_id, part.updated_ms
            known.snapshot_id = part.snapshot_id

    def _row(self, part: _Partition) -> Row:
        is_known = part.updated_ms >= 0
        return (
            *((part.values, part.spec_id) if self._type.fields else ()),
            *part.sums.tolist(),
            part.updated_ms * 1000 if is_known else None,
            part.snapshot_id if is_known else None,
        )


def _sums(columns: EntryColumns, groups: Int64s, count: int) -> npt.NDArray[np.int64]:
    sums = np.zeros((count, _SUMS), np.int64)
    for content, at in (
        (FileContent.DATA, 0),
        (FileContent.POSITION_DELETES, 3),
        (FileContent.EQUALITY_DELETES, 5),
    ):
        is_of_content = columns.content == content.value
        np.add.at(sums[:, at], groups[is_of_content], columns.record_count[is_of_content])
        np.add.at(sums[:, at + 1], groups[is_of_content], 1)
    is_data = columns.content == FileContent.DATA.value
    np.add.at(sums[:, 2], groups[is_data], columns.file_size_in_bytes[is_data])
    return sums
