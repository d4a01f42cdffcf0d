"""Statistics are those of Java Iceberg: sketches byte for byte, partition statistics row by row."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from java_process import JavaProcess
from our_tables import OurTable, Writer

from icebergds.api.table import Table
from icebergds.formats.puffin import read_puffin_blob, read_puffin_footer
from icebergds.operations.statistics.table_stats import value_hashes
from icebergds.operations.statistics.theta_sketch import AlphaSketch
from icebergds.spec.statistics import PartitionStatisticsFile
from icebergds.spec.types import BINARY

pytestmark = pytest.mark.interop

_COLUMNS = (
    ("flag", "boolean"),
    ("i", "int"),
    ("l", "long"),
    ("f", "float"),
    ("d", "double"),
    ("day", "date"),
    ("at", "timestamp"),
    ("atz", "timestamptz"),
    ("s", "string"),
    ("b", "binary"),
    ("x", "fixed[4]"),
    ("small", "decimal(9, 2)"),
    ("large", "decimal(38, 10)"),
    ("empty", "string"),
)


def _row(i: int) -> dict[str, Any]:
    moment = dt.datetime(2026, 1, 1) + dt.timedelta(seconds=i, microseconds=i)
    return {
        "flag": i % 2 == 0,
        "i": -i,
        "l": i * 2**40,
        "f": [0.0, -0.0, float("nan")][i] if i < 3 else i / 3,
        "d": [0.0, -0.0, float("nan")][i] if i < 3 else i / 3,
        "day": moment.date() + dt.timedelta(days=i % 50),
        "at": moment,
        "atz": moment.replace(tzinfo=dt.UTC),
        "s": "" if i % 5 == 0 else "\U0001f600" + "x" * (i % 40),
        "b": bytes([i % 256]) * (i % 20),
        "x": i.to_bytes(4, "big"),
        "small": Decimal(i - 100) / 100,
        "large": Decimal(-i) * 10**20 if i % 2 else Decimal(i),
        "empty": None,
    } | ({"l": None, "s": None} if i % 7 == 0 else {})


def _sketches(table: Table) -> dict[int, tuple[str, bytes]]:
    """For each column its estimate, and its sketch."""
    (file,) = table.refresh().statistics_files()
    found = {}
    for blob in read_puffin_footer(table.io, file.statistics_path).blobs:
        sketch = read_puffin_blob(table.io, file.statistics_path, blob)
        found[blob.fields[0]] = (blob.properties["ndv"], sketch)
    assert {blob.fields[0]: blob.properties["ndv"] for blob in file.blob_metadata} == {
        field_id: ndv for field_id, (ndv, _) in found.items()
    }
    return found


def _assert_same_sketches(java: JavaProcess, made: OurTable) -> dict[int, tuple[str, bytes]]:
    file = made.table.compute_table_stats()
    assert file is not None
    ours = _sketches(made.table)
    java.ask("sql", statement=f"CALL oracle.system.compute_table_stats(table => 'db.{made.name}')")
    assert ours == _sketches(made.table)
    assert made.table.statistics_files()[0].statistics_path != file.statistics_path
    return ours


def test_sketches_of_all_types_are_those_of_java(
    java_process: JavaProcess, our_writer: Writer
) -> None:
    mode = {"write__delete__mode": "merge-on-read"}
    made = our_writer.create("sketched_types", _COLUMNS, version=3, **mode)
    made.append([_row(i) for i in range(300)])
    made.append([_row(i) for i in range(200, 400)])
    java_process.ask("sql", statement="DELETE FROM oracle.db.sketched_types WHERE i < -390")
    ours = _assert_same_sketches(java_process, made)
    names = made.table.schema().ids_by_name
    assert (ours[names["i"]][0], ours[names["empty"]][0]) == ("391", "0")


def test_sketches_of_more_values_than_they_hold_are_those_of_java(
    java_process: JavaProcess, our_writer: Writer
) -> None:
    made = our_writer.create("sketched_many", [("l", "long"), ("s", "string"), ("one", "int")])
    rows = 30_000
    made.append([{"l": i // 2, "s": f"name {i % 20_000}", "one": 1} for i in range(rows)])
    assert [ndv for ndv, _ in _assert_same_sketches(java_process, made).values()][2] == "1"


def test_uuids_are_hashed_as_the_specification_says_though_java_hashes_their_texts(
    java_process: JavaProcess, our_writer: Writer
) -> None:
    made = our_writer.create("sketched_uuids", [("u", "uuid")])
    value = uuid.UUID(int=7)
    made.append([{"u": value.bytes}])
    made.table.compute_table_stats()
    assert _sketches(made.table) == {1: ("1", _single(value.bytes))}
    call = "CALL oracle.system.compute_table_stats(table => 'db.sketched_uuids')"
    java_process.ask("sql", statement=call)
    assert _sketches(made.table) == {1: ("1", _single(str(value).encode()))}


def _single(value: bytes) -> bytes:
    """The sketch of one value."""
    sketch = AlphaSketch()
    sketch.update(value_hashes(BINARY, pa.array([value])))
    return sketch.compact().to_bytes()


@pytest.mark.parametrize(("version", "file_format"), [(1, "parquet"), (2, "avro"), (3, "parquet")])
def test_partition_statistics_are_those_of_java(
    java_process: JavaProcess, our_writer: Writer, version: int, file_format: str
) -> None:
    name = f"counted_v{version}_{file_format}"
    columns = [("id!", "long"), ("s", "string"), ("day", "date"), ("dropped", "int")]
    properties = {"write__delete__mode": "merge-on-read"} if version > 1 else {}
    made = our_writer.create(name, columns, partition="s, days(day)", version=version, **properties)
    made.set(write__format__default=file_format)
    table, days = made.table, [dt.date(2026, 1, 1), dt.date(1969, 12, 31), None]

    def java(statement: str) -> None:
        java_process.ask("sql", statement=statement)
        table.refresh()

    made.append([{"id": i, "s": "ba"[i % 2], "day": days[i % 3]} for i in range(12)])
    java(f"DELETE FROM oracle.db.{name} WHERE id = 3")
    first = _assert_same_partitions(java_process, made)
    with table.update_spec() as update:
        update.remove_field("days(day)").add_field("bucket(2, id)")
    table.append(made.arrow([{"id": 20 + i, "s": None} for i in range(4)]))
    if version > 1:
        table.upsert(made.arrow([{"id": 4, "s": "a"}]), ["id", "s"])
    java(f"DELETE FROM oracle.db.{name} WHERE id IN (4, 20, 21, 5)")
    java(f"DELETE FROM oracle.db.{name} WHERE s = 'b'")
    # Java goes on from the file that we wrote, and we from the one that it wrote.
    _set(table, first)
    changed = _assert_same_partitions(java_process, made, keeps=[first])
    table.append(made.arrow([{"id": 30, "s": "c"}]))
    _assert_same_partitions(java_process, made, keeps=[first, changed])
    with table.update_statistics() as removal:
        for file in table.partition_statistics_files():
            removal.remove_partition_statistics(file.snapshot_id)
    _assert_same_partitions(java_process, made)


def test_java_reads_partition_statistics_of_tables_in_orc(
    java_process: JavaProcess, our_writer: Writer
) -> None:
    made = our_writer.create("counted_orc", [("s", "string")], partition="s")
    made.set(write__format__default="orc").append([{"s": "a"}, {"s": "a"}, {"s": None}])
    file = made.table.compute_partition_stats()
    assert file is not None
    read = java_process.ask("partition_statistics", table=made.name, snapshot_id=file.snapshot_id)
    assert [(row["partition"], row["data_record_count"]) for row in read] == [
        ([None], 1),
        (["a"], 2),
    ]


def _assert_same_partitions(
    java: JavaProcess, made: OurTable, keeps: list[PartitionStatisticsFile] | None = None
) -> PartitionStatisticsFile:
    """Ours are Java's, by Java's reader; returns our file, but leaves Java's in the table."""
    table = made.table
    (snapshot_id, keeps) = (table.current_snapshot().snapshot_id, keeps or [])  # type: ignore[union-attr]
    ours = table.compute_partition_stats()
    assert ours is not None
    read = java.ask("partition_statistics", table=made.name, snapshot_id=snapshot_id)
    with table.update_statistics() as update:
        update.remove_partition_statistics(snapshot_id)
    call = f"CALL oracle.system.compute_partition_stats(table => 'db.{made.name}')"
    java.ask("sql", statement=call)
    assert read == java.ask("partition_statistics", table=made.name, snapshot_id=snapshot_id)
    table.refresh()
    assert len(table.partition_statistics_files()) == len(keeps) + 1
    return ours


def _set(table: Table, file: PartitionStatisticsFile) -> None:
    with table.update_statistics() as update:
        update.set_partition_statistics(file)
