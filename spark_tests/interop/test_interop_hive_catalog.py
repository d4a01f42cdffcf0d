"""One Hive Metastore that is a catalog of icebergds and of Java Iceberg."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hive_server import LOCKING, HiveServer, hive_server, what_is_missing
from java_process import JavaProcess
from postgres_server import PostgresServer

import icebergds
from icebergds.errors import NoSuchTableError

pytestmark = pytest.mark.interop

_ROWS = pa.schema([("id", pa.int64()), ("s", pa.string())])


@dataclass(frozen=True)
class Lake:
    """A metastore in both, with a database of its own."""

    java: JavaProcess
    catalog: str
    database: str
    properties: dict[str, str]

    def ours(self) -> icebergds.Catalog:
        # As Spark's client of Hive 2.3 writes columns.
        compatible = {"hive.hive2-compatible": "true"}
        return icebergds.load_catalog(self.catalog, **self.properties, **compatible)

    def table(self, name: str) -> str:
        return f"{self.database}.{name}"

    def sql(self, statement: str) -> list[list[Any]]:
        """Runs a statement in Java, in which {db} is the database."""
        named = statement.replace("{db}", f"{self.catalog}.{self.database}")
        return list(self.java.ask("sql", statement=named))

    def both_read(self, name: str, expected: dict[int, str]) -> None:
        """Both have the rows of a table."""
        java = dict(self.sql(f"SELECT id, s FROM {{db}}.{name}"))
        ours = self.ours().load_table(self.table(name)).scan().to_arrow()
        assert java == expected
        assert dict(zip(ours["id"].to_pylist(), ours["s"].to_pylist(), strict=True)) == expected


@pytest.fixture(scope="module")
def metastore(postgres: PostgresServer) -> Iterator[HiveServer]:
    """One of version 3: Spark's client, of Hive 2.3, asks for tables as version 4 does not."""
    if (missing := what_is_missing(LOCKING)) is not None:
        pytest.skip(f"no Hive Metastore: {missing}")
    with hive_server(LOCKING, postgres) as server:
        yield server


@pytest.fixture
def lake(metastore: HiveServer, java_process: JavaProcess, tmp_path: Path) -> Lake:
    identity = uuid.uuid4().hex
    properties = {"uri": metastore.uri, "warehouse": f"file:{tmp_path}/warehouse"}
    lake = Lake(java_process, f"lake_{identity}", f"db_{identity}", properties)
    settings = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "hive",
        ".cache-enabled": "false",
        **{f".{name}": value for name, value in properties.items()},
    }
    for key, value in settings.items():
        lake.java.ask("sql", statement=f"SET `spark.sql.catalog.{lake.catalog}{key}`=`{value}`")
    return lake


@pytest.fixture
def with_database(lake: Lake) -> Lake:
    lake.ours().create_namespace(lake.database)
    return lake


def test_both_write_to_a_table_that_java_made(with_database: Lake) -> None:
    lake = with_database
    lake.sql("CREATE TABLE {db}.t (id BIGINT, s STRING) USING iceberg PARTITIONED BY (s)")
    assert lake.ours().list_tables(lake.database) == [(lake.database, "t")]
    _write_in_turn(lake, lake.ours().load_table(lake.table("t")))


def test_both_write_to_a_table_that_we_made(with_database: Lake) -> None:
    lake = with_database
    table = lake.ours().create_table(lake.table("t"), _ROWS, partition_spec="s")
    assert lake.sql("SHOW TABLES IN {db}") == [[lake.database, "t", False]]
    _write_in_turn(lake, table)


def _write_in_turn(lake: Lake, table: icebergds.Table) -> None:
    table.append(_rows({1: "a", 2: "b"}))
    lake.both_read("t", {1: "a", 2: "b"})
    lake.sql("INSERT INTO {db}.t VALUES (3, 'a'), (4, 'c')")
    lake.both_read("t", {1: "a", 2: "b", 3: "a", 4: "c"})
    # Of a state that Java has replaced since.
    table.append(_rows({5: "b"}))
    lake.both_read("t", {1: "a", 2: "b", 3: "a", 4: "c", 5: "b"})
    lake.sql("DELETE FROM {db}.t WHERE s = 'b'")
    lake.sql("ALTER TABLE {db}.t ADD COLUMN v INT")
    table.refresh().overwrite(_rows({6: "d"}), "s = 'c'")
    lake.both_read("t", {1: "a", 3: "a", 6: "d"})
    logged = [entry.metadata_file for entry in table.refresh().metadata.metadata_log]
    assert len(set(logged)) == len(logged) == 6


