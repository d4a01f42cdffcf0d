"""Writers of data files: what is written is what is read, in every format."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from built.data_files import open_file, read_batches, read_rows, write_file
from built.rows import record_batch
from built.schemas import optional, required
from effort import examples
from hypothesis import HealthCheck, given
from pyiceberg.io.pyarrow import pyarrow_to_schema
from strategies.every_type import EVERY_TYPE, rows_of_schema, rows_that_fit

from icebergds.errors import (
    InvalidDataError,
    InvalidOptionError,
    MissingFileError,
    UnsupportedFeatureError,
)
from icebergds.formats.data_file.write_properties import WriteProperties
from icebergds.formats.data_writer import open_data_writer
from icebergds.io.fileio import FileIO
from icebergds.spec.json.schema import schema_from_json
from icebergds.spec.manifest import FileContent, FileFormat
from icebergds.spec.schema import Schema
from icebergds.spec.sort import SortOrder
from icebergds.spec.types import (
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    UNKNOWN,
    VARIANT,
    GeometryType,
    ListType,
    MapType,
    StructType,
    walk,
)

FORMATS = [FileFormat.PARQUET, FileFormat.ORC, FileFormat.AVRO]
A_B = Schema((required(1, "a", LONG), optional(2, "b", STRING)))

every_format = pytest.mark.parametrize("file_format", FORMATS)


@every_format
@examples(15, suppress_health_check=list(HealthCheck))
@given(rows=rows_of_schema(EVERY_TYPE, max_size=5))
def test_rows_of_every_type_are_read_as_they_were_written(file_format, rows, tmp_path):
    batch = record_batch(EVERY_TYPE, rows_that_fit(file_format, EVERY_TYPE, rows))
    batches = [batch, batch.slice(1), batch.slice(1, 2)]
    path = tmp_path / "f"
    written = write_file(path, EVERY_TYPE, batches, file_format=file_format)
    expected = [tuple(row.values()) for b in batches for row in b.to_pylist()]
    # As texts: NaN is not equal to itself, and the zeros are equal to each other.
    assert repr(read_rows(str(path), EVERY_TYPE, file_format=file_format)) == repr(expected)
    assert written.record_count == len(expected)


@every_format
def test_field_ids_and_types_are_in_the_file_at_every_level(file_format, tmp_path):
    path = tmp_path / "f"
    write_file(path, EVERY_TYPE, [record_batch(EVERY_TYPE, [])], file_format=file_format)
    with open_file(str(path), file_format) as reader:
        found = {field.field_id: field for field in walk(reader.file_schema.fields)}
    for field in walk(EVERY_TYPE.fields):
        if field.field_type == UNKNOWN:
            continue
        stored = found[field.field_id]
        assert (stored.name, stored.required) == (field.name, field.required)
        if not isinstance(field.field_type, StructType | ListType | MapType) and field.name not in (
            "shape",
            "place",
        ):
            assert stored.field_type == field.field_type


@every_format
def test_a_file_says_where_it_is_and_how_long(file_format, tmp_path):
    path = tmp_path / "f"
    written = write_file(
        path,
        A_B,
        [record_batch(A_B, [(1, "x")])],
        file_format=file_format,
        content=FileContent.EQUALITY_DELETES,
    )
    assert written.file_path == str(path)
    assert written.file_size_in_bytes == path.stat().st_size
    assert written.file_format is file_format
    assert written.content is FileContent.EQUALITY_DELETES
    assert (written.spec_id, written.partition) == (0, ())


@every_format
def test_a_file_without_rows_has_its_schema(file_format, tmp_path):
    written = write_file(tmp_path / "f", A_B, [], file_format=file_format)
    assert written.record_count == 0
    assert read_rows(str(tmp_path / "f"), A_B, file_format=file_format) == []
    with open_file(str(tmp_path / "f"), file_format) as reader:
        assert [f.field_id for f in reader.file_schema.fields] == [1, 2]


@every_format
def test_an_aborted_file_is_gone(file_format, tmp_path):
    settings = WriteProperties.of({}, A_B, SortOrder())
    writer = open_data_writer(FileIO(), str(tmp_path / "f"), file_format, A_B, settings)
    writer.write(record_batch(A_B, [(1, "x")]))
    writer.abort()
    with pytest.raises(MissingFileError):
        FileIO().size(str(tmp_path / "f"))


@every_format
def test_nulls_in_a_required_column_are_refused(file_format, tmp_path):
    with pytest.raises(InvalidDataError, match="required column 'a' has 1 nulls"):
        write_file(tmp_path / "f", A_B, [record_batch(A_B, [(None, "x")])], file_format=file_format)


@every_format
@pytest.mark.parametrize(
    ("field_type", "value"),
    [
        (StructType((required(2, "x", INT),)), (None,)),
        (ListType(2, INT, element_required=True), [1, None]),
        (MapType(2, INT, 3, INT, value_required=True), [(1, None)]),
        (ListType(2, StructType((required(3, "x", INT),))), [(1,), (None,)]),
    ],
)
def test_nulls_in_a_required_nested_field_are_refused(file_format, field_type, value, tmp_path):
    schema = Schema((optional(1, "c", field_type),))
    with pytest.raises(InvalidDataError, match="required column 'c"):
        write_file(
            tmp_path / "f", schema, [record_batch(schema, [(value,)])], file_format=file_format
        )


@every_format
@pytest.mark.parametrize(
    ("field_type", "hidden"),
    [
        (ListType(2, INT, element_required=True), [None]),
        (MapType(2, INT, 3, INT, value_required=True), [(1, None)]),
    ],
)
def test_nulls_outside_a_slice_are_not_written(file_format, field_type, hidden, tmp_path):
    schema = Schema((optional(1, "c", field_type),))
    rows = record_batch(schema, [(hidden,), ([],), (hidden,)]).slice(1, 1)
    write_file(tmp_path / "f", schema, [rows], file_format=file_format)
    assert read_rows(str(tmp_path / "f"), schema, file_format=file_format) == [([],)]


@every_format
def test_required_fields_of_null_structs_are_no_nulls(file_format, tmp_path):
    inner = StructType((required(2, "x", INT), required(3, "y", ListType(4, INT, True))))
    schema = Schema((optional(1, "c", inner),))
    rows = [((1, [2]),), (None,), ((3, []),)]
    write_file(tmp_path / "f", schema, [record_batch(schema, rows)], file_format=file_format)
    read = read_rows(str(tmp_path / "f"), schema, file_format=file_format)
    assert read == [({"x": 1, "y": [2]},), (None,), ({"x": 3, "y": []},)]


@every_format
def test_rows_of_another_schema_are_refused(file_format, tmp_path):
    other = Schema((required(1, "a", INT), optional(2, "b", STRING)))
    with pytest.raises(InvalidDataError, match="expected a: int64 not null"):
        write_file(tmp_path / "f", A_B, [record_batch(other, [(1, "x")])], file_format=file_format)


@every_format
def test_a_variant_without_a_value_is_refused(file_format, tmp_path):
    schema = Schema((optional(1, "v", VARIANT),))
    broken = record_batch(schema, [({"metadata": b"\x01\x00\x00", "value": None},)])
    with pytest.raises(InvalidDataError, match=r"'v\.value' has 1 nulls"):
        write_file(tmp_path / "f", schema, [broken], file_format=file_format)


@pytest.mark.parametrize("file_format", [FileFormat.PARQUET, FileFormat.ORC])
@pytest.mark.parametrize(
    ("field_type", "message"),
    [
        (UNKNOWN, "need at least one column"),
        (StructType((optional(2, "n", UNKNOWN),)), "'c'.*struct without fields"),
        (ListType(2, UNKNOWN), "'c'.*cannot store list<unknown>"),
        (MapType(2, INT, 3, UNKNOWN), "'c'.*cannot store map"),
    ],
)
def test_what_nothing_is_left_of_without_unknown_columns_is_refused(
    file_format, field_type, message, tmp_path
):
    schema = Schema((optional(1, "c", field_type),))
    with pytest.raises(UnsupportedFeatureError, match=message):
        write_file(tmp_path / "f", schema, [], file_format=file_format)


def test_puffin_files_hold_no_rows(tmp_path):
    with pytest.raises(UnsupportedFeatureError, match="puffin is not a data file format"):
        write_file(tmp_path / "f", A_B, [], file_format=FileFormat.PUFFIN)


def test_a_codec_that_the_files_format_lacks_is_refused(tmp_path):
    with pytest.raises(InvalidOptionError, match="compression-codec is 'brotli', which Avro"):
        write_file(
            tmp_path / "f", A_B, [], {"compression-codec": "brotli"}, file_format=FileFormat.AVRO
        )


def test_parquet_types_are_those_of_the_specification(tmp_path):
    write_file(tmp_path / "f", EVERY_TYPE, [])
    schema = pq.read_metadata(tmp_path / "f").schema
    stored = {
        schema.column(at).path: (
            schema.column(at).physical_type,
            str(schema.column(at).logical_type),
        )
        for at in range(len(schema))
    }
    time = "isAdjustedToUTC={}, timeUnit={}"
    stamp = f"Timestamp({time}, is_from_converted_type=false, force_set_converted_type=false)"
    assert stored == {
        "c1": ("BOOLEAN", "None"),
        "c2": ("INT32", "None"),
        "c3": ("INT64", "None"),
        "c4": ("FLOAT", "None"),
        "c5": ("DOUBLE", "None"),
        "c6": ("INT32", "Date"),
        "c7": ("INT64", f"Time({time.format('false', 'microseconds')})"),
        "c8": ("INT64", stamp.format("false", "microseconds")),
        "c9": ("INT64", stamp.format("true", "microseconds")),
        "c10": ("INT64", stamp.format("false", "nanoseconds")),
        "c11": ("INT64", stamp.format("true", "nanoseconds")),
        "c12": ("BYTE_ARRAY", "String"),
        "c13": ("FIXED_LEN_BYTE_ARRAY", "UUID"),
        "c14": ("BYTE_ARRAY", "None"),
        "c15": ("FIXED_LEN_BYTE_ARRAY", "None"),
        "c16": ("FIXED_LEN_BYTE_ARRAY", "None"),
        "c17": ("INT32", "Decimal(precision=9, scale=2)"),
        "c18": ("INT64", "Decimal(precision=18, scale=0)"),
        "c19": ("FIXED_LEN_BYTE_ARRAY", "Decimal(precision=38, scale=10)"),
        "key": ("INT64", "None"),
        "point.x": ("DOUBLE", "None"),
        "point.id": ("FIXED_LEN_BYTE_ARRAY", "UUID"),
        "point.label": ("BYTE_ARRAY", "String"),
        "tags.list.element": ("BYTE_ARRAY", "String"),
        "ids.list.element": ("FIXED_LEN_BYTE_ARRAY", "UUID"),
        "by_name.key_value.key": ("BYTE_ARRAY", "String"),
        "by_name.key_value.value": ("INT32", "Decimal(precision=9, scale=2)"),
        "by_id.key_value.key": ("INT64", "None"),
        "by_id.key_value.value": ("INT32", "Date"),
        "deep.list.element.when": ("INT64", stamp.format("true", "microseconds")),
        "deep.list.element.u": ("FIXED_LEN_BYTE_ARRAY", "UUID"),
        "shape": ("BYTE_ARRAY", "Geometry(crs=)"),
        "place": ("BYTE_ARRAY", "Geography(crs=, algorithm=spherical)"),
        "any.metadata": ("BYTE_ARRAY", "None"),
        "any.value": ("BYTE_ARRAY", "None"),
        "events.list.element.payload.metadata": ("BYTE_ARRAY", "None"),
        "events.list.element.payload.value": ("BYTE_ARRAY", "None"),
        "any_by_name.key_value.key": ("BYTE_ARRAY", "String"),
        "any_by_name.key_value.value.metadata": ("BYTE_ARRAY", "None"),
        "any_by_name.key_value.value.value": ("BYTE_ARRAY", "None"),
    }


def test_a_parquet_geometry_names_its_coordinate_reference_system(tmp_path):
    schema = Schema((optional(1, "g", GeometryType("srid:3857")),))
    write_file(tmp_path / "f", schema, [])
    column = pq.read_metadata(tmp_path / "f").schema.column(0)
    assert str(column.logical_type) == "Geometry(crs=srid:3857)"


def test_the_tables_schema_is_in_parquet_and_avro_files(tmp_path):
    write_file(tmp_path / "p", EVERY_TYPE, [])
    write_file(tmp_path / "a", EVERY_TYPE, [], file_format=FileFormat.AVRO)
    stored = pq.read_metadata(tmp_path / "p").metadata[b"iceberg.schema"]
    assert schema_from_json(json.loads(stored)) == EVERY_TYPE
    with (tmp_path / "a").open("rb") as file:
        stored = fastavro.reader(file).metadata["iceberg.schema"]
    assert schema_from_json(json.loads(stored)) == EVERY_TYPE


def test_pyiceberg_reads_the_same_schema_from_parquet(tmp_path):
    # It knows the types of version 3 not, or only in tables of that version.
    newer = (10, 11, 51, 66, 71, 72, 73, 74, 77)
    fields = tuple(f for f in EVERY_TYPE.fields if f.field_id not in newer)
    schema = Schema((*fields, optional(51, "s", StructType((required(52, "x", INT),)))))
    write_file(tmp_path / "f", schema, [])
    read = pyarrow_to_schema(pq.read_schema(tmp_path / "f"))
    for field in walk(schema.fields):
        found = read.find_field(field.field_id)
        assert read.find_column_name(field.field_id) == schema.find_name(field.field_id)
        assert found.required == field.required
        if not isinstance(field.field_type, StructType | ListType | MapType):
            expected = str(field.field_type).replace(" ", "")
            assert str(found.field_type).replace(" ", "") == expected


def test_duckdb_reads_the_same_ids_and_types_from_parquet(tmp_path):
    fields = tuple(f for f in EVERY_TYPE.fields if f.field_id not in (51, 66, 71, 72))
    schema = Schema((*fields, optional(51, "s", StructType((required(52, "x", INT),)))))
    path = tmp_path / "f.parquet"
    write_file(path, schema, [])
    con = duckdb.connect()
    ids = con.execute(f"SELECT field_id FROM parquet_schema('{path}')").fetchall()
    assert {field_id for (field_id,) in ids} - {None} == set(schema.fields_by_id)
    types = {name: kind for name, kind, *_ in con.execute(f"DESCRIBE FROM '{path}'").fetchall()}
    # DuckDB 2 has timestamps of nanoseconds with a time zone.
    has_nanoseconds = int(duckdb.__version__.split(".")[0]) >= 2
    nanoseconds = "TIMESTAMPTZ_NS" if has_nanoseconds else "TIMESTAMP WITH TIME ZONE"
    assert types == {
        "c1": "BOOLEAN",
        "c2": "INTEGER",
        "c3": "BIGINT",
        "c4": "FLOAT",
        "c5": "DOUBLE",
        "c6": "DATE",
        "c7": "TIME",
        "c8": "TIMESTAMP",
        "c9": "TIMESTAMP WITH TIME ZONE",
        "c10": "TIMESTAMP_NS",
        "c11": nanoseconds,
        "c12": "VARCHAR",
        "c13": "UUID",
        "c14": "BLOB",
        "c15": "BLOB",
        "c16": "BLOB",
        "c17": "DECIMAL(9,2)",
        "c18": "DECIMAL(18,0)",
        "c19": "DECIMAL(38,10)",
        "key": "BIGINT",
        "tags": "VARCHAR[]",
        "ids": "UUID[]",
        "by_name": "MAP(VARCHAR, DECIMAL(9,2))",
        "by_id": "MAP(BIGINT, DATE)",
        "deep": 'STRUCT("when" TIMESTAMP WITH TIME ZONE, u UUID)[]',
        "any": "VARIANT",
        "events": "STRUCT(payload VARIANT)[]",
        "any_by_name": "MAP(VARCHAR, VARIANT)",
        "s": "STRUCT(x INTEGER)",
    }


def test_duckdb_reads_the_same_rows_from_parquet(tmp_path):
    schema = Schema((required(1, "a", LONG), optional(2, "m", MapType(3, STRING, 4, DATE))))
    path = tmp_path / "f.parquet"
    write_file(path, schema, [record_batch(schema, [(1, [("x", 2)]), (2, None), (3, [])])])
    assert duckdb.connect().execute(f"FROM '{path}'").fetchall() == [
        (1, {"x": dt.date(1970, 1, 3)}),
        (2, None),
        (3, {}),
    ]


def test_orc_types_have_the_attributes_of_the_specification(tmp_path):
    write_file(tmp_path / "f", EVERY_TYPE, [], file_format=FileFormat.ORC)
    schema = orc.ORCFile(tmp_path / "f").schema

    def attributes(field: pa.Field) -> dict[str, str]:
        found = {k.decode(): v.decode() for k, v in field.metadata.items()}
        return {k.removeprefix("iceberg."): v for k, v in found.items()}

    assert attributes(schema.field("key")) == {"id": "50", "required": "true", "long-type": "LONG"}
    assert attributes(schema.field("c7")) == {"id": "7", "required": "false", "long-type": "TIME"}
    assert attributes(schema.field("c8"))["timestamp-unit"] == "MICROS"
    assert attributes(schema.field("c10"))["timestamp-unit"] == "NANOS"
    assert attributes(schema.field("c13"))["binary-type"] == "UUID"
    assert attributes(schema.field("c15"))["binary-type"] == "FIXED"
    assert attributes(schema.field("c15"))["length"] == "5"
    assert attributes(schema.field("shape"))["binary-type"] == "GEOMETRY"
    assert attributes(schema.field("tags").type.value_field) == {"id": "57", "required": "true"}
    assert attributes(schema.field("by_id").type.key_field)["id"] == "64"
    assert attributes(schema.field("by_id").type.item_field)["id"] == "65"


def test_orc_stores_timestamps_of_every_year(tmp_path):
    schema = Schema((optional(1, "ts", ListType(2, TIMESTAMP)), optional(3, "z", TIMESTAMPTZ)))
    first, last = -62_135_596_800_000_000, 253_402_300_799_999_999
    rows = [([first, last, None], last), (None, first), ([0], 2**63 - 1)]
    batch = record_batch(schema, rows)
    write_file(tmp_path / "f", schema, [batch], file_format=FileFormat.ORC)
    (read,) = read_batches(str(tmp_path / "f"), schema, file_format=FileFormat.ORC)
    assert read.batch == batch


@pytest.mark.parametrize(
    ("kind", "early"), [(TIMESTAMP, -1_500_000), (TIMESTAMPTZ, -1), (TIMESTAMP_NS, -1_500_000_000)]
)
def test_fractions_of_seconds_before_1970_are_refused_in_orc(tmp_path, kind, early):
    """Arrow's ORC writer stores them so that Java reads another second."""
    schema = Schema((optional(1, "ts", MapType(2, kind, 3, kind)),))
    whole = early // 10**9 * 10**9
    late = [([(whole, whole)],), ([(-early, None)],), (None,)]
    write_file(tmp_path / "g", schema, [record_batch(schema, late)], file_format=FileFormat.ORC)
    batch = record_batch(schema, [([(0, early)],)])
    with pytest.raises(UnsupportedFeatureError, match=r"column 'ts'.*before 1970"):
        write_file(tmp_path / "f", schema, [batch], file_format=FileFormat.ORC)


