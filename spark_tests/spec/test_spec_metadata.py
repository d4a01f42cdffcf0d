"""Table metadata: what older versions leave out, what is refused, and how it is asked."""

from __future__ import annotations

import gzip
import json
import pickle
import time
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from icebergds.errors import (
    InvalidMetadataError,
    NoSuchSnapshotError,
    UnsupportedFeatureError,
)
from icebergds.spec.json.metadata import (
    metadata_from_json,
    metadata_to_json,
    parse_identity,
    parse_metadata,
    serialise_metadata,
)
from icebergds.spec.json.name_mapping import table_name_mapping
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.name_mapping import MappedField
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.snapshot import RefType, SnapshotRef
from icebergds.spec.sort import SortOrder
from icebergds.spec.types import INT, STRING

SOURCE = "s3://b/t/metadata/v3.metadata.json"
COLUMN = {"id": 1, "name": "x", "required": True, "type": "int"}
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [COLUMN]}
FIELD = {"name": "x", "transform": "identity", "source-id": 1, "field-id": 1000}
V1 = {
    "format-version": 1,
    "location": "s3://b/t",
    "last-updated-ms": 1_600_000_000_000,
    "last-column-id": 1,
    "schema": {"type": "struct", "fields": [COLUMN]},
    "partition-spec": [],
}
V2 = {
    "format-version": 2,
    "table-uuid": "fb072c92-a02b-11e9-ae9c-1bb7bc9eca94",
    "location": "s3://b/t",
    "last-sequence-number": 0,
    "last-updated-ms": 1_600_000_000_000,
    "last-column-id": 1,
    "schemas": [SCHEMA],
    "current-schema-id": 0,
    "partition-specs": [{"spec-id": 0, "fields": []}],
    "default-spec-id": 0,
    "last-partition-id": 999,
    "sort-orders": [{"order-id": 0, "fields": []}],
    "default-sort-order-id": 0,
}
V3 = {**V2, "format-version": 3, "next-row-id": 0}


def parse(obj: dict[str, Any], **members: Any) -> TableMetadata:
    """Metadata of an object with some members replaced, `_` standing for `-`."""
    replaced = {name.replace("_", "-"): value for name, value in members.items()}
    return metadata_from_json({**obj, **replaced}, SOURCE)


def snapshot(snapshot_id: int, sequence_number: int = 0, **members: Any) -> dict[str, Any]:
    return {
        "snapshot-id": snapshot_id,
        "sequence-number": sequence_number,
        "timestamp-ms": snapshot_id * 1000,
        "manifest-list": f"s3://b/t/metadata/snap-{snapshot_id}.avro",
        **{name.replace("_", "-"): value for name, value in members.items()},
    }


def main_at(snapshot_id: int) -> dict[str, Any]:
    return {"main": {"snapshot-id": snapshot_id, "type": "branch"}}


# What older versions leave out


def test_the_oldest_metadata_gets_its_defaults() -> None:
    metadata = parse(V1)
    assert metadata.table_uuid is None
    assert metadata.last_sequence_number == 0
    assert metadata.current_schema_id == metadata.schema().schema_id == 0
    assert metadata.partition_specs == (PartitionSpec(0),)
    assert metadata.spec() == PartitionSpec(0)
    assert metadata.last_partition_id == 999
    assert metadata.sort_orders == (SortOrder(),)
    assert metadata.current_snapshot() is None
    assert metadata.snapshots == ()
    assert metadata.refs == {}
    assert metadata.properties == {}
    assert metadata.next_row_id == 0


def test_field_ids_of_the_oldest_specs_are_counted() -> None:
    fields = [{"name": n, "transform": "identity", "source-id": 1} for n in "ab"]
    metadata = parse(V1, partition_spec=fields)
    assert [field.field_id for field in metadata.spec().fields] == [1000, 1001]
    assert metadata.last_partition_id == 1001


def test_version_1_may_list_schemas_without_naming_the_current_one() -> None:
    newer = {**SCHEMA, "schema-id": 4}
    metadata = parse(V1, schemas=[SCHEMA], schema=newer)
    assert metadata.current_schema_id == 4
    assert sorted(metadata.schemas_by_id) == [0, 4]


def test_version_1_may_list_specs_without_naming_the_default_one() -> None:
    specs = [{"spec-id": 3, "fields": []}, {"spec-id": 5, "fields": [FIELD]}]
    assert parse(V1, partition_specs=specs, partition_spec=[FIELD]).default_spec_id == 5
    other = {**FIELD, "name": "y"}
    metadata = parse(V1, partition_specs=specs, partition_spec=[other])
    assert metadata.default_spec_id == 6
    assert metadata.spec().fields[0].name == "y"


