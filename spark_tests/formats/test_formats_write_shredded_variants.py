"""Variants written shredded: which columns there are, what is in them, and their bounds."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built.data_files import read_rows, write_file
from built.rows import record_batch
from built.schemas import optional
from oracles.variant_reference import (
    ARROW_TYPES,
    Variant,
    decode,
    decode_metadata,
    encode,
    encode_metadata,
    names_of,
)

from icebergds.errors import InvalidDataError
from icebergds.spec.manifest import DataFile, FileFormat
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, VARIANT, ListType, StructType

SCHEMA = Schema((optional(1, "v", VARIANT),))
SHRED = {"write.parquet.shred-variants": "true"}
ROWS = "write.parquet.variant-inference-buffer-size"
NULL: Variant = ("null", None)


def obj(**fields: Variant) -> Variant:
    return ("object", fields)


def row(variant: Variant | None) -> dict[str, bytes] | None:
    if variant is None:
        return None
    names = sorted(names_of(variant), key=str.encode)
    return {"metadata": encode_metadata(names, 2), "value": encode(variant, names)}


def write(path: Path, *variants: Variant | None, **properties: Any) -> DataFile:
    """Writes variants shredded, by all rows."""
    options = {**SHRED, **properties.pop("options", {})}
    return write_file(path, SCHEMA, [record_batch(SCHEMA, [(row(v),) for v in variants])], options)


def read(path: Path) -> list[Variant | None]:
    rows = [value for (value,) in read_rows(str(path), SCHEMA)]
    return [v and decode(v["value"], decode_metadata(v["metadata"])) for v in rows]


def left(path: Path) -> list[bytes | None]:
    """What is not shredded of each row."""
    return stored(path, "value").to_pylist()


def stored(path: Path, part: str) -> pa.Array:
    """A part of the column."""
    column = pq.read_table(path).column("v").combine_chunks()
    assert [f.name for f in column.type] == ["metadata", "value", "typed_value"]
    return column.field(part)


def typed_type(path: Path) -> pa.DataType:
    return pq.read_schema(path).field("v").type.field("typed_value").type


def is_shredded(path: Path) -> bool:
    return "typed_value" in [f.name for f in pq.read_schema(path).field("v").type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "f.parquet"


EXTREMES: dict[str, list[Any]] = {
    "boolean": [True, False],
    "int32": [-(2**31), 2**31 - 1],
    "int64": [-(2**63), 2**63 - 1],
    "float": [-0.0, math.inf, 1.5],
    "double": [-0.0, -math.inf, 1e300],
    "decimal4": [(-(10**9) + 1, 2), (1, 2)],
    "decimal8": [(10**18 - 1, 0), (-1, 0)],
    "decimal16": [(-(10**38) + 1, 10), (2**64, 10), (-(2**64), 10)],
    "date": [-(2**31), 2**31 - 1],
    "time": [0, 86_399_999_999],
    "timestamp": [-(2**63), 2**63 - 1],
    "timestamptz": [-(2**63), 2**63 - 1],
    "timestamp_ns": [-(2**63), 2**63 - 1],
    "timestamptz_ns": [-(2**63), 2**63 - 1],
    "string": ["", "x" * 63, "ü" * 64],
    "binary": [b"", b"\xff" * 300],
    "uuid": [bytes(16), b"\xff" * 16],
}


@pytest.mark.parametrize("name", EXTREMES)
def test_scalars_of_every_type_are_stored_in_columns_of_it(name: str, path: Path) -> None:
    variants = [(name, value) for value in EXTREMES[name]]
    write(path, *variants, None, NULL)
    assert left(path) == [*[None] * len(variants), None, b"\x00"]
    assert stored(path, "typed_value").null_count == 2
    if name in ARROW_TYPES and name != "uuid":
        assert typed_type(path) == ARROW_TYPES[name]
    assert repr(read(path)) == repr([*variants, None, NULL])


@pytest.mark.parametrize(("name", "form"), [("float", "<f"), ("double", "<d")])
def test_nan_stays_nan(name: str, form: str, path: Path) -> None:
    write(path, (name, math.nan), (name, 1.0))
    (kind, first), second = read(path)
    assert kind == name
    assert math.isnan(first)
    assert second == (name, 1.0)
    assert left(path) == [None, None]


def test_integers_of_all_widths_share_a_column_of_the_widest(path: Path) -> None:
    write(path, ("int8", 1), ("int16", -2), ("int64", 3), ("int32", 4))
    assert typed_type(path) == pa.int64()
    assert read(path) == [("int64", 1), ("int64", -2), ("int64", 3), ("int64", 4)]


def test_integers_of_less_than_four_bytes_are_stored_in_four(path: Path) -> None:
    rows = {ROWS: "1"}
    write(path, ("int8", -1), ("int16", 300), ("int64", -5), ("int32", 7), options=rows)
    assert typed_type(path) == pa.int32()
    assert read(path) == [("int32", -1), ("int32", 300), ("int64", -5), ("int32", 7)]
    assert stored(path, "typed_value").to_pylist() == [-1, 300, None, 7]


def test_decimals_share_a_column_if_their_numbers_stay_the_same(path: Path) -> None:
    first = [("decimal4", (15, 1)), ("decimal4", (-125, 2))]
    later = [("decimal4", (10**8, 1)), ("decimal8", (7, 0)), ("decimal4", (1, 3))]
    write(path, *first, *later, options={ROWS: "2"})
    assert typed_type(path) == pa.decimal128(9, 2)
    expected = [("decimal4", (150, 2)), ("decimal4", (-125, 2))]
    # A number of too many digits, one that fits, and one of a greater scale.
    assert read(path) == [*expected, later[0], ("decimal4", (700, 2)), later[2]]


def test_a_scale_of_more_digits_than_the_width_takes_a_wider_column(path: Path) -> None:
    write(path, ("decimal4", (5, 20)))
    assert typed_type(path) == pa.decimal128(38, 20)
    assert read(path) == [("decimal16", (5, 20))]


def test_a_decimal_that_is_too_great_for_a_variant_stays_as_it_is(path: Path) -> None:
    damaged = ("decimal4", (2**31 - 1, 0))
    write(path, ("decimal4", (1, 0)), damaged)
    assert read(path) == [("decimal4", (1, 0)), damaged]
    assert stored(path, "typed_value").null_count == 1


def test_strings_that_are_not_unicode_stay_as_they_are(path: Path) -> None:
    plain = {"metadata": encode_metadata([]), "value": bytes([1 << 2 | 1, 0xFF])}
    values = [plain, row(("string", "a"))]
    write_file(path, SCHEMA, [record_batch(SCHEMA, [(v,) for v in values])], SHRED)
    assert [value for (value,) in read_rows(str(path), SCHEMA)] == values
    assert stored(path, "typed_value").to_pylist() == [None, "a"]


def test_a_field_of_several_types_is_not_shredded_but_others_are(path: Path) -> None:
    variants = [obj(a=("int32", 1), b=("string", "x")), obj(a=("string", "1"), b=("string", "y"))]
    write(path, *variants)
    assert [f.name for f in typed_type(path)] == ["b"]
    assert read(path) == variants


@pytest.mark.parametrize(
    "other", [("double", 1.0), ("decimal4", (1, 0)), ("boolean", True), obj(), ("array", [])]
)
def test_values_of_several_types_are_not_shredded(other: Variant, path: Path) -> None:
    write(path, ("int32", 1), other)
    assert not is_shredded(path)
    assert read(path) == [("int32", 1), other]


def test_fields_must_occur_in_a_tenth_of_the_rows(path: Path) -> None:
    one = ("int32", 1)
    variants = [obj(a=one, b=one, c=one), obj(a=one, c=NULL), *[obj(a=one)] * 18, None, NULL]
    write(path, *variants)
    # There are 20 values: b is in one of them, and so is c, but for a null.
    assert [f.name for f in typed_type(path)] == ["a"]
    write(path, *variants[:-10], options={ROWS: "1000"})
    assert [f.name for f in typed_type(path)] == ["a"]
    write(path, *variants[:10])
    assert [f.name for f in typed_type(path)] == ["a", "b", "c"]
    assert read(path) == variants[:10]


def test_the_most_frequent_300_fields_are_shredded(path: Path) -> None:
    fields = {f"f{at:03}": ("int32", at) for at in range(302)}
    frequent = dict(list(fields.items())[2:])
    variants = [("object", fields), ("object", frequent), ("object", frequent)]
    write(path, *variants)
    assert sorted(f.name for f in typed_type(path)) == sorted(frequent)
    assert read(path) == variants


def test_values_are_shredded_as_deep_as_arrow_reads_schemas(path: Path) -> None:
    def deep(levels: int) -> Variant:
        variant: Variant = ("int32", 1)
        for at in range(levels):
            variant = ("array", [variant]) if at % 2 else obj(a=variant)
        return variant

    for levels, expected in ((36, True), (37, False)):
        write(path, deep(levels))
        assert is_shredded(path) == expected
        assert read(path) == [deep(levels)]


def test_only_the_first_rows_are_looked_at(path: Path) -> None:
    variants = [obj(a=("int32", 1)), obj(a=("string", "x"), b=("string", "y")), ("int8", 3), None]
    write(path, *variants, options={ROWS: "1"})
    assert typed_type(path).field("a").type.field("typed_value").type == pa.int32()
    assert read(path) == variants


def test_values_in_any_order_are_shredded(path: Path) -> None:
    """As Spark writes objects: values in the order of the text, ids in that of names."""
    text = bytes([2 | 0 << 2, 2, 1, 0, 2, 0, 4]) + bytes([0x0C, 7]) + bytes([0x0C, 9])
    values = [{"metadata": encode_metadata(["b", "a"]), "value": text}]
    write_file(path, SCHEMA, [record_batch(SCHEMA, [(v,) for v in values])], SHRED)
    assert read(path) == [obj(a=("int32", 9), b=("int32", 7))]


def test_variants_inside_other_columns_stay_whole(path: Path) -> None:
    schema = Schema(
        (
            optional(1, "s", StructType((optional(2, "v", VARIANT),))),
            optional(3, "l", ListType(4, VARIANT, False)),
        )
    )
    value = row(("int32", 1))
    write_file(path, schema, [record_batch(schema, [((value,), [value, None])])], SHRED)
    assert "typed_value" not in str(pq.read_schema(path))
    assert read_rows(str(path), schema) == [({"v": value}, [value, None])]


def test_without_the_property_variants_stay_whole(path: Path) -> None:
    write(path, ("int32", 1), options={"write.parquet.shred-variants": "false"})
    assert not is_shredded(path)


@pytest.mark.parametrize("file_format", [FileFormat.ORC, FileFormat.AVRO])
def test_other_formats_have_no_shredded_variants(file_format: FileFormat, path: Path) -> None:
    batches = [record_batch(SCHEMA, [(row(("int8", 1)),)])]
    write_file(path, SCHEMA, batches, SHRED, file_format=file_format)
    assert read_rows(str(path), SCHEMA, file_format=file_format) == [(row(("int8", 1)),)]


@pytest.mark.parametrize(
    "value",
    [
        b"",
        bytes([21 << 2]),
        bytes([5 << 2, 1]),
        bytes([16 << 2, 9, 0, 0, 0, 0]),
        bytes([2, 1, 0, 0, 9]),
        bytes([2, 1, 5, 0, 1, 0]),
        bytes([2, 1, 0, 9, 1, 0]),
        bytes([2, 2, 0, 0, 0, 1, 2, 0, 0]),
    ],
    ids=[
        "empty",
        "unknown type",
        "short integer",
        "short string",
        "short object",
        "unknown name",
        "field behind the end",
        "two fields of a name",
    ],
)
def test_what_is_not_a_variant_is_refused(value: bytes, path: Path) -> None:
    good = obj(a=("int32", 1))
    rows = [(row(good),), ({"metadata": encode_metadata(["a"]), "value": value},)]
    with pytest.raises(InvalidDataError, match=r"column 'v' of .*shred-variants = false"):
        write_file(path, SCHEMA, [record_batch(SCHEMA, rows)], {**SHRED, ROWS: "1"})


def test_other_columns_of_a_file_are_read_alone(path: Path) -> None:
    schema = Schema((optional(1, "v", VARIANT), optional(2, "id", LONG)))
    rows = [(row(obj(a=("int32", at))), at) for at in range(100)]
    write_file(path, schema, [record_batch(schema, rows)], SHRED)
    assert is_shredded(path)
    found = read_rows(str(path), Schema((schema.fields[1],)))
    assert found == [(at,) for _, at in rows]
    assert duckdb.sql(f"SELECT sum(id) FROM '{path}'").fetchall() == [(4950,)]


def bounds(file: DataFile) -> tuple[Variant | None, Variant | None]:
    """The bounds of the column as variants."""
    return _bound(file.lower_bounds.get(1)), _bound(file.upper_bounds.get(1))


def _bound(data: bytes | None) -> Variant | None:
    if data is None:
        return None
    width = 1 + (data[0] >> 6)
    head = 1 + width * (int.from_bytes(data[1 : 1 + width], "little") + 2)
    size = head + int.from_bytes(data[head - width : head], "little")
    names = decode_metadata(data[:size])
    assert data[0] & 0x10
    assert names == sorted(names, key=str.encode)
    return decode(data[size:], names)


def test_fields_have_bounds_by_their_paths(path: Path) -> None:
    file = write(
        path,
        obj(a=("int8", 5), **{"user.name": ("string", "b")}, o=obj(x=("date", 3), y=NULL)),
        obj(a=("int8", -1), **{"user.name": NULL}, o=obj(x=("date", 1)), rare=("string", "x")),
        obj(a=NULL, o=("string", "no object"), it=("array", [("int8", 1)])),
        ("string", "no object"),
        None,
        NULL,
        options={ROWS: "2"},
    )
    assert bounds(file) == (
        (
            "object",
            {
                "$['a']": ("int32", -1),
                "$['o']['x']": ("date", 1),
                "$['rare']": ("string", "x"),
                "$['user.name']": ("string", "b"),
            },
        ),
        (
            "object",
            {
                "$['a']": ("int32", 5),
                "$['o']['x']": ("date", 3),
                "$['rare']": ("string", "x"),
                "$['user.name']": ("string", "b"),
            },
        ),
    )


def test_the_bounds_of_a_file_are_exactly_those_of_the_format(path: Path) -> None:
    file = write(path, ("int32", 1), ("int32", 2))
    metadata = bytes([0x11, 1, 0, 1]) + b"$"
    one, two = (struct.pack("<Bi", 5 << 2, number) for number in (1, 2))
    assert file.lower_bounds[1] == metadata + bytes([2, 1, 0, 0, 5]) + one
    assert file.upper_bounds[1] == metadata + bytes([2, 1, 0, 0, 5]) + two


@pytest.mark.parametrize("group_size", ["1", "1000000"])
def test_a_field_with_values_of_another_type_in_any_row_group_has_no_bounds(
    group_size: str, path: Path
) -> None:
    variants = [obj(a=("int32", 1)), obj(a=("string", "5")), obj(a=("int32", 2))]
    options = {**SHRED, ROWS: "1", "write.parquet.row-group-size-bytes": group_size}
    batches = [record_batch(SCHEMA, [(row(v),)]) for v in variants]
    file = write_file(path, SCHEMA, batches, options)
    assert pq.read_metadata(path).num_row_groups == (3 if group_size == "1" else 1)
    assert bounds(file) == (None, None)
    assert read(path) == variants


def test_bounds_are_those_of_all_row_groups(path: Path) -> None:
    batches = [record_batch(SCHEMA, [(row(("int32", at)),)]) for at in (2, 3, 1)]
    options = {**SHRED, "write.parquet.row-group-size-bytes": "1"}
    file = write_file(path, SCHEMA, batches, options)
    assert bounds(file) == (obj(**{"$": ("int32", 1)}), obj(**{"$": ("int32", 3)}))


@pytest.mark.parametrize(
    ("variants", "expected"),
    [
        ([("double", 1.0), ("double", math.nan)], None),
        ([("double", -0.0)], ("-0.0", "0.0")),
        ([("boolean", True)], None),
        ([("array", [("int32", 1)])], None),
        ([("string", "a" * 20), ("string", "b" * 20)], (repr("a" * 16), repr("b" * 15 + "c"))),
        ([("binary", b"\xff" * 20)], (repr(b"\xff" * 16), None)),
        ([("decimal4", (5, 1)), ("decimal4", (-3, 1))], ("(-3, 1)", "(5, 1)")),
        ([("timestamp_ns", -(2**63)), ("timestamp_ns", 7)], (str(-(2**63)), "7")),
    ],
    ids=str,
)
def test_bounds_of_a_type(
    variants: list[Variant], expected: tuple[str, str | None] | None, path: Path
) -> None:
    found = bounds(write(path, *variants))
    if expected is None:
        assert found == (None, None)
        return
    texts = tuple(bound and repr(bound[1]["$"][1]) for bound in found)
    assert texts == expected


@pytest.mark.parametrize("mode", ["none", "counts"])
def test_columns_without_bounds_have_none(mode: str, path: Path) -> None:
    options = {"write.metadata.metrics.default": mode}
    assert bounds(write(path, ("int32", 1), options=options)) == (None, None)


def test_names_in_paths_are_escaped(path: Path) -> None:
    names = ["it's", "a\\b", "tab\t", "\x01", "ü"]
    file = write(path, ("object", dict.fromkeys(names, ("int32", 1))))
    lower, _ = bounds(file)
    assert lower is not None
    assert set(lower[1]) == {
        r"$['it\'s']",
        r"$['a\\b']",
        r"$['tab\t']",
        r"$['\u0001']",
        "$['ü']",
    }


def test_counts_and_sizes_are_those_of_the_column(path: Path) -> None:
    file = write(path, obj(a=("int32", 1)), None, obj(a=("int32", 2)))
    assert (file.value_counts, file.null_value_counts) == ({1: 3}, {1: 1})
    group = pq.read_metadata(path).row_group(0)
    sizes = [group.column(at).total_compressed_size for at in range(group.num_columns)]
    assert len(sizes) == 4
    assert file.column_sizes == {1: sum(sizes)}


def test_others_read_what_is_shredded(path: Path) -> None:
    write(
        path,
        obj(a=("int8", 1), b=("string", "x"), l=("array", [("int8", 1), NULL])),
        obj(a=("string", "one"), c=("double", 1.5)),
        options={ROWS: "1"},
    )
    rows = duckdb.sql(f"SELECT v.a::VARCHAR, v.b::VARCHAR, v.l::VARCHAR, v.c::DOUBLE FROM '{path}'")
    assert rows.fetchall() == [("1", "x", "[1, NULL]", None), ("one", None, None, 1.5)]
