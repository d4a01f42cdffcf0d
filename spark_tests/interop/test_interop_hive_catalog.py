"""One Hive Metastore that is a catalog of icebergds and of Java Iceberg."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from hive_server import HiveServer
from java_process import JavaProcess
from shared_catalog import Lake, SharedCatalog

from icebergds.errors import NoSuchTableError

pytestmark = pytest.mark.interop


@pytest.fixture
def new_lake(locking_metastore: HiveServer, java_process: JavaProcess, tmp_path: Path) -> Lake:
    """A catalog whose namespace does not exist yet.

    Its metastore is of Hive 3: Spark's client, of Hive 2.3, asks for tables as 4 does not.
    """
    identity = uuid.uuid4().hex
    properties = {"uri": locking_metastore.uri, "warehouse": f"file:{tmp_path}/warehouse"}
    # As Spark's client of Hive 2.3 writes columns.
    more = {"hive.hive2-compatible": "true"}
    lake = Lake(f"lake_{identity}", java_process, properties, more, f"db_{identity}")
    lake.open_in_java({"type": "hive", **properties})
    return lake


@pytest.fixture
def lake(new_lake: Lake) -> Lake:
    new_lake.ours().create_namespace(new_lake.database)
    return new_lake


class TestHiveCatalog(SharedCatalog):
    pass


def test_namespaces_are_shared(new_lake: Lake) -> None:
    lake = new_lake
    lake.sql("CREATE NAMESPACE {db} COMMENT 'by java' WITH DBPROPERTIES ('made_by' = 'java')")
    found = lake.ours().load_namespace_properties(lake.database)
    assert (found["made_by"], found["comment"]) == ("java", "by java")
    lake.ours().update_namespace_properties(lake.database, updates={"k": "w"})
    described = dict(lake.sql("DESCRIBE NAMESPACE EXTENDED {db}"))
    assert "(k,w)" in described["Properties"]
    assert described["Comment"] == "by java"
    lake.ours().drop_namespace(lake.database)
    names = lake.java.ask("sql", statement=f"SHOW NAMESPACES IN {lake.name}")
    assert [lake.database] not in names


def test_an_entry_is_the_same_of_both(lake: Lake) -> None:
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
    # Only tables of icebergds say how changes by key delete rows.
    ours = {"write.upsert.mode"}
    parameters = {k: v for k, v in entry.parameters.items() if k not in differing | ours}
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


def test_a_view_of_java_is_no_table(lake: Lake) -> None:
    lake.sql("CREATE VIEW {db}.v AS SELECT 1 AS one")
    assert lake.ours().list_tables(lake.database) == []
    with pytest.raises(NoSuchTableError, match=r"\.v is not an Iceberg table: .*VIEW"):
        lake.ours().load_table(lake.table("v"))
