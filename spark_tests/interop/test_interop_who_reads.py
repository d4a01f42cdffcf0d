"""The table of the documentation that says which engine reads what icebergds writes."""

from __future__ import annotations

import datetime as dt
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import java_process as java_processes
import pyarrow as pa
import pytest
from java_process import JavaProcess
from oracles.arrow_schema import list_of, map_of, struct
from oracles.canon import canonical_rows
from oracles.comparison import difference
from oracles.duckdb_reader import DuckDBReader
from oracles.java_environment import JavaEnvironment
from our_tables import OurTable, Writer
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession
from pyspark.sql.types import VariantVal

from icebergds.formats.arrow.types import schema_to_arrow

pytestmark = [pytest.mark.spark, pytest.mark.interop]

_DOCS = Path(__file__).resolve().parents[2] / "docs" / "writing.md"
_READERS = ("Java Iceberg", "its Spark reader", "PyIceberg", "DuckDB")
_YES, _NO, _WRONG = "yes", "**no**", "**wrong rows**"

_POINT = bytes.fromhex("0101000000000000000000f03f0000000000000040")
_TIME = dt.datetime(2026, 1, 2, 3, 4, 5, 678)
_NESTED = [
    ("l", list_of(struct(("x", "int"), ("y", list_of("string")))), [{"x": 1, "y": ["a", None]}]),
    ("m", map_of("string", struct(("x", "int"))), [("a", {"x": None}), ("b", None)]),
    ("s", struct(("m", map_of("int", list_of("int")))), {"m": [(1, [2]), (2, None)]}),
]
_OF_STRUCTS = [
    ("l", list_of(struct(("x", "int")))),
    ("m", map_of("string", struct(("x", "int")))),
]

Build = Callable[[Writer, str], OurTable]


def _values(*columns: tuple[str, Any, Any], version: int = 2, **options: str) -> Build:
    """A table with a row of values and one of nulls; columns are name, type and value."""

    def build(writer: Writer, name: str) -> OurTable:
        kinds = [("id!", "int"), *((column, kind) for column, kind, _ in columns)]
        table = writer.create(name, kinds, version=version, **options)
        return table.append([{"id": 1} | {column: v for column, _, v in columns}, {"id": 2}])

    return build


def _variants(file_format: str, **properties: str) -> Build:
    def build(writer: Writer, name: str) -> OurTable:
        columns = [("id!", "int"), ("v", "variant")]
        properties["write__format__default"] = file_format
        table = writer.create(name, columns, version=3, **properties)
        parsed = VariantVal.parseJson('{"a": [1, 2, null], "b": "x"}')
        value = {"metadata": parsed.metadata, "value": parsed.value}
        rows = [{"id": 1, "v": value}, {"id": 2, "v": None}]
        table.table.append(pa.Table.from_pylist(rows, schema_to_arrow(table.table.schema())))
        return table

    return build


def _orc(*columns: tuple[str, Any, Any], version: int = 2) -> Build:
    return _values(*columns, version=version, write__format__default="orc")


def _deleted(version: int) -> Build:
    def build(writer: Writer, name: str) -> OurTable:
        mode = {"write__delete__mode": "merge-on-read"}
        table = writer.create(name, [("id!", "int"), ("s", "string")], version=version, **mode)
        table.append([{"id": at, "s": "a"} for at in range(4)])
        table.table.delete("id = 1")
        assert table.table.inspect.delete_files().num_rows == 1
        return table

    return build


def _upserted(column: str, kind: Any, key: str, other: Any, *keys: Any) -> Build:
    """Equality deletes by a key, with which rows are replaced, but not another one."""

    def build(writer: Writer, name: str) -> OurTable:
        table = writer.create(name, [("id!", "int"), (column, kind), ("v", "int")])
        table.append([{"id": at, column: k, "v": 1} for at, k in enumerate((other, *keys))])
        rows = [{"id": at, column: k, "v": 2} for at, k in enumerate(keys)]
        by_key = {"write.upsert.mode": "equality-deletes"}
        table.table.upsert(table.arrow(rows), [key], options=by_key)
        return table

    return build