@pytest.mark.parametrize("none", [-1, None])
def test_minus_one_is_no_current_snapshot(none: int | None) -> None:
    metadata = parse(V2, current_snapshot_id=none)
    assert metadata.current_snapshot_id is None
    assert metadata.current_snapshot() is None


def test_there_is_always_a_main_branch() -> None:
    tag = {"snapshot-id": 7, "type": "tag"}
    metadata = parse(V2, current_snapshot_id=7, snapshots=[snapshot(7)], refs={"t": tag})
    assert metadata.refs == {
        "t": SnapshotRef(7, RefType.TAG),
        "main": SnapshotRef(7, RefType.BRANCH),
    }


def test_drafts_of_version_3_have_no_next_row_id() -> None:
    draft = {name: value for name, value in V3.items() if name != "next-row-id"}
    assert parse(draft).next_row_id == 0
    given = [snapshot(1, first_row_id=0, added_rows=10), snapshot(2, first_row_id=10, added_rows=5)]
    assert parse(draft, snapshots=given).next_row_id == 15


def test_the_unsorted_order_need_not_be_listed() -> None:
    metadata = parse(V2, sort_orders=[])
    assert metadata.sort_order() == SortOrder()


def test_numbers_in_properties_become_text() -> None:
    assert parse(V2, properties={"a": 1, "b": None, "c": "d"}).properties == {"a": "1", "c": "d"}


# What is refused


@pytest.mark.parametrize(
    "name",
    [
        "table-uuid",
        "location",
        "last-sequence-number",
        "last-updated-ms",
        "last-column-id",
        "schemas",
        "current-schema-id",
        "partition-specs",
        "default-spec-id",
        "last-partition-id",
        "sort-orders",
        "default-sort-order-id",
    ],
)
def test_what_version_2_lacks_is_named_with_its_source(name: str) -> None:
    with pytest.raises(InvalidMetadataError) as caught:
        parse(V2, **{name: None})
    assert SOURCE in str(caught.value)
    assert f"'{name}'" in str(caught.value)


@pytest.mark.parametrize("name", ["location", "last-updated-ms", "schema", "partition-spec"])
def test_what_version_1_lacks_is_named(name: str) -> None:
    with pytest.raises(InvalidMetadataError, match=f"'{name}'"):
        parse(V1, **{name: None})


def test_later_versions_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match=rf"{SOURCE}: format version 5 is above 3"):
        parse(V3, format_version=5)


@pytest.mark.parametrize(
    ("snapshot", "found"),
    [
        ({"manifest-list": "l"}, "'manifest-list', as Java Iceberg 1.12 .* read it with Java"),
        ({"root-manifest": "r"}, "'root-manifest', .*proposed.* read it with the build that wrote"),
        ({"root-manifest": "r", "manifest-list": "l"}, "'root-manifest'"),
        (None, "no snapshot that would tell which of the layouts"),
        ("x", "no snapshot that would tell which of the layouts"),
    ],
)
def test_version_4_is_refused_with_its_layout_and_what_reads_it(snapshot: Any, found: str) -> None:
    snapshots = [] if snapshot is None else [snapshot]
    with pytest.raises(UnsupportedFeatureError, match=f"{SOURCE}: format version 4 is.*{found}"):
        parse(V3, format_version=4, snapshots=snapshots)


@pytest.mark.parametrize("version", [0, -1, "2", None, 2.0, True])
def test_versions_count_from_1(version: Any) -> None:
    with pytest.raises(InvalidMetadataError, match="'format-version'"):
        parse(V2, format_version=version)


