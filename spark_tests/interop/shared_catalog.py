"""A catalog that icebergds and Java Iceberg share, and what must hold of all of them.

A test module defines a subclass of `SharedCatalog` and the fixture `lake`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from java_process import JavaProcess

import icebergds
from icebergds.errors import NoSuchTableError

ROWS = pa.schema([("id", pa.int64()), ("s", pa.string())])


@dataclass(frozen=True)
class Lake:
    """A catalog of one name in both.

    Attributes:
        database: a namespace of the test's own.
        properties: those of both; `more` are ours.
    """

    name: str
    java: JavaProcess
    properties: dict[str, str]
    more: dict[str, str] = field(default_factory=dict)
    database: str = "db"

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
        lake.sql("DROP TABLE {db}.by_us")
        with pytest.raises(NoSuchTableError, match="by_us"):
            lake.ours().load_table(lake.table("by_us"))
        lake.ours().drop_table(lake.table("by_java"))
        assert lake.sql("SHOW TABLES IN {db}") == []

    def test_both_commit_at_once_and_lose_nothing(self, lake: Lake) -> None:
        each = 4
        table = lake.ours().create_table(
            lake.table("t"), ROWS, properties={"commit.retry.num-retries": "50"}
        )
        begin = threading.Barrier(3)

        def append(first: int) -> None:
            mine = lake.ours().load_table(lake.table("t"))
            begin.wait()
            for i in range(each):
                mine.append(rows({first + i: "ours"}))

        threads = [threading.Thread(target=append, args=(first,)) for first in (100, 200)]
        for thread in threads:
            thread.start()
        begin.wait()
        for i in range(each):
            lake.sql(f"INSERT INTO {{db}}.t VALUES ({300 + i}, 'java')")
        for thread in threads:
            thread.join()
        ids = [first + i for first in (100, 200, 300) for i in range(each)]
        lake.both_read("t", {i: "java" if i >= 300 else "ours" for i in ids})
        assert len(table.refresh().snapshots()) == len(ids)


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
    logged = [entry.metadata_file for entry in table.refresh().metadata.metadata_log]
    assert len(set(logged)) == len(logged) >= 6
