"""Incoming rows become rows of the table: by name, in its types, or not at all."""

from __future__ import annotations

import pickle
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from effort import examples
from hypothesis import given, strategies as st

from icebergds.errors import InvalidDataError
from icebergds.formats.arrow.types import schema_to_arrow, to_array
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
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
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)
from icebergds.write.rows.matching import Matching, plan_matching

SOME_UUID = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")


def optional(field_id: int, name: str, field_type: IcebergType, **more: Any) -> NestedField:
    return NestedField(field_id, name, field_type, **more)


def required(field_id: int, name: str, field_type: IcebergType, **more: Any) -> NestedField:
    return NestedField(field_id, name, field_type, True, **more)


def plan(incoming: pa.Schema, *fields: NestedField, **more: Any) -> Matching:
    return plan_matching(incoming, Schema(fields), table="db.t", **more)


def match(batch: pa.RecordBatch, *fields: NestedField, **more: Any) -> pa.RecordBatch:
    matched = plan(batch.schema, *fields, **more).apply(batch)
    assert matched.schema.equals(schema_to_arrow(Schema(fields)), check_metadata=True)
    matched.validate(full=True)
    return matched


def match_column(array: pa.Array, field_type: IcebergType, is_required: bool = False) -> pa.Array:
    field = NestedField(1, "c", field_type, is_required)
    return match(pa.record_batch([array], names=["c"]), field).column(0)


def batch_of(**columns: Any) -> pa.RecordBatch:
    return pa.record_batch(list(columns.values()), names=list(columns))


# Names


def test_columns_are_matched_by_name_and_take_the_order_of_the_table() -> None:
    matched = match(
        batch_of(b=pa.array(["x"]), a=pa.array([1], pa.int64())),
        optional(1, "a", LONG),
        optional(2, "b", STRING),
    )
    assert matched.to_pylist() == [{"a": 1, "b": "x"}]


def test_a_name_matches_regardless_of_case() -> None:
    assert match(batch_of(ID=pa.array([1])), optional(1, "id", LONG)).to_pylist() == [{"id": 1}]


def test_a_name_in_another_case_is_unknown_if_case_matters() -> None:
    with pytest.raises(InvalidDataError, match="did you mean 'id'"):
        plan(pa.schema({"ID": pa.int64()}), optional(1, "id", LONG), case_sensitive=True)


def test_an_exact_name_wins_over_one_in_another_case() -> None:
    matched = match(
        batch_of(A=pa.array([1]), a=pa.array([2])), optional(1, "a", LONG), optional(2, "A", LONG)
    )
    assert matched.to_pylist() == [{"a": 2, "A": 1}]


def test_a_name_that_could_be_two_columns_is_refused() -> None:
    with pytest.raises(InvalidDataError, match="is ambiguous, matches 'ab', 'AB'"):
        plan(pa.schema({"aB": pa.int64()}), optional(1, "ab", LONG), optional(2, "AB", LONG))


def test_an_unknown_column_is_refused_with_the_nearest_name_and_the_way_to_add_it() -> None:
    with pytest.raises(InvalidDataError, match=r"'amuont' .*db.t.*'amount'.*merge-schema"):
        plan(pa.schema({"amuont": pa.int64()}), optional(1, "amount", LONG))


def test_an_unknown_nested_field_is_named_with_its_path() -> None:
    incoming = pa.schema({"s": pa.list_(pa.struct({"y": pa.int64()}))})
    element = StructType((optional(3, "x", LONG),))
    with pytest.raises(InvalidDataError, match=r"'s\.element\.y'"):
        plan(incoming, optional(1, "s", ListType(2, element)))


@pytest.mark.parametrize("names", [("a", "a"), ("a", "A")])
def test_a_column_given_twice_is_refused(names: tuple[str, str]) -> None:
    incoming = pa.schema([pa.field(name, pa.int64()) for name in names])
    with pytest.raises(InvalidDataError, match=f"given twice, as '{names[0]}' and '{names[1]}'"):
        plan(incoming, optional(1, "a", LONG))


# Missing columns


def test_a_missing_optional_column_is_null() -> None:
    nested = StructType((required(3, "x", LONG), optional(4, "y", STRING)))
    matched = match(batch_of(a=pa.array([1, 2])), optional(1, "a", LONG), optional(2, "s", nested))
    assert matched.column("s").to_pylist() == [None, None]


