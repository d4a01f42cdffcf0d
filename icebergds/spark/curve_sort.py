"""Sorts DataFrames along z-order and Hilbert curves through several columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions as f
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import BinaryType, LongType

from icebergds.expr.names import quote_name
from icebergds.spark.distribution import as_stored, in_ranges, partition_keys, unused_name
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.types import ScalarType, is_scalar
from icebergds.write.rows.curve_keys import CurveName, curve_keys, key_type
from icebergds.write.rows.ranks import Ranks, sample_ranks

_SAMPLE = 100_000


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve through columns, which are sorted by all at once."""

    name: CurveName
    field_ids: tuple[int, ...]


def sampled_ranks(df: DataFrame, schema: Schema, curve: Curve, rows: int) -> list[Ranks]:
    """The ranks of the curve's columns.

    Args:
        df: rows with at least these columns; read once.
        rows: how many there are at most.
    """
    names = [f.col(quote_name(schema.paths_by_id[field_id])) for field_id in curve.field_ids]
    plain = df.select(*(name.alias(f"c{at}") for at, name in enumerate(names)))
    sample = plain.sample(fraction=min(1.0, _SAMPLE / max(rows, 1)), seed=0).toArrow()
    return [
        sample_ranks(as_stored(column.combine_chunks(), source), source)
        for column, source in zip(sample.columns, _types(schema, curve), strict=True)
    ]


def sorted_along(
    df: DataFrame,
    schema: Schema,
    spec: PartitionSpec,
    curve: Curve,
    ranks: Sequence[Ranks],
    count: int,
) -> DataFrame:
    """Sorts all rows by partition, then along a curve, into `count` tasks of about equal size."""
    keyed = partition_keys(df, schema, spec)
    name = unused_name(keyed.rows, "_icebergds_curve")
    columns = [f.col(quote_name(schema.paths_by_id[field_id])) for field_id in curve.field_ids]
    rows = keyed.rows.withColumn(name, _key(schema, curve, ranks)(*columns))
    keys = (*keyed.keys, f.col(name))
    return in_ranges(replace(keyed, rows=rows, keys=keys, added=(*keyed.added, name)), count)


def _key(schema: Schema, curve: Curve, ranks: Sequence[Ranks]) -> Callable[..., Column]:
    types = _types(schema, curve)

    def keys(*columns: pa.Array) -> pa.Array:
        stored = [as_stored(*pair) for pair in zip(columns, types, strict=True)]
        return curve_keys(curve.name, stored, types, ranks=ranks)

    is_long = key_type(curve.name, types, ranks=ranks) == pa.int64()
    returned = LongType() if is_long else BinaryType()
    udf: Callable[..., Column] = arrow_udf(keys, returned)  # type: ignore[call-overload]
    return udf


def _types(schema: Schema, curve: Curve) -> list[ScalarType]:
    fields = [schema.find_field(field_id) for field_id in curve.field_ids]
    return [field.field_type for field in fields if field and is_scalar(field.field_type)]
