"""Maps Avro schemas to columns with field ids, and decoded records to Arrow arrays.

Records are decoded without logical types (see `avro.records`): a date is its number of days, a
decimal its bytes, a map with keys of any type a list of entries. Spec: Appendix A, Avro.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import fastavro.schema
import numpy as np
import pyarrow as pa

from icebergds.errors import UnsupportedFeatureError
from icebergds.formats.arrow.arrays import validity, with_child, with_entries
from icebergds.formats.arrow.types import FIELD_ID
from icebergds.formats.data_file.file_schema import ColumnKind, FileColumn, columns_of

_PRIMITIVES = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_TIMES = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
}
_TIMESTAMPS = {"millis": "ms", "micros": "us", "nanos": "ns"}
_MAX_PRECISION = 38
_DECIMAL_BYTES = 16
# Stands for unsupported types: a file may have columns of them as long as they are not read.
_UNREADABLE = pa.dense_union([])

_Node = Mapping[str, Any]


def expanded_schema(schema: Any) -> _Node:
    """A writer's schema with every reference by name replaced by the definition.

    Raises:
        ValueError: it is not a schema of records.
    """
    try:
        expanded = _node(fastavro.schema.expand_schema(schema))
    except (fastavro.schema.SchemaParseException, LookupError, TypeError) as error:
        raise ValueError(f"the Avro schema is not valid: {error}") from error
    if expanded["type"] != "record":
        raise ValueError(f"the Avro schema is of type {expanded['type']!r}, not record")
    return expanded


def record_columns(record: _Node) -> tuple[FileColumn, ...]:
    """The columns of an expanded schema of records, with their Avro names."""
    return columns_of(_declared_fields(record))


def records_to_arrow(
    records: Sequence[Mapping[str, Any]],
    record: _Node,
    columns: Sequence[FileColumn],
    location: str,
) -> list[pa.Array]:
    """Converts columns of decoded records to arrays of the columns' declared types.

    Raises:
        UnsupportedFeatureError: the type of a column is not supported.
        ValueError, TypeError, OverflowError: a record does not match the schema.
    """
    nodes = [_field_node(record, column.name) for column in columns]
    wire = [_wire_type(node, c, location) for node, c in zip(nodes, columns, strict=True)]
    fields = [pa.field(c.name, t) for c, t in zip(columns, wire, strict=True)]
    rows = pa.array(records, pa.struct(fields))
    return [
        _to_declared(rows.field(at), node, column)
        for at, (node, column) in enumerate(zip(nodes, columns, strict=True))
    ]


def decimals_from_bytes(array: pa.Array, scale: int) -> pa.Array:
    """Decimals of 38 digits from big-endian two's-complement bytes of any length.

    Raises:
        ValueError: a value has more than 128 bits.
    """
    count = len(array)
    starts, lengths = _byte_ranges(array)
    data = np.frombuffer(array.buffers()[-1] or b"", np.uint8)
    data = data if data.size else np.zeros(1, np.uint8)
    negative = (lengths > 0) & (data[np.minimum(starts, data.size - 1)] >= 0x80)
    sign = np.where(negative, np.uint8(0xFF), np.uint8(0))
    words = np.empty((count, _DECIMAL_BYTES), np.uint8)
    # From the lowest byte, which is the last one, to the highest of the longest value.
    for at in range(max(_DECIMAL_BYTES, int(lengths.max(initial=0)))):
        sources = np.clip(starts + lengths - 1 - at, 0, data.size - 1)
        column = np.where(at < lengths, data[sources], sign)
        if at < _DECIMAL_BYTES:
            words[:, at] = column
        elif (column != sign).any():
            raise ValueError(f"a decimal has more than {_DECIMAL_BYTES} bytes")
    if ((words[:, -1] ^ sign) & 0x80).any():
        raise ValueError(f"a decimal has more than {_DECIMAL_BYTES} bytes")
    return pa.Array.from_buffers(
        pa.decimal128(_MAX_PRECISION, scale), count, [validity(array), pa.py_buffer(words)]
    )


def _node(obj: Any) -> _Node:
    """A type as an object, even if the schema has it in short form."""
    if isinstance(obj, str):
        return {"type": obj}
    if isinstance(obj, list):
        return {"type": "union", "branches": [_node(branch) for branch in obj]}
    if isinstance(obj["type"], dict | list):
        return _node(obj["type"])
    node: _Node = obj
    return node


def _optional(node: _Node) -> tuple[_Node, bool]:
    """The type of a value that is not null, and whether it may be null."""
    if node["type"] != "union":
        return node, node["type"] == "null"
    others = [branch for branch in node["branches"] if branch["type"] != "null"]
    if len(others) == 1:
        return others[0], len(node["branches"]) > 1
    return ({"type": "null"} if not others else node), True


def _field_node(record: _Node, name: str) -> _Node:
    field = next(field for field in record["fields"] if field["name"] == name)
    return _optional(_node(field["type"]))[0]


def _declared_fields(record: _Node) -> list[pa.Field]:
    return [
        _declared_field(field["name"], field["type"], field.get("field-id"))
        for field in record["fields"]
    ]


def _declared_field(name: str, obj: Any, field_id: Any, required: bool = False) -> pa.Field:
    node, nullable = _optional(_node(obj))
    metadata = None if field_id is None else {FIELD_ID: str(int(field_id)).encode()}
    return pa.field(name, _declared_type(node), nullable and not required, metadata)


def _declared_type(node: _Node) -> pa.DataType:
    match node["type"]:
        case "record":
            return pa.struct(_declared_fields(node))
        case "array" if _is_entries(node):
            key, value = _node(node["items"])["fields"]
            return pa.map_(
                _declared_field("key", key["type"], key.get("field-id"), required=True),
                _declared_field("value", value["type"], value.get("field-id")),
            )
        case "array":
            return pa.list_(_declared_field("element", node["items"], node.get("element-id")))
        case "map":
            return pa.map_(
                _declared_field("key", "string", node.get("key-id"), required=True),
                _declared_field("value", node["values"], node.get("value-id")),
            )
        case kind:
            return _declared_scalar(kind, node)


def _declared_scalar(kind: str, node: _Node) -> pa.DataType:
    logical = node.get("logicalType")
    if _is_decimal(node):
        return pa.decimal128(node["precision"], node.get("scale", 0))
    if kind == "fixed":
        is_uuid = logical == "uuid" and node["size"] == 16
        return pa.uuid() if is_uuid else pa.binary(node["size"])
    prefix, _, unit = (logical or "").rpartition("-")
    if kind == "long" and prefix in ("timestamp", "local-timestamp") and unit in _TIMESTAMPS:
        return pa.timestamp(_TIMESTAMPS[unit], "UTC" if _adjusts_to_utc(node) else None)
    return _TIMES.get((kind, logical or ""), _PRIMITIVES.get(kind, _UNREADABLE))


def _adjusts_to_utc(node: _Node) -> bool:
    return str(node.get("adjust-to-utc", False)).lower() == "true"


def _is_decimal(node: _Node) -> bool:
    return (
        node["type"] in ("bytes", "fixed")
        and node.get("logicalType") == "decimal"
        and 0 < node.get("precision", 0) <= _MAX_PRECISION
    )


def _is_entries(node: _Node) -> bool:
    """Whether an array holds the entries of a map."""
    return node.get("logicalType") == "map" and len(_node(node["items"]).get("fields", ())) == 2


def _wire_type(node: _Node, column: FileColumn, location: str) -> pa.DataType:
    """The Arrow type of decoded values, narrowed to the columns to read."""
    match column.kind:
        case ColumnKind.STRUCT:
            return pa.struct(
                [
                    (c.name, _wire_type(_field_node(node, c.name), c, location))
                    for c in column.children
                ]
            )
        case ColumnKind.LIST:
            element, _ = _optional(_node(node["items"]))
            return pa.list_(_wire_type(element, column.children[0], location))
        case ColumnKind.MAP:
            (key_name, key), (value_name, value) = _entry_nodes(node)
            key_type = _wire_type(key, column.children[0], location)
            value_type = _wire_type(value, column.children[1], location)
            if node["type"] == "map":
                return pa.map_(key_type, value_type)
            return pa.list_(pa.struct([(key_name, key_type), (value_name, value_type)]))
        case _:
            return _wire_scalar(node, column, location)


def _wire_scalar(node: _Node, column: FileColumn, location: str) -> pa.DataType:
    if column.arrow_type == _UNREADABLE:
        raise UnsupportedFeatureError(
            f"column {column.name!r} of {location}: the Avro type {node['type']!r} is not supported"
        )
    if node["type"] == "fixed":
        return pa.binary(node["size"])
    return pa.binary() if _is_decimal(node) else column.arrow_type


def _entry_nodes(node: _Node) -> tuple[tuple[str, _Node], tuple[str, _Node]]:
    """Names and types of a map's keys and values."""
    if node["type"] == "map":
        return ("key", _node("string")), ("value", _optional(_node(node["values"]))[0])
    key, value = _node(node["items"])["fields"]
    return (
        (key["name"], _optional(_node(key["type"]))[0]),
        (value["name"], _optional(_node(value["type"]))[0]),
    )