def test_namespaces_are_shared(lake: Lake) -> None:
    lake.sql("CREATE NAMESPACE {db} COMMENT 'by java' WITH DBPROPERTIES ('made_by' = 'java')")
    found = lake.ours().load_namespace_properties(lake.database)
    assert (found["made_by"], found["comment"]) == ("java", "by java")
    lake.ours().update_namespace_properties(lake.database, updates={"k": "w"})
    described = dict(lake.sql("DESCRIBE NAMESPACE EXTENDED {db}"))
    assert "(k,w)" in described["Properties"]
    assert described["Comment"] == "by java"
    lake.ours().drop_namespace(lake.database)
    names = lake.java.ask("sql", statement=f"SHOW NAMESPACES IN {lake.catalog}")
    assert [lake.database] not in names


def test_an_entry_is_the_same_of_both(with_database: Lake) -> None:
    lake = with_database
    lake.sql(
        "CREATE TABLE {db}.theirs (id BIGINT, s STRING, at TIMESTAMP, "
        "n STRUCT<a: INT, b: ARRAY<DECIMAL(9,2)>>) USING iceberg "
        "PARTITIONED BY (bucket(4, id)) TBLPROPERTIES ('k' = 'v', 'gc.enabled' = 'false')"
    )
    theirs = lake.ours().load_table(lake.table("theirs"))
    ours = lake.ours().create_table(
        lake.table("ours"),
        theirs.schema(),
        partition_spec=theirs.spec(),
        properties=theirs.properties,
    )
    assert _entry(lake, "ours") == _entry(lake, "theirs")
    lake.sql("INSERT INTO {db}.theirs (id, s) VALUES (1, 'a')")
    lake.sql("INSERT INTO {db}.ours (id, s) VALUES (1, 'a')")
    lake.sql("ALTER TABLE {db}.theirs UNSET TBLPROPERTIES ('k')")
    ours.refresh().remove_properties("k")
    assert _entry(lake, "ours") == _entry(lake, "theirs")


def _entry(lake: Lake, name: str) -> dict[str, Any]:
    """What the metastore has of a table, without what differs from table to table."""
    found = lake.ours()._catalog.operations((lake.database, name)).pointer.find()
    entry = found.token
    differing = {
        *("metadata_location", "previous_metadata_location", "uuid", "current-snapshot-id"),
        *("current-snapshot-timestamp-ms", "current-snapshot-summary", "transient_lastDdlTime"),
        "totalSize",
    }
    parameters = {k: v for k, v in entry.parameters.items() if k not in differing}
    storage = entry.storage
    return {
        "parameters": parameters,
        "differing": differing & entry.parameters.keys(),
        "type": entry.table_type,
        "columns": storage.columns,
        "formats": (storage.input_format, storage.output_format, storage.serde.library),
        "storage": (storage.compressed, storage.buckets, storage.bucket_columns),
        "retention": entry.retention,
    }


def test_tables_are_renamed_and_dropped_for_both(with_database: Lake) -> None:
    lake = with_database
    lake.sql("CREATE TABLE {db}.theirs (id BIGINT, s STRING) USING iceberg")
    lake.ours().create_table(lake.table("ours"), _ROWS).append(_rows({1: "a"}))
    lake.sql(f"ALTER TABLE {{db}}.ours RENAME TO {lake.table('by_java')}")
    by_us = lake.ours().rename_table(lake.table("theirs"), lake.table("by_us"))
    by_us.append(_rows({2: "b"}))
    lake.both_read("by_java", {1: "a"})
    lake.both_read("by_us", {2: "b"})
    lake.sql("DROP TABLE {db}.by_us")
    with pytest.raises(NoSuchTableError, match="by_us"):
        lake.ours().load_table(lake.table("by_us"))
    lake.ours().drop_table(lake.table("by_java"))
    assert lake.sql("SHOW TABLES IN {db}") == []


def test_a_view_of_java_is_no_table(with_database: Lake) -> None:
    lake = with_database
    lake.sql("CREATE VIEW {db}.v AS SELECT 1 AS one")
    assert lake.ours().list_tables(lake.database) == []
    with pytest.raises(NoSuchTableError, match=r"\.v is not an Iceberg table: .*VIEW"):
        lake.ours().load_table(lake.table("v"))


def _rows(rows: dict[int, str]) -> pa.Table:
    return pa.table({"id": list(rows), "s": list(rows.values())}, _ROWS)
