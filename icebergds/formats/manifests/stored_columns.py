"""Holds manifest entries as columns of stored values, and converts single records to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import pyarrow as pa

from icebergds.formats.avro.schema import AvroNode, AvroPrimitive, without_null
from icebergds.formats.manifests.layout import COLUMN_SIZES, SHAPES, Leaf, ManifestLayout, Shape

T = TypeVar("T")
U = TypeVar("U")

StatsIds = frozenset[int] | None
"""Columns whose statistics are read; None for all."""

_ARROW = {
    Shape.NUMBER: pa.int64(),
    Shape.SLICE: pa.binary(),
    Shape.NUMBERS: pa.list_(pa.int64()),
    Shape.COUNTS: pa.map_(pa.int64(), pa.int64()),
    Shape.BOUNDS: pa.map_(pa.int64(), pa.binary()),
}


@dataclass(slots=True)
class StoredColumns(Generic[T]):
    """The columns of manifest entries as stored.

    `fields` has them by field id; statistics are maps among them if those of all columns are read.
    Otherwise `stats` has one column per field id and requested column id. `partition` has them by
    the index in the file's partition struct. Fields that the file's schema lacks are missing.
    """

    fields: dict[int, T] = field(default_factory=dict)
    stats: dict[tuple[int, int], T] = field(default_factory=dict)
    partition: dict[int, T] = field(default_factory=dict)

    def map(self, change: Callable[[T], U]) -> StoredColumns[U]:
        """The same with every column changed."""
        return StoredColumns(
            {key: change(column) for key, column in self.fields.items()},
            {key: change(column) for key, column in self.stats.items()},
            {key: change(column) for key, column in self.partition.items()},
        )


def concat_columns(parts: Sequence[StoredColumns[pa.Array]]) -> StoredColumns[pa.Array]:
    """Concatenates the entries of several parts of one manifest."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    return StoredColumns(
        {key: pa.concat_arrays([p.fields[key] for p in parts]) for key in first.fields},
        {key: pa.concat_arrays([p.stats[key] for p in parts]) for key in first.stats},
        {key: pa.concat_arrays([p.partition[key] for p in parts]) for key in first.partition},
    )


def wanted_stats(leaf: Leaf, stats_ids: StatsIds) -> StatsIds:
    """The columns whose values are read from a statistics field; None for all."""
    return frozenset() if stats_ids is not None and leaf.field_id == COLUMN_SIZES else stats_ids


def is_statistics(leaf: Leaf) -> bool:
    """Whether a field is a map by column id."""
    return leaf.field_id is not None and SHAPES[leaf.field_id] in (Shape.COUNTS, Shape.BOUNDS)


def columns_of_records(
    records: Sequence[Any], layout: ManifestLayout, stats_ids: StatsIds
) -> StoredColumns[pa.Array]:
    """Converts entries that were decoded one by one, as dictionaries by Avro name, to columns."""
    parts: StoredColumns[pa.Array] = StoredColumns()
    for leaf in layout.leaves:
        if leaf.partition_index is not None:
            kind = _stored_type(leaf.node)
            parts.partition[leaf.partition_index] = pa.array(_values(records, leaf), kind)
        elif leaf.field_id is None:
            continue
        elif not is_statistics(leaf):
            kind = _ARROW[SHAPES[leaf.field_id]]
            parts.fields[leaf.field_id] = pa.array(_values(records, leaf), kind)
        else:
            _put_statistics(parts, leaf, _values(records, leaf), wanted_stats(leaf, stats_ids))
    return parts


def _put_statistics(
    parts: StoredColumns[pa.Array], leaf: Leaf, values: list[Any], wanted: StatsIds
) -> None:
    field_id = leaf.field_id or 0
    kind = _ARROW[SHAPES[field_id]]
    maps = [None if pairs is None else [tuple(pair.values()) for pair in pairs] for pairs in values]
    if wanted is None:
        parts.fields[field_id] = pa.array(maps, kind)
        return
    by_id = [dict(pairs or ()) for pairs in maps]
    for column_id in wanted:
        found = [values.get(column_id) for values in by_id]
        parts.stats[field_id, column_id] = pa.array(found, kind.item_type)


def _values(records: Sequence[Any], leaf: Leaf) -> list[Any]:
    values = list(records)
    for name in leaf.path:
        values = [None if value is None else value[name] for value in values]
    return values


def _stored_type(node: AvroNode) -> pa.DataType:
    """The Arrow type of a partition value as stored."""
    inner = without_null(node)
    match inner:
        case AvroPrimitive(kind="boolean"):
            return pa.bool_()
        case AvroPrimitive(kind="float"):
            return pa.float32()
        case AvroPrimitive(kind="double"):
            return pa.float64()
        case AvroPrimitive(kind="string" | "bytes" | "fixed"):
            return pa.binary()
        case _:
            return pa.int64()