@pytest.mark.parametrize("members", [[], "x", 5, None])
def test_the_document_is_an_object(members: Any) -> None:
    with pytest.raises(InvalidMetadataError, match="expected an object"):
        metadata_from_json(members, SOURCE)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"current_schema_id": 9}, "current-schema-id is 9, which is not listed"),
        ({"default_spec_id": 9}, "default-spec-id is 9, which is not listed"),
        ({"default_sort_order_id": 9}, "default-sort-order-id is 9, which is not listed"),
        ({"current_snapshot_id": 9}, "current-snapshot-id is 9, which is not listed"),
        ({"refs": main_at(9)}, "snapshot of ref 'main' is 9, which is not listed"),
        ({"schemas": [SCHEMA, SCHEMA]}, "'schemas' has more than one entry with id 0"),
        ({"snapshots": [snapshot(1), snapshot(1)]}, "'snapshots' has more than one entry"),
        ({"snapshots": [snapshot(1, 8)]}, "sequence number 8, above 'last-sequence-number' 0"),
        (
            {"snapshots": [snapshot(1), snapshot(2)], "current_snapshot_id": 1, "refs": main_at(2)},
            "they must agree",
        ),
        ({"snapshots": [snapshot(2)], "refs": main_at(2)}, "they must agree"),
        ({"snapshots": [5]}, "an entry of 'snapshots' is 5, expected an object"),
        ({"snapshots": {}}, "'snapshots' of the document is {}, expected an array"),
        ({"properties": []}, "'properties'"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_what_contradicts_itself_is_refused(members: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidMetadataError, match=message):
        parse(V2, **members)


@pytest.mark.parametrize(
    ("parents", "loop"),
    [
        ({1: 1}, "1 -> 1"),
        ({1: 2, 2: 1}, "1 -> 2 -> 1"),
        ({1: None, 2: 4, 3: 2, 4: 3, 5: 4}, "2 -> 4 -> 3 -> 2"),
    ],
)
def test_a_snapshot_is_not_its_own_ancestor(parents: dict[int, int | None], loop: str) -> None:
    given = [snapshot(i, parent_snapshot_id=parent) for i, parent in parents.items()]
    with pytest.raises(InvalidMetadataError, match=rf"{SOURCE}: the table at s3://b/t .*: {loop};"):
        parse(V2, snapshots=given)


def test_parents_may_have_expired_or_be_shared() -> None:
    given = [snapshot(i, parent_snapshot_id=p) for i, p in [(3, 2), (4, 3), (5, 3), (6, 1)]]
    assert len(parse(V2, snapshots=given).snapshots) == 4


def test_a_long_history_is_checked_once_for_each_snapshot() -> None:
    given = [snapshot(i, parent_snapshot_id=i - 1) for i in range(20_000, 0, -1)]
    started = time.process_time()
    metadata = parse(V2, snapshots=given)
    assert time.process_time() - started < 5
    assert len(metadata.lineage(metadata.snapshot_by_id(20_000))) == 20_000


@pytest.mark.parametrize(
    "field",
    [
        {**COLUMN, "id": -1},
        {
            **COLUMN,
            "type": {"type": "list", "element-id": -7, "element": "int", "element-required": True},
        },
    ],
    ids=["column", "element"],
)
def test_ids_of_fields_are_not_negative(field: dict[str, Any]) -> None:
    with pytest.raises(InvalidMetadataError, match=rf"{SOURCE}: schema 0 gives id -\d to '\w+'"):
        parse(V2, schemas=[{**SCHEMA, "fields": [field]}])


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"amp;", b"\xff\xfe\xfd", gzip.compress(b"{}")[:-5], gzip.compress(b"{")],
    ids=["empty", "half", "no JSON", "no UTF-8", "half a gzip", "gzip of a half"],
)
def test_damaged_files_are_named(data: bytes) -> None:
    with pytest.raises(InvalidMetadataError, match=f"table metadata {SOURCE} is damaged"):
        parse_metadata(data, SOURCE)


@pytest.mark.parametrize("read", [parse_metadata, parse_identity])
def test_compressed_metadata_is_read_up_to_a_limit(read: Callable[..., Any]) -> None:
    plain = serialise_metadata(parse(V2, properties={"x": "y" * 1_000_000}))
    data = gzip.compress(plain)
    read(data, SOURCE)
    read(data, SOURCE, len(plain))
    with pytest.raises(
        InvalidMetadataError,
        match=rf"{SOURCE} has more than {len(plain) - 1} bytes .*'max-metadata-bytes'",
    ):
        read(data, SOURCE, len(plain) - 1)