def test_a_missing_column_takes_its_write_default_and_not_the_initial_one() -> None:
    field = required(2, "b", INT, initial_default=1, write_default=2)
    matched = match(batch_of(a=pa.array([1, 2])), optional(1, "a", LONG), field)
    assert matched.column("b").to_pylist() == [2, 2]


def test_a_given_null_does_not_take_the_write_default() -> None:
    matched = match(
        batch_of(a=pa.array([None, 1], pa.int64())), optional(1, "a", LONG, write_default=7)
    )
    assert matched.column("a").to_pylist() == [None, 1]


def test_fields_of_a_missing_struct_complete_its_default() -> None:
    inner = StructType((optional(3, "x", LONG, write_default=3), optional(4, "y", STRING)))
    field = optional(2, "s", inner, write_default=())
    matched = match(batch_of(a=pa.array([1])), optional(1, "a", LONG), field)
    assert matched.column("s").to_pylist() == [{"x": 3, "y": None}]


def test_a_missing_required_column_is_refused_before_anything_is_written() -> None:
    with pytest.raises(InvalidDataError, match=r"column 'b' of table db\.t is required"):
        plan(pa.schema({"a": pa.int64()}), optional(1, "a", LONG), required(2, "b", LONG))


def test_a_missing_required_field_of_a_struct_is_refused() -> None:
    incoming = pa.schema({"s": pa.struct({"x": pa.int64()})})
    inner = StructType((optional(2, "x", LONG), required(3, "y", LONG)))
    with pytest.raises(InvalidDataError, match=r"'s\.y'.*required"):
        plan(incoming, optional(1, "s", inner))


# Nulls


def test_nulls_in_a_required_column_are_refused_when_rows_come() -> None:
    batch = batch_of(a=pa.array([1, None, None]))
    planned = plan(batch.schema, required(1, "a", LONG))
    with pytest.raises(InvalidDataError, match=r"column 'a' of table db\.t is required, but 2"):
        planned.apply(batch)


STRUCT = StructType((required(2, "x", LONG), optional(3, "y", STRING)))


def test_nulls_in_a_required_field_are_refused_where_the_struct_is_not_null() -> None:
    batch = batch_of(
        s=pa.array([{"x": None, "y": "a"}, None], pa.struct({"x": pa.int64(), "y": pa.string()}))
    )
    with pytest.raises(InvalidDataError, match=r"'s\.x' .* required, but 1 of"):
        match(batch, optional(1, "s", STRUCT))


def test_null_structs_with_required_fields_can_be_written(tmp_path) -> None:  # type: ignore[no-untyped-def]
    rows = [{"x": 1, "y": "a"}, None, {"x": 2, "y": None}]
    batch = batch_of(s=pa.array(rows, pa.struct({"x": pa.int64(), "y": pa.string()})))
    for cut in range(3):
        matched = match(batch.slice(cut), optional(1, "s", STRUCT))
        pq.write_table(pa.Table.from_batches([matched]), tmp_path / "f.parquet")
        assert pq.read_table(tmp_path / "f.parquet").column("s").to_pylist() == rows[cut:]


def test_missing_structs_with_required_fields_can_be_written(tmp_path) -> None:  # type: ignore[no-untyped-def]
    inner = StructType((required(4, "m", MapType(5, STRING, 6, LONG)), required(7, "z", STRUCT)))
    matched = match(batch_of(a=pa.array([1, 2])), optional(1, "a", LONG), optional(2, "s", inner))
    pq.write_table(pa.Table.from_batches([matched]), tmp_path / "f.parquet")
    assert pq.read_table(tmp_path / "f.parquet").column("s").to_pylist() == [None, None]


def test_null_elements_and_values_are_refused_where_they_are_required() -> None:
    with pytest.raises(InvalidDataError, match=r"'c\.element'"):
        match_column(pa.array([[1, None]]), ListType(2, LONG, True))
    with pytest.raises(InvalidDataError, match=r"'c\.value'"):
        match_column(
            pa.array([[("a", None)]], pa.map_(pa.string(), pa.int64())),
            MapType(2, STRING, 3, LONG, True),
        )


