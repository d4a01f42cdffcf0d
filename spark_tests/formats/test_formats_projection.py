"""Columns of a file as columns of the read schema, on plain Arrow arrays."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from built.data_files import with_id
from built.schemas import optional, required

from icebergds.errors import CorruptFileError, InvalidDataError
from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.formats.data_file.file_schema import columns_of, restrict, to_schema
from icebergds.formats.data_file.projection import needed_leaves, plan_projection
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    BINARY,
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
    ListType,
    MapType,
    StructType,
)

POINT = pa.struct([with_id("x", pa.int32(), 11), with_id("y", pa.string(), 12)])


def project(fields, arrays, wanted, constants=None):
    """Projects arrays of a file with these Arrow fields, narrowed as the plan says."""
    file_schema = pa.schema(fields)
    columns, _, projection = plan(file_schema, wanted, constants)
    given = [narrow(arrays[file_schema.get_field_index(c.name)], c) for c in columns]
    batch = projection.apply(given, len(arrays[0]))
    batch.validate(full=True)
    assert batch.schema.equals(schema_to_arrow(Schema(wanted)), check_metadata=True)
    return batch


def plan(fields, wanted, constants=None):
    """The columns to read, their leaves, and what becomes of them."""
    leaves = needed_leaves(columns_of(fields), Schema(wanted), "f")
    columns = restrict(columns_of(fields), leaves)
    return columns, leaves, plan_projection(columns, Schema(wanted), constants or {}, "f")


def narrow(array, column):
    """What a reader gives for a column of which only some leaves are read."""
    if not pa.types.is_struct(array.type):
        return array
    names = [child.name for child in column.children]
    children = [narrow(array.field(child.name), child) for child in column.children]
    fields = [pa.field(name, child.type) for name, child in zip(names, children, strict=True)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())


def values(field, array, wanted):
    """One column of a file, read as the wanted field."""
    return project([field], [array], (wanted,)).column(0).to_pylist()


def test_columns_are_matched_by_id_whatever_their_names_and_order():
    batch = project(
        [with_id("a", pa.int32(), 1), with_id("b", pa.string(), 2), with_id("c", pa.float64(), 3)],
        [pa.array([1, 2], pa.int32()), pa.array(["p", "q"]), pa.array([0.5, 1.5])],
        (optional(3, "a", DOUBLE), optional(2, "B", STRING), optional(4, "c", INT)),
    )
    assert batch.column_names == ["a", "B", "c"]
    assert batch.to_pydict() == {"a": [0.5, 1.5], "B": ["p", "q"], "c": [None, None]}


def test_columns_with_equal_names_are_told_apart_by_id():
    fields = [with_id("a", pa.int32(), 1), with_id("a", pa.int32(), 2), with_id("A", pa.int32(), 3)]
    arrays = [pa.array([n], pa.int32()) for n in (1, 2, 3)]
    _, leaves, projection = plan(fields, (optional(3, "a", INT), optional(1, "x", INT)))
    assert leaves == {0, 2}
    assert projection.apply([arrays[0], arrays[2]], 1).to_pydict() == {"a": [3], "x": [1]}


def test_a_column_that_fits_is_passed_on_without_a_copy():
    array = pa.array(["a", None, "c"])
    batch = project([with_id("old", pa.string(), 1)], [array], (optional(1, "new", STRING),))
    assert [b and b.address for b in batch.column(0).buffers()] == [
        b and b.address for b in array.buffers()
    ]


def test_nested_columns_under_other_names_are_wrapped_without_a_copy():
    stored = pa.list_(with_id("item", POINT, 2))
    array = pa.array([[{"x": 1, "y": "a"}, None], None, [{"x": None, "y": "b"}]], stored)
    wanted = ListType(2, StructType((optional(11, "xx", INT), optional(12, "yy", STRING))))
    batch = project([with_id("l", stored, 1)], [array], (optional(1, "points", wanted),))
    assert batch.column(0).to_pylist() == [
        [{"xx": 1, "yy": "a"}, None],
        None,
        [{"xx": None, "yy": "b"}],
    ]
    mine, theirs = batch.column(0).values.field(1), array.values.field(1)
    assert mine.buffers()[2].address == theirs.buffers()[2].address


def test_fields_that_swapped_names_are_not_taken_for_fitting():
    swapped = StructType((optional(2, "a", INT), optional(1, "b", INT)))
    stored = pa.struct([with_id("a", pa.int32(), 1), with_id("b", pa.int32(), 2)])
    array = pa.array([{"a": 1, "b": 2}], stored)
    assert values(with_id("s", stored, 9), array, optional(9, "s", swapped)) == [{"a": 2, "b": 1}]


@pytest.mark.parametrize("cut", [slice(0, 4), slice(1, 4), slice(2, 3), slice(4, 4)])
def test_sliced_nested_arrays_keep_their_rows(cut):
    stored = pa.struct(
        [
            with_id("l", pa.list_(with_id("e", pa.int32(), 3)), 2),
            with_id("m", pa.map_(with_id("k", pa.string(), 5, False), with_id("v", POINT, 6)), 4),
        ]
    )
    rows = [
        {"l": [1, None], "m": [("a", {"x": 1, "y": "p"})]},
        None,
        {"l": None, "m": [("b", None), ("c", {"x": None, "y": None})]},
        {"l": [3], "m": None},
    ]
    wanted = StructType(
        (
            optional(4, "mm", MapType(5, STRING, 6, StructType((optional(11, "x", LONG),)))),
            optional(2, "ll", ListType(3, LONG)),
        )
    )
    array = pa.array(rows, stored)[cut]
    fields = [with_id("s", stored, 1)]
    _, leaves, projection = plan(fields, (optional(1, "s", wanted),))
    assert leaves == {0, 1, 2}
    narrowed = pa.struct(
        [
            pa.field("l", pa.list_(pa.int32())),
            pa.field("m", pa.map_(pa.string(), pa.struct([pa.field("x", pa.int32())]))),
        ]
    )
    without_y = [
        row
        and {
            "l": row["l"],
            "m": row["m"] and [(k, v and {"x": v["x"]}) for k, v in row["m"]],
        }
        for row in rows
    ]
    batch = projection.apply([pa.array(without_y, narrowed)[cut]], len(array))
    batch.validate(full=True)
    assert batch.column(0).to_pylist() == [
        row and {"mm": row["m"], "ll": row["l"]} for row in without_y[cut]
    ]


def test_absent_columns_take_the_constant_then_the_default_then_null():
    batch = project(
        [with_id("a", pa.int32(), 1)],
        [pa.array([1, 2], pa.int32())],
        (
            optional(2, "constant", INT, initial_default=5),
            optional(3, "default", INT, initial_default=6),
            optional(4, "null", INT),
            optional(5, "null_constant", INT, initial_default=7),
        ),
        constants={2: 9, 5: None, 1: 100},
    )
    assert (
        batch.to_pylist()
        == [{"constant": 9, "default": 6, "null": None, "null_constant": None}] * 2
    )


def test_a_constant_gives_way_to_what_the_file_stores():
    assert project(
        [with_id("a", pa.int32(), 1)],
        [pa.array([1, None], pa.int32())],
        (optional(1, "a", INT),),
        constants={1: 100},
    ).column(0).to_pylist() == [1, None]


def test_constants_stand_in_for_absent_fields_inside_structs():
    outer = pa.struct([with_id("p", POINT, 2)])
    wanted = StructType((optional(11, "x", INT), optional(13, "z", INT, initial_default=7)))
    array = pa.array([{"p": {"x": 1, "y": "a"}}, {"p": None}, None], outer)
    assert project(
        [with_id("s", outer, 1)],
        [array],
        (optional(1, "s", StructType((optional(2, "p", wanted),))),),
        constants={11: 100, 13: 9},
    ).column(0).to_pylist() == [{"p": {"x": 1, "z": 9}}, {"p": None}, None]


def test_a_constant_inside_of_an_absent_struct_says_that_it_is_not_null():
    inner = StructType((optional(4, "a", INT), optional(5, "b", INT, initial_default=7)))
    wanted = (optional(2, "s", StructType((optional(3, "t", inner), optional(6, "c", INT)))),)
    fields, arrays = [with_id("id", pa.int32(), 1)], [pa.array([1], pa.int32())]
    assert project(fields, arrays, wanted, constants={4: 9}).column(0).to_pylist() == [
        {"t": {"a": 9, "b": 7}, "c": None}
    ]
    assert project(fields, arrays, wanted, constants={4: None}).column(0).to_pylist() == [None]


def test_a_constant_takes_the_place_of_a_part_of_an_absent_structs_default():
    inner = StructType((optional(3, "a", INT, initial_default=1), optional(4, "b", INT)))
    wanted = (optional(2, "s", inner, initial_default=()),)
    fields, arrays = [with_id("id", pa.int32(), 1)], [pa.array([1], pa.int32())]
    for value in (9, None):
        batch = project(fields, arrays, wanted, constants={3: value})
        assert batch.column(0).to_pylist() == [{"a": value, "b": None}]


def test_a_column_of_type_unknown_is_null_whatever_its_constant():
    fields, arrays = [with_id("id", pa.int32(), 1)], [pa.array([1], pa.int32())]
    batch = project(fields, arrays, (optional(2, "u", UNKNOWN),), constants={2: "a"})
    assert batch.column(0).to_pylist() == [None]


def test_defaults_fill_absent_fields_inside_structs_lists_and_maps():
    point = StructType((optional(11, "x", INT), optional(13, "z", INT, initial_default=7)))
    stored = pa.struct(
        [
            with_id("p", POINT, 2),
            with_id("l", pa.list_(with_id("element", POINT, 4)), 3),
            with_id(
                "m", pa.map_(with_id("key", pa.string(), 6, False), with_id("value", POINT, 7)), 5
            ),
        ]
    )
    value = {"x": 1, "y": "a"}
    array = pa.array([{"p": value, "l": [value, None], "m": [("k", value)]}], stored)
    wanted = StructType(
        (
            optional(2, "p", point),
            optional(3, "l", ListType(4, point)),
            optional(5, "m", MapType(6, STRING, 7, point)),
        )
    )
    fields = [with_id("s", stored, 1)]
    _, leaves, projection = plan(fields, (optional(1, "s", wanted),))
    assert leaves == {0, 2, 4, 5}
    short = {"x": 1}
    x = pa.struct([("x", pa.int32())])
    narrowed = pa.struct([("p", x), ("l", pa.list_(x)), ("m", pa.map_(pa.string(), x))])
    given = pa.array([{"p": short, "l": [short, None], "m": [("k", short)]}], narrowed)
    filled = {"x": 1, "z": 7}
    assert projection.apply([given], 1).column(0).to_pylist() == [
        {"p": filled, "l": [filled, None], "m": [("k", filled)]}
    ]
    assert len(array) == 1


def test_a_struct_of_which_no_field_is_stored_is_null_where_the_file_says_so():
    batch = project(
        [with_id("s", POINT, 1)],
        [pa.array([{"x": None, "y": "a"}, None], POINT)],
        (optional(1, "s", StructType((optional(20, "new", INT, initial_default=3),))),),
    )
    assert batch.column(0).to_pylist() == [{"new": 3}, None]


def test_one_column_may_stand_twice_with_different_fields():
    fields = [with_id("s", POINT, 1)]
    x, y = StructType((optional(11, "x", INT),)), StructType((optional(12, "y", STRING),))
    _, _, projection = plan(fields, (optional(1, "s", x), optional(1, "s", y)))
    batch = projection.apply([pa.array([{"x": 1, "y": "a"}], POINT)], 1)
    assert [column.to_pylist() for column in batch.columns] == [[{"x": 1}], [{"y": "a"}]]


@pytest.mark.parametrize(
    ("stored", "raw", "wanted", "expected"),
    [
        (pa.int32(), [1, None], LONG, [1, None]),
        (pa.int8(), [-1], INT, [-1]),
        (pa.uint16(), [65535], INT, [65535]),
        (pa.uint32(), [2**32 - 1], LONG, [2**32 - 1]),
        (pa.float32(), [0.5, None], DOUBLE, [0.5, None]),
        (pa.decimal128(5, 2), [Decimal("1.25")], DecimalType(38, 2), [Decimal("1.25")]),
        (pa.decimal256(20, 2), [Decimal("1.25")], DecimalType(20, 2), [Decimal("1.25")]),
        (pa.date32(), [dt.date(1969, 12, 31)], TIMESTAMP, [dt.datetime(1969, 12, 31)]),
        (pa.large_string(), ["a", None], STRING, ["a", None]),
        (pa.string_view(), ["a" * 40], STRING, ["a" * 40]),
        (pa.dictionary(pa.int8(), pa.string()), ["a", "a", None], STRING, ["a", "a", None]),
        (pa.binary(), ["é".encode(), None], STRING, ["é", None]),
        (pa.string(), ["é", None], BINARY, ["é".encode(), None]),
        (pa.binary(2), [b"ab"], BINARY, [b"ab"]),
        (pa.binary(), [b"0123456789abcdef", None], UUID, [b"0123456789abcdef", None]),
        (pa.binary(), [b"abc"], FixedType(3), [b"abc"]),
        (pa.time32("ms"), [dt.time(0, 0, 1)], TIME, [dt.time(0, 0, 1)]),
        (pa.int64(), [1_000_000, None], TIME, [dt.time(0, 0, 1), None]),
        (pa.null(), [None], STRING, [None]),
        (pa.int32(), [5], UNKNOWN, [None]),
    ],
)
def test_stored_types_are_read_as_the_tables_type(stored, raw, wanted, expected):
    array = pa.array(raw, stored)
    assert values(with_id("a", stored, 1), array, optional(1, "a", wanted)) == expected


@pytest.mark.parametrize("tz", [None, "UTC", "America/New_York"])
@pytest.mark.parametrize(
    ("unit", "wanted", "expected"),
    [
        ("s", TIMESTAMP, [1_000_000, -1_000_000, None]),
        ("ms", TIMESTAMPTZ, [1_000, -1_000, None]),
        ("us", TIMESTAMP, [1, -1, None]),
        ("us", TIMESTAMPTZ, [1, -1, None]),
        ("ns", TIMESTAMP, [0, -1, None]),
        ("us", TIMESTAMPTZ_NS, [1_000, -1_000, None]),
        ("ns", TIMESTAMP_NS, [1, -1, None]),
    ],
)
def test_timestamps_are_rescaled_and_their_zone_is_the_tables(tz, unit, wanted, expected):
    stored = pa.timestamp(unit, tz)
    array = pa.array([1, -1, None], pa.int64()).view(stored)
    read = project([with_id("t", stored, 1)], [array], (optional(1, "t", wanted),)).column(0)
    assert read.view(pa.int64()).to_pylist() == expected


def test_casts_ignore_what_stands_under_nulls():
    overflow = pa.py_buffer((2**62).to_bytes(8, "little") + bytes(8))
    array = pa.Array.from_buffers(pa.timestamp("ms"), 2, [pa.py_buffer(b"\x02"), overflow])
    read = project([with_id("t", array.type, 1)], [array], (optional(1, "t", TIMESTAMP),))
    assert read.column(0).to_pylist() == [None, dt.datetime(1970, 1, 1)]


@pytest.mark.parametrize(
    ("stored", "raw", "wanted"),
    [
        (pa.int64(), [2**31], INT),
        (pa.uint64(), [2**63], LONG),
        (pa.date32(), [2**31 - 1], TIMESTAMP),
        (pa.timestamp("ms"), [2**62], TIMESTAMP),
        (pa.timestamp("us"), [2**61], TIMESTAMP_NS),
        (pa.binary(), [b"\xff"], STRING),
        (pa.binary(), [b"short"], UUID),
        (pa.decimal128(10, 2), [Decimal("99999999.99")], DecimalType(9, 2)),
    ],
)
def test_a_value_that_does_not_fit_is_an_error_and_never_wraps(stored, raw, wanted):
    array = pa.array(raw, stored)
    with pytest.raises(InvalidDataError, match=r"column 'a' of f"):
        project([with_id("a", stored, 1)], [array], (optional(1, "a", wanted),))


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (pa.string(), INT),
        (pa.int32(), STRING),
        (pa.float64(), FLOAT),
        (pa.float64(), LONG),
        (pa.int32(), DATE),
        (pa.date32(), TIMESTAMPTZ),
        (pa.timestamp("us"), DATE),
        (pa.int64(), TIMESTAMP),
        (POINT, INT),
        (pa.int32(), StructType((optional(2, "x", INT),))),
        (pa.list_(pa.int32()), StructType((optional(2, "x", INT),))),
        (POINT, ListType(2, INT)),
        (pa.list_(pa.int32()), MapType(2, STRING, 3, INT)),
        (POINT, VARIANT),
    ],
)
def test_a_type_that_cannot_be_the_tables_is_an_error(stored, wanted):
    with pytest.raises(CorruptFileError, match=r"column 'a' of f.* stores"):
        project([with_id("a", stored, 1)], [pa.nulls(1, stored)], (optional(1, "a", wanted),))


def test_an_absent_required_column_needs_a_value():
    fields, arrays = [with_id("a", pa.int32(), 1)], [pa.array([1], pa.int32())]
    with pytest.raises(InvalidDataError, match=r"'b' of f is required.*field id 2"):
        project(fields, arrays, (required(2, "b", INT),))
    with pytest.raises(InvalidDataError, match="'b'"):
        project(fields, arrays, (required(2, "b", INT, initial_default=1),), constants={2: None})
    default = required(2, "b", INT, initial_default=1)
    assert project(fields, arrays, (default,)).column(0).to_pylist() == [1]
    with pytest.raises(InvalidDataError, match=r"'s\.z' of f is required"):
        project(
            [with_id("s", POINT, 1)],
            [pa.array([{"x": 1}], POINT)],
            (optional(1, "s", StructType((required(13, "z", INT),))),),
        )


def test_nulls_in_required_columns_are_errors_at_every_level():
    nullable_list = pa.list_(with_id("element", pa.int32(), 2))
    nullable_map = pa.map_(with_id("key", pa.string(), 2, False), with_id("value", pa.int32(), 3))
    cases = [
        (pa.int32(), [1, None], required(1, "a", INT), "'a'"),
        (
            POINT,
            [{"x": None, "y": "a"}, None],
            optional(1, "a", StructType((required(11, "x", INT),))),
            r"'a\.x'",
        ),
        (nullable_list, [[None]], optional(1, "a", ListType(2, INT, True)), r"'a\.element'"),
        (
            nullable_map,
            [[("k", None)]],
            optional(1, "a", MapType(2, STRING, 3, INT, True)),
            r"'a\.value'",
        ),
    ]
    for stored, raw, wanted, name in cases:
        with pytest.raises(InvalidDataError, match=rf"column {name} of f is required.*nulls"):
            project([with_id("a", stored, 1)], [pa.array(raw, stored)], (wanted,))


def test_a_null_struct_excuses_its_required_fields():
    wanted = StructType((required(11, "x", INT),))
    array = pa.array([{"x": 1, "y": "a"}, None], POINT)
    assert values(with_id("s", POINT, 1), array, optional(1, "s", wanted)) == [{"x": 1}, None]


INT_MAP = pa.map_(with_id("key", pa.string(), 2, False), with_id("value", pa.int32(), 3))
POINTS = pa.list_(with_id("element", POINT, 2))
REQUIRED_X = StructType((required(11, "x", INT),))
HIDDEN = pa.array([0, 1, 2], pa.int32())
NULL_FIRST = pa.array([True, False])


@pytest.mark.parametrize(
    ("array", "wanted", "expected"),
    [
        (
            pa.array([[("k", None)], [("k", 1)]], INT_MAP).slice(1),
            MapType(2, STRING, 3, INT, True),
            [[("k", 1)]],
        ),
        (
            pa.MapArray.from_arrays(
                HIDDEN,
                pa.array(["k", "k"]),
                pa.array([None, 1], pa.int32()),
                type=INT_MAP,
                mask=NULL_FIRST,
            ),
            MapType(2, STRING, 3, INT, True),
            [None, [("k", 1)]],
        ),
        (
            pa.array([[None], [{"x": 1}]], POINTS).slice(1),
            ListType(2, REQUIRED_X, True),
            [[{"x": 1}]],
        ),
        (
            pa.ListArray.from_arrays(
                HIDDEN, pa.array([{"x": None}, {"x": 1}], POINT), type=POINTS, mask=NULL_FIRST
            ),
            ListType(2, REQUIRED_X),
            [None, [{"x": 1}]],
        ),
        (
            pa.StructArray.from_arrays(
                [pa.array([{"x": None}, {"x": 1}], POINT)],
                fields=[with_id("p", POINT, 5)],
                mask=NULL_FIRST,
            ),
            StructType((optional(5, "p", REQUIRED_X),)),
            [None, {"p": {"x": 1}}],
        ),
    ],
    ids=["map slice", "null map", "list slice", "null list", "null struct around a struct"],
)
def test_nulls_behind_null_rows_and_outside_of_slices_do_not_count(array, wanted, expected):
    assert values(with_id("a", array.type, 1), array, optional(1, "a", wanted)) == expected


def test_large_fixed_and_view_lists_become_lists():
    for stored in (
        pa.large_list(with_id("item", pa.int32(), 2)),
        pa.list_(with_id("item", pa.int32(), 2), 2),
        pa.list_view(with_id("item", pa.int32(), 2)),
    ):
        array = pa.array([[1, 2], None, [3, None]], stored)
        wanted = optional(1, "l", ListType(2, LONG))
        assert values(with_id("l", stored, 1), array, wanted) == [[1, 2], None, [3, None]]


def test_extension_types_are_read_as_what_they_store():
    stored = pa.list_(with_id("element", pa.uuid(), 2))
    raw = pa.array([[b"0123456789abcdef"]], pa.list_(pa.binary(16))).cast(stored)
    assert values(with_id("l", stored, 1), raw, optional(1, "l", ListType(2, UUID))) == [
        [b"0123456789abcdef"]
    ]


def test_variants_are_read_by_the_names_of_their_parts():
    stored = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
    array = pa.array([{"value": b"v", "metadata": b"m"}, None], stored)
    assert values(with_id("v", stored, 1), array, optional(1, "v", VARIANT)) == [
        {"metadata": b"m", "value": b"v"},
        None,
    ]


def test_two_columns_with_the_id_that_is_read_are_an_error():
    fields = [with_id("a", pa.int32(), 1), with_id("b", pa.int32(), 1), with_id("c", pa.int32(), 2)]
    arrays = [pa.array([1], pa.int32())] * 3
    with pytest.raises(CorruptFileError, match="'a', 'b' all have field id 1"):
        project(fields, arrays, (optional(1, "a", INT),))
    assert project(fields, arrays, (optional(2, "c", INT),)).to_pydict() == {"c": [1]}


def test_a_files_schema_is_that_of_its_columns_with_ids():
    fields = [
        with_id("a", pa.int8(), 1, nullable=False),
        with_id("no_id", pa.int32()),
        with_id("s", POINT, 2),
        with_id("l", pa.large_list(with_id("item", pa.timestamp("ms", "UTC"), 4)), 3),
        with_id("m", pa.map_(with_id("key", pa.uuid(), 6, False), with_id("value", POINT, 7)), 5),
        with_id("v", pa.struct([("metadata", pa.binary()), ("value", pa.binary())]), 8),
        with_id("half", pa.list_(pa.int32()), 9),
    ]
    point = StructType((optional(11, "x", INT), optional(12, "y", STRING)))
    assert to_schema(columns_of(fields)).fields == (
        required(1, "a", INT),
        optional(2, "s", point),
        optional(3, "l", ListType(4, TIMESTAMPTZ)),
        optional(5, "m", MapType(6, UUID, 7, point)),
        optional(8, "v", VARIANT),
    )
