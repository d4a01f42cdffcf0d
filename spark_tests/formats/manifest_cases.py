"""Manifests for tests: an Avro encoder that can write what libraries do not, and strategies."""

from __future__ import annotations

import json
import random
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from icebergds.formats.avro.container import parse_header
from icebergds.formats.avro.schema import avro_name, decimal_size
from icebergds.formats.manifests.avro_schemas import manifest_schema
from icebergds.formats.manifests.reader import ColumnStats, EntryColumns
from icebergds.spec.manifest import (
    DataFile,
    FileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform, Transform
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
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
    NestedField,
    StructType,
)
from icebergds.spec.values.decimals import unscaled

SYNC = b"0123456789abcdef"

# Values of `few_entries`: which way entries are decoded.
ONE_BY_ONE = 10**9
SIDE_BY_SIDE = 0


@dataclass(frozen=True)
class Encoding:
    """How arrays are cut into blocks: elements a block, and whether blocks state their size."""

    elements: int = 1_000_000
    sized: bool = False


def varint(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def encode(schema: Any, value: Any, how: Encoding = Encoding()) -> bytes:
    """A value as Avro; of unions, the branch that is null or not."""
    if isinstance(schema, list):
        index = next(i for i, branch in enumerate(schema) if (branch == "null") == (value is None))
        return varint(index) + encode(schema[index], value, how)
    kind = schema["type"] if isinstance(schema, dict) else schema
    match kind:
        case "record":
            return b"".join(
                encode(field["type"], value.get(field["name"]), how) for field in schema["fields"]
            )
        case "array":
            out = b""
            for start in range(0, len(value), how.elements):
                block = value[start : start + how.elements]
                data = b"".join(encode(schema["items"], element, how) for element in block)
                out += varint(-len(block)) + varint(len(data)) if how.sized else varint(len(block))
                out += data
            return out + b"\x00"
        case "null":
            return b""
        case "int" | "long":
            return varint(value)
        case "string":
            data = value.encode()
            return varint(len(data)) + data
        case "bytes":
            return varint(len(value)) + value
        case "fixed":
            assert len(value) == schema["size"]
            return bytes(value)
        case "boolean":
            return bytes([value])
        case "float":
            return struct.pack("<f", value)
        case "double":
            return struct.pack("<d", value)
        case _:
            return encode(kind, value, how)


def entry_record(entry: ManifestEntry, partition: StructType) -> dict[str, Any]:
    """An entry as an Avro record with the fields of all versions, its values as stored."""
    return {
        "status": entry.status.value,
        "snapshot_id": entry.snapshot_id,
        "sequence_number": entry.data_sequence_number,
        "file_sequence_number": entry.file_sequence_number,
        "data_file": _file_record(entry.data_file, partition),
    }


def _file_record(file: DataFile, partition: StructType) -> dict[str, Any]:
    return {
        "content": file.content.value,
        "file_path": file.file_path,
        "file_format": file.file_format.value.upper(),
        "partition": {
            avro_name(field.name): _stored_value(field.field_type, value)
            for field, value in zip(partition.fields, file.partition, strict=True)
        },
        "record_count": file.record_count,
        "file_size_in_bytes": file.file_size_in_bytes,
        "block_size_in_bytes": 64 * 1024 * 1024,
        "column_sizes": _pairs(file.column_sizes),
        "value_counts": _pairs(file.value_counts),
        "null_value_counts": _pairs(file.null_value_counts),
        "nan_value_counts": _pairs(file.nan_value_counts),
        "lower_bounds": _pairs(file.lower_bounds),
        "upper_bounds": _pairs(file.upper_bounds),
        "key_metadata": file.key_metadata,
        "split_offsets": list(file.split_offsets) or None,
        "equality_ids": list(file.equality_ids) or None,
        "sort_order_id": file.sort_order_id,
        "first_row_id": file.first_row_id,
        "referenced_data_file": file.referenced_data_file,
        "content_offset": file.content_offset,
        "content_size_in_bytes": file.content_size_in_bytes,
    }


def _stored_value(field_type: IcebergType, value: Any) -> Any:
    match field_type, value:
        case DecimalType(precision=precision, scale=scale), Decimal():
            size = decimal_size(precision)
            return unscaled(value, scale).to_bytes(size, "big", signed=True)
        case _:
            return value


def _pairs(values: Mapping[int, Any]) -> list[dict[str, Any]] | None:
    return [{"key": key, "value": value} for key, value in values.items()] or None


def container(
    schema: Any,
    blocks: Iterable[Sequence[bytes]],
    metadata: Mapping[str, str] | None = None,
    codec: str = "deflate",
) -> bytes:
    """A container file of blocks of encoded records."""
    header = {"avro.schema": json.dumps(schema), "avro.codec": codec, **(metadata or {})}
    out = b"Obj\x01" + varint(len(header))
    for key, value in header.items():
        out += encode("string", key) + encode("string", value)
    out += b"\x00" + SYNC
    for records in blocks:
        plain = b"".join(records)
        if codec == "deflate":
            deflate = zlib.compressobj(1, zlib.DEFLATED, -15)
            plain = deflate.compress(plain) + deflate.flush()
        out += varint(len(records)) + varint(len(plain)) + plain + SYNC
    return out


def with_wrong_defaults(data: bytes) -> bytes:
    """An Avro file whose header gives each field a default that is not of its type."""
    metadata, sync, at = parse_header(data, "the file")
    schema = json.loads(metadata["avro.schema"], object_hook=_with_wrong_default)
    metadata["avro.schema"] = json.dumps(schema).encode()
    out = b"Obj\x01" + varint(len(metadata))
    for key, value in metadata.items():
        out += encode("string", key) + varint(len(value)) + value
    return out + b"\x00" + sync + data[at:]


def _with_wrong_default(node: dict[str, Any]) -> dict[str, Any]:
    is_field = "name" in node and "type" in node and node["type"] not in ("record", "fixed", "enum")
    if not is_field:
        return node
    is_optional = isinstance(node["type"], list)
    return {**node, "default": {"no": "such value"} if is_optional else None}


def store(path: Path, data: bytes, **attributes: Any) -> ManifestFile:
    """Writes a manifest and describes it."""
    path.write_bytes(data)
    return ManifestFile(str(path), len(data), **{"partition_spec_id": 0, **attributes})


PARTITION_TYPES: tuple[IcebergType, ...] = (
    BOOLEAN,
    INT,
    LONG,
    FLOAT,
    DOUBLE,
    DATE,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMESTAMP_NS,
    TIMESTAMPTZ_NS,
    STRING,
    UUID,
    BINARY,
    FixedType(3),
    DecimalType(9, 2),
    DecimalType(38, 10),
)

_INT = st.integers(-(2**31), 2**31 - 1)
_LONG = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-100, 100_000))


