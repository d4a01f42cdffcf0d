"""Partition values of manifest entries: which field they are of, and their in-memory form."""

from __future__ import annotations

import json
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from manifest_cases import (
    ONE_BY_ONE,
    SIDE_BY_SIDE,
    container,
    encode,
    entry_record,
    java_schema,
    like_java,
    partitioned,
    renamed,
    store,
)

from icebergds.errors import CorruptFileError, InvalidMetadataError
from icebergds.formats.avro.container import parse_container
from icebergds.formats.manifests.manifest import read_manifest, write_manifest
from icebergds.formats.manifests.reader import read_manifest_columns
from icebergds.io.fileio import FileIO
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    Transform,
    UnknownTransform,
    VoidTransform,
)
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
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
    NestedField,
    StructType,
)

IO = FileIO()
NOTHING = Schema(())


def partition_schema(avro_type: Any, name: str = "p", field_id: int | None = 1000) -> Any:
    """A manifest's schema with one partition field of any Avro type."""
    schema = java_schema()
    field: dict[str, Any] = {"name": name, "type": ["null", avro_type]}
    if field_id is not None:
        field["field-id"] = field_id
    data_file = next(f for f in schema["fields"] if f["name"] == "data_file")
    partition = next(f for f in data_file["type"]["fields"] if f["name"] == "partition")
    partition["type"]["fields"] = [field]
    return schema


def partition_value(
    path: Path,
    avro_type: Any,
    value: Any,
    schema: Schema | None,
    spec: PartitionSpec | None,
    name: str = "p",
    field_id: int | None = 1000,
    header: dict[str, str] | None = None,
) -> Any:
    """What a stored partition value is read as, by both ways."""
    avro_schema = partition_schema(avro_type, name, field_id)
    record = entry_record(like_java(1), StructType(()))
    record["data_file"]["partition"] = {name: value}
    data = container(avro_schema, [[encode(avro_schema, record)]], header)
    manifest = store(path / "m.avro", data, added_snapshot_id=1)
    specs = {} if spec is None else {0: spec}
    found = [
        read_manifest_columns(IO, manifest, specs, schema, few_entries=few).entries()
        for few in (SIDE_BY_SIDE, ONE_BY_ONE)
    ]
    assert found[0] == found[1]
    [[entry], _] = found
    (value,) = entry.data_file.partition
    return value


def logical(kind: str, logical_type: str, **rest: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical_type, **rest}


DECIMAL_4_2 = logical("fixed", "decimal", name="d", size=2, precision=4, scale=2)


@pytest.mark.parametrize(
    ("column", "avro_type", "stored_value", "value"),
    [
        (BOOLEAN, "boolean", True, True),
        (INT, "int", -5, -5),
        (LONG, "long", 2**40, 2**40),
        (FLOAT, "float", 1.5, 1.5),
        (DOUBLE, "double", 2.5, 2.5),
        (DATE, logical("int", "date"), -1, -1),
        (DATE, "int", 19_000, 19_000),
        (TIME, logical("long", "time-micros"), 86_399_999_999, 86_399_999_999),
        (TIMESTAMP, logical("long", "timestamp-micros"), -1, -1),
        (TIMESTAMPTZ, logical("long", "timestamp-micros", **{"adjust-to-utc": True}), 5, 5),
        (TIMESTAMP_NS, logical("long", "timestamp-nanos"), 2**60, 2**60),
        (STRING, "string", "é", "é"),
        (BINARY, "bytes", b"\xff\x00", b"\xff\x00"),
        (FixedType(3), {"type": "fixed", "name": "f", "size": 3}, b"abc", b"abc"),
        (UUID, logical("fixed", "uuid", name="u", size=16), bytes(range(16)), bytes(range(16))),
        (UUID, "string", str(uuid.UUID(int=7)), uuid.UUID(int=7).bytes),
        (DecimalType(4, 2), DECIMAL_4_2, b"\xff\xff", Decimal("-0.01")),
        (DecimalType(38, 3), "bytes", (10**37).to_bytes(16, "big"), Decimal(10**37).scaleb(-3)),
    ],
    ids=str,
)
def test_partition_values_have_their_in_memory_form(
    tmp_path: Path, column: IcebergType, avro_type: Any, stored_value: Any, value: Any
) -> None:
    schema, spec = partitioned(column)
    found = partition_value(tmp_path, avro_type, stored_value, schema, spec)
    assert found == value
    assert type(found) is type(value)
    assert partition_value(tmp_path, avro_type, None, schema, spec) is None