def test_values_behind_null_lists_and_outside_of_slices_do_not_count() -> None:
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 2, 4, 5], pa.int32()),
        pa.array(["bad", "bad", str(SOME_UUID), str(SOME_UUID), "bad"]),
        mask=pa.array([True, False, False]),
    ).slice(0, 2)
    assert match_column(hidden, ListType(2, UUID, True)).to_pylist() == [
        None,
        [SOME_UUID.bytes, SOME_UUID.bytes],
    ]


# Types

MICROS = 1_600_000_000_123_456
FITTING: list[tuple[pa.Array, IcebergType, list[Any]]] = [
    (pa.array([True, None]), BOOLEAN, [True, None]),
    (pa.array([-128, 127], pa.int8()), INT, [-128, 127]),
    (pa.array([5], pa.int16()), LONG, [5]),
    (pa.array([2**31 - 1], pa.int32()), LONG, [2**31 - 1]),
    (pa.array([1.5], pa.float32()), DOUBLE, [1.5]),
    (pa.array([Decimal("1.23")], pa.decimal128(5, 2)), DecimalType(9, 2), [Decimal("1.23")]),
    (pa.array([Decimal("1.23")], pa.decimal128(5, 2)), DecimalType(7, 4), [Decimal("1.2300")]),
    (pa.array([5], pa.date32()), DATE, [5]),
    (pa.array([86_399_999_999], pa.int64()), TIME, [86_399_999_999]),
    (pa.array([5_000], pa.time64("ns")), TIME, [5]),
    (pa.array([MICROS], pa.timestamp("us")), TIMESTAMP, [MICROS]),
    (pa.array([MICROS * 1_000], pa.timestamp("ns")), TIMESTAMP, [MICROS]),
    (pa.array([MICROS, None], pa.timestamp("us", "Asia/Tokyo")), TIMESTAMPTZ, [MICROS, None]),
    (pa.array([MICROS], pa.int64()), TIMESTAMP_NS, [MICROS]),
    (pa.array([MICROS], pa.timestamp("us")), TIMESTAMP_NS, [MICROS * 1_000]),
    (pa.array([MICROS], pa.timestamp("ns")), TIMESTAMP_NS, [MICROS]),
    (pa.array([MICROS], pa.int64()), TIMESTAMPTZ_NS, [MICROS]),
    (pa.array([MICROS], pa.timestamp("us", "Asia/Tokyo")), TIMESTAMPTZ_NS, [MICROS * 1_000]),
    (pa.array(["a", None], pa.large_string()), STRING, ["a", None]),
    (pa.array(["a", None], pa.string_view()), STRING, ["a", None]),
    (pa.array(["a", "a"]).dictionary_encode(), STRING, ["a", "a"]),
    (pa.array([str(SOME_UUID).upper(), None]), UUID, [SOME_UUID.bytes, None]),
    (pa.array([SOME_UUID.bytes], pa.binary(16)), UUID, [SOME_UUID.bytes]),
    (pa.array([b"ab", None]), FixedType(2), [b"ab", None]),
    (pa.array([b"ab"], pa.large_binary()), BINARY, [b"ab"]),
    (pa.array([b"ab"]), GeometryType(), [b"ab"]),
    (pa.array([b"ab"], pa.binary_view()), GeographyType(), [b"ab"]),
    (pa.nulls(2), UNKNOWN, [None, None]),
    (pa.nulls(2), DecimalType(9, 2), [None, None]),
    (pa.nulls(2), STRUCT, [None, None]),
]


@pytest.mark.parametrize(("array", "field_type", "expected"), FITTING)
def test_what_fits_keeps_its_values(
    array: pa.Array, field_type: IcebergType, expected: list[Any]
) -> None:
    wanted = to_array(field_type, expected)
    assert match_column(array, field_type).equals(wanted)
    tripled = pa.concat_arrays([array] * 3).slice(1)
    assert match_column(tripled, field_type).to_pylist() == (wanted.to_pylist() * 3)[1:]
    inside = pa.ListArray.from_arrays([0, len(array)], array)
    assert match_column(inside, ListType(2, field_type)).to_pylist() == [wanted.to_pylist()]


