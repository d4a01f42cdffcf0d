"""Single values as JSON."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given
from spec_vectors import case_id, cases
from strategies.spec_values import scalar_types, typed_values

from icebergds.errors import InvalidMetadataError, UnsupportedFeatureError
from icebergds.spec.json.types import type_from_json
from icebergds.spec.json.values import from_json, to_json
from icebergds.spec.types import (
    BINARY,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    VARIANT,
    DecimalType,
    GeographyType,
    GeometryType,
    IcebergType,
    MapType,
    NestedField,
    StructType,
)


@pytest.mark.parametrize("case", cases("single_value_json"), ids=case_id)
def test_published_values_are_read_and_written(case: dict[str, Any]) -> None:
    field_type = type_from_json(case["type"])
    assert to_json(field_type, from_json(field_type, case["json"])) == case["json"]


@pytest.mark.parametrize("case", cases("single_value_json_invalid"), ids=case_id)
def test_published_errors_are_errors(case: dict[str, Any]) -> None:
    with pytest.raises(InvalidMetadataError, match="is not a JSON value of type"):
        from_json(type_from_json(case["type"]), case["json"])


@given(typed_values(scalar_types()))
def test_every_value_survives_its_json_text(typed_value: tuple[IcebergType, Any]) -> None:
    field_type, value = typed_value
    text = json.dumps(to_json(field_type, value), allow_nan=False)
    assert from_json(field_type, json.loads(text)) == value


def test_null_is_null() -> None:
    assert from_json(INT, None) is None
    assert to_json(INT, None) is None


def test_members_left_out_of_a_struct_are_null() -> None:
    struct_type = StructType((NestedField(1, "x", INT), NestedField(2, "y", INT)))
    assert from_json(struct_type, {"2": 5, "99": "not a field"}) == (None, 5)
    assert from_json(struct_type, {}) == (None, None)
    assert to_json(struct_type, (None, None)) == {}


def test_a_map_is_a_list_of_pairs() -> None:
    map_type = MapType(1, STRING, 2, INT)
    assert from_json(map_type, {"keys": ["a", "b"], "values": [1, None]}) == [("a", 1), ("b", None)]


def test_floats_are_of_single_precision() -> None:
    assert from_json(FLOAT, 1.1) == struct.unpack("<f", struct.pack("<f", 1.1))[0]
    assert to_json(FLOAT, from_json(FLOAT, 1.1)) == 1.1


def test_whole_numbers_are_floating_point_numbers_too() -> None:
    assert from_json(DOUBLE, 1) == 1.0


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("field_type", [FLOAT, DOUBLE], ids=str)
def test_numbers_that_json_lacks_are_written_by_name(field_type: IcebergType, text: str) -> None:
    assert to_json(field_type, from_json(field_type, text)) == text


def test_bytes_are_read_in_either_case_and_written_in_lower() -> None:
    assert to_json(BINARY, from_json(BINARY, "DEADbeef")) == "deadbeef"


@pytest.mark.parametrize(
    ("field_type", "obj"),
    [
        (INT, True),
        (INT, 2**31),
        (FLOAT, 1e39),
        (DOUBLE, "1.0"),
        (DecimalType(5, 2), "123.456"),
        (DecimalType(5, 2), "1.5"),
        (DecimalType(5, 2), "1234.56"),
        (DecimalType(5, 2), "NaN"),
        (DecimalType(5, 2), "one"),
        (BINARY, "0"),
        (BINARY, "zz"),
        (TIMESTAMP, "2007-12-03"),
        (MapType(1, STRING, 2, INT), {"keys": ["a"]}),
        (StructType(()), []),
    ],
    ids=str,
)
def test_what_is_no_value_of_the_type_is_refused(field_type: IcebergType, obj: Any) -> None:
    with pytest.raises(InvalidMetadataError, match="is not a JSON value of type"):
        from_json(field_type, obj)


@pytest.mark.parametrize("field_type", [UNKNOWN, VARIANT, GeometryType(), GeographyType()], ids=str)
def test_types_that_default_to_null_have_no_other_value(field_type: IcebergType) -> None:
    assert from_json(field_type, None) is None
    with pytest.raises(UnsupportedFeatureError):
        from_json(field_type, "POINT (1 2)")
    with pytest.raises(UnsupportedFeatureError):
        to_json(field_type, b"\0")