def values_of(field_type: IcebergType) -> st.SearchStrategy[Any]:
    match field_type:
        case DecimalType(precision=precision, scale=scale):
            limit = 10**precision - 1
            return st.integers(-limit, limit).map(
                lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -scale))
            )
        case FixedType(length=length):
            return st.binary(min_size=length, max_size=length)
        case _ if field_type == BOOLEAN:
            return st.booleans()
        case _ if field_type in (INT, DATE):
            return _INT
        case _ if field_type == FLOAT:
            return st.floats(width=32, allow_nan=False)
        case _ if field_type == DOUBLE:
            return st.floats(allow_nan=False)
        case _ if field_type == STRING:
            return st.text(max_size=12)
        case _ if field_type == UUID:
            return st.binary(min_size=16, max_size=16)
        case _ if field_type == BINARY:
            return st.binary(max_size=12)
        case _ if field_type == TIME:
            return st.integers(0, 86_399_999_999)
        case _:
            return _LONG


def table(types: Sequence[IcebergType]) -> tuple[Schema, PartitionSpec]:
    """A schema with a column of each type and the spec that is partitioned by all of them."""
    columns = tuple(NestedField(i, f"c{i}", t) for i, t in enumerate(types, 1))
    parts = tuple(
        PartitionField((field.field_id,), 999 + field.field_id, IdentityTransform(), field.name)
        for field in columns
    )
    return Schema(columns), PartitionSpec(0, parts)


_COUNTS = st.dictionaries(st.integers(1, 200), st.integers(-1, 2**62), max_size=6)
_BOUNDS = st.dictionaries(st.integers(1, 200), st.binary(max_size=300), max_size=6)
_PATHS = st.one_of(
    st.text(max_size=40),
    st.text(max_size=12).map(lambda name: f"s3://bucket/table/data/{name}.parquet"),
    st.sampled_from(["\x0eparquet", "a\x0ePARQUET\x08avro", "x" * 9000]),
)


