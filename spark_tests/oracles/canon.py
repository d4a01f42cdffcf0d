"""Rows of an Arrow table as canonical text, so that rows read by different readers compare.

A row is a JSON array of its values in the order of an Iceberg schema:

- boolean, int, long: the JSON value; float and double: `float.hex()` of the value ("nan", "inf",
  "-inf" for those three)
- decimal(P, S): text with exactly S fraction digits
- date: days since 1970-01-01; time: microseconds; timestamp(tz): microseconds since the epoch;
  timestamp(tz)_ns: nanoseconds since the epoch
- string: itself; uuid: lower-case hyphenated text; fixed, binary, geometry, geography: hex text
- struct and list: arrays; map: array of [key, value] sorted by the text of the key
- variant: its JSON text with sorted keys; unknown, and null of any type: null

Readers differ in the Arrow type they give for a type that Arrow or Spark lacks (uuid as text or
bytes, time and nanoseconds as integers): each of them is accepted where it is unambiguous.
"""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql.variant_utils import VariantUtils

_NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_NANOS_PER_DAY = 86_400 * 1_000_000_000


def canonical_rows(table: pa.Table, schema: Mapping[str, Any]) -> list[str]:
    """The rows of `table` as canonical texts, sorted.

    `schema` is an Iceberg schema in its JSON form; columns of `table` are found by name, and a
    column of type unknown may be missing from it. Raises KeyError for any other missing column
    and TypeError where the Arrow type cannot hold the Iceberg type.
    """
    columns = [_column(table, field) for field in schema["fields"]]
    if not columns:
        return ["[]"] * table.num_rows
    return sorted(_dump(row) for row in zip(*columns, strict=True))


def read_rows_file(path: Any) -> list[str]:
    """Canonical rows that `write_rows_file` wrote."""
    with open(path, encoding="utf-8") as lines:
        return [line.rstrip("\n") for line in lines]


def write_rows_file(path: Any, rows: Iterable[str]) -> None:
    """One row a line."""
    with open(path, "w", encoding="utf-8") as lines:
        lines.writelines(f"{row}\n" for row in rows)


