"""Types to and from JSON."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from strategies.spec_values import all_types

from icebergds.errors import InvalidMetadataError, UnsupportedFeatureError
from icebergds.spec.json.types import parse_scalar, type_from_json, type_to_json
from icebergds.spec.types import (
    INT,
    LONG,
    STRING,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TypeId,
    is_scalar,
)

PLAIN_NAMES = [
    type_id.value
    for type_id in TypeId
    if type_id not in (TypeId.DECIMAL, TypeId.FIXED, TypeId.GEOMETRY, TypeId.GEOGRAPHY)
]


@given(all_types())
def test_every_type_survives_its_json(field_type: IcebergType) -> None:
    assert type_from_json(type_to_json(field_type)) == field_type


@pytest.mark.parametrize("name", PLAIN_NAMES)
def test_types_without_parameters_are_their_names(name: str) -> None:
    field_type = parse_scalar(name)
    assert is_scalar(field_type)
    assert str(field_type) == name
    assert field_type.type_id == name
    assert parse_scalar(f" {name.upper()} ") is field_type


@pytest.mark.parametrize(
    ("text", "field_type", "canonical"),
    [
        ("decimal(9,2)", DecimalType(9, 2), "decimal(9, 2)"),
        ("DECIMAL( 38 , 10 )", DecimalType(38, 10), "decimal(38, 10)"),
        ("decimal(9,-20)", DecimalType(9, -20), "decimal(9, -20)"),
        ("fixed[ 16 ]", FixedType(16), "fixed[16]"),
        ("geometry", GeometryType(), "geometry"),
        ("geometry( srid:4326 )", GeometryType("srid:4326"), "geometry(srid:4326)"),
        ("geography", GeographyType(), "geography"),
        ("geography(srid:4326)", GeographyType("srid:4326"), "geography(srid:4326)"),
        (
            "Geography(EPSG:4326 , Karney)",
            GeographyType("EPSG:4326", "karney"),
            "geography(EPSG:4326, karney)",
        ),
    ],
)
def test_parameters_are_read(text: str, field_type: IcebergType, canonical: str) -> None:
    assert parse_scalar(text) == field_type
    assert type_to_json(field_type) == canonical
    assert parse_scalar(canonical) == field_type


@pytest.mark.parametrize(
    "text", ["money", "", "decimal", "decimal(9)", "fixed[x]", "fixed", "geography(a, flat)"]
)
def test_unknown_types_are_refused_by_name(text: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="type '"):
        parse_scalar(text)


@pytest.mark.parametrize("text", ["decimal(0,0)", "decimal(39,2)"])
def test_decimals_have_1_to_38_digits(text: str) -> None:
    with pytest.raises(InvalidMetadataError, match="precision"):
        parse_scalar(text)


@pytest.mark.parametrize("text", ["decimal(9,39)", "decimal(9,-39)", f"decimal(9,{'9' * 5000})"])
def test_decimals_have_scales_that_their_digits_reach(text: str) -> None:
    with pytest.raises(InvalidMetadataError, match="scale"):
        parse_scalar(text)


@pytest.mark.parametrize("text", ["fixed[2147483648]", f"fixed[{'9' * 5000}]"])
def test_fixed_types_are_shorter_than_2_gigabytes(text: str) -> None:
    assert parse_scalar("fixed[2147483647]") == FixedType(2**31 - 1)
    with pytest.raises(InvalidMetadataError, match="length"):
        parse_scalar(text)


@pytest.mark.parametrize("kind", ["struct", "list", "map"])
def test_types_are_nested_at_most_a_hundred_deep(kind: str) -> None:
    def nested(levels: int) -> Any:
        obj: Any = "int"
        for at in range(levels):
            field = {"id": at, "name": "f", "required": True, "type": obj}
            obj = {
                "struct": {"type": "struct", "fields": [field]},
                "list": {
                    "type": "list",
                    "element-id": at,
                    "element": obj,
                    "element-required": True,
                },
                "map": {
                    "type": "map",
                    "key-id": 2 * at,
                    "key": "int",
                    "value-id": 2 * at + 1,
                    "value": obj,
                    "value-required": True,
                },
            }[kind]
        return obj

    assert type_to_json(type_from_json(nested(100))) == nested(100)
    for levels in (101, 5000):
        with pytest.raises(InvalidMetadataError, match="100 deep"):
            type_from_json(nested(levels))


@pytest.mark.parametrize(
    "members",
    [{"name": "\ud800"}, {"initial-default": "a\udfff"}, {"write-default": "\ud800"}],
    ids=["name", "initial default", "write default"],
)
def test_halves_of_characters_are_no_text(members: dict[str, str]) -> None:
    field = {"id": 1, "name": "a", "required": True, "type": "string", **members}
    with pytest.raises(InvalidMetadataError, match="not valid Unicode"):
        type_from_json({"type": "struct", "fields": [field]})


def test_an_unknown_nested_type_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match="'set'"):
        type_from_json({"type": "set", "element": "int"})


@pytest.mark.parametrize(
    ("obj", "missing"),
    [
        ({"type": "list", "element": "int", "element-required": True}, "element-id"),
        ({"type": "list", "element-id": 1, "element": "int"}, "element-required"),
        ({"type": "map", "key-id": 1, "key": "int", "value": "int"}, "value-id"),
        ({"type": "struct"}, "fields"),
        ({"fields": []}, "type"),
        ({"type": "struct", "fields": [{"id": 1, "required": True, "type": "int"}]}, "name"),
        ({"type": "struct", "fields": [{"id": 1, "name": "a", "type": "int"}]}, "required"),
        ({"type": "struct", "fields": [{"id": 1, "name": "a", "required": True}]}, "type"),
    ],
    ids=str,
)
def test_what_a_type_lacks_is_named(obj: dict[str, Any], missing: str) -> None:
    with pytest.raises(InvalidMetadataError, match=f"'{missing}'"):
        type_from_json(obj)


def test_a_member_of_the_wrong_kind_is_shown() -> None:
    obj = {"type": "list", "element-id": "7", "element": "int", "element-required": True}
    with pytest.raises(InvalidMetadataError, match=r"'element-id' of a list type is \"7\""):
        type_from_json(obj)


def test_members_that_nobody_knows_are_written_back_at_every_level() -> None:
    field = {"id": 1, "name": "a", "required": True, "type": "int", "x-field": {"deep": [1]}}
    struct = {"type": "struct", "fields": [field], "x-struct": 1}
    listed = {
        "type": "list",
        "element-id": 2,
        "element": struct,
        "element-required": True,
        "x-list": None,
    }
    obj = {
        "type": "map",
        "key-id": 3,
        "key": "string",
        "value-id": 4,
        "value": listed,
        "value-required": False,
        "x-map": "y",
    }
    assert type_to_json(type_from_json(obj)) == obj


def test_members_that_nobody_knows_do_not_make_types_differ() -> None:
    plain = NestedField(1, "a", LONG)
    marked = NestedField(1, "a", LONG, unknown={"x": 1})
    assert plain == marked
    assert hash(plain) == hash(marked)


@pytest.mark.parametrize(
    "field_type",
    [
        INT,
        DecimalType(9, 2),
        GeographyType("a", "karney"),
        StructType((NestedField(1, "a", ListType(2, STRING), initial_default=["x"]),)),
        MapType(1, STRING, 2, INT),
    ],
    ids=str,
)
def test_types_can_be_keys(field_type: IcebergType) -> None:
    assert {field_type: 1}[type_from_json(type_to_json(field_type))] == 1