_WRITTEN: dict[str, Build] = {
    "deletes, updates and merges in version 2: position deletes": _deleted(2),
    "deletes, updates and merges in version 3: deletion vectors": _deleted(3),
    "`upsert`, `delete_keys`, `delta`: equality deletes": _upserted("k", "int", "k", 1, 2),
    "the same in columns that have nulls": _upserted("k", "int", "k", None, 1, 2),
    "the same with null keys": _upserted("k", "int", "k", 1, None, 2),
    "the same with keys in structs": _upserted(
        "s", struct(("k", "int")), "s.k", {"k": 1}, {"k": 2}
    ),
    "booleans with `write.parquet.page-version` = `v2`": _values(
        ("b", "boolean", True), write__parquet__page_version="v2"
    ),
    "nulls in columns of lists and maps of structs": _values(
        *((name, kind, None) for name, kind in _OF_STRUCTS)
    ),
    "time": _values(("t", "time", _TIME.time())),
    "`timestamp_ns`": _values(("t", "timestamp_ns", 1), version=3),
    "`timestamptz_ns`": _values(("t", "timestamptz_ns", 1), version=3),
    "partitions by `timestamp_ns` itself": _values(
        ("t", "timestamp_ns", 1), version=3, partition="t"
    ),
    "geometry": _values(("g", "geometry", _POINT), version=3),
    "geography": _values(("h", "geography", _POINT), version=3),
    "unknown": _values(("u", "unknown", None), version=3),
    "variant in Parquet": _variants("parquet"),
    "the same, shredded": _variants("parquet", write__parquet__shred_variants="true"),
    "variant in Avro": _variants("avro"),
    "variant in ORC": _variants("orc"),
    "Avro": _values(("s", "string", "a"), write__format__default="avro"),
    "ORC": _orc(("s", "string", "a"), ("t", "timestamp", _TIME)),
    "uuid in ORC": _orc(("u", "uuid", uuid.UUID(int=5).bytes)),
    "`timestamp_ns` in ORC": _orc(("t", "timestamp_ns", 1), version=3),
    "structs, lists and maps in ORC": _orc(*_NESTED),
}


@pytest.fixture(scope="module")
def written(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Mapping[str, OurTable]]:
    """The tables by what they show, and the folder that has them as its warehouse."""
    writer = Writer(tmp_path_factory.mktemp("written"))
    # Deletes need a session.
    tables = {
        label: build(writer, f"t{number}") for number, (label, build) in enumerate(_WRITTEN.items())
    }
    return writer.directory, tables


@pytest.fixture(scope="module")
def duckdb() -> Iterator[DuckDBReader]:
    with DuckDBReader() as reader:
        yield reader


@pytest.fixture(scope="module")
def java(
    java: JavaEnvironment, written: tuple[Path, Mapping[str, OurTable]]
) -> Iterator[JavaProcess]:
    with java_processes.java_process(java, written[0]) as process:
        yield process


def test_the_documentation_says_who_reads_what(
    java: JavaProcess, duckdb: DuckDBReader, written: tuple[Path, Mapping[str, OurTable]]
) -> None:
    found = ["| written | " + " | ".join(_READERS) + " |", "|---" * (len(_READERS) + 1) + "|"]
    for label, table in written[1].items():
        cells = [label, *(_outcome(read, table) for read in _reads(java, duckdb))]
        found.append(f"| {' | '.join(cells)} |")
    section = _DOCS.read_text().split("## Who reads what")[1].split("\n## ")[0]
    expected = re.findall(r"^\|.*\|$", section, re.MULTILINE)
    assert found == expected, "the table should be\n" + "\n".join(found)


def _outcome(read: Callable[[OurTable], list[str]], table: OurTable) -> str:
    rows = canonical_rows(table.table.refresh().scan().to_arrow(), table.schema)
    try:
        return _YES if difference(read(table), rows, "") is None else _WRONG
    # Whatever a reader fails with.
    except Exception:
        return _NO


def _reads(java: JavaProcess, duckdb: DuckDBReader) -> tuple[Callable[[OurTable], list[str]], ...]:
    """Reads a table by each of the readers."""
    return (
        lambda table: java.ask("rows_by", table=table.name, reader="generic"),
        lambda table: java.ask("rows_by", table=table.name, reader="spark"),
        _by_pyiceberg,
        lambda table: _by_duckdb(duckdb, table),
    )


def _by_pyiceberg(table: OurTable) -> list[str]:
    static = StaticTable.from_metadata(table.table.metadata_location)
    return canonical_rows(static.scan().to_arrow(), table.schema)


def _by_duckdb(duckdb: DuckDBReader, table: OurTable) -> list[str]:
    schema = table.schema
    for field in schema["fields"]:
        if field["type"] == "variant":
            field["type"] = "string"
    return canonical_rows(duckdb.read_arrow(table.table.metadata_location), schema)