def _to_declared(array: pa.Array, node: _Node, column: FileColumn) -> pa.Array:
    """Converts bytes to decimals, lists of entries to maps; the same array if it has neither."""
    match column.kind:
        case ColumnKind.STRUCT:
            stored = [array.field(at) for at in range(array.type.num_fields)]
            fields = [
                _to_declared(child, _field_node(node, c.name), c)
                for child, c in zip(stored, column.children, strict=True)
            ]
            if all(new is old for new, old in zip(fields, stored, strict=True)):
                return array
            names = [c.name for c in column.children]
            return pa.StructArray.from_arrays(fields, names, mask=array.is_null())
        case ColumnKind.LIST:
            element, _ = _optional(_node(node["items"]))
            stored_values = array.values
            values = _to_declared(stored_values, element, column.children[0])
            if values is stored_values:
                return array
            return with_child(array, pa.list_(values.type), values)
        case ColumnKind.MAP:
            return _map_to_declared(array, node, column)
        case _:
            return decimals_from_bytes(array, node.get("scale", 0)) if _is_decimal(node) else array


def _map_to_declared(array: pa.Array, node: _Node, column: FileColumn) -> pa.Array:
    (_, key), (_, value) = _entry_nodes(node)
    if node["type"] == "map":
        keys, items = array.keys, array.items
    else:
        keys, items = array.values.field(0), array.values.field(1)
    keys = _to_declared(keys, key, column.children[0])
    items = _to_declared(items, value, column.children[1])
    map_type = pa.map_(keys.type, items.type)
    return with_entries(array, map_type, keys, items)


def _byte_ranges(array: pa.Array) -> tuple[Any, Any]:
    """The offset and length of each value in the data buffer; length 0 for nulls."""
    count, offset = len(array), array.offset
    if pa.types.is_fixed_size_binary(array.type):
        width = array.type.byte_width
        starts = np.arange(offset, offset + count, dtype=np.int64) * width
        lengths = np.full(count, width, np.int64)
    else:
        offsets = np.frombuffer(array.buffers()[1] or bytes(4), np.int32)
        ends = offsets[offset : offset + count + 1].astype(np.int64)
        starts, lengths = ends[:-1], np.diff(ends)
    if array.null_count:
        lengths = np.where(array.is_valid().to_numpy(zero_copy_only=False), lengths, 0)
    return starts, lengths