@pytest.mark.parametrize(
    ("incoming", "field_type"),
    [
        (pa.int32(), BOOLEAN),
        (pa.string(), DATE),
        (pa.int32(), DATE),
        (pa.timestamp("us"), TIMESTAMPTZ),
        (pa.timestamp("us", "UTC"), TIMESTAMP_NS),
        (pa.timestamp("us"), TIMESTAMPTZ_NS),
        (pa.int64(), TIMESTAMP),
        (pa.string(), BINARY),
        (pa.binary(), UUID),
        (pa.binary(3), FixedType(2)),
        (pa.string(), FixedType(2)),
        (pa.string(), GeometryType()),
        (pa.int32(), UNKNOWN),
        (pa.string(), VARIANT),
        (pa.struct({"value": pa.binary()}), VARIANT),
        (pa.string(), STRUCT),
        (pa.list_(pa.int32()), STRUCT),
        (pa.struct({"x": pa.int64()}), ListType(2, LONG)),
        (pa.list_(pa.int32()), MapType(2, STRING, 3, LONG)),
    ],
)
def test_a_type_that_cannot_be_assigned_is_refused_before_anything_is_written(
    incoming: pa.DataType, field_type: IcebergType
) -> None:
    with pytest.raises(InvalidDataError, match=r"column 'c' of table db\.t"):
        plan(pa.schema({"c": incoming}), optional(1, "c", field_type))


