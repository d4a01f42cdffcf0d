"""Parquet data files: columns by id, values of every type, damage."""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built.data_files import (
    open_file,
    read_batches,
    read_rows,
    with_id,
    with_optional_keys,
    write_parquet,
)
from built.schemas import optional, required
from corpus import corpus_dir
from pyarrow.parquet.encryption import (
    CryptoFactory,
    EncryptionConfiguration,
    KmsClient,
    KmsConnectionConfig,
)

from icebergds.encryption.key_metadata import new_key_metadata
from icebergds.errors import (
    CorruptFileError,
    InvalidDataError,
    MissingFileError,
    UnsupportedFeatureError,
)
from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.formats.parquet.encryption import encryption_options
from icebergds.spec.json.schema import schema_from_json
from icebergds.spec.name_mapping import MappedField, NameMapping
from icebergds.spec.reserved import (
    DELETE_FILE_PATH,
    DELETE_POS,
    LAST_UPDATED_SEQUENCE_NUMBER,
    ROW_ID,
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
    ListType,
    MapType,
    StructType,
)

A_B = [with_id("a", pa.int32(), 1), with_id("b", pa.string(), 2)]
A_B_STRUCT = pa.struct([with_id("a", pa.int32(), 5), with_id("b", pa.string(), 6)])


@pytest.fixture
def simple(tmp_path):
    return write_parquet(tmp_path / "f.parquet", A_B, [[1, 2, None], ["x", None, "z"]])


def test_columns_are_selected_by_id_and_come_in_the_schemas_order(simple):
    schema = Schema(
        (optional(2, "renamed", STRING), optional(3, "a", DOUBLE), optional(1, "b", LONG))
    )
    (read,) = read_batches(simple, schema)
    assert read.batch.schema.equals(schema_to_arrow(schema), check_metadata=True)
    assert read.batch.to_pydict() == {
        "renamed": ["x", None, "z"],
        "a": [None] * 3,
        "b": [1, 2, None],
    }


def test_nulls_of_a_required_column_are_an_error(simple):
    with pytest.raises(InvalidDataError, match=r"column 'b' of .*f\.parquet is required"):
        read_rows(simple, Schema((required(1, "b", LONG),)))


