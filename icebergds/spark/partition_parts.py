"""Adds up the metadata table `partitions` of parts, each of them read by a task of Spark."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame, functions as f, types as spark_types

from icebergds.operations.metadata_tables.schemas import PART, PARTITION_KEY
from icebergds.spark.types import spark_schema
from icebergds.spec.schema import Schema

_PARTITION, _SPEC_ID = "partition", "spec_id"
_UPDATED_AT, _SNAPSHOT_ID = "last_updated_at", "last_updated_snapshot_id"
_NEWEST = "newest"


def added_up(parts: DataFrame, columns: Schema) -> DataFrame:
    """The rows of `partitions`.

    Args:
        parts: the columns of `partition_parts_schema`.
        columns: those that are returned; the struct `partition` may be narrowed.
    """
    # Of equally new ones the first, as where one process adds them up.
    of_newest = [f.col(_UPDATED_AT), (-f.col(PART.name)).alias("order"), f.col(_SNAPSHOT_ID)]
    totals = []
    for name in parts.columns:
        match name:
            case "spec_id":
                of_newest.append(f.col(name))
            case "partition":
                # By its key alone: as groups, Spark has 0.0 and -0.0 equal.
                totals.append(f.first(name).alias(name))
            case "last_updated_at" | "last_updated_snapshot_id" | PARTITION_KEY.name | PART.name:
                pass
            case _:
                totals.append(f.sum(name).alias(name))
    newest = f.max(f.struct(*of_newest)).alias(_NEWEST)
    rows = parts.groupBy(PARTITION_KEY.name).agg(newest, *totals)
    return rows.select(*_shown(spark_schema(columns)))


def _shown(columns: spark_types.StructType) -> Iterator[Column]:
    for field in columns.fields:
        match field.name, field.dataType:
            case "partition", spark_types.StructType(names=names):
                whole = f.col(_PARTITION)
                column = f.struct(*(whole.getField(name).alias(name) for name in names))
            case "last_updated_at" | "last_updated_snapshot_id", _:
                column = f.col(_NEWEST).getField(field.name)
            case "spec_id", _:
                column = _required(f.col(_NEWEST).getField(_SPEC_ID), field)
            case _:
                column = _required(f.col(field.name), field)
        yield column.alias(field.name, metadata=field.metadata or {})


def _required(column: Column, field: spark_types.StructField) -> Column:
    """What is never null, though Spark does not know it, in the type of the field."""
    return f.coalesce(column, f.lit(0)).cast(field.dataType)
