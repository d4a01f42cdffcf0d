"""New tables: what they are made of."""

from __future__ import annotations

from dataclasses import replace

import pytest
from built.metadata import SCHEMA, START_MS, UUID, new_table, part, sort_by, spec
from hypothesis import given, strategies as st
from strategies.spec_values import all_types

from icebergds.errors import InvalidMetadataError, InvalidOptionError, UnsupportedFeatureError
from icebergds.spec.evolution.fresh_ids import with_fresh_ids
from icebergds.spec.json.metadata import parse_metadata, serialise_metadata
from icebergds.spec.schema import Schema
from icebergds.spec.types import INT, STRING, TIMESTAMP_NS, NestedField, walk
from icebergds.spec.updates.apply_updates import apply_updates
from icebergds.spec.updates.new_table import new_table_updates
from icebergds.spec.updates.table_updates import AssignUuid, SetLocation


def test_a_new_table_has_all_it_was_asked_for() -> None:
    table = new_table(
        2,
        spec=spec(part(2, "day", "ts_day")),
        sort_order=sort_by(1),
        properties={"owner": "me"},
    )
    assert table.table_uuid == UUID
    assert table.format_version == 2
    assert table.location == "s3://b/t"
    assert table.last_updated_ms == START_MS
    assert [(f.name, f.field_id) for f in table.schema().fields][:2] == [("id", 1), ("ts", 2)]
    assert [(f.name, f.field_id) for f in table.spec().fields] == [("ts_day", 1000)]
    assert table.last_partition_id == 1000
    assert table.sort_order().fields == sort_by(1).fields
    assert table.default_sort_order_id == 1
    assert table.properties == {
        "owner": "me",
        "write.parquet.compression-codec": "zstd",
        "write.upsert.mode": "auto",
    }
    assert table.current_snapshot() is None


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_new_table_can_be_written_and_read_back(version: int) -> None:
    table = new_table(version, spec=spec(part(3, "bucket[4]", "b")), sort_order=sort_by(3))
    assert parse_metadata(serialise_metadata(table), "t") == table


def test_specs_orders_and_identifiers_follow_their_columns_to_fresh_ids() -> None:
    schema = Schema(
        (NestedField(70, "a", STRING), NestedField(30, "b", INT, required=True)),
        identifier_field_ids=(30,),
    )
    table = new_table(schema=schema, spec=spec(part(30, "identity", "b")), sort_order=sort_by(70))
    assert table.schema().find_id("b") == 2
    assert table.schema().identifier_field_ids == (2,)
    assert table.spec().fields[0].source_ids == (2,)
    assert table.sort_order().fields[0].source_ids == (1,)


@given(st.lists(all_types(), min_size=1, max_size=4))
def test_fresh_ids_are_1_to_n(types: list[object]) -> None:
    fields = tuple(
        NestedField(1, f"c{position}", kind)  # type: ignore[arg-type]
        for position, kind in enumerate(types)
    )
    from_one = iter(range(1, 1000))
    fresh = with_fresh_ids(fields, from_one)
    ids = [field.field_id for field in walk(fresh)]
    assert sorted(ids) == list(range(1, len(ids) + 1))
    assert [f.name for f in walk(fresh)] == [f.name for f in walk(fields)]


def test_a_codec_that_was_asked_for_stays() -> None:
    table = new_table(properties={"write.parquet.compression-codec": "snappy"})
    assert table.properties["write.parquet.compression-codec"] == "snappy"


def test_the_format_version_may_come_as_a_property_and_is_not_stored() -> None:
    updates = new_table_updates(
        SCHEMA, location="s3://b/t", properties={"format-version": "3"}, table_uuid=UUID
    )
    table = apply_updates(None, updates, now_ms=START_MS)
    assert table.format_version == 3
    assert "format-version" not in table.properties
    with pytest.raises(InvalidOptionError, match=r"format version 2 contradicts .* = 3"):
        new_table_updates(
            SCHEMA, location="s3://b/t", properties={"format-version": "3"}, format_version=2
        )


def test_the_default_format_version_is_2_and_uuids_differ() -> None:
    tables = [
        apply_updates(None, new_table_updates(SCHEMA, location="/t/"), now_ms=START_MS)
        for _ in range(2)
    ]
    assert {table.format_version for table in tables} == {2}
    assert {table.location for table in tables} == {"/t"}
    assert tables[0].table_uuid != tables[1].table_uuid


@pytest.mark.parametrize("version", [0, 4])
def test_format_versions_that_do_not_exist_are_refused(version: int) -> None:
    with pytest.raises((InvalidMetadataError, UnsupportedFeatureError), match=str(version)):
        new_table(version)


def test_types_of_version_3_need_version_3() -> None:
    schema = Schema((NestedField(1, "t", TIMESTAMP_NS),))
    assert new_table(3, schema=schema).schema().fields[0].field_type == TIMESTAMP_NS
    with pytest.raises(InvalidMetadataError, match=r"'t' is of type timestamp_ns, .* version 2"):
        new_table(2, schema=schema)


def test_reserved_properties_are_refused() -> None:
    with pytest.raises(InvalidOptionError, match="'uuid' is reserved"):
        new_table(properties={"uuid": "x"})


def test_a_spec_of_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidMetadataError, match="partition field 'p' refers to column id 99"):
        new_table(spec=spec(part(99, "identity", "p")))


def test_an_id_used_twice_is_refused() -> None:
    schema = replace(SCHEMA, fields=(*SCHEMA.fields, NestedField(1, "again", INT)))
    with pytest.raises(InvalidMetadataError, match="id 1 for more than one field"):
        new_table(schema=schema)


def test_a_table_that_lacks_its_parts_is_refused() -> None:
    with pytest.raises(InvalidMetadataError, match="no current schema, no default partition spec"):
        apply_updates(None, [AssignUuid(UUID), SetLocation("/t")], now_ms=START_MS)