@pytest.mark.parametrize("count", [1, 50])
def test_fixed_values_may_have_their_length_before_them(tmp_path: Path, count: int) -> None:
    """As Java has them, which declares them as Avro's fixed nevertheless."""
    values = [bytes([number] * 3) for number in range(count)]
    assert _fixed_of_java(tmp_path, values) == values


@pytest.mark.parametrize("value", [b"", b"ab", b"abcd"])
def test_fixed_values_of_another_length_are_damage(tmp_path: Path, value: bytes) -> None:
    with pytest.raises(CorruptFileError, match=r"cannot be decoded|not of type fixed"):
        _fixed_of_java(tmp_path, [b"abc", value])


def test_fixed_values_are_written_so_that_java_reads_them(tmp_path: Path) -> None:
    """As bytes, which have a length in Avro too."""
    schema, spec = partitioned(FixedType(3))
    entries = [renamed(like_java(n), spec_id=0, partition=(b"abc",)) for n in range(3)]
    data = write_manifest(entries, spec, schema, format_version=2, codec="null")
    written = json.loads(parse_container(data, "manifest").schema_json)
    (data_file,) = (f["type"] for f in written["fields"] if f["name"] == "data_file")
    (partition,) = (f["type"] for f in data_file["fields"] if f["name"] == "partition")
    assert [field["type"] for field in partition["fields"]] == [["null", "bytes"]]
    manifest = store(tmp_path / "m.avro", data, added_snapshot_id=1)
    read = read_manifest(IO, manifest, {0: spec}, schema)
    assert [entry.data_file.partition for entry in read] == [(b"abc",)] * 3


def _fixed_of_java(path: Path, values: list[bytes]) -> list[bytes]:
    """Values of type fixed[3] that are stored as Java does, as they are read."""
    schema, spec = partitioned(FixedType(3))
    stored, declared = (
        partition_schema(kind) for kind in ("bytes", {"type": "fixed", "name": "f", "size": 3})
    )
    records = []
    for number, value in enumerate(values):
        record = entry_record(like_java(number), StructType(()))
        record["data_file"]["partition"] = {"p": value}
        records.append(encode(stored, record))
    manifest = store(path / "m.avro", container(declared, [records]), added_snapshot_id=1)
    entries = read_manifest(IO, manifest, {0: spec}, schema)
    return [entry.data_file.partition[0] for entry in entries]


@pytest.mark.parametrize(
    ("column", "avro_type", "stored_value", "value"),
    [
        (LONG, "int", 7, 7),
        (DOUBLE, "float", 0.5, 0.5),
        (DecimalType(20, 2), DECIMAL_4_2, b"\x00\x96", Decimal("1.50")),
        (TIMESTAMP, logical("int", "date"), 2, 2 * 86_400_000_000),
        (TIMESTAMP_NS, logical("int", "date"), -1, -86_400_000_000_000),
    ],
    ids=str,
)
def test_partition_values_written_before_a_promotion_are_promoted(
    tmp_path: Path, column: IcebergType, avro_type: Any, stored_value: Any, value: Any
) -> None:
    schema, spec = partitioned(column)
    assert partition_value(tmp_path, avro_type, stored_value, schema, spec) == value


def test_days_may_be_stored_as_plain_numbers(tmp_path: Path) -> None:
    schema, spec = partitioned(TIMESTAMP, DayTransform())
    assert partition_value(tmp_path, "int", 19_000, schema, spec) == 19_000


