"""Encodes, decodes and shreds variants value by value, the plain way: what tests compare with.

A variant is a pair of its type and its value: `("int8", 1)`, `("string", "x")`, `("null", None)`;
arrays are `("array", [variant, ...])`, objects `("object", {name: variant})`. The value of a
decimal is a pair of unscaled value and scale.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import pyarrow as pa

Variant = tuple[str, Any]

# Type id and, if all values have one size, its format for `struct`.
TYPES = {
    "null": (0, None),
    "int8": (3, "<b"),
    "int16": (4, "<h"),
    "int32": (5, "<i"),
    "int64": (6, "<q"),
    "double": (7, "<d"),
    "decimal4": (8, 4),
    "decimal8": (9, 8),
    "decimal16": (10, 16),
    "date": (11, "<i"),
    "timestamptz": (12, "<q"),
    "timestamp": (13, "<q"),
    "float": (14, "<f"),
    "binary": (15, None),
    "string": (16, None),
    "time": (17, "<q"),
    "timestamptz_ns": (18, "<q"),
    "timestamp_ns": (19, "<q"),
    "uuid": (20, None),
}
_NAMES = {type_id: name for name, (type_id, _) in TYPES.items()}

ARROW_TYPES = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "timestamp": pa.timestamp("us"),
    "timestamptz_ns": pa.timestamp("ns", "UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "string": pa.string(),
    "binary": pa.binary(),
    "uuid": pa.uuid(),
}
PRECISIONS = {"decimal4": 9, "decimal8": 18, "decimal16": 38}


def encode_metadata(names: Sequence[str], width: int = 1) -> bytes:
    """The metadata of a dictionary in this order."""
    encoded = [name.encode() for name in names]
    is_sorted = encoded == sorted(set(encoded))
    ends = list(accumulate(map(len, encoded), initial=0))
    numbers = b"".join(number.to_bytes(width, "little") for number in (len(encoded), *ends))
    return bytes([1 | is_sorted << 4 | width - 1 << 6]) + numbers + b"".join(encoded)


def decode_metadata(metadata: bytes) -> list[str]:
    assert metadata[0] & 0xF == 1
    width = 1 + (metadata[0] >> 6)
    numbers = _numbers(metadata[1:], width)
    count = numbers[0]
    ends, names = numbers[1 : count + 2], metadata[1 + width * (count + 2) :]
    return [names[start:end].decode() for start, end in pairwise(ends)]


def encode(variant: Variant, names: Sequence[str], *, wide: bool = False) -> bytes:
    """A value whose names are in a dictionary; `wide` takes four bytes for every number."""
    name, value = variant
    if name == "array":
        return _container(3, None, [encode(v, names, wide=wide) for v in value], wide)
    if name == "object":
        fields = sorted(value.items(), key=lambda field: field[0].encode())
        id_of = {key: at for at, key in enumerate(names)}
        ids = [id_of[key] for key, _ in fields]
        return _container(2, ids, [encode(v, names, wide=wide) for _, v in fields], wide)
    if name == "boolean":
        return bytes([1 << 2 if value else 2 << 2])
    type_id, form = TYPES[name]
    head = bytes([type_id << 2])
    if name == "null":
        return head
    if name in PRECISIONS:
        unscaled, scale = value
        return head + bytes([scale]) + unscaled.to_bytes(form, "little", signed=True)
    if name == "uuid":
        return head + value
    if form is not None:
        return head + struct.pack(form, value)
    content = value.encode() if name == "string" else value
    if name == "string" and len(content) < 64 and not wide:
        return bytes([len(content) << 2 | 1]) + content
    return head + len(content).to_bytes(4, "little") + content


def decode(value: bytes, names: Sequence[str]) -> Variant:
    """The variant of an encoded value, none of whose bytes are left over."""
    variant, size = _decode(value, names)
    assert size == len(value), f"{len(value) - size} bytes are left over"
    return variant


@dataclass(frozen=True)
class Shape:
    """How values are shredded.

    `kind` is the type of `typed_value`: None if there is none, a scalar type, or array or object;
    `fields` are those of objects, or the element of arrays (any name). `scale` is that of decimals.
    """

    kind: str | None = None
    fields: Mapping[str, Shape] | None = None
    scale: int = 0

    def holds(self, variant: Variant) -> bool:
        name, value = variant
        return name == self.kind and (name not in PRECISIONS or value[1] == self.scale)


def shred(
    variants: Sequence[Variant | None],
    dictionaries: Sequence[Sequence[str]],
    shape: Shape,
    **how: Any,
) -> pa.StructArray:
    """A group of the columns of some values, of which None are missing."""
    rows = list(zip(variants, dictionaries, strict=True))
    rest: list[bytes | None] = []
    for variant, names in rows:
        if variant is None:
            rest.append(None)
        elif not shape.holds(variant):
            rest.append(encode(variant, names, **how))
        elif variant[0] == "object" and variant[1].keys() - shape.fields.keys():
            left = {name: v for name, v in variant[1].items() if name not in shape.fields}
            rest.append(encode(("object", left), names, **how))
        else:
            rest.append(None)
    columns = {"value": pa.array(rest, pa.binary())}
    if shape.kind is not None:
        columns["typed_value"] = _typed(rows, shape, **how)
        if columns["value"].null_count == len(rest):
            del columns["value"]
    fields = [pa.field(name, column.type) for name, column in columns.items()]
    return pa.StructArray.from_arrays(list(columns.values()), fields=fields)


def shredded_column(
    variants: Sequence[Variant | None],
    dictionaries: Sequence[Sequence[str]],
    shape: Shape,
    *,
    width: int = 1,
    **how: Any,
) -> pa.StructArray:
    """A column of variants, null for None."""
    metadata = [encode_metadata(names, width) for names in dictionaries]
    group = shred(variants, dictionaries, shape, **how)
    return pa.StructArray.from_arrays(
        [pa.array(metadata, pa.binary()), *group.flatten()],
        fields=[pa.field("metadata", pa.binary(), nullable=False), *group.type],
        mask=pa.array([variant is None for variant in variants], pa.bool_()),
    )


def names_of(variant: Variant | None) -> set[str]:
    """All names in a variant."""
    match variant:
        case ("object", fields):
            return set(fields).union(*map(names_of, fields.values()))
        case ("array", elements):
            return set().union(*map(names_of, elements))
        case _:
            return set()


def same(variant: Variant | None) -> Any:
    """What of a variant must stay: of integers and decimals not the width, and not the scale."""
    match variant:
        case ("object", fields):
            return ("object", {name: same(inner) for name, inner in fields.items()})
        case ("array", elements):
            return ("array", [same(inner) for inner in elements])
        case (("int8" | "int16" | "int32" | "int64"), number):
            return ("int", number)
        case (name, value) if name in PRECISIONS:
            return ("decimal", Fraction(value[0], 10 ** value[1]))
        case (("double" | "float"), value):
            return (variant[0], "NaN" if math.isnan(value) else struct.pack("<d", value))
    return variant


def _typed(
    rows: Sequence[tuple[Variant | None, Sequence[str]]], shape: Shape, **how: Any
) -> pa.Array:
    values = [v[1] if v is not None and shape.holds(v) else None for v, _ in rows]
    is_null = pa.array([value is None for value in values], pa.bool_())
    if shape.kind == "object":
        groups = {
            name: shred(
                [None if value is None else value.get(name) for value in values],
                [names for _, names in rows],
                field,
                **how,
            )
            for name, field in shape.fields.items()
        }
        fields = [pa.field(name, group.type, nullable=False) for name, group in groups.items()]
        return pa.StructArray.from_arrays(list(groups.values()), fields=fields, mask=is_null)
    if shape.kind == "array":
        (element,) = shape.fields.values()
        inside = [
            (v, names) for value, (_, names) in zip(values, rows, strict=True) for v in value or ()
        ]
        group = shred([v for v, _ in inside], [names for _, names in inside], element, **how)
        offsets = [0]
        for value in values:
            offsets.append(offsets[-1] + len(value or ()))
        wanted = pa.list_(pa.field("element", group.type, nullable=False))
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), group, wanted, mask=is_null)
    if shape.kind in PRECISIONS:
        decimals = [
            None
            if v is None
            else Decimal((v[0] < 0, tuple(map(int, str(abs(v[0])))), -shape.scale))
            for v in values
        ]
        return pa.array(decimals, pa.decimal128(PRECISIONS[shape.kind], shape.scale))
    if shape.kind == "uuid":
        return pa.array(values, pa.binary(16)).cast(pa.uuid())
    return pa.array(values, ARROW_TYPES[shape.kind])


def _decimal(unscaled: int, scale: int) -> Decimal:
    return Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -scale))


def _container(basic: int, ids: list[int] | None, values: list[bytes], wide: bool) -> bytes:
    ends = list(accumulate(map(len, values), initial=0))
    offset_width = 4 if wide else _width(ends[-1])
    is_large = wide or len(values) > 255
    out = len(values).to_bytes(4 if is_large else 1, "little")
    if ids is None:
        header = offset_width - 1 | is_large << 2
    else:
        id_width = 4 if wide else _width(max(ids, default=0))
        header = offset_width - 1 | id_width - 1 << 2 | is_large << 4
        out += b"".join(number.to_bytes(id_width, "little") for number in ids)
    out += b"".join(end.to_bytes(offset_width, "little") for end in ends)
    return bytes([basic | header << 2]) + out + b"".join(values)


def _width(number: int) -> int:
    return max(1, (number.bit_length() + 7) // 8)


def _numbers(data: bytes, width: int) -> list[int]:
    return [
        int.from_bytes(data[at : at + width], "little")
        for at in range(0, len(data) - width + 1, width)
    ]


def _decode(data: bytes, names: Sequence[str]) -> tuple[Variant, int]:
    """The variant at the beginning of some bytes, and its size."""
    basic, header = data[0] & 3, data[0] >> 2
    if basic == 1:
        return ("string", data[1 : 1 + header].decode()), 1 + header
    if basic == 0:
        return _decode_scalar(header, data)
    offset_width = 1 + (header & 3)
    id_width = 1 + (header >> 2 & 3) if basic == 2 else 0
    count_width = 4 if header >> (4 if basic == 2 else 2) & 1 else 1
    count = int.from_bytes(data[1 : 1 + count_width], "little")
    at = 1 + count_width
    ids = _numbers(data[at : at + count * id_width], id_width) if id_width else []
    at += count * id_width
    offsets = _numbers(data[at : at + (count + 1) * offset_width], offset_width)
    at += (count + 1) * offset_width
    inside = [_decode(data[at + offset :], names) for offset in offsets[:-1]]
    assert sum(size for _, size in inside) == offsets[-1], (
        "the values are as long as the offsets say"
    )
    values = [variant for variant, _ in inside]
    if basic == 3:
        return ("array", values), at + offsets[-1]
    keys = [names[i] for i in ids]
    assert keys == sorted(set(keys), key=str.encode), "names are in order, and once each"
    return ("object", dict(zip(keys, values, strict=True))), at + offsets[-1]


def _decode_scalar(type_id: int, data: bytes) -> tuple[Variant, int]:
    if type_id in (1, 2):
        return ("boolean", type_id == 1), 1
    name = _NAMES[type_id]
    form = TYPES[name][1]
    if name == "null":
        return ("null", None), 1
    if name in PRECISIONS:
        unscaled = int.from_bytes(data[2 : 2 + form], "little", signed=True)
        return (name, (unscaled, data[1])), 2 + form
    if name == "uuid":
        return (name, data[1:17]), 17
    if form is not None:
        size = 1 + struct.calcsize(form)
        return (name, struct.unpack(form, data[1:size])[0]), size
    size = 5 + int.from_bytes(data[1:5], "little")
    assert size <= len(data)
    content = data[5:size]
    return (name, content.decode() if name == "string" else content), size