def test_only_the_leaf_columns_that_are_needed_are_read(tmp_path):
    nested = pa.struct(
        [
            with_id("x", pa.int32(), 2),
            with_id("l", pa.list_(with_id("element", A_B_STRUCT, 4)), 3),
        ]
    )
    rows = [{"x": i, "l": [{"a": i, "b": "t" * 100}]} for i in range(3)]
    fields = [with_id("s", nested, 1), with_id("after", pa.int32(), 7)]
    location = write_parquet(tmp_path / "f.parquet", fields, [rows, [7, 8, 9]], compression="none")
    element = StructType((optional(5, "a", INT),))
    schema = Schema(
        (
            optional(7, "after", INT),
            optional(1, "s", StructType((optional(3, "l", ListType(4, element)),))),
        )
    )
    damaged = bytearray(Path(location).read_bytes())
    group = pq.ParquetFile(location).metadata.row_group(0)
    for leaf in (0, 2):
        chunk = group.column(leaf)
        begin = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
        damaged[begin : begin + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    Path(location).write_bytes(damaged)
    assert read_rows(location, schema) == [(7 + i, {"l": [{"a": i}]}) for i in range(3)]


def test_names_with_dots_capitals_and_doubles_mean_nothing(tmp_path):
    fields = [
        with_id("s.x", pa.int32(), 1),
        with_id("s", pa.struct([with_id("x", pa.int32(), 3), with_id("X", pa.int32(), 4)]), 2),
        with_id("s.x", pa.string(), 5),
        with_id("S.X", pa.string(), 6),
    ]
    location = write_parquet(
        tmp_path / "f.parquet", fields, [[1], [{"x": 2, "X": 3}], ["four"], ["five"]]
    )
    struct = StructType((optional(4, "x", INT), optional(3, "X", INT)))
    schema = Schema((optional(5, "a", STRING), optional(2, "b", struct), optional(1, "c", INT)))
    assert read_rows(location, schema) == [("four", {"x": 3, "X": 2}, 1)]
    assert read_rows(location, Schema((optional(6, "s.x", STRING),))) == [("five",)]


def test_every_type_is_read_in_its_storage_type(tmp_path):
    cases = [
        (BOOLEAN, pa.bool_(), True),
        (INT, pa.int32(), -1),
        (LONG, pa.int64(), 2**62),
        (FLOAT, pa.float32(), 0.5),
        (DOUBLE, pa.float64(), 0.1),
        (DecimalType(9, 2), pa.decimal128(9, 2), Decimal("-1.25")),
        (DecimalType(38, 3), pa.decimal128(38, 3), Decimal("12345678901234567890.125")),
        (DATE, pa.date32(), dt.date(1969, 12, 31)),
        (TIME, pa.time64("us"), dt.time(1, 2, 3, 4)),
        (TIMESTAMP, pa.timestamp("us"), dt.datetime(1, 1, 1)),
        (TIMESTAMPTZ, pa.timestamp("us", "UTC"), dt.datetime(9999, 12, 31, tzinfo=dt.UTC)),
        (STRING, pa.string(), "é"),
        (UUID, pa.uuid(), b"0123456789abcdef"),
        (UUID, pa.binary(16), b"0123456789abcdef"),
        (FixedType(3), pa.binary(3), b"abc"),
        (BINARY, pa.binary(), b"\xff"),
    ]
    fields = [with_id(f"c{i}", stored, i) for i, (_, stored, _) in enumerate(cases)]
    arrays = [
        pa.array([value, None], pa.binary(16)).cast(stored)
        if stored == pa.uuid()
        else pa.array([value, None], stored)
        for _, stored, value in cases
    ]
    schema = Schema(tuple(optional(i, f"c{i}", t) for i, (t, _, _) in enumerate(cases)))
    for number, options in enumerate([{}, {"store_decimal_as_integer": True}]):
        location = write_parquet(tmp_path / f"{number}.parquet", fields, arrays, **options)
        assert read_rows(location, schema) == [
            tuple(value for _, _, value in cases),
            (None,) * len(cases),
        ]


def test_nanosecond_timestamps_keep_their_nanoseconds(tmp_path):
    fields = [with_id("n", pa.timestamp("ns"), 1), with_id("z", pa.timestamp("ns", "UTC"), 2)]
    raw = pa.array([-1, 2**62, None], pa.int64())
    location = write_parquet(tmp_path / "f.parquet", fields, [raw.view(f.type) for f in fields])
    schema = Schema((optional(1, "n", TIMESTAMP_NS), optional(2, "z", TIMESTAMPTZ_NS)))
    (read,) = read_batches(location, schema)
    assert [c.view(pa.int64()).to_pylist() for c in read.batch.columns] == [raw.to_pylist()] * 2


@pytest.mark.parametrize("field_type", [TIMESTAMP, TIMESTAMPTZ])
def test_int96_timestamps_of_any_year_are_instants_of_the_tables_type(tmp_path, field_type):
    fields = [with_id("t", pa.timestamp("us"), 1)]
    values = [dt.datetime(2200, 1, 1, 0, 0, 0, 123456), dt.datetime(1700, 1, 1)]
    location = write_parquet(
        tmp_path / "f.parquet", fields, [values], use_deprecated_int96_timestamps=True
    )
    zone = dt.UTC if field_type == TIMESTAMPTZ else None
    schema = Schema((optional(1, "t", field_type),))
    assert read_rows(location, schema) == [(v.replace(tzinfo=zone),) for v in values]


def test_promoted_columns_are_converted_also_inside_lists_and_maps(tmp_path):
    point = pa.struct([with_id("x", pa.float32(), 3)])
    fields = [
        with_id("l", pa.list_(with_id("element", point, 2)), 1),
        with_id(
            "m",
            pa.map_(with_id("key", pa.int32(), 5, False), with_id("value", pa.decimal128(4, 1), 6)),
            4,
        ),
        with_id("d", pa.date32(), 7),
    ]
    rows = [[[{"x": 0.5}, None]], [[(1, Decimal("1.5"))]], [dt.date(2000, 1, 1)]]
    schema = Schema(
        (
            optional(1, "l", ListType(2, StructType((optional(3, "x", DOUBLE),)))),
            optional(4, "m", MapType(5, LONG, 6, DecimalType(20, 1))),
            optional(7, "d", TIMESTAMP_NS),
        )
    )
    location = write_parquet(tmp_path / "f.parquet", fields, rows)
    (read,) = read_batches(location, schema)
    assert read.batch.column(0).to_pylist() == rows[0]
    assert read.batch.column(1).to_pylist() == rows[1]
    assert read.batch.column(2).view(pa.int64()).to_pylist() == [10957 * 86_400 * 10**9]


def test_unknown_columns_are_null_whatever_is_stored(tmp_path):
    fields = [with_id("u", pa.int32(), 1), with_id("n", pa.null(), 2), with_id("a", pa.int32(), 3)]
    location = write_parquet(tmp_path / "f.parquet", fields, [[1], [None], [5]])
    schema = Schema((optional(1, "u", UNKNOWN), optional(2, "n", LONG), optional(3, "a", INT)))
    assert read_rows(location, schema) == [(None, None, 5)]


def test_reserved_columns_are_read_where_they_are_stored(tmp_path, simple):
    fields = [
        with_id("_row_id", pa.int64(), ROW_ID.field_id),
        with_id("_last_updated_sequence_number", pa.int64(), LAST_UPDATED_SEQUENCE_NUMBER.field_id),
    ]
    stored = write_parquet(tmp_path / "rows.parquet", fields, [[10, None], [3, None]])
    schema = Schema((ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER))
    assert read_rows(stored, schema) == [(10, 3), (None, None)]
    assert read_rows(simple, schema) == [(None, None)] * 3


def test_position_delete_files_are_read_by_their_reserved_ids(tmp_path):
    fields = [
        with_id("file_path", pa.string(), DELETE_FILE_PATH.field_id, nullable=False),
        with_id("pos", pa.int64(), DELETE_POS.field_id, nullable=False),
    ]
    location = write_parquet(tmp_path / "d.parquet", fields, [["p", "q"], [0, 7]])
    assert read_rows(location, Schema((DELETE_POS, DELETE_FILE_PATH))) == [(0, "p"), (7, "q")]
    with open_file(location) as reader:
        assert reader.file_schema.fields == (DELETE_FILE_PATH, DELETE_POS)


def test_rows_are_counted_where_no_column_is_read(tmp_path):
    location = write_parquet(
        tmp_path / "f.parquet", A_B, [range(25), ["x"] * 25], row_group_size=10
    )
    reads = read_batches(location, Schema(()), batch_size=8)
    assert sum(read.num_rows for read in reads) == 25
    assert [read.first_position for read in reads] == [0, 8, 16, 24]
    filled = Schema((optional(9, "new", INT, initial_default=1),))
    assert read_rows(location, filled, batch_size=8) == [(1,)] * 25


def test_dictionary_large_and_view_layouts_of_arrow_are_read_as_plain_columns(tmp_path):
    stored = [
        pa.dictionary(pa.int32(), pa.large_string()),
        pa.large_string(),
        pa.string_view(),
        pa.large_list(with_id("element", pa.string(), 20)),
    ]
    fields = [with_id(f"c{i}", arrow_type, i) for i, arrow_type in enumerate(stored)]
    values = [["a", None, "a"]] * 3 + [[["x"], None, []]]
    location = write_parquet(
        tmp_path / "f.parquet",
        fields,
        [
            pa.array(v, pa.string()).cast(t) if i == 0 else v
            for i, (v, t) in enumerate(zip(values, stored, strict=True))
        ],
    )
    schema = Schema(
        (*(optional(i, f"c{i}", STRING) for i in range(3)), optional(3, "c3", ListType(20, STRING)))
    )
    (read,) = read_batches(location, schema)
    assert [column.to_pylist() for column in read.batch.columns] == values


MAPPING = NameMapping(
    (
        MappedField(("id", "ID", "record.id"), 1),
        MappedField(
            ("data",),
            2,
            (
                MappedField(
                    ("element",),
                    3,
                    (MappedField(("x", "lat"), 4), MappedField(("y",), 5)),
                ),
            ),
        ),
        MappedField(("m",), 6, (MappedField(("key",), 7), MappedField(("value",), 8))),
        MappedField(("not_a_column",), None),
    )
)


def test_files_without_ids_are_read_through_a_name_mapping(tmp_path):
    point = pa.struct([("lat", pa.int32()), ("y", pa.int32()), ("z", pa.int32())])
    fields = [
        pa.field("record.id", pa.int32()),
        pa.field("data", pa.list_(pa.field("item", point))),
        pa.field("m", pa.map_(pa.string(), pa.int32())),
        pa.field("not_a_column", pa.int32()),
        pa.field("other", pa.int32()),
    ]
    location = write_parquet(
        tmp_path / "f.parquet",
        fields,
        [[1], [[{"lat": 2, "y": 3, "z": 4}]], [[("k", 5)]], [6], [7]],
    )
    element = StructType((optional(5, "b", INT), optional(4, "a", LONG), optional(9, "z", INT)))
    schema = Schema(
        (
            optional(6, "m", MapType(7, STRING, 8, LONG)),
            optional(1, "i", INT),
            optional(2, "d", ListType(3, element)),
            optional(10, "other", INT),
        )
    )
    assert read_rows(location, schema, name_mapping=MAPPING) == [
        ([("k", 5)], 1, [{"b": 3, "a": 2, "z": None}], None)
    ]
    with open_file(location, name_mapping=MAPPING) as reader:
        assert set(reader.file_schema.fields_by_id) == {1, 2, 3, 4, 5, 6, 7, 8}


def test_a_name_mapping_does_not_touch_files_with_ids(tmp_path):
    fields = [with_id("id", pa.int32(), 9), with_id("x", pa.int32())]
    location = write_parquet(tmp_path / "f.parquet", fields, [[1], [2]])
    schema = Schema((optional(1, "id", INT), optional(9, "nine", INT)))
    assert read_rows(location, schema, name_mapping=MAPPING) == [(None, 1)]


def test_files_without_ids_and_mapping_are_read_by_position(tmp_path):
    point = pa.struct([("p", pa.int32()), ("q", pa.int32())])
    fields = [pa.field("x", pa.int32()), pa.field("s", point), pa.field("z", pa.string())]
    location = write_parquet(tmp_path / "f.parquet", fields, [[1], [{"p": 2, "q": 3}], ["four"]])
    struct = StructType((optional(10, "a", INT), optional(11, "b", INT), optional(12, "c", INT)))
    schema = Schema(
        (
            optional(3, "third", STRING),
            optional(2, "second", struct),
            optional(1, "first", INT),
            optional(4, "z", STRING),
        )
    )
    assert read_rows(location, schema) == [("four", {"a": 2, "b": 3, "c": None}, 1, None)]


def test_partition_values_win_over_positions(tmp_path):
    location = write_parquet(tmp_path / "f.parquet", [pa.field("x", pa.int32())], [[1]])
    schema = Schema((optional(1, "part", STRING),))
    assert read_rows(location, schema, constants={1: "p"}) == [("p",)]


# Written by Spark with spark.sql.parquet.writeLegacyFormat=true: lists of two levels (elements that
# cannot be null), of `bag` and `array`, maps annotated at both levels, and INT96 timestamps.
LEGACY = (
    "H4sIAAAAAAACA6VWz2sbRxSenf0htbiBQmbYBR3EghY5qItlW5ZrdGlzKcUYEYIxlJKM5LEjvCspu6vUJvjmQyltCU"
    "kOpoceGhLIJccQAr30D0gohJ56MIHccgiBlF4KfTOzWq2tJrhEI41m3vv2+95788ZW+7MLdYLIORhHP/34Q6FEDNha"
    "xEIII4R0rIvZQhpSL3BWYTz6/tZNPIWVsy6gWEHLMH4/uv/4oxLBx6Bq1kwFc2Hcffrqjv4WmGDcSeke/Xr4ovAWXE"
    "HQGcSGcefwz3tnWgAzwHb7r89F7M8PKkLNgPHm9T+vDcFikCIpioedj7FjF8dp5pYEOxQ7HsbOEoIMJc7QJMbAqR8J"
    "f+oylcvMuZByaTvic8JoFBS+cBxfokWyQZFcXSbr6eqhRtbS5QEmbVhCbGL3DGeOI53MU0X28ouZeMiinUtx9woPGf"
    "kQNZBd7I+CgHUCDtlbqy1ANgxb77BtgqE2FWybLIrYnoCaw4D1+hmO4IqR8xbiJBp1kzjPo7yCCVeQre0KnBYCAq/W"
    "FOKDHb536RoLRlwcBCIzgNPBVkGrJaUButIPByw4EgTlLzmBh6DfnAqynOUsBRF2KomoQTfohldsTY5usqK4+h9WKB"
    "cRHYFRazY7YEQfWOQsvWmQNhKaWGpWVS1yYut03bvcUj2gGoKiam53ghzcvwne5wZZyvEuj6uomLVd4MZ0ja55D7WW"
    "6iI1C/LJ7ji5cP9hEUoPzZR8RpFr4aTcosiSvE3b3gFuQSvCG2jld45QdrugfGmREn1iknP5ePOU6pyyiJ8BqexjNY"
    "uIJ7vpiL8tQMR/jyO2nErRgPuRSLohHXpHuveLXrJn8tf3+A4U3uFFTk3edawuPQiD6M8giuh3BsVeEb7OCpRtD6Jt"
    "nw0Z3BJfXhj/Go/i3qBvm4v+gj+H7NkpRHw18GFxdcQTPxp844c8YZssYfYN87qb7A25u+Kqo3Vr7laPB5uxu/LVdb"
    "fPQuEadzA4FTh7SPYBmHnAQ95PLiprMOhvg7E76CfQhvEaPO6uAD3fr024VrZYEPOaO44FWPf3a5mm7ODTCvb6Cd/m"
    "0ZSmlPgfoml7n1L2NKXbzbhyQb47nK/33zeNcDqBkA3BCJfhYhZyTx6SvBVTZZTW8+8VRDLJPOmFPE5YODxF7sj+Mu"
    "3UT8KonLZ2ue7Xm/5cudoZ9YLN8hbrznWbi0uNhXleX1jo8M6n88usubXEmrzR7DTqc53FZpPVZ50A/kyfeKMA/hG3"
    "4ZfEv1ymoBFOCAAA"
)


def test_legacy_lists_and_maps_are_read_through_a_name_mapping(tmp_path):
    path = tmp_path / "legacy.parquet"
    path.write_bytes(gzip.decompress(base64.b64decode(LEGACY)))
    element = (MappedField(("element",), 10),)
    mapping = NameMapping(
        (
            MappedField(("nullable",), 1, element),
            MappedField(("plain",), 2, (MappedField(("element",), 20),)),
            MappedField(
                ("structs",), 3, (MappedField(("element",), 30, (MappedField(("x",), 31),)),)
            ),
            MappedField(("m",), 4, (MappedField(("key",), 40), MappedField(("value",), 41))),
            MappedField(("t",), 5),
        )
    )
    schema = Schema(
        (
            optional(1, "nullable", ListType(10, LONG)),
            optional(2, "plain", ListType(20, INT, True)),
            optional(3, "structs", ListType(30, StructType((optional(31, "y", LONG),)))),
            optional(4, "m", MapType(40, STRING, 41, INT)),
            optional(5, "t", TIMESTAMPTZ),
        )
    )
    assert read_rows(str(path), schema, name_mapping=mapping) == [
        (
            [1, None],
            [1, 2],
            [{"y": 5}],
            [("k", 7)],
            dt.datetime(2020, 1, 1, 0, 0, 1, 123456, dt.UTC),
        )
    ]


def entries(key: pa.Field, value: pa.Field) -> pa.DataType:
    """Lists that `with_optional_keys` makes maps of."""
    return pa.list_(pa.field("element", pa.struct([key, value]), nullable=False))


KEY, VALUE = with_id("key", pa.string(), 2), with_id("value", pa.int32(), 3)


def test_maps_with_optional_keys_are_read_at_every_depth(tmp_path):
    inner = entries(with_id("key", pa.int64(), 8), with_id("value", pa.string(), 9))
    outer = entries(
        with_id("key", pa.struct([with_id("x", pa.int32(), 6)]), 5), with_id("value", inner, 7)
    )
    fields = [
        with_id("m", entries(KEY, VALUE), 1),
        with_id("s", pa.struct([with_id("o", outer, 4)]), 10),
    ]
    rows = [
        ([("a", 1), ("b", None)], {"o": [({"x": 1}, [(2**40, "p")]), ({"x": None}, None)]}),
        ([], {"o": []}),
        (None, {"o": None}),
        ([("c", 3)], None),
    ]
    location = write_parquet(
        tmp_path / "f.parquet",
        fields,
        [
            [m and [dict(zip(("key", "value"), e, strict=True)) for e in m] for m, _ in rows],
            [
                s
                and {
                    "o": s["o"]
                    and [
                        {"key": k, "value": v and [{"key": i, "value": j} for i, j in v]}
                        for k, v in s["o"]
                    ]
                }
                for _, s in rows
            ],
        ],
    )
    with_optional_keys(location)
    with pytest.raises(pa.ArrowInvalid, match="Map keys must be annotated as required"):
        pq.read_table(location)
    inside = MapType(5, StructType((optional(6, "x", INT),)), 7, MapType(8, LONG, 9, STRING))
    schema = Schema(
        (
            optional(1, "m", MapType(2, STRING, 3, LONG)),
            optional(10, "s", StructType((optional(4, "o", inside),))),
        )
    )
    assert read_rows(location, schema) == rows
    assert read_rows(location, Schema(schema.fields[1:])) == [(s,) for _, s in rows]


def test_a_null_key_of_a_map_is_an_error_that_names_the_column(tmp_path):
    rows = [[{"key": "a", "value": 1}], [{"key": None, "value": 2}]]
    fields = [with_id("m", entries(KEY, VALUE), 1)]
    location = with_optional_keys(write_parquet(tmp_path / "f.parquet", fields, [rows]))
    schema = Schema((optional(1, "m", MapType(2, STRING, 3, INT)),))
    with pytest.raises(InvalidDataError, match=r"'m\.key' of .*f\.parquet is required.*1 nulls"):
        read_rows(location, schema)


@pytest.mark.parametrize("key_length", [None, 16, 32])
def test_columns_have_parquets_types_whatever_arrow_types_were_written(tmp_path, key_length):
    key = None if key_length is None else new_key_metadata(key_length)
    stored = [pa.duration("ms"), pa.duration("ns"), pa.time64("us"), pa.time64("ns"), pa.int64()]
    fields = [with_id(f"c{at}", kind, at) for at, kind in enumerate(stored)]
    numbers = pa.array([3, None], pa.int64())
    columns = [numbers.cast(kind) for kind in stored]
    fields.append(with_id("l", pa.list_(with_id("element", pa.duration("s"), 6)), 5))
    columns.append(pa.array([[3], None], fields[-1].type))
    path = tmp_path / "f.parquet"
    location = write_parquet(path, fields, columns, **encryption_options(key))
    if key is not None:
        key = key.of_length(path.stat().st_size)
    schema = Schema(
        (
            *(optional(at, "n", LONG) for at in range(len(stored))),
            optional(5, "l", ListType(6, LONG)),
        )
    )
    found = read_rows(location, schema, key=key)
    assert found == [(*(3,) * 5, [3]), (*(None,) * 5, None)]


def test_an_arrow_schema_that_arrow_cannot_use_is_left_out(tmp_path):
    path = tmp_path / "f.parquet"
    fields = [with_id("a", pa.int32(), 1), with_id("m", entries(KEY, VALUE), 4)]
    table = pa.table([[5], [[{"key": "k", "value": 1}]]], schema=pa.schema(fields))
    with pq.ParquetWriter(path, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"ARROW:schema": "AAAA"})
    with pytest.raises(pa.ArrowInvalid):
        pq.read_table(path)
    number = optional(1, "a", LONG)
    assert read_rows(str(path), Schema((number,))) == [(5,)]
    with_optional_keys(path)
    both = Schema((number, optional(4, "m", MapType(2, STRING, 3, INT))))
    assert read_rows(str(path), both) == [(5, [("k", 1)])]


