"""Columns chosen by name: lists of names, nested fields, metadata columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from icebergds.errors import InvalidMetadataError, InvalidOptionError
from icebergds.scan.projection import (
    metadata_columns,
    parse_column_list,
    project_columns,
    unified_partition_type,
)
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.sort import SortOrder
from icebergds.spec.transforms import (
    BucketTransform,
    IdentityTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
)
from icebergds.spec.types import (
    INT,
    LONG,
    STRING,
    UNKNOWN,
    ListType,
    MapType,
    NestedField,
    StructType,
)

_POINT = StructType((NestedField(11, "x", INT), NestedField(12, "y", INT)))
_ELEMENT = StructType((NestedField(16, "x", INT), NestedField(17, "y", INT)))
_SCHEMA = Schema(
    (
        NestedField(1, "id", LONG, True),
        NestedField(2, "Name", STRING),
        NestedField(3, "point", _POINT),
        NestedField(4, "points", ListType(13, _ELEMENT)),
        NestedField(5, "tags", MapType(14, STRING, 15, STRING)),
        NestedField(6, "a.b", INT),
    )
)


# Lists of names.


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("id", [("id",)]),
        ("id, point.x ,*", [("id",), ("point", "x"), ("*",)]),
        ("`a.b`,`x,y`.z", [("a.b",), ("x,y", "z")]),
        ("`tick``ed`", [("tick`ed",)]),
    ],
)
def test_lists_of_names(text: str, names: list[tuple[str, ...]]) -> None:
    assert parse_column_list(text) == names


@given(st.lists(st.lists(st.text("ab.,` *\n", min_size=1, max_size=4), min_size=1), min_size=1))
def test_quoted_names_come_back(names: list[list[str]]) -> None:
    text = ", ".join(
        ".".join("`" + part.replace("`", "``") + "`" for part in name) for name in names
    )
    assert parse_column_list(text) == [tuple(name) for name in names]


@pytest.mark.parametrize("text", ["", ",", "id,", "id,,name", "`open", "a..b", ".a", "a.", "a b`"])
def test_malformed_lists_are_refused_with_their_text(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="columns"):
        parse_column_list(text)


# Choosing columns.


def test_columns_come_in_the_order_of_first_mention() -> None:
    assert _names(["point", "id", "point"]) == ["point", "id"]


def test_a_star_stands_for_all_data_columns() -> None:
    assert _names(["*"]) == [field.name for field in _SCHEMA.fields]
    assert _names(["_pos", "*", "id"]) == ["_pos", *(field.name for field in _SCHEMA.fields)]


def test_nested_fields_narrow_their_struct() -> None:
    (point,) = _project(["point.y"]).fields
    assert point == replace(_SCHEMA.fields[2], field_type=StructType((_POINT.fields[1],)))


def test_fields_of_one_struct_share_it_in_the_order_of_the_table() -> None:
    assert _project(["point.y", "id", "point.x"]) == _project(["point", "id"])


def test_a_whole_struct_wins_over_its_fields() -> None:
    assert _project(["point.x", "point"]).fields == (_SCHEMA.fields[2],)


def test_fields_of_elements_keep_their_list() -> None:
    (points,) = _project(["points.element.x"]).fields
    assert points.field_type == ListType(13, StructType((_ELEMENT.fields[0],)))


def test_the_key_of_a_map_keeps_the_map() -> None:
    assert _project(["tags.key"]).fields == (_SCHEMA.fields[4],)


def test_case_does_not_count_unless_it_has_to() -> None:
    assert _names(["NAME", "POINT.X"]) == ["Name", "point"]
    two = Schema((NestedField(1, "a", INT), NestedField(2, "A", INT)))
    assert [f.field_id for f in project_columns(_table(two), two, [("A",)]).fields] == [2]
    upper = Schema((NestedField(1, "aB", INT), NestedField(2, "Ab", INT)))
    with pytest.raises(InvalidOptionError, match=r"'ab' is ambiguous: aB, Ab"):
        project_columns(_table(upper), upper, [("ab",)])


def test_a_dot_inside_of_a_name_is_no_path() -> None:
    assert [f.field_id for f in project_columns(_table(), _SCHEMA, [("a.b",)]).fields] == [6]
    with pytest.raises(InvalidOptionError, match="no column"):
        project_columns(_table(), _SCHEMA, [("a", "b")])


def test_an_unknown_column_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(InvalidOptionError, match=r"'nmae'; did you mean Name\?.*id, Name, point"):
        project_columns(_table(), _SCHEMA, [("nmae",)])
    with pytest.raises(InvalidOptionError, match=r"'point\.z'; did you mean point"):
        project_columns(_table(), _SCHEMA, [("point", "z")])
    with pytest.raises(InvalidOptionError, match=r"no column 'q'\. The columns are: id"):
        project_columns(_table(), _SCHEMA, [("q",)])


# Metadata columns.


def test_metadata_columns_of_each_version() -> None:
    common = ["_file", "_pos", "_spec_id", "_partition", "_deleted"]
    lineage = ["_row_id", "_last_updated_sequence_number"]
    assert [c.name for c in metadata_columns(_table(version=2))] == common
    assert [c.name for c in metadata_columns(_table(version=3))] == [*common, *lineage]


def test_row_lineage_is_no_column_of_older_tables() -> None:
    with pytest.raises(InvalidOptionError, match="_row_id"):
        project_columns(_table(version=2), _SCHEMA, [("_row_id",)])


def test_a_data_column_hides_a_metadata_column_of_its_name() -> None:
    schema = Schema((NestedField(1, "_pos", STRING), NestedField(2, "x", INT)))
    columns = project_columns(_table(schema), schema, [("_pos",), ("_file",)])
    assert [(c.name, c.field_type) for c in columns.fields] == [
        ("_pos", STRING),
        ("_file", STRING),
    ]
    assert columns.fields[0].field_id == 1


def test_fields_of_partition_can_be_chosen() -> None:
    table = _table(specs=[_spec(0, (1, 1000, IdentityTransform(), "id"))])
    (partition,) = project_columns(table, _SCHEMA, [("_partition", "id")]).fields
    assert partition.field_type == StructType((NestedField(1000, "id", LONG),))


# The type of `_partition`.


def test_partition_has_the_fields_of_all_specs() -> None:
    table = _table(
        specs=[
            _spec(0, (1, 1000, IdentityTransform(), "id")),
            _spec(1, (2, 1001, BucketTransform(4), "name_bucket")),
            _spec(2),
        ]
    )
    assert unified_partition_type(table) == StructType(
        (NestedField(1000, "id", LONG), NestedField(1001, "name_bucket", INT))
    )


def test_partition_fields_have_their_newest_name() -> None:
    part = (1, 1000, IdentityTransform())
    table = _table(specs=[_spec(1, (*part, "new")), _spec(0, (*part, "old"))])
    assert unified_partition_type(table).fields == (NestedField(1000, "new", LONG),)


def test_partition_fields_of_one_name_are_told_apart_by_id() -> None:
    table = _table(
        specs=[
            _spec(0, (1, 1000, IdentityTransform(), "p")),
            _spec(1, (2, 1001, TruncateTransform(1), "p")),
        ]
    )
    assert [f.name for f in unified_partition_type(table).fields] == ["p", "p_1001"]


@pytest.mark.parametrize("order", [1, -1], ids=["dropped", "restored"])
def test_void_fields_leave_the_type_to_the_spec_that_has_values(order: int) -> None:
    specs = [
        _spec(0, (2, 1000, BucketTransform(4), "b")),
        _spec(1, (2, 1000, VoidTransform(), "b")),
    ]
    ids = (0, 1)[::order]
    table = _table(specs=[replace(s, spec_id=i) for s, i in zip(specs, ids, strict=True)])
    assert unified_partition_type(table).fields == (NestedField(1000, "b", INT),)


def test_fields_that_are_void_from_the_first_are_columns_too() -> None:
    table = _table(specs=[_spec(0, (2, 1000, VoidTransform(), "b"))])
    assert unified_partition_type(table).fields == (NestedField(1000, "b", STRING),)


def test_one_id_for_two_types_refuses_only_the_column_that_needs_it() -> None:
    table = _table(
        specs=[
            _spec(0, (1, 1000, IdentityTransform(), "id")),
            _spec(1, (2, 1000, IdentityTransform(), "name")),
        ],
        version=1,
    )
    assert "_partition" not in [c.name for c in metadata_columns(table)]
    assert len(project_columns(table, _SCHEMA, [("*",), ("_file",)]).fields) == 7
    with pytest.raises(InvalidMetadataError, match=r"1000 is id \(long\).*name \(string\)"):
        project_columns(table, _SCHEMA, [("_Partition", "id")])


def test_results_of_unknown_transforms_have_no_type() -> None:
    table = _table(specs=[_spec(0, (1, 1000, UnknownTransform("zorder"), "z"))])
    assert unified_partition_type(table).fields == (NestedField(1000, "z", UNKNOWN),)


def test_sources_that_were_dropped_keep_their_type() -> None:
    table = _table(specs=[_spec(0, (2, 1000, IdentityTransform(), "name"))])
    newer = Schema(_SCHEMA.fields[:1], 1)
    table = replace(table, schemas=(*table.schemas, newer), current_schema_id=1)
    assert unified_partition_type(table).fields == (NestedField(1000, "name", STRING),)


def _project(names: Sequence[str]) -> Schema:
    return project_columns(_table(), _SCHEMA, [tuple(name.split(".")) for name in names])


def _names(names: Sequence[str]) -> list[str]:
    return [field.name for field in _project(names).fields]


def _spec(spec_id: int, *parts: tuple[int, int, Transform, str]) -> PartitionSpec:
    return PartitionSpec(
        spec_id,
        tuple(PartitionField((source,), *rest) for source, *rest in parts),  # type: ignore[misc]
    )


def _table(
    schema: Schema = _SCHEMA, specs: Sequence[PartitionSpec] = (), version: int = 2
) -> TableMetadata:
    fields: dict[str, Any] = {
        "format_version": version,
        "table_uuid": "u",
        "location": "/t",
        "last_updated_ms": 0,
        "last_column_id": schema.highest_field_id,
        "schemas": (schema,),
        "current_schema_id": 0,
        "partition_specs": tuple(specs) or (PartitionSpec(),),
        "default_spec_id": 0,
        "last_partition_id": 1000,
        "sort_orders": (SortOrder(),),
        "default_sort_order_id": 0,
    }
    return TableMetadata(**fields)
