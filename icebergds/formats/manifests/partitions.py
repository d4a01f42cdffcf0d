"""Converts the partition values of manifest entries from stored Avro to their types."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icebergds.errors import CorruptFileError
from icebergds.formats.arrow.types import to_array, to_arrow
from icebergds.formats.avro.schema import AvroField, AvroNode, AvroPrimitive, without_null
from icebergds.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
    NestedField,
    StructType,
)
from icebergds.spec.values.decimals import from_unscaled

_TIMES = (TIME, TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS)
_NANOSECONDS = {
    "date": 86_400_000_000_000,
    "timestamp-millis": 1_000_000,
    "timestamp-micros": 1_000,
    "timestamp-nanos": 1,
}


def partition_columns(
    stored: Mapping[int, pa.Array],
    file_fields: Sequence[AvroField],
    wanted: StructType,
    length: int,
    what: str,
) -> tuple[StructType, tuple[pa.Array, ...]]:
    """A column for each partition field of a spec, of the type of `arrow.types.to_arrow`.

    Args:
        stored: values by index in the file's partition struct, as `manifests.decoder` returns them.
        file_fields: the file's partition struct. Its fields are matched by id, else by name, else
            by position; missing fields are null.
        wanted: the spec's partition type. Fields of type unknown take the stored type.
        length: number of entries.
        what: names the manifest in errors.

    Raises:
        CorruptFileError: a value cannot be read as its field's type.
    """
    indices = _indices(file_fields, wanted)
    fields: list[NestedField] = []
    columns: list[pa.Array] = []
    for field, index in zip(wanted.fields, indices, strict=True):
        field_type = field.field_type
        if index is None:
            column = pa.nulls(length, to_arrow(field_type))
        else:
            node = without_null(file_fields[index].node)
            if field_type == UNKNOWN:
                field_type = _stored_type(node)
            try:
                column = _converted(stored[index], node, field_type)
            except (pa.ArrowException, ValueError, OverflowError) as error:
                raise CorruptFileError(
                    f"{what}: partition field {field.name!r} holds values that are not of type "
                    f"{field_type}: {error}"
                ) from error
        fields.append(NestedField(field.field_id, field.name, field_type))
        columns.append(column)
    return StructType(tuple(fields)), tuple(columns)


def partition_tuples(
    fields: StructType, columns: Sequence[pa.Array], length: int
) -> list[tuple[Any, ...]]:
    """The in-memory partition values of each entry.

    NaN is always the same object, so that equal tuples compare and hash as equal (spec: Scan
    Planning, note 3).
    """
    if not columns:
        return [()] * length
    values = [
        _in_memory(field.field_type, column)
        for field, column in zip(fields.fields, columns, strict=True)
    ]
    return list(zip(*values, strict=True))


def _indices(file_fields: Sequence[AvroField], wanted: StructType) -> list[int | None]:
    by_id = {f.field_id: i for i, f in enumerate(file_fields) if f.field_id is not None}
    indices = [by_id.get(field.field_id) for field in wanted.fields]
    by_name = {f.name: i for i, f in enumerate(file_fields) if i not in indices}
    by_name |= {f.avro_name: i for i, f in enumerate(file_fields) if i not in indices}
    indices = [
        by_name.get(field.name) if index is None else index
        for field, index in zip(wanted.fields, indices, strict=True)
    ]
    if not by_id and all(index is None for index in indices):
        return [i if i < len(file_fields) else None for i in range(len(indices))]
    return indices


def _stored_type(node: AvroNode) -> IcebergType:
    """The Iceberg type of stored values."""
    if not isinstance(node, AvroPrimitive):
        raise ValueError(f"a partition value is stored as {node}")
    match node.kind, node.logical_type:
        case "int", "date":
            return DATE
        case "long", "time-micros":
            return TIME
        case "long", "timestamp-micros":
            return TIMESTAMPTZ if node.adjust_to_utc else TIMESTAMP
        case "long", "timestamp-nanos":
            return TIMESTAMPTZ_NS if node.adjust_to_utc else TIMESTAMP_NS
        case "fixed" | "bytes", "decimal":
            return DecimalType(node.precision, node.scale)
        case "fixed", "uuid":
            return UUID
        case "fixed", _:
            return FixedType(node.size)
        case kind, _:
            return _PLAIN_TYPES.get(kind, UNKNOWN)


_PLAIN_TYPES: dict[str, IcebergType] = {
    "boolean": BOOLEAN,
    "int": INT,
    "long": LONG,
    "float": FLOAT,
    "double": DOUBLE,
    "string": STRING,
    "bytes": BINARY,
}


def _converted(stored: pa.Array, node: AvroNode, field_type: IcebergType) -> pa.Array:
    target = to_arrow(field_type)
    if not isinstance(node, AvroPrimitive) or node.kind == "null":
        return pa.nulls(len(stored), target)
    match field_type:
        case DecimalType(scale=scale):
            stored_scale = node.scale if node.logical_type == "decimal" else scale
            return _by_distinct(
                stored,
                field_type,
                lambda data: from_unscaled(int.from_bytes(data, "big", signed=True), stored_scale),
            )
        case _ if field_type == UUID and node.kind == "string":
            return _by_distinct(stored, UUID, lambda data: uuid.UUID(data.decode()).bytes)
        case _ if field_type == DATE:
            return stored.cast(pa.int32()).cast(target)
        case _ if field_type in _TIMES and pa.types.is_integer(stored.type):
            return _in_unit(stored, node, field_type).cast(target)
        case _:
            return stored.cast(target)


def _in_unit(stored: pa.Array, node: AvroPrimitive, field_type: IcebergType) -> pa.Array:
    """Converts counts to the unit of a time or timestamp type; dates are promoted to midnight."""
    own = _NANOSECONDS.get(node.logical_type or "")
    if own is None or field_type == TIME:
        return stored
    unit = 1 if field_type in (TIMESTAMP_NS, TIMESTAMPTZ_NS) else 1_000
    if own < unit:
        raise ValueError(f"{node.logical_type} is finer than {field_type}")
    return stored if own == unit else pc.multiply_checked(stored, own // unit)


def _by_distinct(
    stored: pa.Array, field_type: IcebergType, convert: Callable[[bytes], Any]
) -> pa.Array:
    """Converts each distinct value once; manifests hold few of them."""
    encoded = stored.dictionary_encode()
    distinct = to_array(field_type, [convert(data) for data in encoded.dictionary.to_pylist()])
    return distinct.take(encoded.indices)


def _in_memory(field_type: IcebergType, column: pa.Array) -> list[Any]:
    values: list[Any]
    match field_type:
        case _ if field_type == DATE:
            values = column.cast(pa.int32()).to_pylist()
        case _ if field_type in (FLOAT, DOUBLE):
            values = [math.nan if value != value else value for value in column.to_pylist()]
        case _ if field_type in _TIMES:
            values = column.cast(pa.int64()).to_pylist()
        case _:
            values = column.to_pylist()
    return values
