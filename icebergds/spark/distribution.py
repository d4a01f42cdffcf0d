"""Shuffles and sorts a DataFrame by a table's partition spec and sort order.

A Python data source cannot ask Spark for this, so it is done to the DataFrame before the write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions as f
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    IntegralType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from icebergds.expr.names import quote_name
from icebergds.formats.arrow.arrays import storage
from icebergds.formats.arrow.transforms import apply_transform
from icebergds.formats.arrow.types import to_arrow
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
    TypeId,
    is_scalar,
)
from icebergds.write.rows.conversion import convert

_MONTHS_PER_YEAR = 12
_HOURS_PER_DAY = 24
_SECONDS_PER_HOUR = 3600
_SECONDS_PER_DAY = _HOURS_PER_DAY * _SECONDS_PER_HOUR
_TIMES = (TIMESTAMP, TIMESTAMPTZ)
_SPARK_TIMES = (DateType, TimestampType, TimestampNTZType)
_ZONELESS = (DATE, TIMESTAMP)
_NUMBERS = (TypeId.INT, TypeId.LONG, TypeId.FLOAT, TypeId.DOUBLE, TypeId.DECIMAL)
_BYTE_TYPES = (TypeId.STRING, TypeId.BINARY, TypeId.FIXED)


def distribute(
    df: DataFrame, schema: Schema, spec: PartitionSpec, sort_order: SortOrder, mode: str
) -> DataFrame:
    """Shuffles rows by a distribution mode (`write.distribution-mode`).

    Args:
        df: rows whose columns have the names of the table's columns.
        schema: the table's schema.
        mode: `none`; `hash`, which sends all rows of a partition to one task; `range`, which range
            partitions rows by partition and sort order, so that large partitions are split.
    """
    if mode == "none":
        return df
    keyed = partition_keys(df, schema, spec)
    if mode == "range":
        keyed = _with_sort_keys(keyed, schema, sort_order)
        if keyed.keys:
            return keyed.without_keys(keyed.rows.repartitionByRange(*keyed.keys))
    elif keyed.keys:
        return keyed.without_keys(keyed.rows.repartition(*keyed.keys))
    return df


def sort_within_tasks(
    df: DataFrame, schema: Schema, spec: PartitionSpec, sort_order: SortOrder
) -> DataFrame:
    """Sorts the rows of each task by partition, then by the table's sort order."""
    if not sort_order.is_sorted:
        return df
    keyed = _with_sort_keys(partition_keys(df, schema, spec), schema, sort_order)
    return keyed.without_keys(keyed.rows.sortWithinPartitions(*keyed.keys)) if keyed.keys else df


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """Rows and the keys to shuffle or sort them by.

    Attributes:
        added: helper columns that only the keys need.
    """

    rows: DataFrame
    keys: tuple[Column, ...] = ()
    added: tuple[str, ...] = ()

    def without_keys(self, arranged: DataFrame) -> DataFrame:
        """Drops the helper columns, once rows are shuffled or sorted by the keys."""
        return arranged.drop(*self.added) if self.added else arranged


def partition_keys(df: DataFrame, schema: Schema, spec: PartitionSpec) -> KeyedRows:
    """The rows with the value of each partition field as a key, or a value that sorts the same."""
    keyed = KeyedRows(df)
    for part in spec.fields:
        if not isinstance(part.transform, VoidTransform):
            keyed = _with_key(keyed, schema, part.source_id, part.transform)
    return keyed


def are_equal_as_stored(df: DataFrame, schema: Schema, field_ids: Iterable[int]) -> bool:
    """Whether Spark, too, finds values equal that are equal once they are stored.

    Conversion on write may make values equal, such as two spellings of one UUID.

    Args:
        df: rows whose columns have the names of the table's columns.
        schema: the table's schema.
    """
    for field_id in field_ids:
        field = schema.find_field(field_id)
        assert field is not None, "the ids are those of columns"
        incoming = _type_in(df, schema.paths_by_id[field_id])
        if not is_scalar(field.field_type) or field.field_type.type_id is TypeId.UUID:
            return False
        if incoming is None or not _is_stored_unchanged(incoming, field.field_type):
            return False
    return True


def _with_sort_keys(keyed: KeyedRows, schema: Schema, sort_order: SortOrder) -> KeyedRows:
    for order in sort_order.fields:
        with_key = _with_key(keyed, schema, order.source_id, order.transform)
        if len(with_key.keys) > len(keyed.keys):
            keys = (*keyed.keys, _ordered(with_key.keys[-1], order))
            keyed = replace(with_key, keys=keys)
    return keyed


def _ordered(value: Column, order: SortField) -> Column:
    first = order.null_order is NullOrder.NULLS_FIRST
    if order.direction is SortDirection.ASC:
        return value.asc_nulls_first() if first else value.asc_nulls_last()
    return value.desc_nulls_first() if first else value.desc_nulls_last()


