"""Plans assignments such as `{"price": "price * 2"}`, by SQL's store assignment rules.

Columns that an inserted row leaves out get their defaults (spec: Default values). A number can be
assigned to a numeric column, a date or timestamp to either, and any plain value to a string column.
A value too large or too long for its column is an error when the row is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, functions as f, types as spark

from icebergds.errors import (
    InvalidDataError,
    InvalidFilterError,
    InvalidOptionError,
    UnsupportedFeatureError,
)
from icebergds.expr.names import quote_name, resolve
from icebergds.spark.errors import unlogged
from icebergds.spark.row_level.conditions import Value, as_value, first_line
from icebergds.spark.row_level.target import Target
from icebergds.spark.sql_constants import constant_text
from icebergds.spark.types import all_nullable, spark_srid, spark_type
from icebergds.spec.types import GeometryType, IcebergType, NestedField, StructType, is_scalar

_TIMES = (spark.DateType, spark.TimestampType, spark.TimestampNTZType)
_PLAIN = (spark.NumericType, spark.BooleanType, spark.StringType, *_TIMES)


def plan_assignments(
    target: Target,
    values: Mapping[str, Value],
    frame: DataFrame,
    statement: str,
    qualify: Callable[[tuple[str, ...]], str] = quote_name,
) -> dict[str, Column]:
    """The new values by table column name, cast to the columns' types.

    Args:
        values: by column name, dotted for struct fields.
        frame: the rows that the values are computed from.
        statement: for messages, such as `update`.
        qualify: returns the name in `frame` of a column of the table.

    Raises:
        InvalidOptionError: there are no values, or one is not a `Value`.
        InvalidDataError: a column is unknown or given twice, or a value does not fit its type.
    """
    if not isinstance(values, Mapping) or not values:
        raise InvalidOptionError(
            f'{statement}: expected values by column, such as {{"price": "price * 2"}}'
        )
    schema = target.schema
    planned: dict[str, Column] = {}
    whole: set[str] = set()
    seen: set[int] = set()
    for name, value in values.items():
        field = _field(target, name, statement)
        what = f"{statement}: {name}"
        if field.field_id in seen:
            raise InvalidDataError(f"{what} is set twice")
        seen.add(field.field_id)
        new = fitting(frame, as_value(value, what), field, f"{what} of table {target.state.name}")
        top, *inner = schema.paths_by_id[field.field_id]
        if top in whole or (not inner and top in planned):
            raise InvalidDataError(
                f"{what}: {top} is set both as a whole and by field; set it only once"
            )
        if not inner:
            whole.add(top)
            planned[top] = new
            continue
        struct = planned.get(top, f.col(qualify((top,))))
        around = schema.fields_by_id[schema.ids_by_name[quote_name((top,))]].field_type
        planned[top] = _with_field(struct, around, inner, new)
    return planned


def _with_field(struct: Column, around: IcebergType, path: Sequence[str], new: Column) -> Column:
    """A struct with a new value for one field; if it was null, its other fields are null."""
    if not path:
        return new
    assert isinstance(around, StructType), "paths lead through structs"
    return f.struct(
        *(
            (
                _with_field(struct.getField(part.name), part.field_type, path[1:], new)
                if part.name == path[0]
                else struct.getField(part.name)
            ).alias(part.name)
            for part in around.fields
        )
    )


def fitting(frame: DataFrame, value: Column, field: NestedField, what: str) -> Column:
    """Casts a value to the type of its column.

    Args:
        frame: the rows that the value is computed from.
        what: the column, for messages.

    Raises:
        InvalidDataError: its type does not fit, or it cannot be resolved.
    """
    wanted = assigned_type(field.field_type)
    try:
        # Selected together with the rows, so that aggregates are errors.
        with unlogged():
            found = frame.select("*", value.alias("value")).schema[-1].dataType
    except AnalysisException as error:
        raise InvalidDataError(f"{what}: {first_line(error)}") from None
    if _same(found, wanted):
        return value
    if isinstance(found, spark.BinaryType) and (srid := spark_srid(field.field_type)) is not None:
        # Columns can be given WKB, as in other writes.
        is_flat = isinstance(field.field_type, GeometryType)
        made = f.st_geomfromwkb(value) if is_flat else f.st_geogfromwkb(value)
        return f.st_setsrid(made, srid)
    if not _assignable(found, wanted, nested=False):
        raise InvalidDataError(
            f"{what} is of type {field.field_type}, but its value is of type "
            f"{found.simpleString()}; cast the value"
        )
    if isinstance(found, spark.BinaryType) and isinstance(wanted, spark.StringType):
        # Spark's cast accepts any bytes as text.
        return f.validate_utf8(value.cast(wanted))
    if isinstance(found, spark.NullType) or not isinstance(wanted, spark.NumericType):
        return value.cast(wanted)
    # Never write a wrapped number, whatever the session's ANSI setting.
    cast = value.try_cast(wanted)
    message = f.concat(
        f.lit(f"{what} is of type {field.field_type}, which does not hold the value "),
        value.cast("string"),
    )
    failed = f.raise_error(message).cast(wanted)
    return f.when(value.isNull() | cast.isNotNull(), cast).otherwise(failed)


def assigned_type(field_type: IcebergType) -> spark.DataType:
    """The type to cast values of a column to.

    Nulls are allowed at every level, because Spark refuses casts to a less nullable type, whatever
    the values. The task that writes the rows refuses nulls in required fields.
    """
    return all_nullable(spark_type(field_type))


def _field(target: Target, name: Any, statement: str) -> NestedField:
    if not isinstance(name, str):
        raise InvalidOptionError(
            f"{statement}: column {name!r} is a {type(name).__name__}; expected its name as text"
        )
    try:
        return resolve(name, target.schema, case_sensitive=False)
    except InvalidFilterError as error:
        raise InvalidDataError(f"{statement}: table {target.state.name}: {error}") from None


def _same(found: spark.DataType, wanted: spark.DataType) -> bool:
    return found.simpleString() == wanted.simpleString()


def _assignable(found: spark.DataType, wanted: spark.DataType, *, nested: bool) -> bool:
    if isinstance(found, spark.NullType) or _same(found, wanted):
        return True
    match found, wanted:
        case spark.ArrayType(), spark.ArrayType():
            return _assignable(found.elementType, wanted.elementType, nested=True)
        case spark.MapType(), spark.MapType():
            keys = _assignable(found.keyType, wanted.keyType, nested=True)
            return keys and _assignable(found.valueType, wanted.valueType, nested=True)
        case spark.StructType(), spark.StructType():
            names = [name.lower() for name in found.names]
            return names == [name.lower() for name in wanted.names] and all(
                _assignable(one.dataType, other.dataType, nested=True)
                for one, other in zip(found.fields, wanted.fields, strict=True)
            )
        case spark.BinaryType(), spark.StringType():
            # Inside nested values wrong bytes cannot be detected.
            return not nested
        case _, spark.StringType():
            return isinstance(found, _PLAIN)
        case spark.NumericType(), spark.NumericType():
            # Inside nested values an overflow cannot be detected.
            return not nested or _holds(wanted, found)
        case _:
            return isinstance(found, _TIMES) and isinstance(wanted, _TIMES)


def _holds(wanted: spark.DataType, found: spark.DataType) -> bool:
    """Whether a numeric type holds all values of another one."""
    integers = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType)
    match found, wanted:
        case spark.DecimalType(), spark.DecimalType():
            whole = wanted.precision - wanted.scale >= found.precision - found.scale
            return whole and wanted.scale >= found.scale
        case spark.FloatType(), spark.DoubleType():
            return True
        case _:
            ranks = [integers.index(type(t)) for t in (found, wanted) if type(t) in integers]
            return len(ranks) == 2 and ranks[0] <= ranks[1]


def default_column(field: NestedField, what: str) -> Column:
    """A column's write default, or null.

    Raises:
        InvalidDataError: the column is required and has no default.
        UnsupportedFeatureError: a nested column has a default.
    """
    wanted = spark_type(field.field_type)
    if field.write_default is None:
        if field.required:
            raise InvalidDataError(
                f"{what}: column {field.name!r} is required and has no write default; give it a "
                "value"
            )
        return f.lit(None).cast(wanted)
    if not is_scalar(field.field_type):
        raise UnsupportedFeatureError(
            f"{what}: write defaults of nested columns are not supported, and column "
            f"{field.name!r} has one; give it a value"
        )
    return f.expr(constant_text(field.field_type, field.write_default))
