"""Selects files by partition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from icebergds.commit.base import CommitBase
from icebergds.commit.selection import Mask
from icebergds.expr.bounds import is_floating
from icebergds.expr.metrics import manifest_might_match
from icebergds.expr.nodes import TRUE, BoundPredicate, Expr, Operation, and_, or_
from icebergds.formats.manifests.partitions import partition_tuples
from icebergds.formats.manifests.reader import EntryColumns
from icebergds.spec.manifest import (
    DataFile,
    DataFileRef,
    ManifestFile,
    PartitionKey,
    partition_key,
    partition_of,
)
from icebergds.spec.types import UNKNOWN, NestedField


@dataclass(frozen=True, slots=True)
class PartitionSelection:
    """Selects the files of some partitions, each with its own partition spec."""

    base: CommitBase
    keys: frozenset[PartitionKey]
    _filters: dict[int, Expr] = field(default_factory=dict)

    @property
    def stats_ids(self) -> frozenset[int]:
        return frozenset()

    def may_select(self, manifest: ManifestFile) -> bool:
        partition_filter = self._filters.get(manifest.partition_spec_id)
        if partition_filter is None:
            return False
        partition_type = self.base.metadata.partition_type(
            self.base.spec(manifest.partition_spec_id)
        )
        return manifest_might_match(partition_filter, partition_type, manifest.partitions)

    def select(self, columns: EntryColumns) -> Mask:
        mask = np.zeros(len(columns), np.bool_)
        indices = np.flatnonzero(self._candidates(columns))
        found = columns.take(indices)
        tuples = partition_tuples(found.partition_type, found.partition, len(found))
        keys = (partition_key(columns.spec_id, values) for values in tuples)
        mask[indices] = np.fromiter((key in self.keys for key in keys), np.bool_, len(indices))
        return mask

    def overlap(self, columns: EntryColumns) -> Mask:
        return self.select(columns)

    def _candidates(self, columns: EntryColumns) -> Mask:
        """The entries that match the filter on each partition field by itself."""
        partition_filter = self._filters.get(columns.spec_id)
        if partition_filter is None:
            return np.zeros(len(columns), np.bool_)
        return columns.in_partitions(partition_filter)


def partitions_of(base: CommitBase, files: Iterable[DataFile | DataFileRef]) -> PartitionSelection:
    """Selects the partitions that files are in.

    Raises:
        ValidationError: the table no longer has the partition spec of a file.
    """
    partitions = {partition_of(file): file.partition for file in files}
    by_spec: dict[int, list[tuple[Any, ...]]] = {}
    for (spec_id, _), partition in partitions.items():
        by_spec.setdefault(spec_id, []).append(partition)
    filters = {spec_id: _filter(base, spec_id, found) for spec_id, found in by_spec.items()}
    return PartitionSelection(base, frozenset(partitions), filters)


def _filter(base: CommitBase, spec_id: int, partitions: list[tuple[Any, ...]]) -> Expr:
    """A filter on partition values that all the partitions match, and few others."""
    fields = base.metadata.partition_type(base.spec(spec_id)).fields
    columns = zip(*partitions, strict=True)
    return and_(*(_any_of(part, set(values)) for part, values in zip(fields, columns, strict=True)))


def _any_of(part: NestedField, values: set[Any]) -> Expr:
    # Partition keys compare floats by their bits; filters do not.
    if part.field_type == UNKNOWN or is_floating(part.field_type):
        return TRUE
    known = tuple(value for value in values if value is not None)
    parts: list[Expr] = []
    if None in values:
        parts.append(BoundPredicate(Operation.IS_NULL, part.field_id, part.field_type))
    if known:
        parts.append(BoundPredicate(Operation.IN, part.field_id, part.field_type, known))
    return or_(*parts)