def _with_key(keyed: KeyedRows, schema: Schema, source_id: int, transform: Transform) -> KeyedRows:
    """Adds the transformed value of a column as a key, or a value that sorts the same."""
    field = schema.find_field(source_id)
    assert field is not None, "specs and sort orders of a table refer to its columns"
    source = field.field_type
    assert is_scalar(source), "transforms apply to scalars only"
    path = schema.paths_by_id[source_id]
    incoming = _type_in(keyed.rows, path)
    if incoming is None:
        # A column that is missing from the rows has the same value in all of them.
        return keyed
    column = f.col(quote_name(path))
    if _is_assigned(incoming, source):
        # Converts as the write will, but values that the write refuses become null here.
        incoming = spark_type(source)
        column = column.try_cast(incoming)
    if isinstance(transform, IdentityTransform):
        return replace(keyed, keys=(*keyed.keys, column))
    if not _is_stored_unchanged(incoming, source):
        return replace(keyed, keys=(*keyed.keys, _computed(transform, source)(column)))
    if isinstance(transform, BucketTransform) and source.type_id in _BYTE_TYPES:
        name = _unused_name(keyed.rows, "_icebergds_bucket")
        zero = "\0" if source == STRING else b"\0"
        rows = _add_text_buckets(keyed.rows, column, zero, transform.num_buckets, name)
        return KeyedRows(rows, (*keyed.keys, f.col(name)), (*keyed.added, name))
    return replace(keyed, keys=(*keyed.keys, _value(column, source, transform)))


def _type_in(df: DataFrame, path: tuple[str, ...]) -> DataType | None:
    """The type of a column of `df`; None if there is no such column."""
    found: DataType = df.schema
    for name in path:
        if not isinstance(found, StructType):
            return None
        types = {field.name.lower(): field.dataType for field in found.fields}
        if name.lower() not in types:
            return None
        found = types[name.lower()]
    return found


def _is_stored_unchanged(incoming: DataType, source: ScalarType) -> bool:
    """Whether the write stores the values unchanged, so that Spark's functions can transform them.

    If not, a Python UDF converts them first.
    """
    natural = spark_type(source)
    if isinstance(natural, IntegralType):
        return isinstance(incoming, IntegralType)
    if isinstance(natural, StringType):
        # In other collations, hash() hashes a collation key.
        return incoming == natural
    return isinstance(incoming, type(natural))


def _is_assigned(incoming: DataType, source: ScalarType) -> bool:
    """Whether the write converts values as Spark's cast does (`write.rows.store_assignment`)."""
    natural = spark_type(source)
    if source == STRING:
        return isinstance(incoming, (NumericType, BooleanType, BinaryType, *_SPARK_TIMES))
    if isinstance(natural, _SPARK_TIMES):
        return isinstance(incoming, _SPARK_TIMES) and incoming != natural
    both_integral = isinstance(natural, IntegralType) and isinstance(incoming, IntegralType)
    is_number = source.type_id in _NUMBERS and isinstance(incoming, NumericType)
    return is_number and incoming != natural and not both_integral


def _unused_name(df: DataFrame, name: str) -> str:
    """A name that no column name of `df` starts with."""
    taken = [column.lower() for column in df.columns]
    while any(column.startswith(name) for column in taken):
        name += "_"
    return name


def _as_stored(array: pa.Array, source: ScalarType) -> pa.Array:
    """A column as Spark passes it to Python, in the Arrow type of the column's type."""
    return convert(storage(array), source, to_arrow(source), "a partition's column")


def _value(column: Column, source: ScalarType, transform: Transform) -> Column:
    match transform:
        case YearTransform() if source in _ZONELESS:
            return f.year(column)
        case YearTransform() if source == TIMESTAMPTZ:
            return f.year(_date_in_utc(column))
        case MonthTransform() if source in _ZONELESS:
            return _months(column)
        case MonthTransform() if source == TIMESTAMPTZ:
            return _months(_date_in_utc(column))
        case DayTransform() if source == DATE:
            return column
        case DayTransform() if source == TIMESTAMP:
            return f.to_date(column)
        case DayTransform() if source == TIMESTAMPTZ:
            return f.floor(f.unix_seconds(column) / _SECONDS_PER_DAY)
        case HourTransform() if source == TIMESTAMP:
            days = f.unix_date(f.to_date(column)).cast("bigint")
            return days * _HOURS_PER_DAY + f.hour(column)
        case HourTransform() if source == TIMESTAMPTZ:
            return f.floor(f.unix_seconds(column) / _SECONDS_PER_HOUR)
        case BucketTransform(num_buckets=num_buckets) if source in (INT, LONG, DATE, *_TIMES):
            # Spark hashes timestamps as Iceberg does; Iceberg hashes ints and dates as longs.
            whole = f.unix_date(column) if source == DATE else column
            value = whole if source in _TIMES else whole.cast("bigint")
            hashed = f.hash(f.lit(_HASHES_TO_ZERO), value).bitwiseAND(_MAX_INT)
            return f.when(column.isNotNull(), hashed % num_buckets)
        case TruncateTransform(width=width) if source in (INT, LONG):
            return _floor_divided(column, width)
        case TruncateTransform(width=width) if source.type_id in (TypeId.STRING, TypeId.BINARY):
            return f.substring(column, 1, width)
        case _:
            return _computed(transform, source)(column)


