"""Makes partitions hashable, as keys of sets and dictionaries."""

from __future__ import annotations

import struct
from collections.abc import Hashable
from typing import Any, TypeAlias

from icebergds.spec.manifest import DataFile, DataFileRef

PartitionKey: TypeAlias = tuple[int, tuple[Hashable, ...]]


def partition_key(spec_id: int, partition: tuple[Any, ...]) -> PartitionKey:
    """Equal for equal partitions: floating values are equal if their bits are, NaNs always."""
    if any(isinstance(value, float) for value in partition):
        return spec_id, tuple(map(_hashable, partition))
    return spec_id, partition


def partition_of(file: DataFile | DataFileRef) -> PartitionKey:
    """The key of a file's partition."""
    return partition_key(file.spec_id, file.partition)


def _hashable(value: Any) -> Hashable:
    if not isinstance(value, float):
        return value  # type: ignore[no-any-return]
    return b"nan" if value != value else struct.pack("<d", value)
