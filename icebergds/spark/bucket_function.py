"""Registers the partition transform bucket as a SQL function of a session."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.pandas.functions import arrow_udf

from icebergds.errors import InvalidDataError
from icebergds.formats.arrow.transforms import apply_transform
from icebergds.formats.arrow.types import is_binary, is_text, to_arrow
from icebergds.spark.registered import session_of
from icebergds.spec.transforms import BucketTransform
from icebergds.spec.types import (
    BINARY,
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    IcebergType,
)

BUCKET_FUNCTION = "icebergds_bucket"
"""The name of the function; its arguments are a number of buckets and a value."""

_REGISTERED = "bucket function"


def register_bucket_function(spark: SparkSession) -> None:
    """Registers the function with a session, once."""
    kept = session_of(spark).kept
    if _REGISTERED not in kept:
        # PySpark annotates arrow_udf for Arrow types only.
        function: Any = arrow_udf
        spark.udf.register(BUCKET_FUNCTION, function(buckets_of, "int"))
        kept[_REGISTERED] = True


def buckets_of(numbers: pa.Array, values: pa.Array) -> pa.Array:
    """The bucket of each value; null for null.

    Args:
        numbers: how many buckets there are, for each value.

    Raises:
        InvalidDataError: a number is not an integer of 32 bits above 0, or the values are of a type
            that bucket does not accept.
    """
    if not (pa.types.is_integer(numbers.type) and numbers.type.bit_width <= 32):
        raise InvalidDataError(
            f"bucket: expected a tinyint, smallint or int as the number of buckets, not a "
            f"{numbers.type}"
        )
    source_type = _source_type(values.type)
    plain = values.cast(to_arrow(source_type))
    found: Any = pa.nulls(len(values), pa.int32())
    for number in pc.unique(numbers).to_pylist():
        if number is None:
            continue
        if number < 1:
            raise InvalidDataError(f"bucket: expected a number of buckets above 0, not {number}")
        buckets = apply_transform(BucketTransform(number), source_type, plain)
        found = pc.if_else(pc.fill_null(pc.equal(numbers, number), False), buckets, found)
    return found


def _source_type(arrow_type: pa.DataType) -> IcebergType:
    """The Iceberg type as which a Spark value is hashed."""
    if pa.types.is_timestamp(arrow_type):
        return TIMESTAMP if arrow_type.tz is None else TIMESTAMPTZ
    if pa.types.is_decimal(arrow_type):
        return DecimalType(arrow_type.precision, arrow_type.scale)
    for holds, source_type in (
        (pa.types.is_date, DATE),
        (pa.types.is_int64, LONG),
        (pa.types.is_integer, INT),
        (is_text, STRING),
        (is_binary, BINARY),
    ):
        if holds(arrow_type):
            return source_type
    raise InvalidDataError(
        "bucket: expected a date, tinyint, smallint, int, bigint, decimal, timestamp, string or "
        f"binary, not a {arrow_type}"
    )