def test_other_readers_decode_avro_by_its_logical_types(tmp_path):
    write_file(
        tmp_path / "f",
        EVERY_TYPE,
        [record_batch(EVERY_TYPE, [tuple(None if f.optional else 7 for f in EVERY_TYPE.fields)])],
        file_format=FileFormat.AVRO,
    )
    with (tmp_path / "f").open("rb") as file:
        reader = fastavro.reader(file)
        fields = {f["name"]: f for f in reader.writer_schema["fields"]}
        (row,) = reader
    assert row["key"] == 7
    assert fields["key"] == {"name": "key", "type": "long", "field-id": 50}
    (_, decimal) = fields["c17"]["type"]
    assert (decimal["size"], decimal["precision"], decimal["scale"]) == (4, 9, 2)
    (_, by_id) = fields["by_id"]["type"]
    assert by_id["logicalType"] == "map"
    assert [f["field-id"] for f in by_id["items"]["fields"]] == [64, 65]
    (_, by_name) = fields["by_name"]["type"]
    assert (by_name["type"], by_name["key-id"], by_name["value-id"]) == ("map", 61, 62)
    (_, tags) = fields["tags"]["type"]
    assert (tags["items"], tags["element-id"]) == ("string", 57)
    (_, when) = fields["c9"]["type"]
    assert when == {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True}


def test_names_that_avro_forbids_are_altered_and_kept_beside(tmp_path):
    schema = Schema((optional(1, "a b", StructType((optional(2, "1é", INT),))),))
    path = Path(tmp_path / "f")
    write_file(path, schema, [record_batch(schema, [((5,),)])], file_format=FileFormat.AVRO)
    assert read_rows(str(path), schema, file_format=FileFormat.AVRO) == [({"1é": 5},)]
    with path.open("rb") as file:
        (field,) = fastavro.reader(file).writer_schema["fields"]
    assert (field["name"], field["iceberg-field-name"]) == ("a_x20b", "a b")