def _floor_divided(column: Column, width: int) -> Column:
    """Floor division in integers: a double is not precise enough."""
    below = f.bitwise_not(f.call_function("div", f.bitwise_not(column), f.lit(width)))
    return f.when(column < 0, below).otherwise(f.call_function("div", column, f.lit(width)))


def _months(column: Column) -> Column:
    return f.year(column) * _MONTHS_PER_YEAR + f.month(column)


def _date_in_utc(column: Column) -> Column:
    """The UTC date of a timestamp; Spark's own functions use the session time zone."""
    days = f.floor(f.unix_seconds(column) / _SECONDS_PER_DAY)
    return f.date_from_unix_date(days.cast("int"))


def _computed(transform: Transform, source: ScalarType) -> Callable[[Column], Column]:

    def values(array: pa.Array) -> pa.Array:
        return apply_transform(transform, source, _as_stored(array, source))

    returned = spark_type(result_type(transform, source))
    udf: Callable[[Column], Column] = arrow_udf(values, returned)  # type: ignore[call-overload]
    return udf


# Spark's hash() seeds Murmur3 with 42, and seeds each further column with the hash of the column
# before. This int hashes to 0, the seed of Iceberg (spec: Appendix B).
_HASHES_TO_ZERO = -1693959553
_MAX_INT = 2**31 - 1
_WORD = 4
_SPAN = 2**32
_MIX_FACTOR_1 = 0x85EBCA6B
_MIX_FACTOR_2 = 0xC2B2AE35
_ROUND_FACTOR = 5
_ROUND_ADDEND = 0xE6546B64
_ROUND_ROTATION = 13


def _add_text_buckets(
    df: DataFrame, source: Column, zero: str | bytes, num_buckets: int, name: str
) -> DataFrame:
    """Adds a column with the bucket of each value of `source`.

    Spark and Iceberg both use Murmur3, but hash trailing bytes differently if the length of a value
    is not a multiple of four. So this pads the value with zeros and hashes it, then undoes the last
    steps of the hash and redoes them as Iceberg does.

    Args:
        source: a column of bytes, or of strings in the binary collation (UTF8_BINARY).
        zero: a zero byte or zero character, of the type of `source`.
        num_buckets: number of buckets.
        name: name of the added column, a bigint that is null if `source` is null. No column of
            `df` may have a name that starts with it.
    """
    length, padded = f"{name}_length", f"{name}_padded"
    size = f.col(length)
    filled = (size + (_WORD - 1)).bitwiseAND(-_WORD)
    zeros = f.substring(f.lit(zero * (_WORD - 1)), f.lit(1), (filled - size).cast("int"))
    words = f.concat(source, zeros)
    state = f.col(name)
    # One column per step: in a single expression, each step would be computed many times over.
    df = df.withColumn(length, f.octet_length(source).cast("bigint"))
    df = df.withColumn(padded, _unsigned(f.hash(f.lit(_HASHES_TO_ZERO), words)))
    df = df.withColumn(name, _multiply(_xor_shift(f.col(padded), 16), _inverse(_MIX_FACTOR_2)))
    df = df.withColumn(name, _multiply(_undo_xor_shift(state, 13), _inverse(_MIX_FACTOR_1)))
    mixed = _xor_shift(state, 16).bitwiseXOR(filled) + (_SPAN - _ROUND_ADDEND)
    df = df.withColumn(name, _multiply(mixed, _inverse(_ROUND_FACTOR)))
    df = df.withColumn(name, _rotate_right(state, _ROUND_ROTATION).bitwiseXOR(size))
    df = df.withColumn(name, _multiply(_xor_shift(state, 16), _MIX_FACTOR_1))
    df = df.withColumn(name, _multiply(_xor_shift(state, 13), _MIX_FACTOR_2))
    hashed = f.when(size == filled, f.col(padded)).otherwise(_xor_shift(state, 16))
    buckets = f.when(source.isNotNull(), hashed.bitwiseAND(_MAX_INT) % num_buckets)
    return df.withColumn(name, buckets).drop(length, padded)


def _unsigned(value: Column) -> Column:
    return value.cast("bigint").bitwiseAND(_SPAN - 1)


def _multiply(value: Column, factor: int) -> Column:
    """The product modulo 2**32, computed from halves of the factor: the full product overflows."""
    low, high = factor & 0xFFFF, factor >> 16
    return _unsigned(value * low + (value * high).bitwiseAND(0xFFFF) * 2**16)


def _xor_shift(value: Column, bits: int) -> Column:
    return value.bitwiseXOR(f.shiftrightunsigned(value, bits))


def _undo_xor_shift(value: Column, bits: int) -> Column:
    """Inverts `_xor_shift` for shifts of 11 to 15 bits."""
    return _xor_shift(value, bits).bitwiseXOR(f.shiftrightunsigned(value, 2 * bits))


def _rotate_right(value: Column, bits: int) -> Column:
    return f.shiftrightunsigned(value, bits).bitwiseOR(_unsigned(value * 2 ** (32 - bits)))


def _inverse(factor: int) -> int:
    return pow(factor, -1, _SPAN)