def test_nan_partition_values_are_equal_and_hash_alike(tmp_path: Path) -> None:
    schema, spec = partitioned(DOUBLE)
    first, second = (
        partition_value(tmp_path, "double", float("nan"), schema, spec) for _ in range(2)
    )
    assert (first,) == (second,)
    assert hash((first,)) == hash((second,))


def test_partition_fields_are_matched_by_id_then_name_then_place(tmp_path: Path) -> None:
    schema, spec = partitioned(INT, BucketTransform(4))

    def value(name: str, field_id: int | None) -> Any:
        return partition_value(tmp_path, "int", 3, schema, spec, name, field_id)

    assert value("other", 1000) == 3
    assert value("p", 1234) == 3
    assert value("p", None) == 3
    assert value("other", None) == 3
    assert value("other", 1234) is None


def test_a_partition_struct_may_have_fewer_fields_than_the_spec(tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "a", INT), NestedField(2, "b", STRING)))
    spec = PartitionSpec(
        0,
        (
            PartitionField((2,), 1001, IdentityTransform(), "b"),
            PartitionField((1,), 1000, IdentityTransform(), "a"),
        ),
    )
    avro_schema = partition_schema("int", "a")
    record = entry_record(like_java(1), StructType(()))
    record["data_file"]["partition"] = {"a": 3}
    data = container(avro_schema, [[encode(avro_schema, record)]])
    manifest = store(tmp_path / "m.avro", data, added_snapshot_id=1)
    columns = read_manifest_columns(IO, manifest, {0: spec}, schema)
    assert [str(column.type) for column in columns.partition] == ["string", "int32"]
    assert columns.entries()[0].data_file.partition == (None, 3)


def test_the_spec_comes_from_the_header_if_the_table_lacks_it(tmp_path: Path) -> None:
    schema, spec = partitioned(TIMESTAMP)
    entry = renamed(like_java(1), partition=(1_000_000,))
    data = write_manifest([entry], spec, schema, format_version=2)
    manifest = store(tmp_path / "m.avro", data, added_snapshot_id=1, sequence_number=7)
    assert read_manifest(IO, manifest) == [entry]
    columns = read_manifest_columns(IO, manifest)
    assert columns.partition_type == StructType((NestedField(1000, "p", TIMESTAMP),))


def test_values_of_dropped_columns_have_the_type_they_were_written_with(tmp_path: Path) -> None:
    schema, spec = partitioned(DATE)
    entry = renamed(like_java(1), partition=(19_000,))
    data = write_manifest([entry], spec, schema, format_version=2)
    manifest = store(tmp_path / "m.avro", data, added_snapshot_id=1)
    columns = read_manifest_columns(IO, manifest, {0: spec}, NOTHING)
    assert columns.partition_type.fields[0].field_type == DATE
    assert columns.entries()[0].data_file.partition == (19_000,)


@pytest.mark.parametrize("transform", [IdentityTransform(), VoidTransform(), UnknownTransform("x")])
def test_values_of_unknown_type_are_kept_as_stored(tmp_path: Path, transform: Transform) -> None:
    """They still tell partitions apart (spec: Scan Planning, note 4)."""
    _, spec = partitioned(INT, transform)
    for avro_type, value in (("string", "a"), (logical("int", "date"), 4), ("double", 0.5)):
        assert partition_value(tmp_path, avro_type, value, NOTHING, spec) == value


def test_a_partitioned_manifest_without_any_spec_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidMetadataError, match="partition spec 0"):
        partition_value(tmp_path, "int", 1, NOTHING, None)


def test_the_whole_spec_in_the_header_is_understood(tmp_path: Path) -> None:
    fields = [{"name": "p", "transform": "bucket[4]", "source-id": 1, "field-id": 1000}]
    header = {"partition-spec": json.dumps({"spec-id": 0, "fields": fields})}
    assert partition_value(tmp_path, "int", 3, NOTHING, None, header=header) == 3


def test_a_partition_value_of_another_type_is_refused(tmp_path: Path) -> None:
    schema, spec = partitioned(DATE)
    with pytest.raises(CorruptFileError, match="partition field 'p'"):
        partition_value(tmp_path, "string", "2024-01-01", schema, spec)