def test_bytes_of_a_fixed_length_are_not_text(tmp_path):
    # Java shows 16 of them as a UUID's text, and fails to read others.
    fields = [with_id("c", pa.binary(16), 1)]
    location = write_parquet(tmp_path / "f.parquet", fields, [[b"a" * 16]])
    with pytest.raises(CorruptFileError, match=r"fixed_size_binary\[16\].* as string"):
        read_rows(location, Schema((optional(1, "c", STRING),)))


def test_a_missing_file_is_named(tmp_path):
    opened = open_file(str(tmp_path / "gone.parquet"))
    with pytest.raises(MissingFileError, match=r"gone\.parquet"), opened:
        pass


def test_a_directory_in_the_place_of_a_file_is_named(tmp_path):
    with pytest.raises(MissingFileError, match=tmp_path.name), open_file(str(tmp_path)):
        pass


def test_an_encrypted_file_is_refused(tmp_path):
    path = tmp_path / "secret.parquet"
    path.write_bytes(b"PARE" + bytes(100) + (60).to_bytes(4, "little") + b"PARE")
    opened = open_file(str(path))
    with pytest.raises(UnsupportedFeatureError, match=r"secret\.parquet is encrypted"), opened:
        pass


class _OpenKeys(KmsClient):
    """Keeps keys as they are."""

    def wrap_key(self, key_bytes, master_key_identifier):
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key, master_key_identifier):
        return base64.b64decode(wrapped_key)


