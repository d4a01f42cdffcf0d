"""A catalog that icebergds and Java Iceberg share, and what must hold of all of them.

A test module defines a subclass of `SharedCatalog` and the fixture `lake`.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from effort import IS_NIGHTLY
from java_process import JavaProcess
from processes import CONTEXT

import icebergds
from icebergds.errors import NoSuchTableError

# Besides Java's one process.
_PROCESSES, _APPENDS = (7, 25) if IS_NIGHTLY else (2, 4)
_RETRIES = {
    "commit.retry.num-retries": "10000",
    "commit.retry.min-wait-ms": "10",
    "commit.retry.max-wait-ms": "500",
}
ROWS = pa.schema([("id", pa.int64()), ("s", pa.string())])


@dataclass(frozen=True)
class Lake:
    """A catalog of one name in both.

    Attributes:
        database: a namespace of the test's own.
        properties: those of both; `more` are ours.
        keeps_files: tables can be dropped without their files, as Java on Spark always does.
        keeps_history: a table's metadata has its former snapshots and metadata files.
    """

    name: str
    java: JavaProcess
    properties: dict[str, str]
    more: dict[str, str] = field(default_factory=dict)
    database: str = "db"
    keeps_files: bool = True
    keeps_history: bool = True

    def ours(self) -> icebergds.Catalog:
        return icebergds.load_catalog(self.name, **self.properties, **self.more)

    def sql(self, statement: str) -> list[list[Any]]:
        """Runs a statement in Java, in which {c} is the catalog and {db} the namespace."""
        named = statement.replace("{c}", self.name).replace("{db}", f"{self.name}.{self.database}")
        return list(self.java.ask("sql", statement=named))

    def open_in_java(self, settings: Mapping[str, str]) -> None:
        """Makes the catalog known to Spark."""
        given = {
            "": "org.apache.iceberg.spark.SparkCatalog",
            ".cache-enabled": "false",
            **{f".{key}": value for key, value in settings.items()},
        }
        for key, value in given.items():
            self.sql(f"SET `spark.sql.catalog.{{c}}{key}`=`{value}`")

    def table(self, name: str) -> str:
        """The name of a table in our catalog."""
        return f"{self.database}.{name}"

    def both_read(self, name: str, expected: dict[int, str]) -> None:
        """Both have the rows of a table in the namespace."""
        java = dict(self.sql(f"SELECT id, s FROM {{db}}.{name}"))
        ours = self.ours().load_table(self.table(name)).scan().to_arrow()
        assert java == expected
        assert dict(zip(ours["id"].to_pylist(), ours["s"].to_pylist(), strict=True)) == expected


def rows(given: dict[int, str]) -> pa.Table:
    return pa.table({"id": list(given), "s": list(given.values())}, ROWS)


class SharedCatalog:
    """The tests; the namespace of `lake` exists."""

    def test_both_write_to_a_table_that_java_made(self, lake: Lake) -> None:
        lake.sql("CREATE TABLE {db}.t (id BIGINT, s STRING) USING iceberg PARTITIONED BY (s)")
        assert lake.ours().list_tables(lake.database) == [(lake.database, "t")]
        _write_in_turn(lake, lake.ours().load_table(lake.table("t")))

    def test_both_write_to_a_table_that_we_made(self, lake: Lake) -> None:
        table = lake.ours().create_table(lake.table("t"), ROWS, partition_spec="s")
        assert lake.sql("SHOW TABLES IN {db}") == [[lake.database, "t", False]]
        _write_in_turn(lake, table)

    def test_tables_are_renamed_and_dropped_for_both(self, lake: Lake) -> None:
        lake.sql("CREATE TABLE {db}.theirs (id BIGINT, s STRING) USING iceberg")
        lake.ours().create_table(lake.table("ours"), ROWS).append(rows({1: "a"}))
        lake.sql(f"ALTER TABLE {{db}}.ours RENAME TO {lake.table('by_java')}")
        renamed = lake.ours().rename_table(lake.table("theirs"), lake.table("by_us"))
        renamed.append(rows({2: "b"}))
        lake.both_read("by_java", {1: "a"})
        lake.both_read("by_us", {2: "b"})
        if lake.keeps_files:
            lake.sql("DROP TABLE {db}.by_us")
        else:
            lake.ours().purge_table(lake.table("by_us"))
        with pytest.raises(NoSuchTableError, match="by_us"):
            lake.ours().load_table(lake.table("by_us"))
        ours = lake.ours()
        (ours.drop_table if lake.keeps_files else ours.purge_table)(lake.table("by_java"))
        assert lake.sql("SHOW TABLES IN {db}") == []

    def test_both_commit_at_once_and_lose_nothing(self, lake: Lake) -> None:
        table = lake.ours().create_table(lake.table("t"), ROWS, properties=_RETRIES)
        begin, *firsts = range(1000, 1000 * (_PROCESSES + 2), 1000)
        properties = {**lake.properties, **lake.more}
        with ProcessPoolExecutor(_PROCESSES, CONTEXT) as pool:
            ours = [
                pool.submit(_append_each, lake.name, properties, lake.table("t"), first)
                for first in firsts
            ]
            for i in range(_APPENDS):
                lake.sql(f"INSERT INTO {{db}}.t VALUES ({begin + i}, 'java')")
            for future in ours:
                future.result(timeout=600)
        expected = {begin + i: "java" for i in range(_APPENDS)}
        expected |= {first + i: "ours" for first in firsts for i in range(_APPENDS)}
        lake.both_read("t", expected)
        # None twice.
        assert table.refresh().scan().count() == len(expected)
        if lake.keeps_history:
            assert len(table.snapshots()) == len(expected)


def _append_each(name: str, properties: dict[str, str], table: str, first: int) -> None:
    mine = icebergds.load_catalog(name, **properties).load_table(table)
    for i in range(_APPENDS):
        mine.append(rows({first + i: "ours"}))


def _write_in_turn(lake: Lake, table: icebergds.Table) -> None:
    table.append(rows({1: "a", 2: "b"}))
    lake.both_read("t", {1: "a", 2: "b"})
    lake.sql("INSERT INTO {db}.t VALUES (3, 'a'), (4, 'c')")
    lake.both_read("t", {1: "a", 2: "b", 3: "a", 4: "c"})
    # Of a state that Java has replaced since.
    table.append(rows({5: "b"}))
    lake.both_read("t", {1: "a", 2: "b", 3: "a", 4: "c", 5: "b"})
    lake.sql("DELETE FROM {db}.t WHERE s = 'b'")
    lake.sql("ALTER TABLE {db}.t ADD COLUMN v INT")
    table.refresh().overwrite(rows({6: "d"}), "s = 'c'")
    lake.both_read("t", {1: "a", 3: "a", 6: "d"})
    if not lake.keeps_history:
        return
    logged = [entry.metadata_file for entry in table.refresh().metadata.metadata_log]
    assert len(set(logged)) == len(logged) >= 6
