"""Schemas that no table may have: what is stored must be read again."""

from __future__ import annotations

from functools import reduce
from typing import cast

import pytest

from icebergds.errors import InvalidMetadataError
from icebergds.spec.json.schema import check_storable
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    INT,
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    NestedField,
    StructType,
)
from icebergds.spec.updates.schema_rules import check_schema


def _check(field: NestedField) -> None:
    check_schema(Schema((field,)), 3)


@pytest.mark.parametrize(
    "field_type",
    [
        DecimalType(40, 2),
        DecimalType(0, 0),
        DecimalType(5, -2),
        DecimalType(3, 5),
        FixedType(0),
        FixedType(-1),
    ],
    ids=str,
)
def test_types_beyond_the_specification(field_type: IcebergType) -> None:
    with pytest.raises(InvalidMetadataError, match="column 'c' is of type"):
        _check(NestedField(1, "c", field_type))


@pytest.mark.parametrize("field_type", [DecimalType(38, 38), DecimalType(1, 0), FixedType(1)])
def test_types_at_the_ends_of_the_specification(field_type: IcebergType) -> None:
    _check(NestedField(1, "c", field_type))


@pytest.mark.parametrize(
    "field",
    [
        NestedField(1, "c", INT, write_default="abc"),
        NestedField(1, "c", INT, initial_default=2**40),
        NestedField(1, "c", INT, doc=5),  # type: ignore[arg-type]
    ],
)
def test_fields_that_would_not_be_read_again(field: NestedField) -> None:
    with pytest.raises(InvalidMetadataError, match="cannot be stored in metadata"):
        check_storable(Schema((field,)))


def _structs(count: int) -> IcebergType:
    return reduce(
        lambda inner, number: StructType((NestedField(number, "f", inner),)),
        range(count + 1, 1, -1),
        cast(IcebergType, INT),
    )


def _lists(count: int) -> IcebergType:
    return reduce(
        lambda inner, number: ListType(number, inner),
        range(count + 1, 1, -1),
        cast(IcebergType, INT),
    )


@pytest.mark.parametrize("field_type", [_structs(98), _lists(49)], ids=["structs", "lists"])
def test_nesting_that_parquet_readers_take(field_type: IcebergType) -> None:
    _check(NestedField(1, "c", field_type))


@pytest.mark.parametrize(
    "field_type", [_structs(99), _structs(300), _lists(50)], ids=["structs", "many", "lists"]
)
def test_nesting_that_parquet_readers_refuse(field_type: IcebergType) -> None:
    with pytest.raises(InvalidMetadataError, match="column 'c' is nested deeper than 99 levels"):
        _check(NestedField(1, "c", field_type))