def data_files(partition: StructType, content: ManifestContent) -> st.SearchStrategy[DataFile]:
    deletes = st.sampled_from([FileContent.POSITION_DELETES, FileContent.EQUALITY_DELETES])
    optional_long = st.none() | _LONG
    return st.builds(
        DataFile,
        content=st.just(FileContent.DATA) if content is ManifestContent.DATA else deletes,
        file_path=_PATHS,
        file_format=st.sampled_from(FileFormat),
        spec_id=st.just(0),
        partition=st.tuples(*(st.none() | values_of(f.field_type) for f in partition.fields)),
        record_count=st.integers(0, 2**40),
        file_size_in_bytes=_LONG,
        column_sizes=_COUNTS,
        value_counts=_COUNTS,
        null_value_counts=_COUNTS,
        nan_value_counts=_COUNTS,
        lower_bounds=_BOUNDS,
        upper_bounds=_BOUNDS,
        key_metadata=st.none() | st.binary(max_size=5),
        split_offsets=st.lists(_LONG, max_size=3).map(tuple),
        equality_ids=st.lists(_INT, max_size=3).map(tuple),
        sort_order_id=st.none() | _INT,
        first_row_id=st.none() | st.integers(0, 2**62),
        referenced_data_file=st.none() | _PATHS,
        content_offset=optional_long,
        content_size_in_bytes=optional_long,
    )


def entries_of(partition: StructType, content: ManifestContent) -> st.SearchStrategy[ManifestEntry]:
    return st.builds(
        ManifestEntry,
        status=st.sampled_from(ManifestEntryStatus),
        snapshot_id=_LONG,
        data_sequence_number=st.integers(0, 2**40),
        file_sequence_number=st.integers(0, 2**40),
        data_file=data_files(partition, content),
    )


def like_java(number: int, columns: int = 8) -> ManifestEntry:
    """An entry as a large table has them: much like its neighbours."""
    draw = random.Random(number)
    ids = range(1, columns + 1)
    return ManifestEntry(
        ManifestEntryStatus.ADDED,
        6_390_012_554_239_411_555,
        7,
        7,
        DataFile(
            content=FileContent.DATA,
            file_path=f"s3://bucket/db/events/data/{number:05}-{draw.getrandbits(64):016x}.parquet",
            file_format=FileFormat.PARQUET,
            spec_id=0,
            partition=(),
            record_count=draw.randrange(10**6),
            file_size_in_bytes=draw.randrange(10**9),
            column_sizes={i: draw.randrange(10**6) for i in ids},
            value_counts=dict.fromkeys(ids, draw.randrange(10**6)),
            null_value_counts={i: draw.choice((0, 0, 300)) for i in ids},
            nan_value_counts={2: 0},
            lower_bounds={i: draw.randbytes(draw.choice((4, 8, 16))) for i in ids},
            upper_bounds={i: draw.randbytes(draw.choice((4, 8, 16))) for i in ids},
            split_offsets=(4, 2**27),
            sort_order_id=0,
        ),
    )


def java_schema(format_version: int = 2) -> dict[str, Any]:
    return manifest_schema(StructType(()), format_version)


def renamed(entry: ManifestEntry, **attributes: Any) -> ManifestEntry:
    return replace(entry, data_file=replace(entry.data_file, **attributes))


def partitioned(
    column: IcebergType, transform: Transform | None = None
) -> tuple[Schema, PartitionSpec]:
    return (
        Schema((NestedField(1, "c", column),)),
        PartitionSpec(0, (PartitionField((1,), 1000, transform or IdentityTransform(), "p"),)),
    )


def encoded(
    entries: Sequence[ManifestEntry], schema: Any = None, how: Encoding | None = None
) -> list[bytes]:
    records = [entry_record(entry, StructType(())) for entry in entries]
    return [encode(schema or java_schema(), record, how or Encoding()) for record in records]


def blocks_of(records: Sequence[bytes], size: int) -> list[Sequence[bytes]]:
    return [records[start : start + size] for start in range(0, len(records), size)]


def comparable(columns: EntryColumns) -> str:
    """All values as text, in which NaN equals itself."""
    return str([plain(getattr(columns, name)) for name in columns.__slots__])


def plain(part: Any) -> Any:
    match part:
        case pa.Array() if pa.types.is_temporal(part.type):
            # Python's dates end long before Iceberg's.
            return part.type, part.view(f"int{part.type.bit_width}").to_pylist()
        case pa.Array():
            return part.type, part.to_pylist()
        case np.ndarray():
            return part.tolist()
        case ColumnStats():
            return [plain(column) for column in part.columns()]
        case tuple():
            return [plain(column) for column in part]
        case dict():
            return {key: plain(part[key]) for key in sorted(part)}
        case _:
            return part
