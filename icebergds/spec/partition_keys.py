"""Says which partitions are equal: keys for sets and dictionaries (spec: Scan Planning, note 3)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeAlias

from icebergds.spec.manifest import DataFile, DataFileRef

PartitionKey: TypeAlias = tuple[int, tuple[Hashable, ...]]
"""A spec's id and the key of a tuple of its partition values."""


def partition_of(file: DataFile | DataFileRef) -> PartitionKey:
    """The key of a file's partition."""
    return file.spec_id, values_key(file.partition)


def partition_key(spec_id: int, partition: tuple[Any, ...]) -> PartitionKey:
    """The key of a partition of a spec."""
    return spec_id, values_key(partition)


def values_key(partition: tuple[Any, ...]) -> tuple[Hashable, ...]:
    """The key of partition values of one spec, equal for equal partitions only.

    All NaNs are equal, and -0.0 is not 0.0: Python has it the other way round. Other values are
    equal if they are in Python.
    """
    if any(isinstance(value, float) for value in partition):
        return tuple(value.hex() if isinstance(value, float) else value for value in partition)
    return partition
