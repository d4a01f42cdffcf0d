"""Encodes Arrow columns as Avro records, without a loop over rows (Avro 1.12: Binary Encoding).

Each column is encoded as an array of byte strings; a record is the concatenation of a row's
strings. Only the Avro types that manifests use are supported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Int64s = npt.NDArray[np.int64]
Columns: TypeAlias = Mapping[str, "pa.Array | Columns"]
"""The columns of a record by field name; those of a nested record are nested mappings."""

_NOTHING, _NULL, _PRESENT, _END = b"", b"\x00", b"\x02", b"\x00"


def encode_records(schema: Mapping[str, Any], columns: Columns) -> pa.LargeBinaryArray:
    """The encoded record of each row.

    Args:
        schema: an Avro record; unions are of null and one other type, in this order.
        columns: one for each field, of equal length. Columns of int and long may have any Arrow
            type that is stored as integers, decimals are fixed; arrays are lists or, if their
            elements are pairs of a key and a value, maps.

    Raises:
        ValueError: a required value is null, or a value is out of its type's range.
    """
    return _joined(list(_record(schema, columns, dict(_named_types(schema)))))


def encode_varints(numbers: Int64s) -> pa.LargeBinaryArray:
    """Encodes numbers as Avro int or long: zigzag, seven bits a byte, the lowest first."""
    rest: npt.NDArray[np.uint64] = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    width = -(-int(rest.max(initial=0)).bit_length() // 7)
    if width <= 1:
        return _of_equal_size(rest.astype(np.uint8), 1, len(numbers))
    digits = np.empty((len(numbers), width), np.uint8)
    used = np.empty((len(numbers), width), np.bool_)
    lengths = np.zeros(len(numbers), np.int64)
    more = np.ones(len(numbers), np.bool_)
    for digit in range(width):
        used[:, digit] = more
        lengths += more
        digits[:, digit] = rest & 0x7F
        rest = rest >> np.uint64(7)
        more = rest != 0
        digits[:, digit] |= more.view(np.uint8) << 7
    return _byte_strings(digits.ravel() if used.all() else digits[used], lengths)


def _named_types(kind: Any) -> Iterator[tuple[str, Any]]:
    """Types that later fields may refer to by name."""
    match kind:
        case ["null", present]:
            yield from _named_types(present)
        case {"fields": fields}:
            for field in fields:
                yield from _named_types(field["type"])
        case {"type": "fixed", "name": name}:
            yield name, kind


def _record(
    schema: Mapping[str, Any], columns: Columns, named: Mapping[str, Any]
) -> Iterator[pa.Array | pa.Scalar]:
    for field in schema["fields"]:
        column = columns[field["name"]]
        try:
            yield from _value(field["type"], column, named)
        except ValueError as error:
            raise ValueError(f"{field['name']}: {error}") from error


def _value(kind: Any, column: Any, named: Mapping[str, Any]) -> Iterator[pa.Array | pa.Scalar]:
    """The byte strings whose concatenation is the value."""
    match kind:
        case ["null", present]:
            yield from _optional(present, column, named)
        case {"type": "record"}:
            yield from _record(kind, column, named)
        case "null":
            if column.null_count < len(column):
                raise ValueError("a value is not null although its type is unknown")
        case _ if column.null_count:
            raise ValueError("a required value is null")
        case {"type": "array"}:
            yield from _array(kind["items"], column, named)
        case {"type": "fixed"}:
            yield _fixed(kind["size"], column)
        case {"type": plain}:
            yield from _value(plain, column, named)
        case "int":
            yield encode_varints(_integers(column, np.int32))
        case "long":
            yield encode_varints(_integers(column, np.int64))
        case "string" | "bytes":
            data = column.cast(pa.large_binary())
            yield encode_varints(pc.binary_length(data).to_numpy())
            yield data
        case "boolean" | "float" | "double":
            values = column.to_numpy(zero_copy_only=False)
            yield _of_equal_size(values.view(np.uint8), values.itemsize, len(column))
        case _:
            yield from _value(named[kind], column, named)


def _optional(
    kind: Any, column: pa.Array, named: Mapping[str, Any]
) -> Iterator[pa.Array | pa.Scalar]:
    if not column.null_count:
        yield _constant(_PRESENT)
        yield from _value(kind, column, named)
        return
    if column.null_count == len(column):
        yield _constant(_NULL)
        return
    encoded = _joined([_constant(_PRESENT), *_value(kind, column.drop_null(), named)])
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    indices = pa.array(np.cumsum(valid) - 1, mask=~valid)
    yield encoded.take(indices).fill_null(_constant(_NULL))


def _array(items: Any, column: Any, named: Mapping[str, Any]) -> Iterator[pa.Array | pa.Scalar]:
    """One block of elements, if there are any, and the end marker."""
    bounds = column.offsets.to_numpy()
    start, length = int(bounds[0]), int(bounds[-1] - bounds[0])
    counts = np.diff(bounds).astype(np.int64)
    yield encode_varints(counts)
    if not length:
        return
    if isinstance(column, pa.MapArray):
        pairs = {
            "key": column.keys.slice(start, length),
            "value": column.items.slice(start, length),
        }
        elements = _joined(list(_record(items, pairs, named)))
    else:
        elements = _joined(list(_value(items, column.values.slice(start, length), named)))
    # Elements are contiguous: those of a row are one byte string.
    offsets = _offsets(elements)[bounds - start]
    yield _from_offsets(elements.buffers()[2], offsets)
    end = _constant(_END)
    yield end if counts.all() else pc.if_else(pa.array(counts > 0), end, _constant(_NOTHING))


def _fixed(size: int, column: pa.Array) -> pa.LargeBinaryArray:
    if not pa.types.is_decimal(column.type):
        if column.type.byte_width != size:
            raise ValueError(f"values of type {column.type} are not {size} bytes")
        return column.cast(pa.large_binary())
    width = column.type.byte_width
    stored = np.frombuffer(column.buffers()[1], np.uint8).reshape(-1, width)
    little_endian = stored[column.offset : column.offset + len(column), :size]
    return _of_equal_size(little_endian[:, ::-1], size, len(column))


def _integers(column: pa.Array, kind: type[np.signedinteger[Any]]) -> Int64s:
    stored: Int64s = column.view(f"int{column.type.bit_width}").to_numpy().astype(np.int64)
    limits = np.iinfo(kind)
    if len(stored) and (stored.min() < limits.min or stored.max() > limits.max):
        raise ValueError(f"a number does not fit into {limits.bits} bits")
    return stored


def _joined(parts: list[pa.Array | pa.Scalar]) -> pa.LargeBinaryArray:
    """Concatenates the parts of each row; arrays among them have equal length."""
    if len(parts) == 1 and isinstance(parts[0], pa.Array):
        return parts[0]
    return pc.binary_join_element_wise(*parts, _constant(_NOTHING))


def _of_equal_size(data: npt.NDArray[np.uint8], size: int, count: int) -> pa.LargeBinaryArray:
    return _from_offsets(
        pa.py_buffer(np.ascontiguousarray(data)), np.arange(count + 1, dtype=np.int64) * size
    )


def _byte_strings(data: npt.NDArray[np.uint8], lengths: Int64s) -> pa.LargeBinaryArray:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return _from_offsets(pa.py_buffer(data), offsets)


def _from_offsets(data: pa.Buffer, offsets: Int64s) -> pa.LargeBinaryArray:
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), data]
    )


def _offsets(strings: pa.LargeBinaryArray) -> Int64s:
    stored = np.frombuffer(strings.buffers()[1], np.int64)
    return stored[strings.offset : strings.offset + len(strings) + 1]


@cache
def _constant(data: bytes) -> pa.LargeBinaryScalar:
    # Not created on import: the first scalar makes pyarrow import pandas, if it is installed.
    return pa.scalar(data, pa.large_binary())
