"""Gives the result of a view's query the names and types that the view declares."""

from __future__ import annotations

from pyspark.sql import DataFrame, types as spark
from pyspark.sql.functions import col

from icebergds.errors import InvalidStatementError
from icebergds.spark.types import all_nullable, spark_schema
from icebergds.spec.schema import Schema
from icebergds.statements.names.scope import CatalogName


def as_declared(frame: DataFrame, name: CatalogName, declared: Schema) -> DataFrame:
    """The result of a view's query with the columns of the view, in their order.

    Raises:
        InvalidStatementError: the query has another number of columns now, or one of a type that
            does not fit without loss.
    """
    wanted = spark_schema(declared).fields
    found = frame.schema.fields
    if len(found) != len(wanted):
        raise InvalidStatementError(
            f"view {name} has {len(wanted)} columns, but its query gives {len(found)} now; "
            "replace the view"
        )
    for now, then in zip(found, wanted, strict=True):
        if not _fits(all_nullable(now.dataType), all_nullable(then.dataType)):
            raise InvalidStatementError(
                f"view {name}: column {then.name} is {then.dataType.simpleString()}, but its query "
                f"gives {now.dataType.simpleString()} now, which does not fit without loss; "
                "replace the view"
            )
    # By position: names may occur twice in the query.
    places = [f"c{at}" for at in range(len(wanted))]
    return frame.toDF(*places).select(
        *(
            col(place).cast(then.dataType).alias(then.name, metadata=then.metadata or {})
            for place, then in zip(places, wanted, strict=True)
        )
    )


_NUMBERS = (
    spark.ByteType,
    spark.ShortType,
    spark.IntegerType,
    spark.LongType,
    spark.FloatType,
    spark.DoubleType,
)
# Digits of whole numbers, as decimals.
_DIGITS: dict[type[spark.DataType], int] = {
    spark.ByteType: 3,
    spark.ShortType: 5,
    spark.IntegerType: 10,
    spark.LongType: 20,
}
_TIMES = (spark.TimestampType, spark.TimestampNTZType)
_NESTED = (spark.StructType, spark.ArrayType, spark.MapType)


def _fits(now: spark.DataType, then: spark.DataType) -> bool:
    """Whether Spark casts up: without loss, or to text."""
    if now == then or isinstance(now, spark.NullType):
        return True
    match now, then:
        case spark.ArrayType(), spark.ArrayType():
            return _fits(now.elementType, then.elementType)
        case spark.MapType(), spark.MapType():
            return _fits(now.keyType, then.keyType) and _fits(now.valueType, then.valueType)
        case spark.StructType(), spark.StructType():
            return len(now.fields) == len(then.fields) and all(
                _fits(a.dataType, b.dataType) for a, b in zip(now.fields, then.fields, strict=True)
            )
        case _, spark.StringType():
            return not isinstance(now, (*_NESTED, spark.VariantType))
        case spark.DecimalType(), spark.DecimalType():
            return (
                now.scale <= then.scale and now.precision - now.scale <= then.precision - then.scale
            )
        case spark.DateType(), _:
            return isinstance(then, _TIMES)
        case _, spark.DecimalType():
            digits = _DIGITS.get(type(now))
            return digits is not None and digits <= then.precision - then.scale
    if isinstance(now, _TIMES):
        return isinstance(then, _TIMES)
    kinds = type(now), type(then)
    return all(kind in _NUMBERS for kind in kinds) and _NUMBERS.index(type(now)) < _NUMBERS.index(
        type(then)
    )
