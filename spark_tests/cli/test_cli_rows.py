"""Rows that the command reads, counts and writes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built.schemas import required
from command_line import Command
from hypothesis import given, strategies as st
from strategies.every_type import EVERY_TYPE, values_of

from icebergds import Catalog, InvalidDataError
from icebergds.cli.csv_quotes import check_quotes
from icebergds.cli.files import read_rows
from icebergds.cli.rows import Format, _write
from icebergds.cli.values import special_fields
from icebergds.formats.arrow.types import schema_to_arrow, to_array
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, NestedField


def test_first_rows_are_shown_as_a_table(lake: Catalog, icebergds: Command) -> None:
    shown = icebergds("scan", "db.events", "--where", "id < 3", "--columns", "id,name")
    assert sorted(shown.out.splitlines()) == sorted(["id  name", " 1  one", " 2  NULL", "2 rows"])
    cut = icebergds("scan", "db.events", "--limit", 1)
    assert cut.out.endswith("\n1 row\n")


def test_a_table_of_rows_ends_and_says_that_there_are_more(
    lake: Catalog, icebergds: Command
) -> None:
    table = lake.create_table("db.many", "id int")
    table.append(pa.table({"id": pa.array(range(101), pa.int32())}))
    shown = icebergds("scan", "db.many").out.splitlines()
    assert len(shown) == 102
    assert (
        shown[-1] == "100 rows; there are more: ask for them with --limit, or for all with --format"
    )
    assert len(icebergds("scan", "db.many", "--json").json) == 101
    assert len(icebergds("scan", "db.many", "--limit", 101).out.splitlines()) == 103


@pytest.mark.parametrize("format", ["csv", "json", "ndjson", "arrow", "parquet"])
@pytest.mark.parametrize("to_file", [True, False])
def test_rows_are_written_in_every_format(
    lake: Catalog, icebergds: Command, tmp_path: Path, format: str, to_file: bool
) -> None:
    out = tmp_path / "rows"
    options = ("--out", out) if to_file else ()
    ran = icebergds("scan", "db.events", "--format", format, *options)
    assert ran.status == 0
    written = out.read_bytes() if to_file else ran.out_bytes
    if format == "csv":
        rows = [
            (int(id), name or None)
            for id, name, _ in csv.reader(io.StringIO(written.decode()))
            if id != "id"
        ]
    elif format == "json":
        rows = [(row["id"], row["name"]) for row in json.loads(written)]
    elif format == "ndjson":
        rows = [(row["id"], row["name"]) for row in map(json.loads, written.splitlines())]
    else:
        source = pa.BufferReader(written)
        found = (
            pa.ipc.open_stream(source).read_all() if format == "arrow" else pq.read_table(source)
        )
        rows = [(row["id"], row["name"]) for row in found.to_pylist()]
    assert sorted(rows) == [(1, "one"), (2, None), (3, "drei")]


def test_no_rows_are_written_in_every_format(lake: Catalog, icebergds: Command) -> None:
    found = {
        format: icebergds("scan", "db.events", "--where", "id > 9", "--format", format).out_bytes
        for format in Format
    }
    assert json.loads(found[Format.JSON]) == []
    assert found[Format.NDJSON] == b""
    assert found[Format.CSV] == b'"id","name","day"\n'
    assert pa.ipc.open_stream(found[Format.ARROW]).read_all().num_rows == 0
    assert pq.read_table(pa.BufferReader(found[Format.PARQUET])).num_rows == 0
    assert found[Format.TABLE] == b"0 rows\n"


def test_a_file_that_cannot_be_written_whole_is_not_there(
    lake: Catalog, icebergds: Command, tmp_path: Path
) -> None:
    for path in lake.load_table("db.events").inspect.files()["file_path"].to_pylist():
        Path(path).unlink()
    out = tmp_path / "out" / "rows.csv"
    out.parent.mkdir()
    assert icebergds("scan", "db.events", "--format", "csv", "--out", out).status == 2
    assert list(out.parent.iterdir()) == []


def test_rows_are_counted_and_a_scan_is_explained(lake: Catalog, icebergds: Command) -> None:
    first = lake.load_table("db.events").snapshots()[0].snapshot_id
    assert icebergds("count", "db.events", "--where", "id > 1", "--json").json == {"count": 2}
    assert icebergds("count", "db.events", "--snapshot", first).out == "2\n"
    found = icebergds("explain", "db.events", "--where", "id = 3", "--json").json
    assert found["counts"]["files"]["kept"] == 1
    assert "files      1 of " in icebergds("explain", "db.events", "--where", "id = 3").out


# Variants are bytes that no JSON has: a test of their own has them.
_FIELDS = [field for field in EVERY_TYPE.fields if "variant" not in str(field.field_type)]


@pytest.mark.parametrize("format", [Format.CSV, Format.JSON, Format.NDJSON])
@pytest.mark.parametrize("field", _FIELDS, ids=lambda field: field.name)
@given(data=st.data())
def test_what_is_written_as_text_is_read_again(
    tmp_path_factory: pytest.TempPathFactory,
    format: Format,
    field: NestedField,
    data: st.DataObject,
) -> None:
    rows = data.draw(st.lists(values_of(field.field_type, field.required), min_size=1, max_size=3))
    schema = Schema((required(1000, "row", LONG), field))
    arrow = schema_to_arrow(schema)
    columns = [pa.array(range(len(rows)), pa.int64()), to_array(field.field_type, rows)]
    batch = pa.RecordBatch.from_arrays(columns, schema=arrow)
    file = tmp_path_factory.getbasetemp() / f"rows.{format}"
    with file.open("wb") as out:
        reader = pa.RecordBatchReader.from_batches(arrow, [batch])
        _write(reader, format, special_fields([schema]), out)
    found = read_rows(file, schema)
    assert isinstance(found, pa.Table)
    # As texts: values that are not numbers equal none.
    assert list(map(repr, found.to_pylist())) == list(map(repr, batch.to_pylist()))


@pytest.mark.parametrize("format", ["csv", "ndjson"])
def test_variants_are_json(lake: Catalog, icebergds: Command, tmp_path: Path, format: str) -> None:
    lake.create_table("db.any", "id int, v variant", properties={"format-version": "3"})
    given = tmp_path / "given.ndjson"
    given.write_text('{"id": 1, "v": {"a": [1, "x", null], "b": 2.5}}\n{"id": 2}\n')
    assert icebergds("append", "db.any", given, "--yes").status == 0
    written = tmp_path / f"written.{format}"
    assert icebergds("scan", "db.any", "--format", format, "-o", written).status == 0
    assert icebergds("append", "db.any", written, "--yes").status == 0
    one = {"id": 1, "v": {"a": [1, "x", None], "b": 2.5}}
    rows = icebergds("scan", "db.any", "--json").json
    assert sorted(rows, key=lambda row: row["id"]) == [one, one, *[{"id": 2, "v": None}] * 2]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.ndjson", '{"id": 1}\n{"id": ', "line 2 is not JSON"),
        ("a.ndjson", '{"id": 1}\n\n{"id": 1, "id": 2}', "line 3: an object of JSON has 'id' twice"),
        ("a.csv", "id,id\n1,2\n", "the file has 'id' twice"),
        ("a.json", "[1]", "expected JSON objects, found 1"),
        ("a.ndjson", '{"ids": 1}', "the table has no column 'ids'; did you mean id?"),
        ("a.csv", "ids\n1\n", "the table has no column 'ids'; did you mean id?"),
        ("a.csv", "id\nx\n", "'x'"),
        ("a.ndjson", '{"id": 1, "day": "soon"}', "soon"),
        ("a.ndjson", "[" * 100_000, "line 1: its values are nested too deeply"),
        ("a.ndjson", '{"id": ' + "9" * 5000 + "}", "line 1: Exceeds the limit"),
        ("a.csv", 'id,name\n1,"one\n2,two\n', "line 2: a value begins with a quote"),
        ("a.csv", 'id,name\n1,"one\n2,"two\n', "line 2: a value begins with a quote"),
        ("a.csv", 'id,name\n1,x\n2,"on"e\n', "line 3: a value begins with a quote"),
    ],
)
def test_a_file_of_other_rows_is_refused(
    lake: Catalog, tmp_path: Path, name: str, text: str, told: str
) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(InvalidDataError) as refused:
        read_rows(file, lake.load_table("db.events").schema())
    assert str(refused.value).startswith(f"file {file} cannot be read: ")
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.json", '{"l": "abc"}', 'column l: expected an array of JSON, found "abc"'),
        ("a.json", '{"l": {"a": 1}}', "column l: expected an array of JSON"),
        ("a.json", '{"l": 5}', "column l: expected an array of JSON, found 5"),
        ("a.csv", 'l\n"""abc"""\n', "column l: expected an array of JSON"),
        ("a.csv", "l\nabc\n", "column l, list<string>: 'abc' is not JSON"),
        ("a.json", '{"m": ["ab", "cd"]}', "column m: expected an object of JSON, or an array of"),
        ("a.json", '{"m": 5}', "column m: expected an object of JSON, or an array of pairs"),
        ("a.json", '{"x": [1]}', "expected a number"),
        ("a.csv", "x\n1e400\n", "column x: 1e400 does not fit double"),
        ("a.csv", "f\n1e39\n", "column f: 1e39 does not fit float"),
        ("a.csv", "d\n1.234\n", "column d, decimal(5, 2): Rescaling Decimal value"),
        ("a.csv", "d\nNaN\n", "column d, decimal(5, 2): The string 'NaN' is not a valid"),
        ("a.json", '{"v": [1e400]}', "column v: 1e400 does not fit a double"),
    ],
)
def test_values_of_other_kinds_are_refused(
    lake: Catalog, tmp_path: Path, name: str, text: str, told: str
) -> None:
    columns = (
        "l array<string>, m map<string, string>, x double, f float, d decimal(5, 2), v variant"
    )
    table = lake.create_table("db.kinds", columns, properties={"format-version": "3"})
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(InvalidDataError) as refused:
        read_rows(file, table.schema())
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("name", "text", "rows"),
    [
        ("a.json", "{}", [None]),
        ("a.json", "[{}, {}]", [None, None]),
        ("a.csv", "name\n\na\n\n", [None, "a", None]),
        ("a.csv", '\ufeff"name"\n"a""b"\n""\n', ['a"b', ""]),
        ("a.csv", 'name,day\na"b,\n', ['a"b']),
        ("a.csv", "name\n" + "y" * 5_000_000 + "\nz\n", ["y" * 5_000_000, "z"]),
    ],
)
def test_every_row_of_a_file_is_read(
    lake: Catalog, tmp_path: Path, name: str, text: str, rows: list[str | None]
) -> None:
    schema = lake.create_table("db.plain", "name string, day date").schema()
    file = tmp_path / name
    file.write_text(text)
    found = read_rows(file, schema)
    assert isinstance(found, pa.Table)
    assert found["name"].to_pylist() == rows


@given(st.lists(st.text(alphabet='a",\r\n', max_size=4), min_size=1, max_size=3))
def test_quotes_of_csv_are_right_if_pythons_strict_reader_takes_them(values: list[str]) -> None:
    text = ",".join(values)
    try:
        list(csv.reader(io.StringIO(text, newline=""), strict=True))
        is_right = True
    except csv.Error:
        is_right = False
    try:
        check_quotes(text.encode(), b",")
        assert is_right
    except InvalidDataError:
        assert not is_right


def test_one_column_that_has_no_values_is_written_and_read_again(
    lake: Catalog, icebergds: Command, tmp_path: Path
) -> None:
    written = tmp_path / "names.csv"
    out = ("--format", "csv", "--out", written)
    assert icebergds("scan", "db.events", "--columns", "name", *out).status == 0
    lake.create_table("db.names", "name string")
    assert "rows 3" in icebergds("append", "db.names", written, "--yes").out


def test_numbers_of_variants_that_json_lacks_are_texts(
    lake: Catalog, icebergds: Command, tmp_path: Path
) -> None:
    lake.create_table("db.any", "v variant", properties={"format-version": "3"})
    file = tmp_path / "a.json"
    file.write_text('{"v": [NaN, Infinity, -Infinity, "-inf nan \\"nan"]}')
    assert icebergds("append", "db.any", file, "--yes").status == 0
    ran = icebergds("scan", "db.any", "--json")
    strict = json.loads(ran.out, parse_constant=pytest.fail)
    assert strict == [{"v": ["NaN", "Infinity", "-Infinity", '-inf nan "nan']}]


@pytest.mark.parametrize(
    "text",
    [
        '{"id": 1}\n{"id": 2}\n',
        '\ufeff{"id": 1}\r\n\r\n{"id": 2}',
        '{\n  "id": 1\n}\n{\n  "id": 2\n}',
        '[\n  {"id": 1},\n  {"id": 2}\n]\n',
        '\ufeff [{"id": 1}] [{"id": 2}]',
        '{"id": 1}{"id": 2, "name": "{\u2028}"}',
    ],
)
@pytest.mark.parametrize("kind", ["json", "ndjson"])
def test_json_is_read_however_it_is_laid_out(
    lake: Catalog, tmp_path: Path, text: str, kind: str
) -> None:
    file = tmp_path / f"a.{kind}"
    file.write_bytes(text.encode())
    found = read_rows(file, lake.load_table("db.events").schema())
    assert isinstance(found, pa.Table)
    assert found["id"].to_pylist() == [1, 2]


def test_a_byte_order_mark_begins_csv(lake: Catalog, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes("\ufeffid,name\n1,x\n".encode())
    found = read_rows(file, lake.load_table("db.events").schema())
    assert isinstance(found, pa.Table)
    assert found.to_pylist() == [{"id": 1, "name": "x"}]


def test_numbers_of_json_keep_all_digits_of_decimals(
    lake: Catalog, icebergds: Command, tmp_path: Path
) -> None:
    lake.create_table("db.dec", "d decimal(38,10), x double, s struct<d: decimal(38,10)>")
    file = tmp_path / "a.ndjson"
    number = "12345678901234567890.1234567891"
    file.write_text(f'{{"d": {number}, "x": {number}, "s": {{"d": {number}}}}}\n')
    assert icebergds("append", "db.dec", file, "--yes").status == 0
    (row,) = icebergds("scan", "db.dec", "--json").json
    assert row == {"d": number, "x": float(number), "s": {"d": number}}
    file.write_text('{"x": 1e400}\n')
    refused = icebergds("append", "db.dec", file, "--yes")
    assert (refused.status, "column x: 1e400" in refused.err) == (2, True)
    file.write_text('{"d": 1e400}\n')
    refused = icebergds("append", "db.dec", file, "--yes")
    assert (refused.status, "column d: 1e400 does not fit" in refused.err) == (2, True)