@pytest.mark.parametrize(
    ("array", "field_type", "shown"),
    [
        (pa.array([str(SOME_UUID), "no-uuid"]), UUID, "'no-uuid'"),
        (pa.array([str(SOME_UUID).replace("-", "+")]), UUID, r"f79c3e09\+"),
        (pa.array([str(SOME_UUID).replace("f", "g")]), UUID, "g79c3e09"),
        (pa.array([b"ab", b"abc"]), FixedType(2), "b'abc'"),
        (pa.array([-1]), TIME, "-1"),
        (pa.array([86_400_000_000]), TIME, "86400000000"),
        (pa.array([1], pa.time64("ns")), TIME, "lose"),
        (pa.array([1], pa.timestamp("ns")), TIMESTAMP, "lose"),
        (pa.array([2**62], pa.timestamp("us")), TIMESTAMP_NS, "out of bounds"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_column_and_value(
    array: pa.Array, field_type: IcebergType, shown: str
) -> None:
    with pytest.raises(InvalidDataError, match=f"column 'c' of table db.t.*{shown}"):
        match_column(array, field_type)


def test_a_variant_takes_its_parts_in_any_order() -> None:
    parts = {"value": pa.array([b"v", b"w"]), "metadata": pa.array([b"m", b"n"])}
    array = pa.StructArray.from_arrays(
        list(parts.values()),
        fields=[pa.field(name, pa.binary(), nullable=False) for name in parts],
        mask=pa.array([False, True]),
    )
    assert match_column(array, VARIANT).to_pylist() == [{"metadata": b"m", "value": b"v"}, None]


def test_nested_columns_are_matched_at_every_level() -> None:
    incoming = pa.map_(pa.large_string(), pa.list_(pa.struct({"Y": pa.int32(), "x": pa.int8()})))
    array = pa.array(
        [[("a", [{"Y": 1, "x": 2}, None]), ("b", None)], None, [("c", [])]], incoming
    ).slice(0)
    element = StructType((optional(5, "x", INT), optional(6, "y", LONG), optional(7, "z", DATE)))
    wanted = MapType(2, STRING, 3, ListType(4, element))
    expected = [[("a", [{"x": 2, "y": 1, "z": None}, None]), ("b", None)], None, [("c", [])]]
    for cut in range(3):
        assert match_column(array.slice(cut), wanted).to_pylist() == expected[cut:]


@pytest.mark.parametrize("incoming", [pa.large_list(pa.int32()), pa.list_(pa.int32(), 2)])
def test_lists_of_any_layout_fit(incoming: pa.DataType) -> None:
    rows = [[1, 2], None, [3, 4]]
    array = pa.array(rows, incoming)
    assert match_column(array, ListType(2, LONG)).to_pylist() == rows
    assert match_column(array.slice(1), ListType(2, LONG)).to_pylist() == rows[1:]


def test_what_fits_is_not_copied() -> None:
    text, numbers = pa.array(["a", "b"]), pa.array([[1, 2], [3]], pa.list_(pa.int64()))
    instants = pa.array([1, 2], pa.timestamp("us", "Asia/Tokyo"))
    matched = match(
        batch_of(a=text, b=numbers, c=instants),
        required(1, "a", STRING),
        optional(2, "b", ListType(3, LONG)),
        optional(4, "c", TIMESTAMPTZ),
    )
    addresses = lambda array: [b and b.address for b in array.buffers()]  # noqa: E731
    for before, after in zip((text, numbers, instants), matched.columns, strict=True):
        assert addresses(before) == addresses(after)


def test_a_matching_goes_over_wires_and_adapts_to_other_layouts_of_the_same_columns() -> None:
    planned = plan(
        pa.schema({"a": pa.string(), "b": pa.int32()}),
        optional(1, "b", LONG),
        optional(2, "a", STRING),
    )
    there = pickle.loads(pickle.dumps(planned))
    batch = batch_of(b=pa.array([1], pa.int64()), A=pa.array(["x"], pa.large_string()))
    assert there.fitting(batch.schema).apply(batch).to_pylist() == [{"b": 1, "a": "x"}]
    assert there.fitting(planned.incoming) is there


SCALARS: dict[IcebergType, st.SearchStrategy[Any]] = {
    LONG: st.integers(-(2**63), 2**63 - 1),
    STRING: st.text(max_size=5),
    BOOLEAN: st.booleans(),
    FixedType(2): st.binary(min_size=2, max_size=2),
}


@st.composite
def typed_rows(draw: st.DrawFn, depth: int = 2) -> tuple[IcebergType, st.SearchStrategy[Any]]:
    kind = draw(st.sampled_from(["scalar", "struct", "list", "map"] if depth else ["scalar"]))
    if kind == "scalar":
        chosen = draw(st.sampled_from(list(SCALARS)))
        return chosen, SCALARS[chosen]
    if kind == "struct":
        parts = draw(st.lists(typed_rows(depth - 1), min_size=1, max_size=3))
        flags = [draw(st.booleans()) for _ in parts]
        fields = tuple(
            NestedField(100 + at, f"f{at}", part[0], is_required)
            for at, (part, is_required) in enumerate(zip(parts, flags, strict=True))
        )
        values = [
            part[1] if is_required else st.none() | part[1]
            for part, is_required in zip(parts, flags, strict=True)
        ]
        return StructType(fields), st.tuples(*values)
    inner, values_of = draw(typed_rows(depth - 1))
    is_required = draw(st.booleans())
    inner_values = values_of if is_required else st.none() | values_of
    if kind == "list":
        return ListType(2, inner, is_required), st.lists(inner_values, max_size=3)
    entries = st.lists(st.tuples(st.text(max_size=2), inner_values), max_size=2)
    return MapType(2, STRING, 3, inner, is_required), entries


def forgetful(incoming: pa.DataType) -> pa.DataType:
    """The type as Spark would send it: no ids, all nullable, fields in another order."""
    if pa.types.is_struct(incoming):
        fields = [incoming.field(at) for at in range(incoming.num_fields)]
        return pa.struct([pa.field(f.name, forgetful(f.type)) for f in fields])
    if pa.types.is_map(incoming):
        return pa.map_(forgetful(incoming.key_type), forgetful(incoming.item_type))
    if pa.types.is_list(incoming):
        return pa.list_(forgetful(incoming.value_type))
    return incoming


@examples(150)
@given(st.data(), st.integers(0, 3))
def test_rows_of_any_shape_arrive_as_they_were(data: st.DataObject, cut: int) -> None:
    field_type, values = data.draw(typed_rows())
    rows = data.draw(st.lists(st.none() | values, max_size=6))
    wanted = to_array(field_type, rows)
    incoming = pa.array(wanted.to_pylist(), forgetful(wanted.type))
    matched = match_column(incoming.slice(cut), field_type)
    assert matched.to_pylist() == wanted.to_pylist()[cut:]


@pytest.mark.parametrize(
    ("incoming", "wanted"),
    [
        (pa.string(), LONG),
        (pa.struct([("a", pa.int64())]), LONG),
        (pa.duration("s"), LONG),
        (pa.bool_(), DATE),
    ],
)
def test_widening_is_not_advised_where_it_would_not_help(
    incoming: pa.DataType, wanted: IcebergType
) -> None:
    schema = Schema((NestedField(1, "c", wanted),))
    with pytest.raises(InvalidDataError, match="cannot store every value") as raised:
        plan_matching(pa.schema([("c", incoming)]), schema, table="db.t")
    assert "merge-schema" not in str(raised.value)
