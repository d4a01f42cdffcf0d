"""No front of Spark tells of rows that a REST catalog restricts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import icebergds
from icebergds import register

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession
    from rest_proxy import RestProxy
    from rest_server import RestServer

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

_RESTRICTIONS = {"required-column-projections": [{"action": "sha-256-global", "field-id": 2}]}
_NAMED = "column secret by the action sha-256-global"


@pytest.fixture
def proxy(rest: RestServer) -> Iterator[RestProxy]:
    from rest_proxy import rest_proxy

    with rest_proxy(rest.port) as proxy:
        yield proxy


@pytest.fixture
def restricted(rest: RestServer, proxy: RestProxy) -> dict[str, str]:
    """The properties of a catalog, one of whose tables is restricted for who asks the proxy."""
    path = rest.new_catalog()
    administrator = icebergds.load_catalog("lake", uri=rest.uri(path))
    administrator.create_namespace("db")
    schema = "id bigint, secret string"
    table = administrator.create_table("db.t", schema, partition_spec=["secret"])
    for number in range(2):
        table.append(pa.table({"id": [number], "secret": ["s"]}))

    def rewrite(seen: Any, body: Any) -> Any:
        is_load = seen.method == "GET" and "/tables/t" in seen.path
        return {**body, "read-restrictions": _RESTRICTIONS} if is_load else body

    proxy.rewrite = rewrite
    return {"type": "rest", "uri": rest.uri(path, proxy.port)}


_STATEMENTS = [
    "SELECT * FROM lake.db.t",
    "SELECT id FROM lake.db.t WHERE id = 1",
    "SELECT count(*) FROM lake.db.t",
    "SELECT max(id) FROM lake.db.t",
    "SELECT secret, count(*) FROM lake.db.t GROUP BY secret",
    "SELECT * FROM lake.db.t ORDER BY id LIMIT 1",
    "SELECT * FROM lake.db.t VERSION AS OF {first}",
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM lake.db.t)",
    "WITH c AS (SELECT * FROM lake.db.t) SELECT * FROM c",
    "SELECT * FROM lake.db.t.files",
    "SELECT count(*) FROM lake.db.t.partitions",
    "SELECT * FROM lake.db.t.all_manifests",
    "SELECT * FROM lake.db.t.position_deletes",
    "CREATE TABLE lake.db.copied AS SELECT * FROM lake.db.t",
    "INSERT INTO lake.db.t SELECT * FROM lake.db.t",
    "DELETE FROM lake.db.t WHERE id = 1",
    "DELETE FROM lake.db.t",
    "UPDATE lake.db.t SET id = 3",
    "MERGE INTO lake.db.t USING (SELECT 1L AS i) AS s ON id = i WHEN MATCHED THEN DELETE",
    "INSERT INTO lake.db.t REPLACE WHERE id = 1 VALUES (1, 'x')",
    "CALL lake.system.rewrite_data_files(table => 'db.t')",
    "CALL lake.system.rewrite_data_files(table => 'db.t', strategy => 'sort', sort_order => 'id')",
    "CALL lake.system.create_changelog_view(table => 'db.t')",
    "CALL lake.system.compute_table_stats(table => 'db.t')",
    "CALL lake.system.compute_partition_stats(table => 'db.t')",
    "ANALYZE TABLE lake.db.t COMPUTE STATISTICS",
]


def test_statements_tell_nothing_of_restricted_rows(
    spark: SparkSession, restricted: dict[str, str]
) -> None:
    session = _registered(spark, restricted, sql=True)
    table = icebergds.load_catalog("lake", **restricted).load_table("db.t")
    first = table.snapshots()[0].snapshot_id
    told = _told(
        {
            text: lambda text=text: session.sql(text.format(first=first)).collect()
            for text in _STATEMENTS
        }
    )
    assert told == []
    assert session.sql("DESCRIBE lake.db.t").count() >= 2
    described = session.sql("DESCRIBE EXTENDED lake.db.t").collect()
    assert not [row for row in described if row.col_name == "Statistics"]
    assert session.sql("SELECT * FROM lake.db.t.snapshots").count() == 2
    session.sql("INSERT INTO lake.db.t VALUES (2, 's')")
    session.sql("ALTER TABLE lake.db.t ADD COLUMN more int")
    assert session.sql("SELECT * FROM lake.db.t.history").count() == 3


def test_frames_tell_nothing_of_restricted_rows(
    spark: SparkSession, restricted: dict[str, str]
) -> None:
    from pyspark.sql.functions import col

    session = _registered(spark, restricted)
    table = icebergds.load_catalog("lake", **restricted).load_table("db.t")
    first = table.snapshots()[0].snapshot_id
    rows = session.createDataFrame([(1, "x")], "id bigint, secret string")
    reader = session.read.format("icebergpy")
    reads: dict[str, Callable[[], object]] = {
        **_reads_of_source(session),
        "group": lambda: reader.load("lake.db.t").groupBy("secret").count().collect(),
        "scan": lambda: table.scan(filter="id = 1").to_df(session).collect(),
        "scan count": lambda: table.scan(filter="id = 1").count(session),
        "scan of changes": lambda: table.changes().to_df(session).collect(),
        "scan of appends": lambda: table.appends(first).to_df(session).collect(),
        "inspect": lambda: table.inspect.to_df(session, "partitions").collect(),
        "inspect all": lambda: table.inspect.to_df(session, "all_entries").collect(),
        "delete": lambda: table.delete("id = 1", spark=session),
        "update": lambda: table.update({"id": "3"}, "id = 1", spark=session),
        "merge": lambda: table.merge(rows, "target.id = source.id").when_matched_delete().execute(),
        "overwrite": lambda: table.overwrite(rows, "id = 1"),
        "overwrite by column": lambda: table.overwrite(rows, col("id") == 1),
        "compaction": lambda: table.rewrite_data_files(
            options={"rewrite-all": "true"}, spark=session
        ),
    }
    assert _told(reads) == []
    rows.write.format("icebergpy").mode("append").save("lake.db.t")
    assert len(table.refresh().snapshots()) == 3


def test_the_data_source_alone_tells_nothing_of_restricted_rows(
    spark: SparkSession, restricted: dict[str, str], tmp_path: Path
) -> None:
    """Its processes load the table themselves."""
    session = _registered(spark, restricted, reader=False, writer=False, native_scans=False)

    def stream() -> None:
        loaded = session.readStream.format("icebergpy").load("lake.db.t")
        sink = loaded.writeStream.format("memory").queryName("restricted")
        sink = sink.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = sink.trigger(availableNow=True).start()
        try:
            query.processAllAvailable()
        finally:
            query.stop()

    def upsert() -> None:
        rows = session.createDataFrame([(1, "x")], "id bigint, secret string")
        writer = rows.write.format("icebergpy").option("write-operation", "upsert")
        writer.option("upsert-keys", "id").mode("append").save("lake.db.t")

    reads: dict[str, Callable[[], object]] = {
        **_reads_of_source(session),
        "stream": stream,
        "upsert": upsert,
    }
    assert _told(reads) == []


def _reads_of_source(session: SparkSession) -> dict[str, Callable[[], object]]:
    def load(name: str = "lake.db.t", schema: str | None = None, **options: str) -> Any:
        reader = session.read.format("icebergpy").options(**options)
        return (reader if schema is None else reader.schema(schema)).load(name)

    return {
        "load": lambda: load().collect(),
        "schema": lambda: load(schema="id bigint").collect(),
        "changes": lambda: load(**{"read-change-feed": "true"}).collect(),
        "files": lambda: load("lake.db.t.files").count(),
    }


def _registered(spark: SparkSession, restricted: dict[str, str], **fronts: bool) -> SparkSession:
    session = spark.newSession()
    for name, value in restricted.items():
        session.conf.set(f"spark.icebergpy.catalog.lake.{name}", value)
    register(session, **fronts)
    return session


def _told(reads: dict[str, Callable[[], object]]) -> list[str]:
    """The reads that are not refused for what is restricted, with what they raise."""
    told = []
    for name, read in reads.items():
        try:
            read()
        except Exception as error:
            if _NAMED not in str(error):
                told.append(f"{name}: {type(error).__name__}: {str(error)[:300]}")
        else:
            told.append(name)
    return told
