"""Avro data files: columns by id, values of every type, blocks, damage."""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import itertools
import json
import zlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import fsspec
import pyarrow as pa
import pytest
from built.data_files import open_file, read_batches, read_rows as read_any, rows_of
from built.schemas import optional, required
from corpus import corpus_dir
from effort import examples
from hypothesis import given, strategies as st
from manifest_cases import with_wrong_defaults

from icebergds.errors import (
    CorruptFileError,
    InvalidDataError,
    MissingFileError,
    UnsupportedFeatureError,
)
from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.formats.avro.data_types import decimals_from_bytes
from icebergds.formats.avro.schema import physical_schema
from icebergds.formats.manifests.manifest_list import read_manifest_list
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import FileFormat
from icebergds.spec.name_mapping import MappedField, NameMapping
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
    ListType,
    MapType,
    StructType,
)


def field(name: str, avro_type: Any, field_id: int | None = None) -> dict[str, Any]:
    return {"name": name, "type": avro_type} | ({} if field_id is None else {"field-id": field_id})


def record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def logical(kind: str, annotation: str, /, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": annotation, **more}


def write_avro(path: Path, schema: dict[str, Any], rows, **options: Any) -> str:
    """Writes rows of stored values: logical types are annotations only."""
    with path.open("wb") as file:
        fastavro.writer(file, schema, rows, disable_tuple_notation=True, **options)
    return str(path)


def read_rows(location: str, schema: Schema, **options):
    return read_any(location, schema, file_format=FileFormat.AVRO, **options)


def test_columns_are_selected_by_id_and_converted(tmp_path):
    point = record("r4", field("x", "float", 5), field("y", ["null", "int"], 6))
    entry = record("k8_v9", field("key", "int", 8), field("value", ["null", point_named("r9")], 9))
    schema = record(
        "table",
        field("a", ["null", "int"], 1),
        field("b", "string", 2),
        field("l", {"type": "array", "items": [point, "null"], "element-id": 4}, 3),
        field("m", {"type": "array", "logicalType": "map", "items": entry}, 7),
        field("n", ["null", {"type": "map", "values": "int", "key-id": 11, "value-id": 12}], 10),
    )
    rows = [
        {
            "a": 1,
            "b": "x",
            "l": [{"x": 0.5, "y": 2}, None],
            "m": [{"key": 7, "value": {"u": 1, "v": 2}}, {"key": 8, "value": None}],
            "n": {"k": 3},
        },
        {"a": None, "b": "y", "l": [], "m": [], "n": None},
    ]
    location = write_avro(tmp_path / "f.avro", schema, rows)
    wanted = Schema(
        (
            optional(10, "nn", MapType(11, STRING, 12, LONG)),
            optional(7, "mm", MapType(8, LONG, 9, StructType((optional(14, "vv", LONG),)))),
            optional(3, "ll", ListType(4, StructType((optional(5, "xx", DOUBLE),)))),
            optional(20, "b", INT, initial_default=9),
            optional(1, "b2", LONG),
        )
    )
    (read,) = read_batches(location, wanted, file_format=FileFormat.AVRO)
    read.batch.validate(full=True)
    assert read.batch.schema.equals(schema_to_arrow(wanted), check_metadata=True)
    assert rows_of(read) == [
        ([("k", 3)], [(7, {"vv": 2}), (8, None)], [{"xx": 0.5}, None], 9, 1),
        (None, [], [], 9, None),
    ]
    with open_file(location, FileFormat.AVRO) as reader:
        assert reader.file_schema.fields == (
            optional(1, "a", INT),
            required(2, "b", STRING),
            required(
                3,
                "l",
                ListType(4, StructType((required(5, "x", FLOAT), optional(6, "y", INT)))),
            ),
            required(
                7,
                "m",
                MapType(8, INT, 9, StructType((required(13, "u", INT), required(14, "v", INT)))),
            ),
            optional(10, "n", MapType(11, STRING, 12, INT, True)),
        )


def point_named(name: str) -> dict[str, Any]:
    return record(name, field("u", "int", 13), field("v", "int", 14))


def unscaled(text: str, size: int) -> bytes:
    return int(text.replace(".", "")).to_bytes(size, "big", signed=True)


CASES: list[tuple[Any, Any, Any, Any]] = [
    # Iceberg type, Avro type, stored value, value read
    (BOOLEAN, "boolean", True, True),
    (INT, "int", -1, -1),
    (LONG, "long", 2**62, 2**62),
    (FLOAT, "float", 0.5, 0.5),
    (DOUBLE, "double", 0.1, 0.1),
    (
        DecimalType(9, 2),
        logical("fixed", "decimal", precision=9, scale=2, size=4, name="decimal_9_2"),
        unscaled("-1.25", 4),
        Decimal("-1.25"),
    ),
    (DecimalType(9, 2), "decimal_9_2", unscaled("7.50", 4), Decimal("7.50")),
    (
        DecimalType(38, 3),
        logical("fixed", "decimal", precision=38, scale=3, size=16, name="decimal_38_3"),
        unscaled("12345678901234567890123456789012345.678", 16),
        Decimal("12345678901234567890123456789012345.678"),
    ),
    (
        DecimalType(20, 1),
        logical("bytes", "decimal", precision=20, scale=1),
        unscaled("-12.5", 3),
        Decimal("-12.5"),
    ),
    (DATE, logical("int", "date"), -1, dt.date(1969, 12, 31)),
    (TIME, logical("long", "time-micros"), 1, dt.time(0, 0, 0, 1)),
    (TIME, logical("int", "time-millis"), 1, dt.time(0, 0, 0, 1000)),
    (
        TIMESTAMP,
        logical("long", "timestamp-micros"),
        -62135596800000000,
        dt.datetime(1, 1, 1),
    ),
    (
        TIMESTAMPTZ,
        logical("long", "timestamp-micros", **{"adjust-to-utc": True}),
        1,
        dt.datetime(1970, 1, 1, 0, 0, 0, 1, dt.UTC),
    ),
    (
        TIMESTAMP,
        logical("long", "timestamp-millis"),
        -1,
        dt.datetime(1969, 12, 31, 23, 59, 59, 999000),
    ),
    (TIMESTAMPTZ, logical("long", "timestamp-millis"), 0, dt.datetime(1970, 1, 1, tzinfo=dt.UTC)),
    (TIMESTAMP, logical("long", "local-timestamp-micros"), 0, dt.datetime(1970, 1, 1)),
    (STRING, "string", "é", "é"),
    (STRING, {"type": "enum", "name": "e", "symbols": ["p", "q"]}, "q", "q"),
    (
        UUID,
        logical("fixed", "uuid", size=16, name="uuid_fixed"),
        b"0123456789abcdef",
        b"0123456789abcdef",
    ),
    (FixedType(3), {"type": "fixed", "size": 3, "name": "fixed_3"}, b"abc", b"abc"),
    (BINARY, "bytes", b"\xff", b"\xff"),
    (UNKNOWN, "null", None, None),
]


@pytest.mark.parametrize("null_first", [True, False])
def test_every_type_is_read_in_its_storage_type(tmp_path, null_first):
    def union(avro_type):
        if avro_type == "null":
            return "null"
        return ["null", avro_type] if null_first else [avro_type, "null"]

    avro = record("t", *(field(f"c{i}", union(a), i) for i, (_, a, _, _) in enumerate(CASES)))
    plain = {f"c{i}": stored for i, (_, _, stored, _) in enumerate(CASES)}
    location = write_raw(tmp_path / "f.avro", avro, [plain, dict.fromkeys(plain)])
    schema = Schema(tuple(optional(i, f"c{i}", t) for i, (t, _, _, _) in enumerate(CASES)))
    assert read_rows(location, schema) == [
        tuple(value for _, _, _, value in CASES),
        (None,) * len(CASES),
    ]


def write_raw(
    path: Path, schema: dict[str, Any], rows: list[dict[str, Any]], codec: str = "null"
) -> str:
    """Writes stored values, in one block, under a schema whose logical types mean nothing."""
    body = io.BytesIO()
    physical = physical_schema(json.dumps(schema))
    for row in rows:
        fastavro.schemaless_writer(body, physical, row, disable_tuple_notation=True)
    plain = body.getvalue()
    match codec:
        case "snappy":
            stored = pa.compress(plain, "snappy", asbytes=True)
            stored += zlib.crc32(plain).to_bytes(4, "big")
        case "zstandard":
            stored = pa.compress(plain, "zstd", asbytes=True)
        case _:
            stored = plain
    metadata = {"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode()}
    sync = bytes(range(16))
    with path.open("wb") as file:
        file.write(b"Obj\x01")
        fastavro.schemaless_writer(file, {"type": "map", "values": "bytes"}, metadata)
        file.write(sync)
        for number in (len(rows), len(stored)):
            fastavro.schemaless_writer(file, "long", number)
        file.write(stored + sync)
    return str(path)


def test_nanosecond_timestamps_keep_their_nanoseconds(tmp_path):
    avro = record(
        "t",
        field("n", logical("long", "timestamp-nanos"), 1),
        field("z", logical("long", "timestamp-nanos", **{"adjust-to-utc": True}), 2),
    )
    location = write_raw(tmp_path / "f.avro", avro, [{"n": -1, "z": 2**62}])
    schema = Schema((optional(1, "n", TIMESTAMP_NS), optional(2, "z", TIMESTAMPTZ_NS)))
    (read,) = read_batches(location, schema, file_format=FileFormat.AVRO)
    assert [c.view(pa.int64()).to_pylist() for c in read.batch.columns] == [[-1], [2**62]]
    with open_file(location, FileFormat.AVRO) as reader:
        assert [f.field_type for f in reader.file_schema.fields] == [TIMESTAMP_NS, TIMESTAMPTZ_NS]


def test_decimals_and_maps_are_read_at_every_depth(tmp_path):
    decimal = logical("bytes", "decimal", precision=10, scale=2)
    entry = record(
        "e",
        field("key", decimal, 5),
        field("value", {"type": "map", "values": decimal, "key-id": 7, "value-id": 8}, 6),
    )
    avro = record(
        "t",
        field(
            "s",
            [
                "null",
                record(
                    "s_",
                    field("l", {"type": "array", "items": ["null", decimal], "element-id": 3}, 2),
                    field(
                        "m", ["null", {"type": "array", "logicalType": "map", "items": entry}], 4
                    ),
                ),
            ],
            1,
        ),
    )
    one, two = unscaled("1.00", 2), unscaled("-2.00", 2)
    rows = [
        {"s": {"l": [one, None, two], "m": [{"key": one, "value": {"k": two}}]}},
        {"s": None},
        {"s": {"l": [], "m": None}},
    ]
    location = write_raw(tmp_path / "f.avro", avro, rows)
    d = DecimalType(12, 2)
    wanted = StructType(
        (
            optional(4, "m", MapType(5, d, 6, MapType(7, STRING, 8, d))),
            optional(2, "l", ListType(3, d)),
        )
    )
    read_back = read_rows(location, Schema((optional(1, "s", wanted),)))
    one_, two_ = Decimal("1.00"), Decimal("-2.00")
    assert read_back == [
        ({"m": [(one_, [("k", two_)])], "l": [one_, None, two_]},),
        (None,),
        ({"m": None, "l": []},),
    ]


@given(
    st.lists(
        st.one_of(st.none(), st.tuples(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 5))),
        max_size=20,
    ),
    st.integers(0, 3),
)
def test_decimals_are_their_twos_complement_bytes(values, cut):
    raw = [
        None if v is None else v[0].to_bytes(v[0].bit_length() // 8 + 1 + v[1], "big", signed=True)
        for v in values
    ]
    array = pa.array(raw, pa.binary())[cut:]
    expected = [None if v is None else v[0] for v in values][cut:]
    found = decimals_from_bytes(array, 0).to_pylist()
    assert [None if v is None else int(v) for v in found] == expected


@pytest.mark.parametrize(
    "raw", [b"\x01" + bytes(16), b"\xfe" + b"\xff" * 16, b"\x00" + b"\xff" * 16]
)
def test_decimals_of_more_than_16_bytes_are_no_decimals(raw):
    with pytest.raises(ValueError, match="16 bytes"):
        decimals_from_bytes(pa.array([b"\x01", raw]), 0)


def test_files_without_ids_are_read_through_a_name_mapping(tmp_path):
    point = record("p", field("x", "int"), field("y", "int"))
    avro = record(
        "t",
        field("id", "int"),
        field("s", point),
        field("l", {"type": "array", "items": "int"}),
        field("m", {"type": "map", "values": "int"}),
    )
    rows = [{"id": 1, "s": {"x": 2, "y": 3}, "l": [4], "m": {"k": 5}}]
    location = write_avro(tmp_path / "f.avro", avro, rows)
    mapping = NameMapping(
        (
            MappedField(("key", "id"), 10),
            MappedField(("s",), 11, (MappedField(("y",), 12),)),
            MappedField(("l",), 13, (MappedField(("element",), 14),)),
            MappedField(("m",), 15, (MappedField(("key",), 16), MappedField(("value",), 17))),
        )
    )
    schema = Schema(
        (
            optional(11, "s", StructType((optional(12, "x", INT), optional(99, "y", INT)))),
            optional(10, "k", INT),
            optional(13, "l", ListType(14, LONG)),
            optional(15, "m", MapType(16, STRING, 17, INT)),
        )
    )
    expected = [({"x": 3, "y": None}, 1, [4], [("k", 5)])]
    assert read_rows(location, schema, name_mapping=mapping) == expected


def test_files_without_ids_and_mapping_are_read_by_name(tmp_path):
    point = record("p", field("x", "int"), field("y", "int"))
    location = write_avro(
        tmp_path / "f.avro",
        record("t", field("id", "int"), field("s", point)),
        [{"id": 1, "s": {"x": 2, "y": 3}}],
    )
    schema = Schema(
        (
            optional(5, "s", StructType((optional(6, "y", INT), optional(7, "Y", INT)))),
            optional(8, "id", INT),
            optional(9, "ID", INT),
        )
    )
    assert read_rows(location, schema) == [({"y": 3, "Y": None}, 1, None)]


MAP = {"type": "map", "values": ["null", "long"], "key-id": 4, "value-id": 5}


@pytest.mark.parametrize(
    ("stored", "value"),
    [
        (MAP, {"k": 1}),
        ({"type": "array", "items": MAP, "element-id": 6}, [{"k": 1}]),
        (record("r6", field("m", MAP, 6)), {"m": {"k": 1}}),
        (record("empty"), {}),
    ],
    ids=["map", "list of maps", "struct of a map", "struct without fields"],
)
def test_a_struct_says_where_it_is_null_whatever_it_stores(tmp_path, stored, value):
    avro = record("t", field("s", ["null", record("r1", field("c", stored, 2))], 1))
    location = write_avro(tmp_path / "f.avro", avro, [{"s": {"c": value}}, {"s": None}])
    wanted = Schema((optional(1, "s", StructType((optional(9, "n", INT),))),))
    assert read_rows(location, wanted) == [({"n": None},), (None,)]


def test_structs_without_fields_are_read(tmp_path):
    avro = record("t", field("s", ["null", record("r1")], 1))
    location = write_avro(tmp_path / "f.avro", avro, [{"s": {}}, {"s": None}])
    assert read_rows(location, Schema((optional(1, "s", StructType(())),))) == [({},), (None,)]
    wanted = Schema((optional(1, "s", StructType((optional(2, "n", INT),))),))
    assert read_rows(location, wanted) == [({"n": None},), (None,)]


def test_schemas_that_make_no_sense_are_named(tmp_path):
    for number, broken in enumerate(
        [
            field("a", "int", "x"),
            field("a", "int", float("inf")),
            field("a", {"type": "long", "logicalType": 5}, 1),
            field("a", {"type": "fixed", "name": "f", "size": 2**40}, 1),
        ]
    ):
        path = write_raw(tmp_path / f"{number}.avro", record("t", broken), [])
        with pytest.raises(CorruptFileError, match=rf"{number}\.avro"):
            read_rows(path, NUMBERS)


def test_names_that_were_altered_for_avro_mean_nothing(tmp_path):
    avro = record("t", {**field("a_x2Db", "int", 1), "iceberg-field-name": "a-b"})
    location = write_avro(tmp_path / "f.avro", avro, [{"a_x2Db": 5}])
    assert read_rows(location, Schema((optional(1, "renamed", INT),))) == [(5,)]


def test_unions_of_several_types_are_refused_only_where_they_are_read(tmp_path):
    avro = record("t", field("u", ["int", "string"], 1), field("a", "int", 2))
    location = write_avro(tmp_path / "f.avro", avro, [{"u": 1, "a": 5}, {"u": "x", "a": 6}])
    assert read_rows(location, Schema((optional(2, "a", INT),))) == [(5,), (6,)]
    with pytest.raises(UnsupportedFeatureError, match=r"'u' of .*f\.avro.*union"):
        read_rows(location, Schema((optional(1, "u", INT),)))


def test_unshredded_variants_are_read(tmp_path):
    variant = record("v", field("metadata", "bytes"), field("value", "bytes"))
    location = write_avro(
        tmp_path / "f.avro",
        record("t", field("v", ["null", variant], 1)),
        [{"v": {"metadata": b"m", "value": b"v"}}, {"v": None}],
    )
    assert read_rows(location, Schema((optional(1, "v", VARIANT),))) == [
        ({"metadata": b"m", "value": b"v"},),
        (None,),
    ]


def test_shredded_variants_are_refused_only_where_they_are_read(tmp_path):
    """The specification has them in Parquet alone."""
    parts = [field("metadata", "bytes"), field("value", ["null", "bytes"])]
    variant = record("v", *parts, field("typed_value", ["null", "long"]))
    location = write_avro(
        tmp_path / "f.avro",
        record("t", field("v", variant, 1), field("a", "int", 2)),
        [{"v": {"metadata": b"\x01\x00\x00", "value": None, "typed_value": 1}, "a": 5}],
    )
    assert read_rows(location, Schema((optional(2, "a", INT),))) == [(5,)]
    with pytest.raises(UnsupportedFeatureError, match=r"'v' of .*f\.avro: only Parquet"):
        read_rows(location, Schema((optional(1, "v", VARIANT),)))


def test_nulls_and_absence_of_required_columns_are_errors(tmp_path):
    avro = record("t", field("a", ["null", "int"], 1))
    location = write_avro(tmp_path / "f.avro", avro, [{"a": 1}, {"a": None}])
    with pytest.raises(InvalidDataError, match=r"column 'a' of .*f\.avro"):
        read_rows(location, Schema((required(1, "a", INT),)))
    with pytest.raises(InvalidDataError, match=r"column 'b' of .*f\.avro"):
        read_rows(location, Schema((required(2, "b", INT),)))


NUMBERS = Schema((optional(1, "n", LONG),))
NUMBERS_IN_AVRO = record("t", field("n", "long", 1))


@pytest.fixture(scope="module")
def blocks(tmp_path_factory) -> str:
    """A file of the numbers 0, 1, ... in many blocks."""
    path = tmp_path_factory.mktemp("avro") / "blocks.avro"
    return write_avro(path, NUMBERS_IN_AVRO, [{"n": n} for n in range(2000)], sync_interval=100)


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_every_codec_is_read(tmp_path, codec):
    rows = [{"n": n} for n in range(500)]
    location = write_avro(tmp_path / "f.avro", NUMBERS_IN_AVRO, rows, codec=codec)
    assert read_rows(location, NUMBERS) == [(n,) for n in range(500)]


@pytest.mark.parametrize("codec", ["snappy", "zstandard"])
def test_codecs_that_fastavro_has_no_library_for_are_read(tmp_path, codec):
    location = write_raw(
        tmp_path / "f.avro", NUMBERS_IN_AVRO, [{"n": n} for n in range(500)], codec
    )
    assert read_rows(location, NUMBERS) == [(n,) for n in range(500)]


def test_an_unknown_codec_is_named(tmp_path):
    location = write_raw(tmp_path / "f.avro", NUMBERS_IN_AVRO, [{"n": 1}], "lzo")
    with pytest.raises(UnsupportedFeatureError, match=r"f\.avro.*'lzo'"):
        read_rows(location, NUMBERS)


def test_remote_files_are_read_too(blocks):
    store = fsspec.filesystem("memory")
    store.pipe("/avro/blocks.avro", Path(blocks).read_bytes())
    try:
        assert read_rows("memory:///avro/blocks.avro", NUMBERS) == [(n,) for n in range(2000)]
    finally:
        store.rm("/avro", recursive=True)


@examples(40)
@given(cuts=st.lists(st.integers(0, 9_000), max_size=6), batch_size=st.integers(1, 3000))
def test_every_row_is_in_exactly_one_of_any_splits(blocks, cuts, batch_size):
    size = Path(blocks).stat().st_size
    bounds = sorted({0, size, *(cut for cut in cuts if cut < size)})
    found = []
    for start, end in itertools.pairwise(bounds):
        for read in read_batches(
            blocks,
            NUMBERS,
            file_format=FileFormat.AVRO,
            split=(start, end - start),
            batch_size=batch_size,
        ):
            assert 0 < read.num_rows <= batch_size
            found += [(read.first_position + i, row[0]) for i, row in enumerate(rows_of(read))]
    assert found == [(n, n) for n in range(2000)]


def test_small_blocks_are_put_together_to_batches(blocks):
    reads = read_batches(blocks, NUMBERS, file_format=FileFormat.AVRO)
    assert [read.num_rows for read in reads] == [2000]


def test_rows_are_counted_where_no_column_is_read(blocks):
    reads = read_batches(blocks, Schema(()), file_format=FileFormat.AVRO, batch_size=300)
    assert sum(read.num_rows for read in reads) == 2000
    assert reads[-1].first_position + reads[-1].num_rows == 2000


@pytest.mark.parametrize("count", [0, 2, 5, 64, 2**40, 2**62])
@pytest.mark.parametrize("wanted", [(), (optional(9, "absent", INT),), NUMBERS.fields])
def test_a_block_holds_the_records_that_it_counts(tmp_path, count, wanted):
    path = Path(write_avro(tmp_path / "f.avro", NUMBERS_IN_AVRO, [{"n": n} for n in range(3)]))
    content = path.read_bytes()
    block = content.index(content[-16:]) + 16
    stated = io.BytesIO()
    fastavro.schemaless_writer(stated, "long", count)
    path.write_bytes(content[:block] + stated.getvalue() + content[block + 1 :])
    with pytest.raises(CorruptFileError, match=r"f\.avro"):
        read_rows(str(path), Schema(wanted))


def test_records_without_bytes_are_rows_too(tmp_path):
    nothing = record("t", field("u", "null", 1))
    location = write_avro(tmp_path / "f.avro", nothing, [{"u": None}] * 3)
    assert read_rows(location, Schema((optional(1, "u", UNKNOWN),))) == [(None,)] * 3


def test_an_empty_file_has_no_batches(tmp_path):
    location = write_avro(tmp_path / "f.avro", NUMBERS_IN_AVRO, [])
    assert read_batches(location, NUMBERS, file_format=FileFormat.AVRO) == []


def test_a_header_may_be_of_any_length(tmp_path):
    schema = record("table", field("n", "int", 1))
    notes = {"notes": "x" * 300_000}
    location = write_avro(tmp_path / "f.avro", schema, [{"n": 7}], metadata=notes)
    assert read_rows(location, Schema((optional(1, "n", INT),))) == [(7,)]


def test_missing_truncated_and_foreign_files_are_named(tmp_path, blocks):
    opened = open_file(str(tmp_path / "gone.avro"), FileFormat.AVRO)
    with pytest.raises(MissingFileError, match=r"gone\.avro"), opened:
        pass
    whole = Path(blocks).read_bytes()
    contents = [
        b"",
        b"Obj",
        b"Obj\x01",
        b"no avro file at all",
        whole[:50],
        whole[:-1],
        whole[:-20],
    ]
    for number, content in enumerate(contents):
        path = tmp_path / f"bad{number}.avro"
        path.write_bytes(content)
        with pytest.raises(CorruptFileError, match=rf"bad{number}\.avro"):
            read_rows(str(path), NUMBERS)


@examples(80)
@given(st.integers(0, 10_000), st.integers(1, 255))
def test_damage_is_an_error_or_changes_values_but_never_the_number_of_rows(
    blocks, tmp_path_factory, at, change
):
    content = bytearray(Path(blocks).read_bytes())
    content[at % len(content)] ^= change
    path = tmp_path_factory.mktemp("damage") / "f.avro"
    path.write_bytes(content)
    with contextlib.suppress(CorruptFileError, UnsupportedFeatureError):
        assert len(read_rows(str(path), NUMBERS)) == 2000


def test_javas_files_are_read():
    (path,) = (corpus_dir() / "java-gen/unknown_type_avro/data").glob("*.avro")
    with open_file(str(path), FileFormat.AVRO) as reader:
        ids = set(reader.file_schema.fields_by_id)
    assert 1 in ids
    assert len(read_rows(str(path), Schema((optional(1, "id", LONG),)))) > 0


def test_hives_files_are_read():
    folder = corpus_dir() / "impala-hist/testdata/data/iceberg_test/hadoop_catalog/ice"
    (path,) = (folder / "iceberg_avro_only/data").glob("*.avro")
    assert len(read_rows(str(path), Schema((optional(1, "i", LONG),)))) > 0


def test_bytes_of_another_file_are_not_quoted(tmp_path):
    other = tmp_path / "passwords"
    other.write_bytes(b"root:x:0:0:root:/root:/bin/sh\n")
    with pytest.raises(CorruptFileError, match="is not an Avro file") as raised:
        read_manifest_list(FileIO(), str(other))
    with pytest.raises(CorruptFileError, match="is not an Avro file") as of_rows:
        read_rows(str(other), Schema((optional(1, "id", LONG),)))
    assert "root" not in str(raised.value).replace(str(other), "")
    assert "root" not in str(of_rows.value).replace(str(other), "")


def test_defaults_in_the_header_mean_nothing(tmp_path):
    point = record("r2", field("x", "long", 3), field("y", ["null", "int"], 4))
    schema = record("table", field("a", "long", 1), field("b", ["null", point], 2))
    rows = [{"a": 1, "b": {"x": 2, "y": None}}, {"a": 3, "b": None}]
    location = write_avro(tmp_path / "f.avro", schema, rows)
    changed = tmp_path / "other.avro"
    changed.write_bytes(with_wrong_defaults(Path(location).read_bytes()))
    struct = StructType((required(3, "x", LONG), optional(4, "y", INT)))
    wanted = Schema((required(1, "a", LONG), optional(2, "b", struct)))
    assert read_rows(str(changed), wanted) == read_rows(location, wanted)
