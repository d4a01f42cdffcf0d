"""Converts the result of a view's query to the names and types of the view."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, types as spark
from pyspark.sql.functions import col
from pyspark.sql.types import StructField, StructType

from icebergds.errors import InvalidStatementError
from icebergds.spark.types import all_nullable, spark_schema
from icebergds.spec.schema import Schema
from icebergds.statements.names.scope import CatalogName


def as_declared(frame: DataFrame, name: CatalogName, declared: Schema) -> DataFrame:
    """The result of a view's query with the view's columns, in order.

    Raises:
        InvalidStatementError: the query now has another number of columns, or a type that does not
            fit without loss.
    """
    return _as_fields(frame, str(name), spark_schema(declared).fields)


def as_created(frame: DataFrame, view: str, created: StructType) -> DataFrame:
    """The result of a temporary view's query with the columns it had at creation.

    They are matched by name, because the query may have gained columns.

    Raises:
        InvalidStatementError: the query now lacks one, or has a type that does not fit without
            loss.
    """
    names = [name.lower() for name in frame.columns]
    wanted = [name.lower() for name in created.names]
    if names != wanted:
        if lacking := next((name for name in wanted if names.count(name) != 1), None):
            raise InvalidStatementError(
                f"temporary view {view}: its query has {names.count(lacking)} columns {lacking} "
                "now, expected one; replace the view"
            )
        places = [f"c{at}" for at in range(len(names))]
        frame = frame.toDF(*places).select(*(places[names.index(name)] for name in wanted))
    return _as_fields(frame, view, created.fields)


def with_columns(
    frame: DataFrame, view: object, columns: Sequence[tuple[str, str | None]]
) -> DataFrame:
    """The result of a view's query with the names and comments that CREATE VIEW gives.

    Args:
        view: its name, for messages.

    Raises:
        InvalidStatementError: the number of names differs, or two names differ only in case.
    """
    found = [field.name for field in frame.schema.fields]
    names = [name for name, _ in columns] or found
    if len(names) != len(found):
        raise InvalidStatementError(
            f"view {view} has {len(names)} columns ({', '.join(names)}), but its query gives "
            f"{len(found)} ({', '.join(found)})"
        )
    lowered = [name.lower() for name in names]
    if twice := next((name for name in names if lowered.count(name.lower()) > 1), None):
        raise InvalidStatementError(
            f"view {view} has two columns {twice}; give its columns other names: CREATE VIEW name "
            "(first, second) AS ..."
        )
    if not columns:
        return frame
    # By position: the query may have duplicate names.
    places = [f"c{at}" for at in range(len(names))]
    return frame.toDF(*places).select(
        *(
            col(place).alias(name)
            if comment is None
            else col(place).alias(name, metadata={"comment": comment})
            for place, (name, comment) in zip(places, columns, strict=True)
        )
    )


def _as_fields(frame: DataFrame, name: str, wanted: Sequence[StructField]) -> DataFrame:
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
    # By position: the query may have duplicate names.
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
# Digits of each integer type, as a decimal.
_DIGITS: dict[type[spark.DataType], int] = {
    spark.ByteType: 3,
    spark.ShortType: 5,
    spark.IntegerType: 10,
    spark.LongType: 20,
}
_TIMES = (spark.TimestampType, spark.TimestampNTZType)
_NESTED = (spark.StructType, spark.ArrayType, spark.MapType)


def _fits(now: spark.DataType, then: spark.DataType) -> bool:
    """Whether Spark up-casts: without loss, or to text."""
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