def write_encrypted(path: Path, *, plaintext_footer: bool) -> str:
    """Writes columns a and b, of which b is encrypted."""
    configuration = EncryptionConfiguration(
        footer_key="f", column_keys={"c": ["b"]}, plaintext_footer=plaintext_footer
    )
    factory = CryptoFactory(lambda _: _OpenKeys())
    properties = factory.file_encryption_properties(KmsConnectionConfig(), configuration)
    table = pa.table([[1, 2], ["x", "y"]], schema=pa.schema(A_B))
    with pq.ParquetWriter(path, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
    return str(path)


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_a_file_with_encrypted_columns_is_refused(tmp_path, plaintext_footer):
    location = write_encrypted(tmp_path / "some.parquet", plaintext_footer=plaintext_footer)
    with pytest.raises(UnsupportedFeatureError, match=r"some\.parquet is encrypted"):
        read_rows(location, Schema((optional(1, "a", LONG),)))


def test_a_file_of_encrypted_blocks_is_refused(tmp_path):
    path = tmp_path / "stream.parquet"
    path.write_bytes(b"AGS1" + bytes(100))
    with pytest.raises(UnsupportedFeatureError, match=r"stream\.parquet is encrypted"):
        read_rows(str(path), Schema((optional(1, "a", LONG),)))


@pytest.mark.parametrize("length", [100, 2_000_000])
def test_footers_of_any_length_are_read(tmp_path, length):
    fields = [with_id("a", pa.int64(), 1)]
    schema = pa.schema(fields, metadata={"k": "v" * length})
    pq.write_table(pa.table([[1, 2]], schema=schema), tmp_path / "f.parquet")
    rows = read_rows(str(tmp_path / "f.parquet"), Schema((optional(1, "a", LONG),)))
    assert rows == [(1,), (2,)]


def test_column_names_that_are_no_text_are_damage(tmp_path):
    location = write_parquet(tmp_path / "f.parquet", [with_id("name", pa.int32(), 1)], [[1]])
    content = Path(location).read_bytes()
    Path(location).write_bytes(content.replace(b"name", b"n\xffme"))
    with pytest.raises(CorruptFileError, match=r"f\.parquet"):
        read_rows(location, Schema((optional(1, "a", INT),)))


def test_truncated_and_foreign_files_are_corrupt(tmp_path, simple):
    whole = Path(simple).read_bytes()
    for number, content in enumerate(
        [b"", b"PAR1", b"hello world, no parquet", whole[:-5], whole[40:]]
    ):
        path = tmp_path / f"bad{number}.parquet"
        path.write_bytes(content)
        with pytest.raises(CorruptFileError, match=f"bad{number}.parquet"):
            read_rows(str(path), Schema((optional(1, "a", INT),)))


def test_a_damaged_page_is_corrupt(tmp_path):
    location = write_parquet(
        tmp_path / "f.parquet", A_B, [range(1000), ["x"] * 1000], compression="zstd"
    )
    content = bytearray(Path(location).read_bytes())
    chunk = pq.ParquetFile(location).metadata.row_group(0).column(0)
    content[chunk.data_page_offset : chunk.data_page_offset + 200] = b"\xff" * 200
    Path(location).write_bytes(content)
    with pytest.raises(CorruptFileError, match=r"f\.parquet"):
        read_rows(location, Schema((optional(1, "a", INT),)))


def test_a_column_of_another_type_is_named_with_its_file(simple):
    with pytest.raises(CorruptFileError, match=r"column 'b' of .*f\.parquet.*string.*int"):
        read_rows(simple, Schema((optional(2, "b", INT),)))


def _corpus_schema(table: str) -> Schema:
    index = json.loads((corpus_dir() / "index.json").read_text())
    return schema_from_json(next(t["schema"] for t in index["tables"] if t["id"] == table))


def test_unshredded_variants_of_trino_are_read_at_every_depth():
    folder = corpus_dir() / "impala/testdata/data/iceberg_test/iceberg_v3/trino_nested_variant"
    schema = _corpus_schema("impala/trino_nested_variant")
    rows = [
        row for file in sorted(folder.rglob("*.parquet")) for row in read_rows(str(file), schema)
    ]
    top, in_list = rows[1][2], rows[0][3]
    assert top["metadata"] == b"\x11\x01\x00\x04name"
    assert [variant["metadata"] for variant in in_list] == [b"\x01\x00\x00"] * 2
    assert schema.fields[2].field_type == VARIANT


def test_dremios_files_without_ids_are_read_like_java_reads_them():
    folder = corpus_dir() / (
        "dremio/sabot/kernel/src/test/resources/iceberg/internal_metadata_inconsistent_partitions"
    )
    schema = _corpus_schema("dremio/internal_metadata_inconsistent_partitions")
    rows = read_rows(
        str(folder / "data/sub_1/sub_1_1/0_0_0.parquet"),
        schema,
        constants={1: "sub_1", 2: "sub_1_1"},
    )
    assert rows == [("sub_1", "sub_1_1", 44, None, None)]
