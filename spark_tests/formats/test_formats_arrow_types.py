"""Arrow types and arrays of Iceberg types and in-memory values."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from built.data_files import with_id
from built.schemas import optional, required

from icebergds.formats.arrow.types import (
    default_value,
    field_id_of,
    repeat,
    schema_to_arrow,
    to_array,
    to_arrow,
)
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    StructType,
)

NESTED = StructType(
    (
        required(2, "n", INT),
        optional(3, "l", ListType(4, StructType((optional(5, "x", STRING),)), True)),
        optional(6, "m", MapType(7, STRING, 8, LONG)),
    )
)


@pytest.mark.parametrize(
    ("iceberg", "arrow"),
    [
        (BOOLEAN, pa.bool_()),
        (INT, pa.int32()),
        (LONG, pa.int64()),
        (FLOAT, pa.float32()),
        (DOUBLE, pa.float64()),
        (DecimalType(38, 10), pa.decimal128(38, 10)),
        (DATE, pa.date32()),
        (TIME, pa.time64("us")),
        (TIMESTAMP, pa.timestamp("us")),
        (TIMESTAMPTZ, pa.timestamp("us", "UTC")),
        (TIMESTAMP_NS, pa.timestamp("ns")),
        (TIMESTAMPTZ_NS, pa.timestamp("ns", "UTC")),
        (STRING, pa.string()),
        (UUID, pa.binary(16)),
        (FixedType(3), pa.binary(3)),
        (BINARY, pa.binary()),
        (GeometryType(), pa.binary()),
        (GeographyType(), pa.binary()),
        (UNKNOWN, pa.null()),
    ],
)
def test_scalar_types_have_one_storage_type(iceberg, arrow):
    assert to_arrow(iceberg) == arrow


def test_nullability_and_ids_are_kept_at_every_level():
    schema = schema_to_arrow(Schema((optional(1, "s", NESTED),)))
    expected = pa.schema(
        [
            with_id(
                "s",
                pa.struct(
                    [
                        with_id("n", pa.int32(), 2, nullable=False),
                        with_id(
                            "l",
                            pa.list_(
                                with_id(
                                    "element",
                                    pa.struct([with_id("x", pa.string(), 5)]),
                                    4,
                                    nullable=False,
                                )
                            ),
                            3,
                        ),
                        with_id(
                            "m",
                            pa.map_(
                                with_id("key", pa.string(), 7, nullable=False),
                                with_id("value", pa.int64(), 8),
                            ),
                            6,
                        ),
                    ]
                ),
                1,
            )
        ]
    )
    assert schema.equals(expected, check_metadata=True)
    list_field = schema.field("s").type.field("l").type.value_field
    assert (field_id_of(list_field), field_id_of(list_field.type.field("x"))) == (4, 5)
    map_type = schema.field("s").type.field("m").type
    assert (field_id_of(map_type.key_field), field_id_of(map_type.item_field)) == (7, 8)


def test_variant_is_a_struct_of_two_required_binaries_without_ids():
    variant = to_arrow(VARIANT)
    assert [(f.name, f.type, f.nullable, f.metadata) for f in variant] == [
        ("metadata", pa.binary(), False, None),
        ("value", pa.binary(), False, None),
    ]


def test_in_memory_values_become_arrow_values():
    values = {
        DATE: 19_000,
        TIME: 1,
        TIMESTAMPTZ: -1,
        TIMESTAMP_NS: 2**62,
        UUID: b"0123456789abcdef",
        DecimalType(38, 2): Decimal("123456789012345678901234567890123456.78"),
    }
    for field_type, value in values.items():
        array = to_array(field_type, [value, None])
        assert array.type == to_arrow(field_type)
        assert array.null_count == 1
        if not isinstance(value, bytes | Decimal):
            width = pa.int32() if field_type == DATE else pa.int64()
            assert array.view(width)[0].as_py() == value
        else:
            assert array[0].as_py() == value


def test_nested_values_become_arrow_values():
    rows = [(1, [("a",), (None,)], [("k", 1), ("z", None)]), None, (2, None, None), (3, [], [])]
    array = to_array(NESTED, rows)
    array.validate(full=True)
    assert array.type == to_arrow(NESTED)
    assert array.to_pylist() == [
        {"n": 1, "l": [{"x": "a"}, {"x": None}], "m": [("k", 1), ("z", None)]},
        None,
        {"n": 2, "l": None, "m": None},
        {"n": 3, "l": [], "m": []},
    ]


def test_repeat_makes_arrays_of_any_length():
    assert (
        repeat(NESTED, (1, None, [("k", 2)]), 2).to_pylist()
        == [{"n": 1, "l": None, "m": [("k", 2)]}] * 2
    )
    assert repeat(LONG, 7, 0).type == pa.int64()
    assert repeat(LONG, None, 3).null_count == 3
    assert len(repeat(STRING, "x", 70_000)) == 70_000


def test_a_struct_default_is_made_of_its_fields_defaults():
    inner = StructType((optional(2, "x", INT, initial_default=5), optional(3, "y", STRING)))
    assert default_value(optional(1, "s", inner)) is None
    assert default_value(optional(1, "s", inner, initial_default=())) == (5, None)
    assert default_value(optional(1, "s", inner, initial_default=(None, None))) == (5, None)


def test_negative_field_ids_of_files_are_no_ids():
    assert field_id_of(with_id("a", pa.int32(), -1)) is None
    assert field_id_of(with_id("a", pa.int32())) is None
    assert field_id_of(with_id("a", pa.int32(), 0)) == 0
