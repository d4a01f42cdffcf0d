"""Groups the entries of a manifest by their partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from icebergds.formats.manifests.columns import EntryColumns, Int64s
from icebergds.spec.types import StructType


def places_of(columns: EntryColumns, partition_type: StructType) -> list[int | None]:
    """Where the entries have each field of a type of several partition specs; None if nowhere."""
    at = {field.field_id: i for i, field in enumerate(columns.partition_type.fields)}
    return [at.get(field.field_id) for field in partition_type.fields]


def group_entries(columns: EntryColumns, places: Sequence[int | None]) -> tuple[Int64s, Int64s]:
    """The number of each entry's partition, and the first entry of each.

    Args:
        columns: at least one entry.
        places: as returned by `places_of`; entries with the same values there are of one partition.
    """
    groups = np.zeros(len(columns), np.int64)
    for values in (columns.partition[place] for place in places if place is not None):
        encoded = values.dictionary_encode(null_encoding="encode")
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        _, groups = np.unique(groups * len(encoded.dictionary) + codes, return_inverse=True)
    _, firsts, groups = np.unique(groups, return_index=True, return_inverse=True)
    return groups, firsts


def times_of(snapshot_ids: Int64s, committed_ms: Mapping[int, int]) -> Int64s:
    """When snapshots were committed, in milliseconds; -1 for those that have expired.

    Args:
        committed_ms: of the snapshots that are there.
    """
    ids, inverse = np.unique(snapshot_ids, return_inverse=True)
    known = [committed_ms.get(snapshot_id, -1) for snapshot_id in ids.tolist()]
    times: Int64s = np.array(known, np.int64)[inverse]
    return times


def newest_of_groups(added_ms: Int64s, groups: Int64s, count: int) -> tuple[Int64s, Int64s]:
    """For each group, the newest of its entries, and when that was added.

    Args:
        added_ms: when each entry was added, as `times_of` returns it.
    """
    order = np.lexsort((added_ms, groups))
    last = order[np.searchsorted(groups[order], np.arange(count), side="right") - 1]
    return last, added_ms[last]
