"""Bounds of many files, decoded together, are those decoded one by one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from strategies.expressions import SCALAR_TYPES, values_of

from icebergds.errors import CorruptFileError
from icebergds.formats.arrow.types import to_array, to_arrow
from icebergds.formats.manifests.bound_values import bound_type, decode_bound_column
from icebergds.spec.types import (
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    FixedType,
    GeometryType,
    IcebergType,
)
from icebergds.spec.values.binary import from_bytes, to_bytes


def one_by_one(field_type: IcebergType, bounds: list[bytes | None]) -> list[str]:
    target = bound_type(field_type)
    values: list[Any] = []
    for data in bounds:
        try:
            value = None if data is None else from_bytes(target, data)
            to_array(target, [value])
        except (CorruptFileError, pa.ArrowException, OverflowError):
            value = None
        values.append(value)
    return repr_of(to_array(target, values))


def repr_of(values: pa.Array) -> list[str]:
    """Numbers stand for times, of which Python does not have all."""
    if pa.types.is_date(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_temporal(values.type):
        values = values.cast(pa.int64())
    return [repr(value) for value in values.to_pylist()]


@pytest.mark.parametrize("field_type", SCALAR_TYPES, ids=str)
def test_bounds_are_values_of_their_columns(field_type: IcebergType) -> None:
    stored = values_of(field_type).map(lambda value: to_bytes(field_type, value))

    @given(st.lists(st.none() | stored | st.binary(max_size=9), max_size=6))
    def check(bounds: list[bytes | None]) -> None:
        found = decode_bound_column(field_type, pa.array(bounds, pa.binary()))
        assert found.type == to_arrow(bound_type(field_type))
        assert repr_of(found) == one_by_one(field_type, bounds)

    check()


@pytest.mark.parametrize(("narrow", "wide"), [(INT, LONG), (FLOAT, DOUBLE)])
def test_bounds_from_before_a_promotion_are_read(narrow: IcebergType, wide: IcebergType) -> None:
    bounds = pa.array([to_bytes(narrow, 7), None, to_bytes(wide, 8)], pa.binary())
    assert decode_bound_column(wide, bounds).to_pylist() == [7, None, 8]


def test_a_slice_of_bounds_is_decoded() -> None:
    bounds = pa.array([to_bytes(LONG, number) for number in range(6)], pa.binary()).slice(2, 3)
    assert decode_bound_column(LONG, bounds).to_pylist() == [2, 3, 4]


def test_text_that_is_no_unicode_is_null() -> None:
    bounds = pa.array([b"a", b"\xff"], pa.binary())
    assert decode_bound_column(STRING, bounds).to_pylist() == ["a", None]


@pytest.mark.parametrize("field_type", [FixedType(4), GeometryType("OGC:CRS84")])
def test_bounds_that_are_no_values_stay_binary(field_type: IcebergType) -> None:
    bounds = pa.array([b"ab"], pa.binary())
    assert decode_bound_column(field_type, bounds).to_pylist() == [b"ab"]