def test_a_bomb_of_metadata_takes_little_memory() -> None:
    bomb = gzip.compress(bytes(64 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(InvalidMetadataError, match="more than 1000000 bytes"):
            parse_metadata(bomb, SOURCE, 1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_other_compressions_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match="zstd"):
        parse_metadata(b"\x28\xb5\x2f\xfd" + b"\0" * 20, SOURCE)


def test_an_unknown_type_is_refused_with_its_source() -> None:
    money = {**SCHEMA, "fields": [{**COLUMN, "type": "money"}]}
    with pytest.raises(UnsupportedFeatureError, match=rf"{SOURCE}: type 'money'"):
        parse(V2, schemas=[money])


# What is written


@pytest.mark.parametrize("obj", [V1, V2, V3], ids=["v1", "v2", "v3"])
@pytest.mark.parametrize("compress", [False, True])
def test_metadata_survives_its_file(obj: dict[str, Any], compress: bool) -> None:
    metadata = parse(
        obj,
        current_snapshot_id=7,
        snapshots=[snapshot(7)],
        properties={"comment": "é"},
        snapshot_log=[{"timestamp-ms": 5, "snapshot-id": 7}],
    )
    data = serialise_metadata(metadata, compress)
    assert parse_metadata(data, SOURCE) == metadata
    assert data.startswith(b"\x1f\x8b") is compress
    if compress:
        assert json.loads(zlib.decompress(data, 31)) == metadata_to_json(metadata)


@pytest.mark.parametrize("obj", [V1, V2, V3], ids=["v1", "v2", "v3"])
@pytest.mark.parametrize("compress", [False, True])
def test_a_file_tells_whose_it_is_without_being_parsed(obj: dict[str, Any], compress: bool) -> None:
    metadata = parse(obj)
    found = parse_identity(serialise_metadata(metadata, compress), SOURCE)
    assert found == (metadata.table_uuid, metadata.last_updated_ms)


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"table-uuid": 1}', b'{"last-updated-ms": ""}'])
def test_a_damaged_file_does_not_tell_whose_it_is(data: bytes) -> None:
    with pytest.raises(InvalidMetadataError, match=SOURCE):
        parse_identity(data, SOURCE)


def test_members_that_nobody_knows_are_written_back_at_every_level() -> None:
    marked = {
        "schemas": [{**SCHEMA, "fields": [{**COLUMN, "x": 1}], "x": 2}],
        "partition-specs": [{"spec-id": 0, "fields": [{**FIELD, "x": 3}], "x": 4}],
        "sort-orders": [
            {
                "order-id": 0,
                "fields": [
                    {
                        "transform": "identity",
                        "source-id": 1,
                        "direction": "asc",
                        "null-order": "nulls-first",
                        "x": 5,
                    }
                ],
                "x": 6,
            }
        ],
        "snapshots": [{**snapshot(7), "x": 7}],
        "current-snapshot-id": 7,
        "refs": {"main": {"snapshot-id": 7, "type": "branch", "x": 8}},
        "snapshot-log": [{"timestamp-ms": 5, "snapshot-id": 7, "x": 9}],
        "metadata-log": [{"timestamp-ms": 5, "metadata-file": "m", "x": 10}],
        "statistics": [
            {
                "snapshot-id": 7,
                "statistics-path": "p",
                "file-size-in-bytes": 1,
                "file-footer-size-in-bytes": 1,
                "blob-metadata": [
                    {
                        "type": "t",
                        "snapshot-id": 7,
                        "sequence-number": 1,
                        "fields": [1],
                        "x": 11,
                    }
                ],
                "x": 12,
            }
        ],
        "partition-statistics": [
            {"snapshot-id": 7, "statistics-path": "p", "file-size-in-bytes": 1, "x": 13}
        ],
        "encryption-keys": [{"key-id": "k", "encrypted-key-metadata": "YQ==", "x": 14}],
        "x-top": {"deep": [{"x": 15}]},
    }
    written = metadata_to_json(metadata_from_json({**V3, **marked}, SOURCE))
    assert {name: written[name] for name in marked} == marked


def test_version_1_is_written_for_its_oldest_readers() -> None:
    written = metadata_to_json(parse(V1, partition_spec=[FIELD]))
    assert written["schema"] == SCHEMA
    assert written["partition-spec"] == [FIELD]
    assert written["current-snapshot-id"] == -1
    assert "last-sequence-number" not in written
    assert "table-uuid" not in written
    assert "next-row-id" not in written


def test_later_versions_do_not_repeat_the_current_schema() -> None:
    written = metadata_to_json(parse(V2, schema=SCHEMA, partition_spec=[]))
    assert "schema" not in written
    assert "partition-spec" not in written
    assert written["last-sequence-number"] == 0
    assert written["current-snapshot-id"] == -1


def test_version_3_has_no_snapshot_minus_one() -> None:
    written = metadata_to_json(parse(V3))
    assert "current-snapshot-id" not in written
    assert written["next-row-id"] == 0


# How it is asked


HISTORY = parse(
    V2,
    snapshots=[snapshot(1), snapshot(2), snapshot(4)],
    current_snapshot_id=4,
    refs={**main_at(4), "old": {"snapshot-id": 1, "type": "tag"}},
    snapshot_log=[
        {"timestamp-ms": 1000, "snapshot-id": 1},
        {"timestamp-ms": 2000, "snapshot-id": 2},
        {"timestamp-ms": 3000, "snapshot-id": 3},
        {"timestamp-ms": 4000, "snapshot-id": 1},
        {"timestamp-ms": 5000, "snapshot-id": 4},
    ],
)


@pytest.mark.parametrize(
    ("timestamp_ms", "snapshot_id"),
    [(1000, 1), (1999, 1), (2000, 2), (4999, 1), (5000, 4), (10**15, 4)],
)
def test_the_log_says_what_was_current(timestamp_ms: int, snapshot_id: int) -> None:
    found = HISTORY.snapshot_as_of(timestamp_ms)
    assert found is not None
    assert found.snapshot_id == snapshot_id


def test_nothing_was_current_before_the_log() -> None:
    assert HISTORY.snapshot_as_of(999) is None


def test_an_expired_snapshot_cannot_be_travelled_to() -> None:
    with pytest.raises(NoSuchSnapshotError, match="snapshot 3, current at 3500 ms, has expired"):
        HISTORY.snapshot_as_of(3500)


def test_snapshots_are_found_by_id_and_by_reference() -> None:
    first, current = HISTORY.snapshot_by_id(1), HISTORY.current_snapshot()
    assert first is HISTORY.snapshot_by_ref("old")
    assert current is HISTORY.snapshot_by_ref("main") is HISTORY.snapshot_by_id(4)
    assert HISTORY.snapshot_by_id(3) is None
    assert HISTORY.snapshot_by_ref("nobody") is None


def test_a_branch_that_does_not_exist_yet_starts_at_the_head_of_main() -> None:
    assert HISTORY.head_of("main") is HISTORY.head_of("new") is HISTORY.current_snapshot()
    branches = replace(HISTORY, refs={"b": SnapshotRef(1, RefType.BRANCH)})
    assert branches.head_of("b") is HISTORY.snapshot_by_id(1)
    assert branches.head_of("new") is None


def test_a_schema_that_is_not_listed_is_named() -> None:
    with pytest.raises(InvalidMetadataError, match=r"s3://b/t: its metadata has no schema 9"):
        HISTORY.schema_by_id(9)


@pytest.mark.parametrize("listed", [(1, 2, 0), (2, 0, 1)], ids=["by id", "in any order"])
def test_partition_values_of_a_dropped_column_keep_its_newest_type(listed: tuple[int, ...]) -> None:
    def with_y(schema_id: int, type_name: str) -> dict[str, Any]:
        column = {"id": 2, "name": "y", "required": False, "type": type_name}
        return {**SCHEMA, "schema-id": schema_id, "fields": [column]}

    spec = {"spec-id": 0, "fields": [FIELD, {**FIELD, "source-id": 2, "field-id": 1001}]}
    schemas = {0: SCHEMA, 1: with_y(1, "int"), 2: with_y(2, "string")}
    metadata = parse(V2, schemas=[schemas[i] for i in listed], partition_specs=[spec])
    types = [field.field_type for field in metadata.partition_type(metadata.spec()).fields]
    assert types == [INT, STRING]


def test_the_name_mapping_is_a_property() -> None:
    mapping = json.dumps([{"names": ["x", "y"], "field-id": 1}])
    found = table_name_mapping(parse(V2, properties={"schema.name-mapping.default": mapping}))
    assert found is not None
    assert found.fields == (MappedField(("x", "y"), 1),)
    assert table_name_mapping(parse(V2)) is None


@pytest.mark.parametrize("text", ["{", "5", "[5]"])
def test_a_malformed_name_mapping_is_named(text: str) -> None:
    metadata = parse(V2, properties={"schema.name-mapping.default": text})
    with pytest.raises(InvalidMetadataError, match=r"schema\.name-mapping\.default is malformed"):
        table_name_mapping(metadata)


def test_metadata_survives_pickling_and_leaves_its_indexes_behind() -> None:
    assert HISTORY.snapshot_by_id(1) is not None
    state = pickle.dumps(HISTORY)
    assert b"snapshots_by_id" not in state
    assert pickle.loads(state) == HISTORY
