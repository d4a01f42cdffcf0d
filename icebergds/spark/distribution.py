"""Shuffles a DataFrame so that each task writes few partitions, in the table's order.

A Python data source cannot ask Spark for this, so it happens before the rows get to it.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import DataType, StructType

from icebergds.expr.names import quote_name
from icebergds.formats.arrow_transforms import apply_transform
from icebergds.formats.arrow_types import to_arrow
from icebergds.spark.types import spark_type
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.sort import NullOrder, SortDirection, SortField, SortOrder
from icebergds.spec.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
    result_type,
)
from icebergds.spec.types import (
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    ScalarType,
    is_scalar,
)
from icebergds.write.conversion import convert, storage

_SECONDS_PER_HOUR = 3600
_SECONDS_PER_DAY = 24 * _SECONDS_PER_HOUR
# Spark's Murmur3 begins with 42, and goes on with the hash of the column before. This int hashes to
# 0, with which Iceberg's begins (spec: Appendix B).
_HASHES_TO_ZERO = -1693959553
_MAX_INT = 2**31 - 1
_TIMES = (TIMESTAMP, TIMESTAMPTZ)


def distribute(
    df: DataFrame, schema: Schema, spec: PartitionSpec, sort_order: SortOrder, mode: str
) -> DataFrame:
    """The rows shuffled as a table wants them written.

    Args:
        df: rows whose columns are named as the table's.
        schema: the table's.
        mode: `none`; `hash`: rows of one partition go to one task; `range`: rows are ranged by the
            partition and the sort order, which splits partitions that are large.
    """
    if mode == "none":
        return df
    parts = partition_values(df, schema, spec)
    keys = _sort_keys(df, schema, sort_order)
    if mode == "range" and (parts or keys):
        ordered = [part.asc_nulls_first() for part in parts] + keys
        return df.repartitionByRange(*ordered)
    if mode == "hash" and parts:
        return df.repartition(*parts)
    return df


def sort_within_tasks(
    df: DataFrame, schema: Schema, spec: PartitionSpec, sort_order: SortOrder
) -> DataFrame:
    """The rows of each task sorted by partition, then by the table's sort order."""
    if not sort_order.is_sorted:
        return df
    ordered = [part.asc_nulls_first() for part in partition_values(df, schema, spec)]
    ordered += _sort_keys(df, schema, sort_order)
    return df.sortWithinPartitions(*ordered) if ordered else df


def partition_values(df: DataFrame, schema: Schema, spec: PartitionSpec) -> list[Column]:
    """What tells the partitions of the rows apart."""
    return [
        _value(schema, part.source_id, part.transform)
        for part in spec.fields
        if not isinstance(part.transform, VoidTransform) and _has(df, schema, part.source_id)
    ]


def _sort_keys(df: DataFrame, schema: Schema, sort_order: SortOrder) -> list[Column]:
    return [
        _sort_key(schema, order) for order in sort_order.fields if _has(df, schema, order.source_id)
    ]


def _has(df: DataFrame, schema: Schema, source_id: int) -> bool:
    """Whether rows have a column of the table; if not, all of them have the same value there."""
    names = schema.paths_by_id[source_id]
    found: DataType = df.schema
    for name in names:
        if not isinstance(found, StructType):
            return False
        types = {field.name.lower(): field.dataType for field in found.fields}
        if name.lower() not in types:
            return False
        found = types[name.lower()]
    return True


def _sort_key(schema: Schema, order: SortField) -> Column:
    value = _value(schema, order.source_id, order.transform)
    first = order.null_order is NullOrder.NULLS_FIRST
    if order.direction is SortDirection.ASC:
        return value.asc_nulls_first() if first else value.asc_nulls_last()
    return value.desc_nulls_first() if first else value.desc_nulls_last()


def _value(schema: Schema, source_id: int, transform: Transform) -> Column:
    """A column's value under a transform, or what is equal for the same rows and in order."""
    field = schema.find_field(source_id)
    assert field is not None, "the table's own specs and orders refer to its columns"
    source = field.field_type
    assert is_scalar(source), "transforms take scalars alone"
    column = f.col(quote_name(schema.paths_by_id[source_id]))
    match transform:
        case IdentityTransform():
            return column
        case YearTransform() if source in (DATE, TIMESTAMP):
            return f.year(column)
        case MonthTransform() if source in (DATE, TIMESTAMP):
            return f.year(column) * 12 + f.month(column)
        case DayTransform() if source == DATE:
            return column
        case DayTransform() if source == TIMESTAMP:
            return f.to_date(column)
        case DayTransform() if source == TIMESTAMPTZ:
            return f.floor(f.unix_seconds(column) / _SECONDS_PER_DAY)
        case HourTransform() if source == TIMESTAMPTZ:
            return f.floor(f.unix_seconds(column) / _SECONDS_PER_HOUR)
        case BucketTransform(num_buckets=num_buckets) if source in (INT, LONG, *_TIMES):
            # Times are hashed as their microseconds by both.
            value = column if source in _TIMES else column.cast("bigint")
            hashed = f.hash(f.lit(_HASHES_TO_ZERO), value).bitwiseAND(_MAX_INT)
            return f.when(column.isNotNull(), hashed % num_buckets)
        case TruncateTransform(width=width) if source in (INT, LONG):
            return f.floor(column / width)
        case TruncateTransform(width=width) if source == STRING:
            return f.substring(column, 1, width)
        case _:
            return _computed(transform, source)(column)


def _computed(transform: Transform, source: ScalarType) -> Callable[[Column], Column]:
    target = to_arrow(source)

    def values(array: pa.Array) -> pa.Array:
        column = convert(storage(array), source, target, "a partition's column")
        return apply_transform(transform, source, column)

    returned = spark_type(result_type(transform, source))
    udf: Callable[[Column], Column] = arrow_udf(values, returned)  # type: ignore[call-overload]
    return udf
