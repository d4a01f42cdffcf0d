"""Tables whose rows icebergds and Java Iceberg change in turn, as all readers have them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from effort import some
from java_process import JavaProcess
from oracles.canon import canonical_rows
from oracles.comparison import difference
from oracles.duckdb_reader import DuckDBReader
from our_tables import OurTable, Writer
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

pytestmark = [pytest.mark.interop, pytest.mark.spark]

_WAYS = [
    (3, "merge-on-read", "positions"),
    (3, "copy-on-write", "equality-deletes"),
    (2, "merge-on-read", "positions"),
    (2, "copy-on-write", "equality-deletes"),
]
_LINEAGE = ["id", "_row_id", "_last_updated_sequence_number"]


@pytest.fixture(scope="module")
def duckdb() -> Iterator[DuckDBReader]:
    with DuckDBReader() as reader:
        yield reader


@pytest.mark.parametrize(("version", "mode", "by_key"), some(_WAYS, 2))
def test_both_change_rows_in_turn(
    spark: SparkSession,
    java_process: JavaProcess,
    our_writer: Writer,
    duckdb: DuckDBReader,
    version: int,
    mode: str,
    by_key: str,
    tmp_path: Path,
) -> None:
    # Unlike that of other parameters.
    name = f"rows_{tmp_path.name}"
    columns = [("id!", "int"), ("s", "string"), ("v", "long")]
    modes = {f"write__{verb}__mode": mode for verb in ("delete", "update", "merge")}
    modes["write__upsert__mode"] = by_key
    is_keyed = by_key == "equality-deletes"
    table = our_writer.create(name, columns, partition="s", version=version, **modes)
    target = f"oracle.db.{name}"
    agree = _Agreement(java_process, duckdb, table, version)

    def java(statement: str) -> None:
        java_process.ask("sql", statement=statement)
        table.table.refresh()

    table.append([{"id": i, "s": "ab"[i % 2], "v": i} for i in range(20)])
    rows = {i: i for i in range(20)}
    table.table.delete("id % 5 = 0")
    rows = {i: v for i, v in rows.items() if i % 5}
    agree.on(rows)
    java(f"DELETE FROM {target} WHERE id IN (1, 2)")
    table.table.delete("id IN (3, 4)")
    rows = {i: v for i, v in rows.items() if i > 4}
    agree.on(rows)
    table.table.update({"v": "v + 100"}, "id < 9")
    java(f"UPDATE {target} SET v = v + 1000 WHERE id IN (8, 9)")
    rows |= {6: 106, 7: 107, 8: 1108, 9: 1009}
    agree.on(rows)
    source = spark.sql("SELECT CAST(id AS INT) id, 'c' s, id * 2 v FROM range(18, 22)")
    (
        table.table.merge(source, ["id"])
        .when_matched_update({"v": "source.v", "s": "source.s"}, "target.id = 18")
        .when_matched_delete()
        .when_not_matched_insert_all()
        .when_not_matched_by_source_delete("target.id = 17")
        .execute()
    )
    rows |= {18: 36, 20: 40, 21: 42}
    del rows[17], rows[19]
    agree.on(rows)
    java(f"DELETE FROM {target} WHERE id = 21")
    table.table.update({"v": "0"}, "id = 20")
    del rows[21]
    rows[20] = 0
    agree.on(rows)

    new = [{"id": 6, "s": "a", "v": 1}, {"id": 30, "s": "b", "v": 2}]
    table.table.upsert(table.arrow(new), ["id"])
    table.table.upsert(table.arrow([{"id": 7, "s": "b", "v": 3}]), ["id", "s"])
    rows |= {6: 1, 30: 2, 7: 3}
    agree.on(rows, keyed=is_keyed)
    java(f"DELETE FROM {target} WHERE id = 30")
    table.table.delete("id = 6")
    del rows[30], rows[6]
    agree.on(rows, keyed=is_keyed)

    assert table.table.convert_equality_deletes().remaining_equality_delete_files_count == 0
    agree.on(rows)
    java(f"DELETE FROM {target} WHERE id = 7")
    table.table.rewrite_data_files(options={"rewrite-all": "true"})
    del rows[7]
    agree.on(rows)
    table.table.upsert(table.arrow([{"id": 8, "s": "a", "v": 5}]), ["id"])
    every = "options => map('rewrite-all', 'true')"
    java(f"CALL oracle.system.rewrite_data_files(table => 'db.{name}', {every})")
    table.table.remove_dangling_deletes()
    table.table.rewrite_manifests()
    rows[8] = 5
    agree.on(rows)
    java(f"DELETE FROM {target} WHERE id = 9")
    table.table.expire_snapshots(older_than=dt.datetime.now(dt.UTC), retain_last=1)
    del rows[9]
    agree.on(rows)


class _Agreement:
    """What all readers must have of a table."""

    def __init__(
        self, java: JavaProcess, duckdb: DuckDBReader, table: OurTable, version: int
    ) -> None:
        self._java = java
        self._duckdb = duckdb
        self._table = table
        self._version = version

    def on(self, rows: dict[int, int], *, keyed: bool = False) -> None:
        """PyIceberg does not read deletes by key."""
        ours = self._table.table.refresh()
        read = ours.scan().to_arrow()
        assert dict(zip(read["id"].to_pylist(), read["v"].to_pylist(), strict=True)) == rows
        canonical = canonical_rows(read, self._table.schema)
        by_java = self._java.ask("rows", table=self._table.name)
        problem = difference(canonical, by_java["generic"], self._table.name)
        assert problem is None, problem
        assert by_java["spark"] == by_java["generic"]
        by_duckdb = self._duckdb.read(ours.metadata_location)
        assert {row[0]: row[2] for row in by_duckdb} == rows
        assert len(by_duckdb) == len(rows)
        if not keyed:
            other = StaticTable.from_metadata(ours.metadata_location).scan().to_arrow()
            assert dict(zip(other["id"].to_pylist(), other["v"].to_pylist(), strict=True)) == rows
        if self._version >= 3:
            lineage = ours.scan(columns=_LINEAGE).to_arrow().to_pylist()
            by_java = self._java.ask("lineage", table=self._table.name)
            expected = [{name: row[name] for name in _LINEAGE} for row in by_java]
            assert sorted(lineage, key=_id) == sorted(expected, key=_id)


def _id(row: dict[str, Any]) -> int:
    return int(row["id"])
