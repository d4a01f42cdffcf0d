"""Shredded variants: the known answers of the format's own files, and each rule on its own."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from built.data_files import read_batches, read_rows, with_id
from built.schemas import optional
from corpus import corpus_dir
from effort import examples
from hypothesis import given, strategies as st
from oracles.variant_reference import (
    Shape,
    Variant,
    decode,
    decode_metadata,
    encode,
    encode_metadata,
    names_of,
    shredded_column,
)

from icebergds.errors import CorruptFileError, IcebergError, UnsupportedFeatureError
from icebergds.expr.bind import bind
from icebergds.expr.nodes import Operation, Predicate
from icebergds.formats.arrow.variant import byte_strings, shredded
from icebergds.formats.data_file.file_schema import columns_of
from icebergds.formats.data_file.projection import plan_projection
from icebergds.formats.parquet import page_pruning
from icebergds.spec.manifest import FileFormat
from icebergds.spec.schema import Schema
from icebergds.spec.types import INT, STRING, VARIANT, ListType, MapType, StructType

SCHEMA = Schema((optional(1, "v", VARIANT),))
NULL: Variant = ("null", None)


def text(value: str) -> Variant:
    return ("string", value)


def number(value: int) -> Variant:
    return ("int64", value)


def obj(**fields: Variant) -> Variant:
    return ("object", fields)


def write(path: Path, column: pa.Array, **options: Any) -> str:
    table = pa.table([column], pa.schema([with_id("v", column.type, 1)]))
    pq.write_table(table, path, store_schema=False, **options)
    return str(path)


def decoded(row: dict[str, bytes] | None) -> Variant | None:
    return None if row is None else decode(row["value"], decode_metadata(row["metadata"]))


def read(path: Path, column: pa.Array, **options: Any) -> list[Variant | None]:
    """Variants of a column that is written to a file and read."""
    return [decoded(row) for (row,) in read_rows(write(path, column), SCHEMA, **options)]


def group(metadata: list[Any], **columns: pa.Array) -> pa.StructArray:
    """A column of variants of these columns, none of them null."""
    fields = [pa.field("metadata", pa.binary(), nullable=False)]
    fields += [pa.field(name, column.type) for name, column in columns.items()]
    return pa.StructArray.from_arrays(
        [pa.array(metadata, pa.binary()), *columns.values()], fields=fields
    )


def binaries(*values: bytes | None) -> pa.Array:
    return pa.array(values, pa.binary())


def field_a(typed: pa.Array, value: pa.Array | None = None) -> pa.StructArray:
    """Objects whose field `a` is shredded."""
    parts = {"value": value, "typed_value": typed} if value is not None else {"typed_value": typed}
    inside = pa.StructArray.from_arrays(
        list(parts.values()), fields=[pa.field(n, part.type) for n, part in parts.items()]
    )
    return pa.StructArray.from_arrays([inside], fields=[pa.field("a", inside.type, False)])


def test_variants_shredded_more_deeply_than_arrow_reads_by_default_are_read(tmp_path: Path) -> None:
    """Java Iceberg shreds up to 50 levels, which take three levels of a schema each."""
    inner: pa.Array = pa.array([5], pa.int32())
    expected: Variant = ("int32", 5)
    for _ in range(50):
        element = pa.StructArray.from_arrays([binaries(None), inner], ["value", "typed_value"])
        offsets = pa.array([0, 1], pa.int32())
        wanted = pa.list_(pa.field("element", element.type, nullable=False))
        inner = pa.ListArray.from_arrays(offsets, element, wanted)
        expected = ("array", [expected])
    column = group([encode_metadata([])], value=binaries(None), typed_value=inner)
    assert read(tmp_path / "f.parquet", column) == [expected]


A = encode_metadata(["a"])
AB = encode_metadata(["a", "b"])

# What the files of the format call errors, or leave to the reader: here they are errors too.
REFUSED = {
    40: "both shredded and not",
    42: "both shredded and not",
    43: "both shredded and not",
    84: "group of a shredded value is null",
    87: "not objects",
    125: "both shredded and not",
    127: "shredded as uint32",
    128: "not objects",
    137: r"shredded as fixed_size_binary\[4\]",
}


def test_the_formats_own_files_are_read_exactly_or_refused() -> None:
    folder = corpus_dir() / "iceberg-go/table/testdata/shredded_variant"
    schema = Schema((optional(2, "var", VARIANT),))
    refused = 0
    for path in sorted(folder.glob("*.parquet")):
        case, _, mark = path.stem.removeprefix("case-").partition("-")
        if int(case) in REFUSED:
            with pytest.raises(IcebergError, match=REFUSED[int(case)]) as error:
                read_rows(str(path), schema)
            assert path.name in str(error.value)
            refused += 1
            continue
        assert not mark
        rows = [row for (row,) in read_rows(str(path), schema)]
        for at, row in enumerate(rows):
            golden = folder / f"case-{case}_row-{at}.variant.bin"
            expected = golden.read_bytes() if golden.exists() else None
            assert (row and row["metadata"] + row["value"]) == expected, golden.name
    assert refused == 8


@pytest.mark.parametrize(
    "variant",
    [
        ("boolean", True),
        ("boolean", False),
        ("int8", -128),
        ("int16", 1234),
        ("int32", -(2**31)),
        ("int64", 2**63 - 1),
        ("float", 1.5),
        ("double", -1e300),
        ("decimal4", (-999_999_999, 2)),
        ("decimal8", (10**18 - 1, 0)),
        ("decimal16", (-(10**38) + 1, 38)),
        ("date", -1),
        ("time", 86_399_999_999),
        ("timestamp", -1),
        ("timestamptz", 2**62),
        ("timestamp_ns", -(2**62)),
        ("timestamptz_ns", 1),
        ("string", ""),
        ("string", "ü" * 31),
        ("string", "x" * 63),
        ("string", "x" * 64),
        ("string", "x" * 70_000),
        ("binary", b""),
        ("binary", b"\x00" * 64),
        ("uuid", bytes(range(16))),
    ],
    ids=lambda variant: f"{variant[0]}-{str(variant[1])[:12]}",
)
def test_every_scalar_type_is_read(tmp_path: Path, variant: Variant) -> None:
    shape = Shape(variant[0], scale=variant[1][1] if variant[0].startswith("decimal") else 0)
    rows = [variant, None, NULL, variant]
    column = shredded_column(rows, [()] * 4, shape)
    assert column.field("typed_value").null_count == 2
    found = read_rows(write(tmp_path / "f.parquet", column), SCHEMA)
    values = [None if row is None else row["value"] for (row,) in found]
    assert values == [None if v is None else encode(v, ()) for v in rows]


@pytest.mark.parametrize(
    "arrow_type",
    [
        pa.uint8(),
        pa.float16(),
        pa.decimal256(39, 0),
        pa.time32("ms"),
        pa.time64("ns"),
        pa.timestamp("ms"),
        pa.binary(16),
        pa.map_(pa.string(), pa.int32()),
    ],
    ids=str,
)
def test_types_that_variants_do_not_have_are_refused(
    tmp_path: Path, arrow_type: pa.DataType
) -> None:
    column = group([A], value=binaries(None), typed_value=pa.nulls(1, arrow_type))
    location = write(tmp_path / "f.parquet", column)
    with pytest.raises(
        UnsupportedFeatureError, match=r"'v\.typed_value' of .*f\.parquet: variants cannot be"
    ):
        read_rows(location, SCHEMA)


def test_times_as_int96_are_refused(tmp_path: Path) -> None:
    """Arrow does not tell them from other times."""
    column = group([A], typed_value=pa.array([1], pa.timestamp("ns")))
    location = write(tmp_path / "f.parquet", column, use_deprecated_int96_timestamps=True)
    with pytest.raises(UnsupportedFeatureError, match=r"'v\.typed_value' of .*INT96"):
        read_rows(location, SCHEMA)


def test_a_variant_that_is_not_read_may_be_shredded_in_any_way(tmp_path: Path) -> None:
    column = group([A], typed_value=pa.nulls(1, pa.uint8()))
    fields = [with_id("v", column.type, 1), with_id("i", pa.int32(), 2)]
    pq.write_table(pa.table([column, [5]], pa.schema(fields)), tmp_path / "f.parquet")
    assert read_rows(str(tmp_path / "f.parquet"), Schema((optional(2, "i", INT),))) == [(5,)]


def test_what_is_missing_but_required_is_null(tmp_path: Path) -> None:
    tops = group([A], value=binaries(None), typed_value=pa.nulls(1, pa.int64()))
    assert read(tmp_path / "top.parquet", tops) == [NULL]
    without = group([A], typed_value=pa.array([None, 1][:1], pa.int64()))
    assert read(tmp_path / "without.parquet", without) == [NULL]
    element = pa.StructArray.from_arrays([binaries(None, b"\x0c\x01")], names=["value"])
    wanted = pa.list_(pa.field("element", element.type, False))
    lists = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), element, wanted)
    assert read(tmp_path / "array.parquet", group([A], typed_value=lists)) == [
        ("array", [NULL, ("int8", 1)])
    ]


def test_a_null_group_is_refused(tmp_path: Path) -> None:
    """What is missing is null in `value` and `typed_value`; groups are required."""
    element = pa.StructArray.from_arrays([binaries(None)], names=["value"], mask=pa.array([True]))
    lists = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), element)
    location = write(tmp_path / "f.parquet", group([A], typed_value=lists))
    with pytest.raises(CorruptFileError, match=r"'v\.typed_value\.element' .* group .* is null"):
        read_rows(location, SCHEMA)


def test_missing_fields_are_not_in_the_object(tmp_path: Path) -> None:
    typed = field_a(pa.array([1, None, None], pa.int64()), binaries(None, None, b"\x00"))
    assert read(tmp_path / "f.parquet", group([A] * 3, typed_value=typed)) == [
        obj(a=number(1)),
        obj(),
        obj(a=NULL),
    ]


def test_an_object_is_read_even_if_nothing_of_it_is_shredded(tmp_path: Path) -> None:
    """Writers must not leave `typed_value` null for objects, but what is meant is clear."""
    typed = pa.nulls(1, field_a(pa.array([1])).type)
    column = group([A], value=binaries(encode(obj(a=NULL), ["a"])), typed_value=typed)
    assert read(tmp_path / "f.parquet", column) == [obj(a=NULL)]


def test_fields_are_in_the_order_of_their_bytes(tmp_path: Path) -> None:
    """Of UTF-8: that of UTF-16 and of the dictionary are others."""
    names = ["\U0001f600", "\ue000", "z", "", "a"]
    variant = obj(**{name: text(name) for name in names})
    shape = Shape("object", {name: Shape("string") for name in ("\U0001f600", "z", "")})
    column = shredded_column([variant], [names], shape)
    assert read(tmp_path / "f.parquet", column) == [variant]


def test_every_row_has_the_ids_of_its_own_dictionary(tmp_path: Path) -> None:
    shape = Shape("array", {"element": Shape("object", {"a": Shape("int64")})})
    variants = [("array", [obj(a=number(i), b=number(-i))] * (i % 3)) for i in range(50)]
    dictionaries = [(["b", "a"], ["x", "a", "b"], ["a", "é" * i, "b"])[i % 3] for i in range(50)]
    column = shredded_column(variants, dictionaries, shape)
    assert read(tmp_path / "f.parquet", column) == variants


@pytest.mark.parametrize("count", [255, 256, 70_000])
def test_large_containers_have_wide_numbers(tmp_path: Path, count: int) -> None:
    array: Variant = ("array", [number(i) for i in range(count)])
    fields = obj(**{f"f{i:05}": ("int8", i % 100) for i in range(count)})
    fields[1]["a"] = array
    names = sorted(names_of(fields))
    shape = Shape("object", {"a": Shape("array", {"element": Shape("int64")})})
    column = shredded_column([fields, obj(a=NULL)], [names] * 2, shape, width=4)
    assert read(tmp_path / "f.parquet", column) == [fields, obj(a=NULL)]


@pytest.mark.parametrize("length", [1, 255, 256, 65_535, 65_536])
def test_numbers_take_as_few_bytes_as_hold_them(tmp_path: Path, length: int) -> None:
    variants = [
        ("array", [("binary", b"x" * (length - 5))]) if length > 5 else ("array", [NULL]),
        ("array", []),
    ]
    shape = Shape("array", {"element": Shape("binary")})
    column = shredded_column(variants, [()] * 2, shape)
    found = read_rows(write(tmp_path / "f.parquet", column), SCHEMA)
    assert [row["value"] for (row,) in found] == [encode(v, ()) for v in variants]


def test_variants_are_read_inside_other_columns(tmp_path: Path) -> None:
    shape = Shape("object", {"a": Shape("int64")})
    variants = [obj(a=number(i), b=text("x" * i)) for i in range(4)]
    inner = shredded_column([*variants[:2], None, *variants[2:]], [("a", "b")] * 5, shape)
    structs = pa.StructArray.from_arrays(
        [inner.slice(0, 3)],
        fields=[with_id("v", inner.type, 4)],
        mask=pa.array([False, True, False]),
    )
    lists = pa.ListArray.from_arrays(
        pa.array([0, 2, 2, 5], pa.int32()),
        inner,
        pa.list_(with_id("element", inner.type, 6)),
        mask=pa.array([False, True, False]),
    )
    maps = pa.MapArray.from_arrays(
        [0, 1, 1, 2],
        pa.array(["k", "l"]),
        inner.slice(3),
        pa.map_(with_id("key", pa.string(), 8, False), with_id("value", inner.type, 9)),
    )
    fields = [with_id("s", structs.type, 3), with_id("l", lists.type, 5)]
    fields.append(with_id("m", maps.type, 7))
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table([structs, lists, maps], pa.schema(fields)), path)
    schema = Schema(
        (
            optional(3, "s", StructType((optional(4, "v", VARIANT),))),
            optional(5, "l", ListType(6, VARIANT)),
            optional(7, "m", MapType(8, STRING, 9, VARIANT)),
        )
    )
    first, second, third = read_rows(str(path), schema)
    assert decoded(first[0]["v"]) == variants[0]
    assert [decoded(v) for v in first[1]] == variants[:2]
    assert [(key, decoded(v)) for key, v in first[2]] == [("k", variants[2])]
    assert second == (None, None, [])
    assert third[0] == {"v": None}
    assert [decoded(v) for v in third[1]] == [None, *variants[2:]]
    assert [(key, decoded(v)) for key, v in third[2]] == [("l", variants[3])]


def test_a_batch_is_rebuilt_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shredded, "_MAX_CELLS", 20)
    shape = Shape("object", {"a": Shape("int64")})
    variants = [None if i % 7 == 0 else obj(a=number(i), b=text(str(i))) for i in range(100)]
    column = shredded_column(variants, [("b", "a")] * 100, shape)
    assert read(tmp_path / "f.parquet", column) == variants


@pytest.mark.parametrize("cells", [1, 1 << 21], ids=["in-parts", "at-once"])
def test_values_too_large_for_one_batch_are_read_in_smaller_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cells: int
) -> None:
    monkeypatch.setattr(byte_strings, "_MAX_BYTES", 100)
    monkeypatch.setattr(shredded, "_MAX_CELLS", cells)
    variants = [number(i) for i in range(20)]
    column = shredded_column(variants, [()] * 20, Shape("int64"))
    with pytest.raises(UnsupportedFeatureError, match=r"20 values .* \(option batch-size\)"):
        read(tmp_path / "f.parquet", column)
    assert read(tmp_path / "f.parquet", column, batch_size=2) == variants


def test_single_pages_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_pruning, "_MIN_BYTES", 0)
    monkeypatch.setattr(page_pruning, "_MIN_GAP", 1)
    shape = Shape("object", {"a": Shape("int64"), "c": Shape("object", {"d": Shape("string")})})
    variants = [
        None if i % 7 == 0 else obj(a=number(i), b=text(str(i)), c=obj(d=text("d")))
        for i in range(100)
    ]
    column = shredded_column(variants, [("b", "a", "c", "d")] * 100, shape)
    fields = [with_id("v", column.type, 1), with_id("i", pa.int32(), 2)]
    path = tmp_path / "f.parquet"
    pq.write_table(
        pa.table([column, pa.array(range(100), pa.int32())], pa.schema(fields)),
        path,
        write_page_index=True,
        max_rows_per_page=10,
        write_batch_size=5,
        store_schema=False,
    )
    schema = Schema((optional(1, "v", VARIANT), optional(2, "i", INT)))
    row_filter = bind(Predicate(Operation.EQ, "i", (42,)), schema)
    (found,) = read_batches(str(path), schema, row_filter=row_filter)
    assert 0 < found.num_rows < 100
    rows = slice(found.first_position, found.first_position + found.num_rows)
    assert [decoded(row) for row in found.batch.column(0).to_pylist()] == variants[rows]


@pytest.mark.parametrize("operation", [Operation.IS_NULL, Operation.NOT_NULL])
def test_filters_do_not_take_a_shredded_columns_nulls_for_the_variants(
    tmp_path: Path, operation: Operation
) -> None:
    column = group([A, A], value=binaries(None, None), typed_value=pa.array([1, 2]))
    path = write(tmp_path / "f.parquet", column)
    (found,) = read_batches(path, SCHEMA, row_filter=bind(Predicate(operation, "v"), SCHEMA))
    assert found.num_rows == 2


def damaged(name: str) -> pa.StructArray:
    """A column that breaks the specification."""
    typed = field_a(pa.array([1]), binaries(None))
    a, b = encode(obj(a=NULL), ["a", "b"]), encode(obj(b=NULL), ["a", "b"])
    cases = {
        "an empty variant": group([A], value=binaries(b""), typed_value=pa.nulls(1, pa.int64())),
        "no name": group([encode_metadata(["x"])], typed_value=typed),
        "two fields of one name": group(
            [encode_metadata(["a", "b", "b"])],
            value=binaries(b"\x02\x02\x01\x02\x00\x01\x02\x00\x00"),
            typed_value=typed,
        ),
        "a shredded name": group([AB], value=binaries(a), typed_value=typed),
        "not an object": group([AB], value=binaries(b"\x00"), typed_value=typed),
        "an unknown name": group([A], value=binaries(b), typed_value=typed),
        "a short object": group([AB], value=binaries(b"\x02"), typed_value=typed),
        "an object of many fields": group(
            [AB], value=binaries(b"\x42\xff\xff\xff\xff"), typed_value=typed
        ),
        "a value behind the end": group(
            [AB], value=binaries(b"\x02\x01\x01\x01\x01\x00"), typed_value=typed
        ),
        "no metadata": group([b""], typed_value=typed),
        "short metadata": group([b"\x01"], typed_value=typed),
        "metadata of many names": group([b"\xc1\xff\xff\xff\xff\x00"], typed_value=typed),
        "names in disorder": group([b"\x01\x02\x00\x02\x01ab"], typed_value=typed),
        "a name behind the end": group([b"\x01\x01\x00\x02a"], typed_value=typed),
    }
    return cases[name]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("an empty variant", "'v' of .*: a variant is empty"),
        ("no name", "lacks the name of their shredded field 'a'"),
        ("two fields of one name", "two fields of one name"),
        ("a shredded name", "both shredded and not"),
        ("not an object", "1 of 1 partially shredded objects are not objects"),
        ("an unknown name", "name is not in the metadata"),
        ("a short object", "an object or array is damaged"),
        ("an object of many fields", "an object or array is damaged"),
        ("a value behind the end", "an object or array is damaged"),
        ("no metadata", "metadata of a variant is damaged"),
        ("short metadata", "metadata of a variant is damaged"),
        ("metadata of many names", "metadata of a variant is damaged"),
        ("names in disorder", "metadata of a variant is damaged"),
        ("a name behind the end", "metadata of a variant is damaged"),
    ],
)
def test_damaged_variants_are_refused(tmp_path: Path, name: str, message: str) -> None:
    location = write(tmp_path / "f.parquet", damaged(name))
    with pytest.raises(CorruptFileError, match=message) as error:
        read_rows(location, SCHEMA)
    assert "f.parquet" in str(error.value)


def test_decimals_of_more_digits_than_declared_are_refused() -> None:
    """Arrow cannot write them, but reads those of other writers."""
    wide = pa.Array.from_buffers(
        pa.decimal128(9, 0), 1, [None, pa.py_buffer((2**40).to_bytes(16, "little"))]
    )
    column = group([A], typed_value=wide)
    columns = columns_of([with_id("v", column.type, 1)])
    projection = plan_projection(columns, SCHEMA, {}, "f")
    with pytest.raises(CorruptFileError, match=r"'v\.typed_value' of f: .*more than 9 digits"):
        projection.apply([column], 1)


def test_later_versions_of_variants_are_refused(tmp_path: Path) -> None:
    typed = field_a(pa.array([1]))
    location = write(tmp_path / "f.parquet", group([b"\x02\x00\x00"], typed_value=typed))
    with pytest.raises(UnsupportedFeatureError, match="variants of version 2"):
        read_rows(location, SCHEMA)


@pytest.mark.parametrize(
    ("typed_value", "message"),
    [
        (pa.array([{"a": 1}]), "has a leaf"),
        (pa.array([{"a": {"value": b"", "other": 1}}]), r"has a struct of \['other', 'value'\]"),
        (pa.array([{"a": {"value": "x"}}]), "stores string, but encoded variants are binary"),
    ],
)
def test_groups_that_are_not_of_shredded_values_are_refused(
    tmp_path: Path, typed_value: pa.Array, message: str
) -> None:
    location = write(tmp_path / "f.parquet", group([A], typed_value=typed_value))
    with pytest.raises(CorruptFileError, match=rf"'v\.typed_value\.a.*{message}"):
        read_rows(location, SCHEMA)


def test_only_parquet_files_have_shredded_variants(tmp_path: Path) -> None:
    column = group([A], value=binaries(None), typed_value=pa.array([1]))
    fields = [pa.field("v", column.type, metadata={"iceberg.id": "1"})]
    fields.append(pa.field("i", pa.int32(), metadata={"iceberg.id": "2"}))
    path = tmp_path / "f.orc"
    orc.write_table(pa.table([column, pa.array([7], pa.int32())], pa.schema(fields)), path)
    with pytest.raises(UnsupportedFeatureError, match=r"'v' of .*f\.orc: only Parquet"):
        read_rows(str(path), SCHEMA, file_format=FileFormat.ORC)
    assert read_rows(str(path), Schema((optional(2, "i", INT),)), file_format=FileFormat.ORC) == [
        (7,)
    ]


@examples(400)
@given(st.data())
def test_damaged_bytes_raise_our_error_or_are_other_bytes(
    data: st.DataObject,
) -> None:
    fields = obj(a=number(1), b=text("x"), c=obj(d=NULL))
    parts = {
        "metadata": bytearray(encode_metadata(["a", "b", "c", "d"], data.draw(st.integers(1, 4)))),
        "value": bytearray(encode(obj(b=fields[1]["b"], c=fields[1]["c"]), ["a", "b", "c", "d"])),
    }
    for _ in range(data.draw(st.integers(1, 3))):
        part = parts[data.draw(st.sampled_from(sorted(parts)))]
        part[data.draw(st.integers(0, len(part) - 1))] = data.draw(st.integers(0, 255))
    column = group(
        [bytes(parts["metadata"])] * 2,
        value=binaries(bytes(parts["value"]), None),
        typed_value=field_a(pa.array([1, 2])),
    )
    columns = columns_of([with_id("v", column.type, 1)])
    with suppress(IcebergError):
        plan_projection(columns, SCHEMA, {}, "f").apply([column], 2)
