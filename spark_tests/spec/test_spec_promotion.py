"""Which types columns may be promoted to."""

from __future__ import annotations

import pytest
from hypothesis import given
from strategies.spec_values import all_types

from icebergds.spec.evolution.promotion import can_promote
from icebergds.spec.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    UNKNOWN,
    DecimalType,
    IcebergType,
    ListType,
)


@given(all_types())
def test_every_type_reads_as_itself_and_unknown_as_every_type(field_type: IcebergType) -> None:
    assert can_promote(field_type, field_type)
    assert can_promote(UNKNOWN, field_type)


@pytest.mark.parametrize(
    ("from_type", "to_type"),
    [(INT, LONG), (FLOAT, DOUBLE), (DecimalType(9, 2), DecimalType(38, 2))],
    ids=str,
)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_numbers_widen_in_every_version(
    from_type: IcebergType, to_type: IcebergType, version: int
) -> None:
    assert can_promote(from_type, to_type, version)
    assert not can_promote(to_type, from_type, version)


@pytest.mark.parametrize(
    ("from_type", "to_type"), [(DATE, TIMESTAMP), (DATE, TIMESTAMP_NS), (UNKNOWN, INT)], ids=str
)
def test_some_promotions_came_with_version_3(from_type: IcebergType, to_type: IcebergType) -> None:
    assert can_promote(from_type, to_type)
    assert not can_promote(from_type, to_type, format_version=2)


@pytest.mark.parametrize(
    ("from_type", "to_type"),
    [
        (DATE, TIMESTAMPTZ),
        (TIMESTAMP, TIMESTAMP_NS),
        (INT, DOUBLE),
        (INT, STRING),
        (DecimalType(9, 2), DecimalType(10, 3)),
        (ListType(1, INT), ListType(1, LONG)),
    ],
    ids=str,
)
def test_nothing_else_is_a_promotion(from_type: IcebergType, to_type: IcebergType) -> None:
    assert not can_promote(from_type, to_type)
