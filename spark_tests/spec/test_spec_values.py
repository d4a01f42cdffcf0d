"""Single values as bytes."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st
from spec_vectors import case_id, cases, value_of
from strategies.spec_values import INT32, decimal_types, scalar_types, typed_values

from icebergds.errors import CorruptFileError, InvalidDataError, UnsupportedFeatureError
from icebergds.spec.json.types import parse_scalar
from icebergds.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
)
from icebergds.spec.values.binary import from_bytes, to_bytes

SINGLE_VALUES = [case for case in cases("single_value_binary") if "(bound)" not in case["type"]]
GEOMETRY_BOUNDS = [case for case in cases("single_value_binary") if "(bound)" in case["type"]]


@pytest.mark.parametrize("case", SINGLE_VALUES, ids=case_id)
def test_values_have_the_published_bytes(case: dict[str, Any]) -> None:
    field_type = parse_scalar(case["type"])
    value = value_of(field_type, case["value"])
    assert to_bytes(field_type, value).hex() == case["hex"]
    assert repr(from_bytes(field_type, bytes.fromhex(case["hex"]))) == repr(value)


@pytest.mark.parametrize("case", cases("single_value_binary_decode"), ids=case_id)
def test_older_forms_are_read(case: dict[str, Any]) -> None:
    field_type = parse_scalar(case["type"])
    assert from_bytes(field_type, bytes.fromhex(case["hex"])) == value_of(field_type, case["value"])


@pytest.mark.parametrize("case", GEOMETRY_BOUNDS, ids=case_id)
@pytest.mark.parametrize("field_type", [GeometryType(), GeographyType()], ids=str)
def test_corners_of_bounding_boxes_pass_as_they_are(
    field_type: IcebergType, case: dict[str, Any]
) -> None:
    data = bytes.fromhex(case["hex"])
    assert from_bytes(field_type, data) == data
    assert to_bytes(field_type, data) == data


@given(typed_values(scalar_types()))
def test_every_value_survives_its_bytes(typed_value: tuple[IcebergType, Any]) -> None:
    field_type, value = typed_value
    assert from_bytes(field_type, to_bytes(field_type, value)) == value


@given(INT32)
def test_bounds_of_int_are_bounds_of_long(value: int) -> None:
    assert from_bytes(LONG, to_bytes(INT, value)) == value


@given(st.floats(width=32, allow_nan=False))
def test_bounds_of_float_are_bounds_of_double(value: float) -> None:
    assert from_bytes(DOUBLE, struct.pack("<f", value)) == value


@given(INT32)
def test_bounds_of_date_are_midnights_of_promoted_timestamps(days: int) -> None:
    data = to_bytes(DATE, days)
    assert from_bytes(TIMESTAMP, data) == days * 86_400_000_000
    assert from_bytes(TIMESTAMP_NS, data) == days * 86_400_000_000_000


@given(typed_values(decimal_types()))
def test_bounds_of_narrower_decimals_are_read(typed_value: tuple[DecimalType, Decimal]) -> None:
    field_type, value = typed_value
    wider = DecimalType(38, field_type.scale)
    assert from_bytes(wider, to_bytes(field_type, value)) == value


def test_a_decimal_keeps_its_scale() -> None:
    assert str(from_bytes(DecimalType(9, 2), b"\x00")) == "0.00"


def test_bounds_of_fixed_may_be_cut() -> None:
    assert from_bytes(FixedType(20), b"abc") == b"abc"


@pytest.mark.parametrize(
    ("field_type", "data"),
    [
        (BOOLEAN, b""),
        (INT, b"\0" * 8),
        (INT, b""),
        (LONG, b"\0" * 5),
        (DATE, b"\0" * 8),
        (TIMESTAMPTZ, b"\0" * 4),
        (DecimalType(9, 2), b""),
        (UUID, b"\0" * 15),
        (STRING, b"\xe4\xbd"),
    ],
    ids=str,
)
def test_bytes_that_cannot_be_of_the_type_are_refused(field_type: IcebergType, data: bytes) -> None:
    with pytest.raises(CorruptFileError, match=str(field_type).replace("(", r"\(")[:6]):
        from_bytes(field_type, data)


@pytest.mark.parametrize(
    ("field_type", "value"),
    [
        (BOOLEAN, 1),
        (INT, 2**31),
        (INT, "1"),
        (LONG, 2**63),
        (STRING, b"a"),
        (BINARY, "a"),
        (UUID, b"short"),
        (DecimalType(9, 2), Decimal("0.001")),
        (DecimalType(9, 2), 1.5),
    ],
    ids=str,
)
def test_what_is_no_value_of_the_type_is_refused(field_type: IcebergType, value: object) -> None:
    with pytest.raises(InvalidDataError, match="is not a value of type"):
        to_bytes(field_type, value)


@pytest.mark.parametrize("field_type", [UNKNOWN, VARIANT, ListType(1, INT)], ids=str)
def test_types_without_a_binary_form_are_refused(field_type: IcebergType) -> None:
    with pytest.raises(UnsupportedFeatureError):
        to_bytes(field_type, None)
    with pytest.raises(UnsupportedFeatureError):
        from_bytes(field_type, b"\0")
