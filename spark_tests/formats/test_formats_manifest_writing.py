"""Manifests as they are written: the same bytes as other encoders', and read alike by others."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyiceberg.manifest as pyiceberg_manifest
import pytest
from effort import examples
from hypothesis import HealthCheck, given, strategies as st
from manifest_cases import (
    PARTITION_TYPES,
    encode,
    entries_of,
    entry_record,
    like_java,
    partitioned,
    renamed,
    store,
    table,
    varint,
)
from pyiceberg.io.pyarrow import PyArrowFileIO

from icebergds.errors import InvalidDataError, InvalidOptionError
from icebergds.formats.avro.column_encoder import encode_records, encode_varints
from icebergds.formats.avro.container import parse_container
from icebergds.formats.manifests.avro_schemas import manifest_schema
from icebergds.formats.manifests.manifest import INHERITED, read_manifest, write_manifest
from icebergds.formats.manifests.reader import read_manifest_columns
from icebergds.formats.manifests.writer import write_manifest_columns
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import ManifestContent, ManifestEntry, ManifestEntryStatus
from icebergds.spec.partition import PartitionSpec, partition_type
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP_NS,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    DecimalType,
    IcebergType,
    StructType,
)

IO = FileIO()
NOTHING = Schema(())
UNPARTITIONED = PartitionSpec()
ADDED = ManifestEntryStatus.ADDED


def blocks(written: bytes) -> list[tuple[int, bytes]]:
    container = parse_container(written, "manifest")
    return [(count, bytes(plain)) for count, plain in container.decompressed()]


def inheriting(
    entry: ManifestEntry, partition: StructType, inherit: Collection[str]
) -> dict[str, Any]:
    record = entry_record(entry, partition)
    for name in inherit if entry.status is ADDED else ():
        (record if name in record else record["data_file"])[name] = None
    return record


def by_fastavro(schema: dict[str, Any], record: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, schema, record)
    return stream.getvalue()


@given(
    data=st.data(),
    format_version=st.sampled_from([1, 2, 3]),
    deletes=st.booleans(),
    inherit=st.frozensets(st.sampled_from(sorted(INHERITED))),
)
@examples(80, suppress_health_check=list(HealthCheck))
def test_records_are_the_bytes_that_fastavro_writes(
    data: st.DataObject, format_version: int, deletes: bool, inherit: frozenset[str]
) -> None:
    content = ManifestContent(deletes and format_version > 1)
    schema, spec = table(data.draw(st.lists(st.sampled_from(PARTITION_TYPES), max_size=5)))
    partition = partition_type(spec, schema)
    entries = data.draw(st.lists(entries_of(partition, content), max_size=12))
    written = write_manifest(
        entries, spec, schema, format_version=format_version, content=content, inherit=inherit
    )
    avro_schema = manifest_schema(partition, format_version)
    records = [inheriting(entry, partition, inherit) for entry in entries]
    own = b"".join(plain for _, plain in blocks(written))
    assert own == b"".join(by_fastavro(avro_schema, record) for record in records)
    plain_schema = as_stored(avro_schema)
    stream = io.BytesIO(own)
    found = [fastavro.schemaless_reader(stream, plain_schema, None) for _ in records]
    assert found == [only_fields_of(plain_schema, record) for record in records]


def as_stored(schema: dict[str, Any]) -> Any:
    """Without logical types: Python's dates end long before Iceberg's."""
    return json.loads(
        json.dumps(schema),
        object_hook=lambda node: {k: v for k, v in node.items() if k != "logicalType"},
    )


def only_fields_of(schema: Any, record: dict[str, Any]) -> dict[str, Any]:
    kept = {field["name"]: record[field["name"]] for field in schema["fields"]}
    for field in schema["fields"]:
        if isinstance(field["type"], dict) and field["type"]["type"] == "record":
            kept[field["name"]] = only_fields_of(field["type"], kept[field["name"]])
    return kept


# PyIceberg reads no nanoseconds, doubles as floats, and no type that is referred to by name.
PYICEBERG_TYPES = [t for t in PARTITION_TYPES if t not in (DOUBLE, TIMESTAMP_NS, TIMESTAMPTZ_NS)]


@given(
    data=st.data(),
    types=st.lists(st.sampled_from(PYICEBERG_TYPES), max_size=4, unique=True),
    format_version=st.sampled_from([1, 2]),
    deletes=st.booleans(),
)
@examples(60, suppress_health_check=list(HealthCheck))
def test_pyiceberg_finds_the_entries_that_were_written(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    types: list[IcebergType],
    format_version: int,
    deletes: bool,
) -> None:
    content = ManifestContent(deletes and format_version > 1)
    schema, spec = table(types)
    entries = data.draw(st.lists(entries_of(partition_type(spec, schema), content), max_size=8))
    written = write_manifest(
        entries, spec, schema, format_version=format_version, content=content, inherit=()
    )
    path = tmp_path_factory.mktemp("manifest") / "m.avro"
    path.write_bytes(written)
    theirs = pyiceberg_manifest.ManifestFile.from_args(
        manifest_path=str(path),
        manifest_length=len(written),
        partition_spec_id=0,
        content=pyiceberg_manifest.ManifestContent(content.value),
        sequence_number=0,
        added_snapshot_id=1,
    ).fetch_manifest_entry(PyArrowFileIO(), discard_deleted=False)
    assert len(theirs) == len(entries)
    for their, entry in zip(theirs, entries, strict=True):
        file = entry.data_file
        assert (their.status.value, their.snapshot_id) == (entry.status.value, entry.snapshot_id)
        for name in (
            "file_path",
            "record_count",
            "file_size_in_bytes",
            "column_sizes",
            "value_counts",
            "null_value_counts",
            "nan_value_counts",
            "lower_bounds",
            "upper_bounds",
            "key_metadata",
            "split_offsets",
            "sort_order_id",
        ):
            assert pythonic(getattr(their.data_file, name)) == pythonic(getattr(file, name)), name
        if format_version > 1:
            assert their.sequence_number == entry.data_sequence_number
            assert their.data_file.content.value == file.content.value
            assert pythonic(their.data_file.equality_ids) == pythonic(file.equality_ids)
        for at, (kind, value) in enumerate(zip(types, file.partition, strict=True)):
            expected = uuid.UUID(bytes=value) if kind == UUID and value is not None else value
            assert their.data_file.partition[at] == expected


def pythonic(value: Any) -> Any:
    """What PyIceberg tells apart: empty is null, numbers in maps and lists are unsigned."""
    match value:
        case Mapping():
            return {key: _unsigned(item) for key, item in value.items()} or None
        case list() | tuple():
            return list(map(_unsigned, value)) or None
        case _:
            return value


def _unsigned(value: Any) -> Any:
    return value % 2**64 if isinstance(value, int) else value


@pytest.mark.parametrize("codec", ["gzip", "zstd", "snappy", "uncompressed", "bzip2", "xz"])
def test_many_entries_read_back_in_order(tmp_path: Path, codec: str) -> None:
    """More than are encoded at a time."""
    entries = [like_java(n, 2) for n in range(4_500)]
    written = write_manifest(entries, UNPARTITIONED, NOTHING, format_version=2, codec=codec)
    manifest = store(tmp_path / "m.avro", written, sequence_number=7, added_snapshot_id=1)
    assert read_manifest(IO, manifest) == entries


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_columns_are_written_as_the_objects_they_stand_for(
    tmp_path: Path, format_version: int
) -> None:
    schema, spec = table((INT, STRING, DATE, DecimalType(9, 2), DOUBLE))
    values = (4, "a/b", 19_000, Decimal("-1.25"), 0.5)
    entries = [
        renamed(
            like_java(n),
            partition=values if n % 3 else (None,) * len(values),
            key_metadata=b"k" if n % 2 else None,
            nan_value_counts={} if n % 5 else {1: 0},
        )
        for n in range(300)
    ]
    written = write_manifest(entries, spec, schema, format_version=format_version)
    manifest = store(tmp_path / "m.avro", written, sequence_number=7, added_snapshot_id=1)
    columns = read_manifest_columns(IO, manifest, {0: spec}, schema)
    is_gone = np.arange(len(columns)) % 4 == 0
    rewritten = write_manifest_columns(
        [replace(columns, status=np.where(is_gone, 2, 0))],
        spec,
        schema,
        partition=columns.partition_type,
        format_version=format_version,
    )
    read = read_manifest(IO, manifest, {0: spec}, schema)
    objects = [
        replace(entry, status=ManifestEntryStatus.DELETED if gone else ManifestEntryStatus.EXISTING)
        for entry, gone in zip(read, is_gone, strict=True)
    ]
    expected = write_manifest(objects, spec, schema, format_version=format_version)
    assert blocks(rewritten) == blocks(expected)


def test_blocks_hold_64_kilobytes_and_records_whole() -> None:
    entries = [like_java(n) for n in range(1000)]
    entries[500] = renamed(entries[500], lower_bounds={1: bytes(200_000)})
    written = write_manifest(entries, UNPARTITIONED, NOTHING, format_version=2)
    sizes = [len(plain) for _, plain in blocks(written)]
    assert sum(count for count, _ in blocks(written)) == 1000
    assert all(size >= 64_000 for size in sizes[:-1])
    assert sum(size > 65_000 for size in sizes) == 1


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 200)))
def test_numbers_are_zigzag_varints(numbers: list[int]) -> None:
    found = encode_varints(np.array(numbers, np.int64))
    assert found.to_pylist() == [varint(number) for number in numbers]


def test_slices_of_columns_are_encoded_as_what_they_hold() -> None:
    pair = {"fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "bytes"}]}
    pairs = {"type": "array", "items": {"type": "record", "name": "pair", **pair}}
    fixed = {"type": "fixed", "name": "d", "size": 2}
    kinds: dict[str, Any] = {
        "pairs": ["null", pairs],
        "numbers": {"type": "array", "items": "long"},
        "decimal": ["null", fixed],
        "flag": "boolean",
    }
    schema = {"fields": [{"name": name, "type": kind} for name, kind in kinds.items()]}
    maps = [[(1, b"a"), (2, b"")], None, [], [(-9, b"xyz")], [(7, b"q")]]
    columns = {
        "pairs": pa.array(maps, pa.map_(pa.int64(), pa.binary())),
        "numbers": pa.array([[1], [2, 3], [], [-4], []], pa.list_(pa.int64())),
        "decimal": pa.array([Decimal(n) for n in (1, -2, 3)] + [None, Decimal(-5)]).cast(
            pa.decimal128(4, 0)
        ),
        "flag": pa.array([True, False, True, True, False]),
    }
    rows = [
        {
            "pairs": None
            if columns["pairs"][i].as_py() is None
            else [{"key": key, "value": value} for key, value in columns["pairs"][i].as_py()],
            "numbers": columns["numbers"][i].as_py(),
            "decimal": None
            if columns["decimal"][i].as_py() is None
            else int(columns["decimal"][i].as_py()).to_bytes(2, "big", signed=True),
            "flag": columns["flag"][i].as_py(),
        }
        for i in range(5)
    ]
    expected = [encode({"type": "record", **schema}, row) for row in rows]
    for start in range(5):
        for end in range(start + 1, 6):
            part = {name: column[start:end] for name, column in columns.items()}
            assert encode_records(schema, part).to_pylist() == expected[start:end]


def write(entries: Sequence[ManifestEntry], **options: Any) -> bytes:
    return write_manifest(
        entries, UNPARTITIONED, NOTHING, **{"format_version": 2, "inherit": (), **options}
    )


@pytest.mark.parametrize(
    ("name", "value", "where"),
    [
        ("sort_order_id", 2**31, "sort_order_id"),
        ("equality_ids", (2**31,), "equality_ids"),
        ("value_counts", {2**31: 1}, "value_counts: key"),
        ("value_counts", {1: 1.5}, "value_counts"),
        ("value_counts", {1: None}, "value_counts: value"),
        ("lower_bounds", {1: None}, "lower_bounds: value"),
        ("record_count", 0.5, "record_count"),
        ("record_count", None, "record_count"),
        ("file_size_in_bytes", 2**63, "file_size_in_bytes"),
        ("file_path", "\ud800", "file_path"),
        ("file_path", None, "file_path"),
    ],
)
def test_values_that_cannot_be_stored_are_refused(name: str, value: Any, where: str) -> None:
    with pytest.raises(InvalidDataError, match=where):
        write([like_java(1), renamed(like_java(2), **{name: value})])


@pytest.mark.parametrize(
    ("kind", "value"),
    [(INT, 1.5), (DATE, 0.5), (INT, 2**31), (DecimalType(4, 2), Decimal("0.001")), (STRING, 5)],
)
def test_partition_values_of_another_type_are_refused(kind: IcebergType, value: Any) -> None:
    schema, spec = partitioned(kind)
    with pytest.raises(InvalidDataError, match="partition field 'p'"):
        write_manifest([renamed(like_java(1), partition=(value,))], spec, schema, format_version=2)


def test_partition_values_of_unknown_type_are_refused_rather_than_lost() -> None:
    _, spec = partitioned(INT)
    with pytest.raises(InvalidDataError, match="unknown"):
        write_manifest([renamed(like_java(1), partition=(5,))], spec, NOTHING, format_version=2)
    schema, _ = partitioned(UNKNOWN)
    assert write_manifest(
        [renamed(like_java(1), partition=(None,))], spec, schema, format_version=2
    )


@pytest.mark.parametrize("kind", [UUID, DecimalType(9, 2)], ids=str)
def test_a_type_may_be_named_first_by_a_field_that_is_always_null(
    tmp_path: Path, kind: IcebergType
) -> None:
    value = bytes(16) if kind == UUID else Decimal("1.25")
    schema, spec = table((kind, kind))
    entry = renamed(like_java(1), partition=(None, value))
    written = write_manifest([entry], spec, schema, format_version=2)
    manifest = store(tmp_path / "m.avro", written, sequence_number=7, added_snapshot_id=1)
    assert read_manifest(IO, manifest, {0: spec}, schema) == [entry]


def test_version_1_entries_need_a_snapshot_id() -> None:
    with pytest.raises(InvalidDataError, match="snapshot_id"):
        write([like_java(1)], format_version=1, inherit=("snapshot_id",))
    assert write([like_java(1)], inherit=("snapshot_id",))


def test_columns_without_all_statistics_are_not_written(tmp_path: Path) -> None:
    manifest = store(tmp_path / "m.avro", write([like_java(1)]), added_snapshot_id=1)
    columns = read_manifest_columns(IO, manifest, stats_ids=frozenset({1}))
    with pytest.raises(InvalidDataError, match="statistics"):
        write_manifest_columns(
            [columns], UNPARTITIONED, NOTHING, partition=StructType(()), format_version=2
        )


@pytest.mark.parametrize(
    ("codec", "level"), [("lzo", None), ("gzip", 77), ("gzip", -9)], ids=["name", "high", "low"]
)
def test_unknown_codecs_and_levels_are_refused(codec: str, level: int | None) -> None:
    for entries in ([], [like_java(1)]):
        with pytest.raises(InvalidOptionError, match=codec):
            write(entries, codec=codec, level=level)
