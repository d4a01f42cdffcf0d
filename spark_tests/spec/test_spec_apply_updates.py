"""Schemas, specs, sort orders and properties of tables, as changes leave them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from built.metadata import (
    SCHEMA,
    UUID,
    changed,
    commit,
    new_table,
    part,
    snapshot,
    sort_by,
    spec,
    table_with,
)
from hypothesis import given, strategies as st

from icebergds.errors import InvalidMetadataError, InvalidOptionError, UnsupportedFeatureError
from icebergds.spec.encryption import EncryptedKey
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.schema import Schema
from icebergds.spec.sort import SortOrder
from icebergds.spec.types import (
    DOUBLE,
    FLOAT,
    INT,
    UNKNOWN,
    VARIANT,
    NestedField,
)
from icebergds.spec.updates.table_updates import (
    LAST_ADDED,
    AddEncryptionKey,
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AssignUuid,
    RemoveEncryptionKey,
    RemovePartitionSpecs,
    RemoveProperties,
    RemoveSchemas,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetProperties,
    TableUpdate,
    UpgradeFormatVersion,
)

WITH_EXTRA = replace(SCHEMA, fields=(*SCHEMA.fields, NestedField(20, "extra", INT)))
TABLE = new_table()


def with_fields(*fields: NestedField, **members: Any) -> Schema:
    return replace(SCHEMA, fields=(*SCHEMA.fields, *fields), **members)


# Schemas


def test_an_added_schema_gets_the_next_id_and_raises_the_last_column_id() -> None:
    table = changed(TABLE, AddSchema(WITH_EXTRA), SetCurrentSchema(LAST_ADDED))
    assert table.current_schema_id == 1
    assert table.schema().find_id("extra") == 20
    assert table.last_column_id == 20
    assert [schema.schema_id for schema in table.schemas] == [0, 1]


def test_a_schema_equal_to_an_older_one_is_found_again() -> None:
    table = changed(TABLE, AddSchema(WITH_EXTRA), SetCurrentSchema(LAST_ADDED))
    back = changed(table, AddSchema(replace(TABLE.schema(), schema_id=7)), SetCurrentSchema(-1))
    assert back.current_schema_id == 0
    assert back.schemas == table.schemas


def test_the_last_column_id_never_falls() -> None:
    table = changed(TABLE, AddSchema(WITH_EXTRA))
    fewer = replace(SCHEMA, fields=SCHEMA.fields[:2])
    assert changed(table, AddSchema(fewer)).last_column_id == 20


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (with_fields(NestedField(1, "again", INT)), "id 1 for both 'id' and 'again'"),
        (with_fields(NestedField(9, "id", INT)), "more than one field with the full name 'id'"),
        (with_fields(NestedField(9, "point.x", INT)), "full name 'point.x'"),
        (with_fields(NestedField(2147483546, "p", INT)), "expected 1 to 2147483447"),
        (with_fields(NestedField(9, "v", VARIANT)), "'v' is of type variant, .* version 2"),
        (with_fields(NestedField(9, "d", INT, initial_default=1)), "'d' has an initial default"),
        (with_fields(NestedField(9, "d", DOUBLE, write_default=math.inf)), "'d' .* default inf"),
        (with_fields(NestedField(9, "d", FLOAT, write_default=math.nan)), "'d' .* default nan"),
        (with_fields(identifier_field_ids=(99,)), "99 is not a column"),
        (with_fields(identifier_field_ids=(3,)), "'name' cannot .* optional"),
        (with_fields(identifier_field_ids=(6,)), "'tags.element' .* inside a list or map"),
        (with_fields(identifier_field_ids=(8,)), "'point.y' cannot .* optional"),
        (
            with_fields(NestedField(9, "f", DOUBLE, required=True), identifier_field_ids=(9,)),
            "'f' of type double cannot be an identifier",
        ),
    ],
)
def test_schemas_that_a_table_cannot_have_are_refused(schema: Schema, message: str) -> None:
    with pytest.raises(InvalidMetadataError, match=message):
        changed(TABLE, AddSchema(schema))


def test_identifiers_may_be_required_fields_of_required_structs() -> None:
    table = changed(TABLE, AddSchema(replace(SCHEMA, identifier_field_ids=(1, 7))))
    assert table.schemas[1].identifier_field_ids == (1, 7)


def test_version_3_has_defaults_and_new_types_but_unknown_is_always_null() -> None:
    table = new_table(3)
    changed(table, AddSchema(with_fields(NestedField(9, "d", INT, initial_default=1))))
    for bad in (
        NestedField(9, "u", UNKNOWN, required=True),
        NestedField(9, "u", UNKNOWN, write_default=1),
    ):
        with pytest.raises(InvalidMetadataError, match="'u' is of type unknown"):
            changed(table, AddSchema(with_fields(bad)))


def test_schemas_in_use_cannot_be_removed() -> None:
    table = changed(
        commit(TABLE, 1), AddSchema(WITH_EXTRA), AddSchema(with_fields(NestedField(9, "e", INT)))
    )
    assert [s.schema_id for s in changed(table, RemoveSchemas((2, 50))).schemas] == [0, 1]
    with pytest.raises(InvalidMetadataError, match="current"):
        changed(table, RemoveSchemas((0,)))
    table = changed(table, SetCurrentSchema(1))
    with pytest.raises(InvalidMetadataError, match="schema 0 is the schema of snapshot 1"):
        changed(table, RemoveSchemas((0,)))


@pytest.mark.parametrize(
    ("update", "message"),
    [
        (SetCurrentSchema(LAST_ADDED), "last added schema cannot be set"),
        (SetDefaultSpec(LAST_ADDED), "last added partition spec cannot be set"),
        (SetDefaultSortOrder(LAST_ADDED), "last added sort order cannot be set"),
        (SetCurrentSchema(5), "no schema 5"),
        (SetDefaultSpec(5), "spec 5 cannot be the default"),
        (SetDefaultSortOrder(5), "sort order 5 cannot be the default"),
    ],
)
def test_what_was_not_added_cannot_be_set(update: TableUpdate, message: str) -> None:
    with pytest.raises(InvalidMetadataError, match=message):
        changed(TABLE, update)


# Partition specs


def specced(table: Any, *fields: Any) -> Any:
    return changed(table, AddPartitionSpec(spec(*fields)), SetDefaultSpec(LAST_ADDED))


def test_fields_without_ids_get_new_ones() -> None:
    table = specced(TABLE, part(2, "day", "d"), part(1, "bucket[4]", "b"))
    assert table.default_spec_id == 1
    assert [field.field_id for field in table.spec().fields] == [1000, 1001]
    assert table.last_partition_id == 1001


def test_a_field_keeps_its_id_from_spec_to_spec() -> None:
    table = specced(TABLE, part(2, "day", "d"), part(1, "bucket[4]", "b"))
    table = specced(table, part(1, "bucket[8]", "b8"), part(2, "day", "d"))
    assert [field.field_id for field in table.spec().fields] == [1002, 1000]
    assert table.last_partition_id == 1002


def test_an_equal_spec_is_found_again_whatever_its_ids() -> None:
    table = specced(TABLE, part(2, "day", "d"))
    again = specced(specced(table), part(2, "day", "d", 1077))
    assert again.default_spec_id == 1
    assert again.partition_specs == table.partition_specs


def test_ids_that_are_given_are_kept_and_never_given_again() -> None:
    table = specced(TABLE, part(2, "day", "d", 1010))
    assert table.last_partition_id == 1010
    table = specced(table, part(2, "hour", "h"))
    assert table.spec().fields[0].field_id == 1011


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([part(99, "identity", "p")], "column 99, which the current schema does not have"),
        ([part(3, "day", "p")], "transform day does not accept column 'name' of type string"),
        ([part(4, "identity", "p")], "does not accept column 'tags'"),
        ([part(6, "identity", "p")], "inside a list or map"),
        ([part(1, "zorder", "p")], "transform zorder is unknown"),
        ([part(1, "identity", "")], "empty name"),
        ([part(1, "identity", "p"), part(2, "day", "p")], "more than one partition field"),
        ([part(1, "bucket[4]", "p"), part(1, "bucket[4]", "q")], "'q' duplicates another"),
        ([part(1, "bucket[4]", "name")], "has the name of a column"),
        ([part(1, "bucket[4]", "id")], "has the name of a column"),
        ([part(1, "identity", "name")], "has the name of a column"),
        ([part(1, "identity", "a", 7), part(2, "day", "b", 7)], "must be positive and unique"),
    ],
)
def test_specs_that_a_table_cannot_have_are_refused(fields: Sequence[Any], message: str) -> None:
    with pytest.raises(InvalidMetadataError, match=message):
        specced(TABLE, *fields)


def test_identity_fields_are_named_like_their_column_nested_ones_too() -> None:
    table = specced(TABLE, part(1, "identity", "id"), part(7, "identity", "point.x"))
    assert [field.name for field in table.spec().fields] == ["id", "point.x"]


def test_one_field_id_means_one_partition_value() -> None:
    table = specced(TABLE, part(2, "day", "d"))
    with pytest.raises(InvalidMetadataError, match="id 1000, which belongs to 'd'"):
        specced(table, part(1, "bucket[4]", "b", 1000))
    assert specced(table, part(2, "void", "d", 1000)).spec().fields[0].field_id == 1000


def test_version_1_counts_ids_and_drops_fields_by_void() -> None:
    table = specced(new_table(1), part(2, "day", "d"), part(1, "bucket[4]", "b"))
    table = specced(
        table, part(2, "void", "d"), part(1, "bucket[4]", "b"), part(3, "identity", "name")
    )
    assert [field.field_id for field in table.spec().fields] == [1000, 1001, 1002]
    for fields, message in (
        ([part(1, "bucket[4]", "b")], "cannot drop partition fields"),
        (
            [part(1, "bucket[4]", "b"), part(2, "day", "d"), part(3, "identity", "name")],
            "'b' is at the position of 'd'",
        ),
        ([part(2, "day", "d", 1001)], "has id 1001, expected 1000"),
    ):
        with pytest.raises(InvalidMetadataError, match=message):
            specced(table, *fields)


def test_a_partition_source_cannot_be_dropped_but_that_of_an_older_spec_can() -> None:
    table = specced(TABLE, part(2, "day", "d"))
    without = Schema((SCHEMA.fields[0], *SCHEMA.fields[2:]))
    drop = (AddSchema(without), SetCurrentSchema(LAST_ADDED))
    with pytest.raises(InvalidMetadataError, match="'d' refers to column 2"):
        changed(table, *drop)
    table = changed(specced(table, part(1, "identity", "id")), *drop)
    assert table.schema().find_field(2) is None


def test_a_column_may_not_be_named_as_a_partition_field_of_another_column() -> None:
    table = specced(specced(TABLE, part(2, "day", "d"), part(1, "identity", "id")))
    for name in ("d", "id"):
        first = replace(SCHEMA.fields[0], name="key")
        renamed = replace(SCHEMA, fields=(first, *SCHEMA.fields[1:], NestedField(20, name, INT)))
        with pytest.raises(InvalidMetadataError, match=f"column '{name}' would have the name"):
            changed(table, AddSchema(renamed), SetCurrentSchema(LAST_ADDED))


def test_a_table_whose_column_has_the_name_of_a_partition_field_can_still_be_updated() -> None:
    table = specced(TABLE, part(2, "day", "d"))
    named = replace(table.schemas[0], fields=(*SCHEMA.fields, NestedField(20, "d", INT)))
    invalid = replace(table, schemas=(named,), last_column_id=20)
    more = replace(named, fields=(*named.fields, NestedField(21, "more", INT)))
    assert changed(invalid, AddSchema(more), SetCurrentSchema(LAST_ADDED)).schema().find_id("d")
    other = replace(named, fields=(*SCHEMA.fields, NestedField(21, "d", INT)))
    with pytest.raises(InvalidMetadataError, match="column 'd' would have the name"):
        changed(invalid, AddSchema(other), SetCurrentSchema(LAST_ADDED))


def test_the_default_spec_cannot_be_removed() -> None:
    table = specced(TABLE, part(2, "day", "d"))
    with pytest.raises(InvalidMetadataError, match="spec 1 is the default"):
        changed(table, RemovePartitionSpecs((1,)))
    assert changed(table, RemovePartitionSpecs((0, 9))).partition_specs == (table.spec(),)


# Sort orders


def test_sort_orders_count_from_1_and_unsorted_is_0() -> None:
    table = changed(TABLE, AddSortOrder(sort_by(1)), SetDefaultSortOrder(LAST_ADDED))
    assert table.default_sort_order_id == 1
    table = changed(table, AddSortOrder(replace(sort_by(2), order_id=1)), SetDefaultSortOrder(-1))
    assert table.default_sort_order_id == 2
    table = changed(table, AddSortOrder(SortOrder()), SetDefaultSortOrder(LAST_ADDED))
    assert table.default_sort_order_id == 0
    table = changed(table, AddSortOrder(replace(sort_by(1), order_id=9)), SetDefaultSortOrder(-1))
    assert table.default_sort_order_id == 1
    assert [order.order_id for order in table.sort_orders] == [0, 1, 2]


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (sort_by(99), "field 1 of the sort order refers to column 99"),
        (sort_by(4), "does not accept column 'tags'"),
        (sort_by(3, "day"), "does not accept column 'name'"),
        (sort_by(1, "zorder"), "zorder is unknown"),
    ],
)
def test_sort_orders_that_cannot_be_are_refused(order: SortOrder, message: str) -> None:
    with pytest.raises(InvalidMetadataError, match=message):
        changed(TABLE, AddSortOrder(order))


# Law: adding what is there changes nothing, and ids stay unique

SPECS = st.lists(
    st.sampled_from(
        [
            part(1, "identity", "id"),
            part(1, "bucket[4]", "b4"),
            part(2, "day", "d"),
            part(2, "hour", "h"),
            part(3, "truncate[2]", "n"),
        ]
    ),
    max_size=4,
    unique_by=lambda field: field.name,
)


@given(st.lists(SPECS, max_size=6))
def test_adding_specs_again_changes_nothing_and_ids_have_one_meaning(
    added: list[list[Any]],
) -> None:
    updates = [AddPartitionSpec(spec(*fields)) for fields in added]
    table = changed(TABLE, *updates)
    assert changed(table, *updates) is table
    spec_ids = [known.spec_id for known in table.partition_specs]
    assert len(set(spec_ids)) == len(spec_ids)
    meanings = {
        (field.field_id, field.source_ids, field.transform, field.name)
        for known in table.partition_specs
        for field in known.fields
    }
    assert len({meaning[0] for meaning in meanings}) == len(meanings)
    assert table.last_partition_id == max((m[0] for m in meanings), default=999)


@given(st.lists(st.sets(st.integers(9, 14)), max_size=6))
def test_adding_schemas_again_changes_nothing_and_ids_are_unique(added: list[set[int]]) -> None:
    updates = [
        AddSchema(with_fields(*(NestedField(i, f"c{i}", INT) for i in sorted(ids))))
        for ids in added
    ]
    table = changed(TABLE, *updates)
    assert changed(table, *updates) is table
    assert len({s.schema_id for s in table.schemas}) == len(table.schemas)
    assert table.last_column_id == max((i for ids in added for i in ids), default=8)


# Version, UUID, location, properties, keys


def test_a_table_is_upgraded_and_never_downgraded() -> None:
    table = table_with(1, format_version=1)
    two = changed(table, UpgradeFormatVersion(2))
    assert (two.format_version, two.last_sequence_number) == (2, 0)
    two = commit(two, 2)
    assert two.snapshots[-1].sequence_number == 1
    three = changed(two, SetProperties({"format-version": "3"}))
    assert (three.format_version, three.next_row_id) == (3, 0)
    assert "format-version" not in three.properties
    assert commit(three, 3).next_row_id == 10
    with pytest.raises(InvalidMetadataError, match="version 3 and cannot be downgraded to 2"):
        changed(three, UpgradeFormatVersion(2))
    with pytest.raises(UnsupportedFeatureError, match="version 4"):
        changed(three, UpgradeFormatVersion(4))


def test_an_old_table_needs_a_uuid_to_be_upgraded() -> None:
    table = replace(new_table(1), table_uuid=None)
    assert changed(table, SetProperties({"a": "b"})).table_uuid is None
    with pytest.raises(InvalidMetadataError, match="no UUID"):
        changed(table, UpgradeFormatVersion(2))
    assert changed(table, UpgradeFormatVersion(2), AssignUuid(UUID)).table_uuid == UUID


def test_a_uuid_is_for_ever() -> None:
    assert changed(TABLE, AssignUuid(UUID.upper())) is TABLE
    with pytest.raises(InvalidMetadataError, match="cannot change"):
        changed(TABLE, AssignUuid(UUID.replace("f", "e")))


def test_properties_are_set_and_removed() -> None:
    table = changed(TABLE, SetProperties({"a": "1", "b": "2"}))
    table = changed(table, SetProperties({"a": "3"}), RemoveProperties(("b", "no")))
    assert table.properties == {**TABLE.properties, "a": "3"}


@pytest.mark.parametrize("name", ["uuid", "snapshot-count", "current-snapshot-id"])
def test_reserved_properties_cannot_be_set(name: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"'{name}' is reserved"):
        changed(TABLE, SetProperties({name: "1"}))


def test_property_values_are_text() -> None:
    with pytest.raises(InvalidOptionError, match="'a' is 1, expected a string"):
        changed(TABLE, SetProperties({"a": 1}))  # type: ignore[dict-item]


def test_a_location_is_never_empty() -> None:
    assert changed(TABLE, SetLocation("s3://b/u")).location == "s3://b/u"
    with pytest.raises(InvalidMetadataError, match="must not be empty"):
        changed(TABLE, SetLocation(""))


def test_encryption_keys_in_use_cannot_be_removed() -> None:
    outer, inner = EncryptedKey("k", b"1"), EncryptedKey("i", b"2", encrypted_by_id="k")
    with pytest.raises(InvalidMetadataError, match="version 2 does not support encryption keys"):
        changed(TABLE, AddEncryptionKey(outer))
    table = changed(new_table(3), AddEncryptionKey(outer), AddEncryptionKey(inner))
    assert changed(table, AddEncryptionKey(outer)) is table
    with pytest.raises(InvalidMetadataError, match="different encryption key with the id 'k'"):
        changed(table, AddEncryptionKey(replace(outer, encrypted_key_metadata=b"3")))
    with pytest.raises(InvalidMetadataError, match="key 'i' is encrypted by it"):
        changed(table, RemoveEncryptionKey("k"))
    used = changed(table, AddSnapshot(snapshot(table, 1, key_id="i")))
    with pytest.raises(InvalidMetadataError, match="snapshot 1 needs it"):
        changed(used, RemoveEncryptionKey("i"))
    assert changed(table, RemoveEncryptionKey("i")).encryption_keys == (outer,)


def test_what_did_not_change_is_shared_with_the_table_before() -> None:
    before = table_with(1, 2)
    after = changed(before, SetProperties({"a": "b"}))
    assert after.snapshots is before.snapshots
    assert after.schemas is before.schemas
    assert before.properties == TABLE.properties


_KEY = "encryption.key-id"


def _encrypted(format_version: int = 3) -> TableMetadata:
    table = new_table(format_version)
    return replace(table, properties={**table.properties, _KEY: "k"})


@pytest.mark.parametrize("name", [_KEY, "encryption.data-key-length"])
@pytest.mark.parametrize("version", [1, 2])
def test_encrypted_tables_are_of_version_3(version: int, name: str) -> None:
    with pytest.raises(InvalidOptionError, match=rf"{name} needs format version 3.*has {version}"):
        new_table(version, properties={name: "32"})
    with pytest.raises(InvalidOptionError, match=rf"{name} needs format version 3"):
        changed(new_table(version), SetProperties({name: "32"}))
    assert new_table(3, properties={name: "32"}).properties[name] == "32"


@pytest.mark.parametrize(
    ("update", "said"),
    [
        (RemoveProperties((_KEY,)), "'k' cannot be removed"),
        (SetProperties({_KEY: "other"}), "'k' cannot be changed to 'other'"),
    ],
)
def test_the_master_key_of_a_table_stays(update: TableUpdate, said: str) -> None:
    with pytest.raises(InvalidOptionError, match=said):
        changed(_encrypted(), update)
    # Other changes, and those that leave it.
    kept = changed(_encrypted(), SetProperties({_KEY: "k", "a": "b"}), RemoveProperties(("c",)))
    assert (kept.properties[_KEY], kept.properties["a"]) == ("k", "b")
    again = changed(_encrypted(), RemoveProperties((_KEY,)), SetProperties({_KEY: "k", "a": "b"}))
    assert again.properties[_KEY] == "k"


@pytest.mark.parametrize("version", [2, 3])
def test_a_table_is_not_encrypted_later(version: int) -> None:
    updates = (UpgradeFormatVersion(3), SetProperties({_KEY: "k"}))
    with pytest.raises(InvalidOptionError, match="cannot be set on a table that exists"):
        changed(new_table(version), *updates)


def test_a_master_key_that_others_set_too_early_may_stay_or_go() -> None:
    table = _encrypted(2)
    assert _KEY in changed(table, SetProperties({"a": "b"})).properties
    assert changed(table, UpgradeFormatVersion(3)).properties[_KEY] == "k"
    assert _KEY not in changed(table, RemoveProperties((_KEY,))).properties
    with pytest.raises(InvalidOptionError, match="needs format version 3"):
        changed(table, SetProperties({_KEY: "other"}))
