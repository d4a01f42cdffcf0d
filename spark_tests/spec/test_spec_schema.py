"""Schemas: JSON, look-ups and projections."""

from __future__ import annotations

import pickle
from decimal import Decimal
from typing import Any

import pytest

from icebergds.errors import InvalidMetadataError, UnsupportedFeatureError
from icebergds.spec.json.schema import schema_from_json, schema_to_json
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    INT,
    STRING,
    ListType,
    MapType,
    NestedField,
    StructType,
)

POINT = StructType((NestedField(21, "x", INT, required=True), NestedField(22, "y", INT)))
POINT_IN_MAP = StructType((NestedField(43, "x", INT), NestedField(44, "y", INT)))
SCHEMA = Schema(
    (
        NestedField(1, "id", INT, required=True),
        NestedField(2, "place", POINT),
        NestedField(3, "tags", ListType(31, STRING)),
        NestedField(4, "points", MapType(41, STRING, 42, POINT_IN_MAP)),
    ),
    schema_id=7,
    identifier_field_ids=(1,),
)


def schema_json(*fields: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"type": "struct", "schema-id": 0, "fields": list(fields), **members}


def field_json(field_id: int = 1, **members: Any) -> dict[str, Any]:
    return {"id": field_id, "name": f"f{field_id}", "required": False, "type": "int", **members}


def test_a_schema_survives_its_json() -> None:
    read = schema_from_json(schema_to_json(SCHEMA))
    assert read == SCHEMA
    assert read.schema_id == 7


def test_version_1_schemas_may_have_no_id() -> None:
    assert schema_from_json({"type": "struct", "fields": []}).schema_id == 0


def test_docs_and_defaults_survive() -> None:
    obj = schema_json(
        field_json(
            type="decimal(9, 2)",
            doc="price",
            **{"initial-default": "1.50", "write-default": "2.00"},
        ),
        field_json(2, type={"type": "struct", "fields": []}, **{"initial-default": {}}),
    )
    schema = schema_from_json(obj)
    assert schema.fields[0].initial_default == Decimal("1.50")
    assert schema.fields[0].write_default == Decimal("2.00")
    assert schema.fields[0].doc == "price"
    assert schema.fields[1].initial_default == ()
    assert schema_to_json(schema) == obj


def test_a_null_default_is_none() -> None:
    schema = schema_from_json(schema_json(field_json(type="variant", **{"initial-default": None})))
    assert schema.fields[0].initial_default is None


@pytest.mark.parametrize("type_name", ["unknown", "variant", "geometry", "geography"])
def test_types_that_default_to_null_take_no_other_default(type_name: str) -> None:
    obj = schema_json(field_json(type=type_name, **{"write-default": "x"}))
    with pytest.raises(InvalidMetadataError, match="'write-default' of field 'f1'"):
        schema_from_json(obj)


def test_members_that_nobody_knows_are_written_back() -> None:
    obj = schema_json(field_json(**{"x-field": [1]}), **{"x-schema": {"a": 1}})
    assert schema_to_json(schema_from_json(obj)) == obj


def test_an_id_given_twice_is_refused() -> None:
    nested = {"type": "list", "element-id": 1, "element": "int", "element-required": True}
    with pytest.raises(InvalidMetadataError, match="id 1 to both 'f1' and 'element'"):
        schema_from_json(schema_json(field_json(1, type=nested)))


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(InvalidMetadataError, match="more than one field named 'f1'"):
        schema_from_json(schema_json(field_json(1), field_json(2, name="f1")))


def test_names_that_differ_in_case_are_two_names() -> None:
    schema = schema_from_json(schema_json(field_json(1, name="a"), field_json(2, name="A")))
    assert schema.find_id("A") == 2
    assert schema.find_id("a", case_sensitive=False) == 1


def test_an_unknown_type_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match="'money'"):
        schema_from_json(schema_json(field_json(type="money")))


def test_only_structs_are_schemas() -> None:
    with pytest.raises(InvalidMetadataError, match="expected 'struct'"):
        schema_from_json({"type": "list", "fields": []})


def test_fields_are_found_by_id_and_by_name_at_every_level() -> None:
    assert SCHEMA.find_name(44) == "points.value.y"
    assert SCHEMA.find_id("points.value.y") == 44
    assert SCHEMA.find_id("Place.X", case_sensitive=False) == 21
    assert SCHEMA.find_field(31) == NestedField(31, "element", STRING)
    assert SCHEMA.find_field(99) is None
    assert SCHEMA.find_field("points.value.y") == SCHEMA.find_field(44)
    assert SCHEMA.find_field("place.x", case_sensitive=False) == SCHEMA.find_field(21)
    assert SCHEMA.find_field("none") is None
    assert SCHEMA.ancestors(44) == (42, 4)
    assert SCHEMA.highest_field_id == 44


def test_a_selection_keeps_what_is_around_its_fields() -> None:
    selected = SCHEMA.select([22, 44])
    assert [field.name for field in selected.fields] == ["place", "points"]
    assert set(selected.fields_by_id) == {2, 22, 4, 41, 42, 44}


def test_a_schema_survives_pickling_and_leaves_its_indexes_behind() -> None:
    assert SCHEMA.find_id("id") == 1
    state = pickle.dumps(SCHEMA)
    assert b"ids_by_name" not in state
    assert pickle.loads(state) == SCHEMA
