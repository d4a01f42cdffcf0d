"""Variants that icebergds wrote, as Java Iceberg and DuckDB read them."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from java_process import JavaProcess
from oracles.arrow_schema import list_of, map_of, struct
from oracles.canon import canonical_rows
from oracles.comparison import difference
from our_tables import OurTable, Writer
from pyspark.sql.types import VariantVal

from icebergds.formats.arrow.types import schema_to_arrow

pytestmark = pytest.mark.interop

_JSON = [
    "null",
    "true",
    "-1",
    "9223372036854775807",
    "1.25",
    "1e300",
    '""',
    '"' + "ü" * 100 + '"',
    "[]",
    "{}",
    '[1, "x", null, [true]]',
    '{"a": 1, "B": {"c": [1.5, null]}, "": "empty"}',
    json.dumps({f"key{i}": i for i in range(300)}),
]
_COLUMNS = [
    ("id!", "int"),
    ("v", "variant"),
    ("needed!", "variant"),
    ("s", struct(("x", "int"), ("v", "variant"), ("w!", "variant"))),
    ("l", list_of("variant")),
    ("m", map_of("string", "variant")),
    ("deep", list_of(struct(("m", map_of("int", list_of("variant", required=True)))))),
]


@pytest.fixture(scope="module", params=["parquet", "avro"])
def nested_variants(our_writer: Writer, request: pytest.FixtureRequest) -> OurTable:
    """Variants at every depth, in two files of a table."""
    format_name = {"write__format__default": request.param}
    table = our_writer.create(f"variants_{request.param}", _COLUMNS, version=3, **format_name)
    rows = _rows(table)
    table.table.append(rows.slice(0, 5))
    table.table.append(rows.slice(5))
    return table


def test_java_reads_variants_at_every_depth(
    java_process: JavaProcess, nested_variants: OurTable
) -> None:
    expected = canonical_rows(_rows(nested_variants), nested_variants.schema)
    read = java_process.ask("rows", table=nested_variants.name)
    for reader in ("generic", "spark"):
        problem = difference(read[reader], expected, f"{nested_variants.name} by {reader}")
        assert problem is None, problem
    ours = nested_variants.table.refresh().scan().to_arrow()
    problem = difference(canonical_rows(ours, nested_variants.schema), expected, "by us")
    assert problem is None, problem


_EVENTS = [
    {
        "id": at,
        "name": f"event {at}" * (1 + at % 3),
        "price": at + 0.25 if at % 2 else at * 1.5,
        "user": {"country": "DE" if at % 4 else None, "tags": ["x", at, None][: at % 4]},
        "items": [{"sku": f"s{i}", "count": i * 1000} for i in range(at % 3)],
        "ok": at % 2 == 0,
        **({"it's": at} if at % 3 else {"id": "seven"}),
    }
    for at in range(40)
]


@pytest.fixture(scope="module")
def shredded_variants(our_writer: Writer) -> OurTable:
    """Shredded variants in two files, whose later values do not all fit."""
    table = our_writer.create(
        "variants_shredded",
        [("id!", "int"), ("v", "variant"), ("scalar", "variant"), ("s", "string")],
        version=3,
        write__parquet__shred_variants="true",
        write__parquet__variant_inference_buffer_size="15",
    )
    rows = [
        {
            "id": at,
            "v": None if at % 11 == 0 else _variant(json.dumps(event)),
            "scalar": _variant(str(at) if at < 25 else f'"text {at}"'),
            "s": f"s{at}",
        }
        for at, event in enumerate(_EVENTS)
    ]
    last = [
        {"id": 40, "v": _variant("[1]"), "scalar": None, "s": None},
        {"id": 41, "v": _variant("{}"), "scalar": _variant("null"), "s": ""},
    ]
    for part in (rows[:20], [*rows[20:], last[0]], last[1:]):
        table.table.append(_arrow(table, part))
    table.rows.extend([*rows, *last])
    return table


def test_java_reads_shredded_variants(
    java_process: JavaProcess, shredded_variants: OurTable
) -> None:
    files = shredded_variants.table.scan(columns=["_file"]).to_arrow()["_file"].unique()
    shredded = {"typed_value" in str(pq.read_schema(path)) for path in files.to_pylist()}
    assert shredded == {True, False}
    expected = canonical_rows(
        _arrow(shredded_variants, list(shredded_variants.rows)), shredded_variants.schema
    )
    read = java_process.ask("rows", table=shredded_variants.name)
    for reader in ("generic", "spark"):
        problem = difference(read[reader], expected, f"by {reader}")
        assert problem is None, problem
    ours = shredded_variants.table.refresh().scan().to_arrow()
    problem = difference(canonical_rows(ours, shredded_variants.schema), expected, "by us")
    assert problem is None, problem


@pytest.mark.parametrize("writer", ["icebergds", "Java"])
def test_java_reads_other_columns_of_shredded_variants_row_by_row(
    java_process: JavaProcess, our_writer: Writer, writer: str
) -> None:
    """Its batches of Arrow have no shredded variants, though no column of them is read."""
    table = our_writer.create(
        f"variants_beside_{writer.lower()}",
        [("id!", "int"), ("v", "variant")],
        version=3,
        write__parquet__shred_variants="true",
    )
    name = f"oracle.db.{table.name}"
    if writer == "Java":
        query = "SELECT cast(id AS int), parse_json('{\"a\": 1}') FROM range(10)"
        java_process.ask("sql", statement=f"INSERT INTO {name} {query}")
    else:
        rows = [{"id": at, "v": _variant('{"a": 1}')} for at in range(10)]
        table.table.append(_arrow(table, rows))
    query = f"SELECT sum(id) FROM {name}"
    with pytest.raises(RuntimeError, match="Unsupported variant: shredded typed_value"):
        java_process.ask("sql", statement=query)
    table.table.refresh().set_properties({"read.parquet.vectorization.enabled": "false"})
    java_process.ask("sql", statement=f"REFRESH TABLE {name}")
    assert java_process.ask("sql", statement=query) == [[45]]


def test_duckdb_reads_shredded_variants(shredded_variants: OurTable) -> None:
    paths = shredded_variants.table.scan(columns=["_file"]).to_arrow()["_file"].unique()
    with duckdb.connect() as connection:
        read = connection.sql(
            "SELECT v.name::VARCHAR, v.user.country::VARCHAR, v.items[1].sku::VARCHAR "
            f"FROM read_parquet({paths.to_pylist()}) WHERE id < 40 ORDER BY id"
        ).fetchall()
    assert read == [
        (None, None, None)
        if at % 11 == 0
        else (event["name"], event["user"]["country"], "s0" if event["items"] else None)
        for at, event in enumerate(_EVENTS)
    ]


def test_java_decodes_the_bounds_of_shredded_fields(
    java_process: JavaProcess, our_writer: Writer
) -> None:
    table = our_writer.create(
        "variant_bounds",
        [("id!", "int"), ("v", "variant")],
        version=3,
        write__parquet__shred_variants="true",
    )
    for first in (0, 100):
        rows = [
            {"id": at, "v": _variant(json.dumps({"n": at + 100_000, "o": {"it's": f"s{at:03}"}}))}
            for at in range(first, first + 10)
        ]
        table.table.append(_arrow(table, rows))
    name = "variant_bounds_of_java"
    twin = our_writer.create(
        name, [("id!", "int"), ("v", "variant")], version=3, write__parquet__shred_variants="true"
    )
    for first in (0, 100):
        query = (
            "SELECT /*+ COALESCE(1) */ cast(id AS int), "
            "parse_json(concat('{\"n\": ', id + 100000, ', "
            "\"o\": {\"it\\'s\": \"s', lpad(id, 3, '0'), '\"}}')) "
            f"FROM range({first}, {first + 10}, 1, 1)"
        )
        java_process.ask("sql", statement=f"INSERT INTO oracle.db.{name} {query}")
    ours = java_process.ask("variant_bounds", table="variant_bounds", field_id=2)
    assert len(ours) == 2
    assert sorted(ours) == sorted(java_process.ask("variant_bounds", table=name, field_id=2))
    assert twin.table.refresh().scan().count() == 20


def test_we_read_what_java_shreds(java_process: JavaProcess, our_writer: Writer) -> None:
    table = our_writer.create(
        "variants_of_java",
        [("id!", "int"), ("v", "variant")],
        version=3,
        write__parquet__shred_variants="true",
    )
    values = ", ".join(
        f"({at}, parse_json('{json.dumps(event).replace(chr(39), chr(92) + chr(39))}'))"
        for at, event in enumerate(_EVENTS)
    )
    java_process.ask("sql", statement=f"INSERT INTO oracle.db.variants_of_java VALUES {values}")
    rows = [{"id": at, "v": _variant(json.dumps(event))} for at, event in enumerate(_EVENTS)]
    table.table.refresh()
    files = table.table.scan(columns=["_file"]).to_arrow()["_file"].unique().to_pylist()
    assert any("typed_value" in str(pq.read_schema(path)) for path in files)
    expected = canonical_rows(_arrow(table, rows), table.schema)
    read = canonical_rows(table.table.scan().to_arrow(), table.schema)
    problem = difference(read, expected, "what Java shredded")
    assert problem is None, problem
    assert not list(table.table.verify(depth="rows").findings)
    # And again, once we have rewritten it.
    table.table.rewrite_data_files(options={"rewrite-all": "true"})
    read = canonical_rows(table.table.refresh().scan().to_arrow(), table.schema)
    assert difference(read, expected, "what we rewrote") is None


def test_java_reads_variants_from_orc(java_process: JavaProcess, our_writer: Writer) -> None:
    """But in lists and maps, and with Spark: Java reads there not even its own."""
    columns = [("id!", "int"), ("v", "variant"), ("s", struct(("w", "variant")))]
    table = our_writer.create("variants_orc", columns, version=3, write__format__default="orc")
    variants = [None, *map(_variant, _JSON)]
    rows = _arrow(table, [{"id": i, "v": v, "s": {"w": v}} for i, v in enumerate(variants)])
    table.table.append(rows)
    read = java_process.ask("rows_at", location=table.table.location())
    problem = difference(read, canonical_rows(rows, table.schema), table.name)
    assert problem is None, problem


def test_spark_takes_values_out_of_variants(java_process: JavaProcess, our_writer: Writer) -> None:
    table = our_writer.create("variant_paths", [("id!", "int"), ("v", "variant")], version=3)
    rows = [{"id": i, "v": _variant(f'{{"a": {{"b": {i}}}}}')} for i in range(3)]
    table.table.append(_arrow(table, rows))
    query = "SELECT id, variant_get(v, '$.a.b', 'int') FROM oracle.db.variant_paths"
    found = java_process.ask("sql", statement=f"{query} WHERE variant_get(v, '$.a.b', 'int') > 0")
    assert sorted(found) == [[1, 1], [2, 2]]


def test_java_changes_a_table_of_our_variants(
    java_process: JavaProcess, our_writer: Writer
) -> None:
    table = our_writer.create("variant_turns", [("id!", "int"), ("v", "variant")], version=3)
    table.table.append(_arrow(table, [{"id": i, "v": _variant(str(i))} for i in range(4)]))
    target = "oracle.db.variant_turns"
    for statement in (
        f"INSERT INTO {target} VALUES (10, parse_json('[10]'))",
        f"DELETE FROM {target} WHERE id = 2",
        "CALL oracle.system.rewrite_data_files(table => 'db.variant_turns', "
        "options => map('rewrite-all', 'true'))",
    ):
        java_process.ask("sql", statement=statement)
    table.table.refresh().append(_arrow(table, [{"id": 11, "v": None}]))
    ids = {0: "0", 1: "1", 3: "3", 10: "[10]", 11: None}
    rows = [{"id": i, "v": None if v is None else _variant(v)} for i, v in ids.items()]
    expected = canonical_rows(_arrow(table, rows), table.schema)
    assert java_process.ask("rows", table="variant_turns")["generic"] == expected
    assert canonical_rows(table.table.refresh().scan().to_arrow(), table.schema) == expected


def test_counts_of_variants_are_those_of_java(
    java_process: JavaProcess, our_writer: Writer
) -> None:
    columns = [("id!", "int"), ("v", "variant"), ("s", struct(("w", "variant")))]
    table = our_writer.create("variant_counts", columns, version=3)
    one = _variant("1")
    rows = [
        {"id": 1, "v": one, "s": {"w": one}},
        {"id": 2, "v": None, "s": {"w": None}},
        {"id": 3, "v": None, "s": None},
    ]
    table.table.append(_arrow(table, rows))
    (file,) = java_process.ask("metrics", table="variant_counts", file_format="parquet")
    assert file["ours"] == file["java"]
    assert (file["ours"]["valueCounts"], file["ours"]["nullValueCounts"]) == (
        {"1": 3, "2": 3, "4": 3},
        {"1": 0, "2": 2, "4": 2},
    )


def test_duckdb_knows_variants_in_our_files(our_writer: Writer) -> None:
    table = our_writer.create("variant_files", [("id!", "int"), ("v", "variant")], version=3)
    table.table.append(_arrow(table, [{"id": 1, "v": _variant('{"a": [1, "x"]}')}]))
    (path,) = table.table.scan(columns=["_file"]).to_arrow()["_file"].to_pylist()
    with duckdb.connect() as connection:
        read = connection.sql(f"SELECT typeof(v), v.a::VARCHAR FROM '{path}'").fetchall()
    assert read == [("VARIANT", "[1, x]")]


def _rows(table: OurTable) -> pa.Table:
    rows = []
    for at, text in enumerate(_JSON):
        v = _variant(text)
        other = None if at % 3 == 0 else v
        rows.append(
            {
                "id": at,
                "v": other,
                "needed": v,
                "s": None if at % 5 == 0 else {"x": at, "v": other, "w": v},
                "l": None if at % 4 == 0 else [v, None, other],
                "m": [("k", v), ("n", None)] if at % 2 else [],
                "deep": [{"m": [(1, [v, v]), (2, None), (3, [])]}, None, {"m": None}],
            }
        )
    return _arrow(table, rows)


def _arrow(table: OurTable, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema_to_arrow(table.table.schema()))


def _variant(text: str) -> dict[str, bytes]:
    """A variant of a JSON text."""
    parsed = VariantVal.parseJson(text)
    return {"metadata": parsed.metadata, "value": parsed.value}