def _dump(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _column(table: pa.Table, field: Mapping[str, Any]) -> list[Any]:
    indices = table.schema.get_all_field_indices(field["name"])
    if not indices and field["type"] == "unknown":
        return [None] * table.num_rows
    if len(indices) != 1:
        raise KeyError(f"column {field['name']} occurs {len(indices)} times in {table.schema}")
    values: list[Any] = []
    for chunk in table.column(indices[0]).chunks:
        values += _values(chunk, field["type"])
    return values


def _values(array: pa.Array, iceberg_type: str | Mapping[str, Any]) -> list[Any]:
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_null(array.type) or iceberg_type == "unknown":
        return [None] * len(array)
    if iceberg_type == "variant":
        return _variants(array)
    if isinstance(iceberg_type, str):
        return _primitives(array, iceberg_type)
    match iceberg_type["type"]:
        case "struct":
            return _structs(array, iceberg_type["fields"])
        case "list":
            return _lists(array, iceberg_type["element"])
        case "map":
            return _maps(array, iceberg_type["key"], iceberg_type["value"])
    raise TypeError(f"unknown Iceberg type {iceberg_type}")


def _structs(array: pa.Array, fields: Sequence[Mapping[str, Any]]) -> list[Any]:
    if not pa.types.is_struct(array.type):
        raise TypeError(f"struct expected, not {array.type}")
    children: list[list[Any]] = []
    flat = array.flatten()
    for field in fields:
        index = array.type.get_field_index(field["name"])
        if index < 0 and field["type"] != "unknown":
            raise KeyError(f"field {field['name']} is missing from {array.type}")
        children.append(_values(flat[index], field["type"]) if index >= 0 else [None] * len(array))
    return [
        [child[row] for child in children] if valid else None
        for row, valid in enumerate(array.is_valid().to_pylist())
    ]


def _lists(array: pa.Array, element: str | Mapping[str, Any]) -> list[Any]:
    if not (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
        raise TypeError(f"list expected, not {array.type}")
    elements = _values(array.values, element)
    offsets = array.offsets.to_pylist()
    return [
        elements[offsets[row] : offsets[row + 1]] if valid else None
        for row, valid in enumerate(array.is_valid().to_pylist())
    ]


def _maps(
    array: pa.Array, key: str | Mapping[str, Any], value: str | Mapping[str, Any]
) -> list[Any]:
    if not pa.types.is_map(array.type):
        raise TypeError(f"map expected, not {array.type}")
    keys, values = _values(array.keys, key), _values(array.items, value)
    offsets = array.offsets.to_pylist()
    rows: list[Any] = []
    for row, valid in enumerate(array.is_valid().to_pylist()):
        span = range(offsets[row], offsets[row + 1])
        entries = [[keys[index], values[index]] for index in span]
        rows.append(sorted(entries, key=lambda entry: _dump(entry[0])) if valid else None)
    return rows


def _variants(array: pa.Array) -> list[Any]:
    if not pa.types.is_struct(array.type):
        raise TypeError(f"variant expected as a struct of metadata and value, not {array.type}")
    return [
        None
        if row is None
        else json.dumps(
            json.loads(VariantUtils.to_json(row["value"], row["metadata"])),
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
        )
        for row in array.to_pylist()
    ]


def _primitives(array: pa.Array, name: str) -> list[Any]:
    if name.startswith("geo") and pa.types.is_struct(array.type):
        array = array.flatten()[array.type.get_field_index("wkb")]  # Spark's own geometry type
    base = name.partition("(")[0].partition("[")[0]
    accepts, convert = _PRIMITIVES[base]
    if not any(accept(array.type) for accept in accepts):
        raise TypeError(f"{name} expected, not {array.type}")
    scale = int(name.rstrip(")").split(",")[1]) if base == "decimal" else 0
    return convert(array, scale)


def _as_is(array: pa.Array, _: int) -> list[Any]:
    return array.to_pylist()


def _doubles(array: pa.Array, _: int) -> list[Any]:
    return [None if value is None else _hex_double(value) for value in array.to_pylist()]


def _hex_double(value: float) -> str:
    return value.hex() if math.isfinite(value) else str(value)


def _decimals(array: pa.Array, scale: int) -> list[Any]:
    # format() is exact for any precision, where arithmetic would round to the context's.
    texts: list[str | None] = []
    for value in array.to_pylist():
        if value is not None and -value.as_tuple().exponent > scale:
            raise TypeError(f"{value} has more than {scale} fraction digits")
        texts.append(None if value is None else _decimal_text(value, scale))
    return texts


def _decimal_text(value: Decimal, scale: int) -> str:
    text = format(value, "f")
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction.ljust(scale, '0')}" if scale else whole


def _integers(unit_nanos: int) -> Callable[[pa.Array, int], list[Any]]:
    def convert(array: pa.Array, _: int) -> list[Any]:
        if pa.types.is_integer(array.type):
            return array.to_pylist()
        if pa.types.is_date32(array.type):
            return [_rescale(v, _NANOS_PER_DAY, unit_nanos) for v in _raw(array, pa.int32())]
        raw = _raw(array, pa.int32() if array.type.bit_width == 32 else pa.int64())
        return [_rescale(value, _NANOS[array.type.unit], unit_nanos) for value in raw]

    return convert


def _raw(array: pa.Array, integer: pa.DataType) -> list[int | None]:
    return array.cast(integer).to_pylist()


def _rescale(value: int | None, from_nanos: int, to_nanos: int) -> int | None:
    if value is None:
        return None
    scaled, rest = divmod(value * from_nanos, to_nanos)
    if rest:
        raise TypeError(f"{value} of {from_nanos} ns is not a whole number of {to_nanos} ns")
    return scaled


def _texts(array: pa.Array, _: int) -> list[Any]:
    return array.to_pylist()


def _uuids(array: pa.Array, _: int) -> list[Any]:
    return [
        None
        if value is None
        else str(uuid.UUID(bytes=value) if isinstance(value, bytes) else uuid.UUID(value))
        for value in array.to_pylist()
    ]


def _hex(array: pa.Array, _: int) -> list[Any]:
    return [None if value is None else value.hex() for value in array.to_pylist()]


_STRINGS = (pa.types.is_string, pa.types.is_large_string)
_BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
_TIMESTAMPS = (pa.types.is_timestamp, pa.types.is_int64)
_PRIMITIVES: dict[str, tuple[tuple[Callable[[Any], bool], ...], Callable[..., list[Any]]]] = {
    "boolean": ((pa.types.is_boolean,), _as_is),
    "int": ((pa.types.is_int32,), _as_is),
    "long": ((pa.types.is_int64,), _as_is),
    "float": ((pa.types.is_float32,), _doubles),
    "double": ((pa.types.is_float64,), _doubles),
    "decimal": ((pa.types.is_decimal,), _decimals),
    "date": ((pa.types.is_date32,), _integers(_NANOS_PER_DAY)),
    "time": ((pa.types.is_time, pa.types.is_int64), _integers(_NANOS["us"])),
    "timestamp": (_TIMESTAMPS, _integers(_NANOS["us"])),
    "timestamptz": (_TIMESTAMPS, _integers(_NANOS["us"])),
    "timestamp_ns": (_TIMESTAMPS, _integers(_NANOS["ns"])),
    "timestamptz_ns": (_TIMESTAMPS, _integers(_NANOS["ns"])),
    "string": (_STRINGS, _texts),
    "uuid": ((*_STRINGS, *_BYTES), _uuids),
    "fixed": (_BYTES, _hex),
    "binary": (_BYTES, _hex),
    "geometry": (_BYTES, _hex),
    "geography": (_BYTES, _hex),
}
