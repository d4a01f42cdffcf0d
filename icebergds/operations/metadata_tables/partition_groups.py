"""Groups the entries of a manifest by their partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from icebergds.formats.manifests.columns import EntryColumns, Int64s
from icebergds.formats.manifests.partitions import partition_tuples
from icebergds.spec.types import StructType


@dataclass(frozen=True, slots=True)
class PartitionGroups:
    """The partitions that entries belong to.

    Attributes:
        of_entries: for each entry, the number of its partition.
        values: for each partition, its values in the fields of a type of several specs; None in
            those that its own spec lacks.
        known_fields: how many of these fields the spec of the entries has.
        updated_ms: for each partition, when its newest entry was added; -1 if all snapshots that
            added one have expired.
        snapshot_ids: for each partition, the snapshot that added its newest entry.
    """

    of_entries: Int64s
    values: list[tuple[Any, ...]]
    known_fields: int
    updated_ms: list[int]
    snapshot_ids: list[int]


def partition_groups(
    columns: EntryColumns, partition_type: StructType, committed_ms: Mapping[int, int]
) -> PartitionGroups:
    """Groups the entries of a manifest, which has at least one.

    Args:
        partition_type: fields of several partition specs.
        committed_ms: when each existing snapshot was committed, by its id.
    """
    at = {field.field_id: i for i, field in enumerate(columns.partition_type.fields)}
    places = [at.get(field.field_id) for field in partition_type.fields]
    groups, firsts = _grouped(columns, [place for place in places if place is not None])
    added_ms = _times(columns.snapshot_id, committed_ms)
    newest = _newest(added_ms, groups, len(firsts))
    first = columns.take(firsts)
    tuples = partition_tuples(first.partition_type, first.partition, len(first))
    return PartitionGroups(
        groups,
        [tuple(None if i is None else values[i] for i in places) for values in tuples],
        sum(place is not None for place in places),
        added_ms[newest].tolist(),
        columns.snapshot_id[newest].tolist(),
    )


def _grouped(columns: EntryColumns, places: Sequence[int]) -> tuple[Int64s, Int64s]:
    """The number of each entry's partition, and the first entry of each."""
    groups = np.zeros(len(columns), np.int64)
    for values in (columns.partition[place] for place in places):
        encoded = values.dictionary_encode(null_encoding="encode")
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        _, groups = np.unique(groups * len(encoded.dictionary) + codes, return_inverse=True)
    _, firsts, groups = np.unique(groups, return_index=True, return_inverse=True)
    return groups, firsts


def _times(snapshot_ids: Int64s, committed_ms: Mapping[int, int]) -> Int64s:
    """When snapshots were committed, in milliseconds; -1 for those that have expired."""
    ids, inverse = np.unique(snapshot_ids, return_inverse=True)
    known = [committed_ms.get(snapshot_id, -1) for snapshot_id in ids.tolist()]
    times: Int64s = np.array(known, np.int64)[inverse]
    return times


def _newest(added_ms: Int64s, groups: Int64s, count: int) -> Int64s:
    """For each group, the newest of its entries."""
    order = np.lexsort((added_ms, groups))
    last: Int64s = order[np.searchsorted(groups[order], np.arange(count), side="right") - 1]
    return last
