"""Defines how a rewrite arranges rows: by partition, then by a sort order or a curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.sort import NullOrder, SortDirection, SortField, SortOrder
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import ScalarType, is_scalar
from icebergds.write.rows.curve_keys import CurveName, curve_keys
from icebergds.write.rows.ranks import Ranks, sample_ranks
from icebergds.write.rows.sorting import KeyColumn, RowOrder, plan_order
from icebergds.write.rows.source_columns import TransformedColumn, transformed_column


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve through several columns, which sorts by all of them at once."""

    name: CurveName
    field_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Arranging:
    """What rows are arranged by, most significant first.

    Attributes:
        spec: partitions to keep together; without fields if all rows belong to one partition.
        order: the sort order of the rows in a partition.
        curve: sorts these rows along a curve instead; `order` is then unsorted.
    """

    spec: PartitionSpec
    order: SortOrder
    curve: Curve | None = None

    @property
    def fields(self) -> tuple[SortField, ...]:
        """The sort keys of partitions and the order."""
        clustered = (
            SortField(field.source_ids, field.transform, SortDirection.ASC, NullOrder.NULLS_FIRST)
            for field in self.spec.fields
        )
        return (*clustered, *self.order.fields)

    @property
    def field_ids(self) -> frozenset[int]:
        """The columns that keys are computed from."""
        ids = {field_id for field in self.fields for field_id in field.source_ids}
        return frozenset(ids.union(self.curve.field_ids if self.curve else ()))


@dataclass(frozen=True, slots=True)
class RowKeys:
    """Computes the keys of a schema's batches; created by `plan_keys`."""

    order: RowOrder | None
    curve: CurveKey | None

    def of(self, batch: pa.RecordBatch) -> list[KeyColumn]:
        """The columns to compare rows by, at least one."""
        columns = [] if self.order is None else self.order.columns(batch)
        if self.curve is not None:
            columns.append(KeyColumn(self.curve.of(batch)))
        # All rows are equal if no column of the order has values.
        return columns or [KeyColumn(pa.array(np.zeros(batch.num_rows, np.int64)))]


@dataclass(frozen=True, slots=True)
class CurveKey:
    """Computes the positions of rows along a curve."""

    name: CurveName
    columns: tuple[TransformedColumn, ...]
    types: tuple[ScalarType, ...]
    ranks: tuple[Ranks, ...]

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """The position of each row, as an integer or as bytes; never null."""
        values = [column.values(batch) for column in self.columns]
        return curve_keys(self.name, values, self.types, ranks=self.ranks)


def plan_keys(
    arranging: Arranging, schema: Schema, ranks: Sequence[Ranks], *, table: str
) -> RowKeys:
    """Plans the keys of a schema's batches.

    Args:
        schema: of the batches, with at least the columns that keys are computed from.
        ranks: the ranks of the curve's columns, from `column_ranks`.
        table: the table's name or location, for messages.

    Raises:
        UnsupportedFeatureError: a transform is unknown.
        InvalidMetadataError: the spec or the order does not fit the schema.
    """
    keys = SortOrder(arranging.order.order_id, arranging.fields)
    order = plan_order(keys, schema, table=table)
    if arranging.curve is None:
        return RowKeys(order, None)
    columns, types = _curve_columns(arranging.curve, schema)
    return RowKeys(order, CurveKey(arranging.curve.name, columns, types, tuple(ranks)))


def column_ranks(arranging: Arranging, schema: Schema, sample: pa.RecordBatch) -> list[Ranks]:
    """The ranks of the curve's columns in a sample of rows; none without a curve."""
    if arranging.curve is None:
        return []
    columns, types = _curve_columns(arranging.curve, schema)
    return [
        sample_ranks(column.values(sample), source)
        for column, source in zip(columns, types, strict=True)
    ]


def _curve_columns(
    curve: Curve, schema: Schema
) -> tuple[tuple[TransformedColumn, ...], tuple[ScalarType, ...]]:
    columns = tuple(
        transformed_column(schema, (field_id,), IdentityTransform(), f"the {curve.name} key")
        for field_id in curve.field_ids
    )
    return columns, tuple(c.source_type for c in columns if is_scalar(c.source_type))
