"""Metadata tables as DataFrames: named by path, identifier or option, read by tasks of Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from spark_changes import arrow, people
from spark_reads import load, message_of

from icebergds import Table, load_catalog, register, sql
from icebergds.errors import IcebergError
from icebergds.operations.metadata_tables.kinds import MetadataTable

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Two versions of a partitioned table, with deletes by key."""
    table = people(tmp_path_factory.mktemp("inspected"), 3)
    with table.update_spec() as update:
        update.add_field("bucket(2, id)")
    table.upsert(arrow([(1, 1, "one"), (20, 2, "twenty")]), ["id"])
    table.manage_snapshots().create_tag("first", table.snapshots()[0].snapshot_id).commit()
    return table


@pytest.fixture(params=["registered", "data source"])
def session(spark: SparkSession, front: SparkSession, request: pytest.FixtureRequest) -> Any:
    return front if request.param == "registered" else spark


def rows(df: DataFrame) -> list[dict[str, Any]]:
    return sorted((row.asDict(recursive=True) for row in df.collect()), key=str)


def arrow_rows(found: pa.Table) -> list[dict[str, Any]]:
    """Rows as Spark has them: maps are dictionaries, and binary values are byte arrays."""
    return sorted(({n: _plain(v) for n, v in row.items()} for row in found.to_pylist()), key=str)


def _plain(value: Any) -> Any:
    match value:
        case bytes():
            return bytearray(value)
        case dict():
            return {name: _plain(inner) for name, inner in value.items()}
        case [(_, _), *_]:
            return {key: _plain(inner) for key, inner in value}
        case list():
            return [_plain(inner) for inner in value]
        case _ if hasattr(value, "tzinfo") and value.tzinfo is not None:
            return value.astimezone().replace(tzinfo=None)
        case _:
            return value


@pytest.mark.parametrize("kind", MetadataTable)
def test_spark_has_the_rows_that_arrow_has(
    session: SparkSession, table: Table, kind: MetadataTable
) -> None:
    read = load(session, f"{table.location()}#{kind}")
    found = getattr(table.inspect, kind)()
    assert read.columns == found.schema.names
    assert rows(read) == arrow_rows(found)


def test_a_table_is_named_in_each_way(session: SparkSession, tmp_path: Path) -> None:
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    made = catalog.create_table("db.events", "id bigint")
    made.append(pa.table({"id": [1, 2]}))
    named = {"catalog": "lake", "catalog.warehouse": str(tmp_path)}
    for options, path in (
        (named, "db.events.snapshots"),
        (named, "db.events.SNAPSHOTS"),
        ({**named, "metadata-table": "snapshots"}, "db.events"),
        ({"metadata-table": "Snapshots"}, made.location()),
        ({}, f"{made.location()}#snapshots"),
        ({}, f"{made.metadata_location}#snapshots"),
    ):
        (row,) = load(session, path, **options).collect()
        assert row.snapshot_id == made.current_snapshot().snapshot_id, path


def test_a_registered_session_names_them_with_its_catalogs(
    front: SparkSession, tmp_path: Path
) -> None:
    front.conf.set("spark.icebergpy.catalog.meta.warehouse", str(tmp_path))
    register(front)
    catalog = load_catalog("meta", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    catalog.create_table("db.events", "id bigint").append(pa.table({"id": [1, 2]}))
    reader = front.read.format("icebergpy")
    assert reader.table("meta.db.events.files").count() == 1
    assert reader.load("meta.db.events.history").count() == 1


def test_a_table_of_such_a_name_comes_first(session: SparkSession, tmp_path: Path) -> None:
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    catalog.create_namespace("db.files")
    catalog.create_namespace("files")
    catalog.create_table("files.files", "id bigint").append(pa.table({"id": [7]}))
    named = {"catalog": "lake", "catalog.warehouse": str(tmp_path)}
    assert load(session, "files.files", **named).collect() == [(7,)]
    assert load(session, "files.files.files", **named).count() == 1
    assert load(session, "files.files#files", **named).count() == 1


def test_a_directory_of_such_a_name_comes_first(session: SparkSession, tmp_path: Path) -> None:
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    for name, ids in (("new", [7, 8]), ("`new#files`", [1])):
        catalog.create_table(f"db.{name}", "id bigint").append(pa.table({"id": ids}))
    assert load(session, f"{tmp_path}/db/new#files").collect() == [(1,)]
    assert load(session, f"{tmp_path}/db/new#data_files").count() == 1


def test_a_name_with_a_dot_has_metadata_tables(session: SparkSession, tmp_path: Path) -> None:
    named = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": str(tmp_path)}
    pytest.importorskip("sqlalchemy")
    catalog = load_catalog("lake", **named)
    catalog.create_namespace("db")
    catalog.create_table("db.`my.table`", "id bigint").append(pa.table({"id": [1]}))
    options = {"catalog": "lake", **{f"catalog.{key}": value for key, value in named.items()}}
    assert load(session, "db.`my.table`", **options).collect() == [(1,)]
    assert load(session, "db.`my.table`.files", **options).count() == 1


def test_a_transaction_shows_its_own_steps_in_spark(front: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, count=2)
    with table.transaction() as tx:
        tx.append(arrow([(50, 0, "new")]))
        tx.update_schema().add_column("z", "int").commit()
        files = tx.inspect.to_df(front, "files", filter="record_count > 0")
        assert files.count() == tx.inspect.files().num_rows == 3
        assert "z" in files.schema["readable_metrics"].dataType.fieldNames()
        shown = tx.inspect.to_df(front, "snapshots", columns="snapshot_id,summary").collect()
        assert [row.summary["total-records"] for row in shown] == ["1", "2", "3"]


def test_columns_and_filters_choose(session: SparkSession, table: Table) -> None:
    options = {
        "columns": "file_path,readable_metrics.id.upper_bound",
        "filter": "content = 0 AND partition.part = 1 AND readable_metrics.id.upper_bound > 5",
    }
    read = load(session, f"{table.location()}#files", **options)
    assert read.columns == ["file_path", "readable_metrics"]
    assert [row.readable_metrics.id.upper_bound for row in read.collect()] == [10]


def test_a_schema_chooses_columns(session: SparkSession, table: Table) -> None:
    schema = "record_count bigint, partition struct<part: int>"
    reader = session.read.format("icebergpy").schema(schema)
    read = reader.load(f"{table.location()}#partitions")
    assert read.columns == ["record_count", "partition"]
    assert sum(row.record_count for row in read.collect()) == 14


def test_conditions_of_spark_hold(session: SparkSession, table: Table) -> None:
    files = load(session, f"{table.location()}#files")
    assert files.where("content = 2").count() == 1
    assert files.groupBy("content").sum("record_count").orderBy("content").collect() == [
        (0, 14),
        (2, 2),
    ]


def test_snapshots_branches_and_tags_are_shown(session: SparkSession, table: Table) -> None:
    path = f"{table.location()}#files"
    first = {"snapshot-id": str(table.snapshots()[0].snapshot_id)}
    for options in (first, {"tag": "first"}, {"versionAsOf": "first"}):
        assert load(session, path, **options).count() == 3
    assert load(session, path, branch="main").count() == load(session, path).count()


def test_a_load_is_of_one_state_for_ever(session: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, count=2)
    read = load(session, f"{table.location()}#files")
    before = read.count()
    table.append(arrow([(50, 0, "new")]))
    assert read.count() == before


def test_a_table_without_snapshots_has_no_rows(session: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, count=0)
    for kind in (
        "files",
        "entries",
        "partitions",
        "manifests",
        "all_manifests",
        "history",
        "snapshots",
    ):
        assert load(session, f"{table.location()}#{kind}").collect() == []


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("", {"metadata-table": "fles"}, "no metadata table 'fles'; did you mean 'files'"),
        ("#snapshots", {"tag": "first"}, "snapshots is not of one snapshot"),
        ("#files", {"branch": "none"}, "no branch 'none'"),
        ("#files", {"columns": "file_pth"}, "no column 'file_pth'; did you mean file_path or"),
        ("#files", {"filter": "colum = 1"}, "colum"),
        ("#files", {"read-change-feed": "true"}, "has no changes to read"),
        ("#files", {"pushdown": "true"}, "leave out 'pushdown'"),
        ("#files", {"metadata-table": "refs"}, "give one of them"),
        ("#fles", {}, "no metadata table 'fles'; did you mean 'files'"),
        ("#none", {}, "#none"),
        ("/none#files", {}, "none"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    session: SparkSession, table: Table, path: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises((PySparkException, IcebergError)) as refused:
        load(session, table.location() + path, **options).collect()
    assert message in str(refused.value)


def test_streams_of_metadata_tables_are_refused(spark: SparkSession, table: Table) -> None:
    read = spark.readStream.format("icebergpy").load(f"{table.location()}#files")
    query = read.writeStream.format("noop")
    assert "a metadata table is no stream" in message_of(
        lambda: query.trigger(availableNow=True).start().processAllAvailable()
    )


def test_a_loaded_table_gives_dataframes(front: SparkSession, table: Table) -> None:
    read = table.inspect.to_df(front, "data_files", columns=["record_count"], tag="first")
    assert sorted(read.collect()) == [(2,), (2,), (2,)]
    with pytest.raises(IcebergError, match="no column 'x'"):
        table.inspect.to_df(front, "data_files", columns="x")
    with pytest.raises(IcebergError, match="no metadata table 'data'"):
        table.inspect.to_df(front, "data")
    with pytest.raises(IcebergError, match="metadata_table = None: expected a name"):
        table.inspect.to_df(front, None)  # type: ignore[arg-type]


def test_a_missing_manifest_is_named(session: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, count=2)
    path, _ = table.inspect.manifests(columns="path")["path"].to_pylist()
    Path(path).unlink()
    with pytest.raises((PySparkException, IcebergError), match=path):
        load(session, f"{table.location()}#files").collect()
    assert load(session, f"{table.location()}#manifests").count() == 2


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) n, sum(record_count) rows FROM {files} WHERE content = 0",
        "SELECT partition.id_bucket_2 AS b FROM {files} WHERE content = 2",
        "SELECT f.content FROM {files} f JOIN {entries} e ON f.file_path = e.data_file.file_path "
        "WHERE e.status < 2 AND f.readable_metrics.id.lower_bound > 10",
        "SELECT name FROM {refs} WHERE name = 'first' OR max_reference_age_in_ms > 1",
    ],
)
def test_queries_read_the_columns_and_rows_that_they_need(
    front: SparkSession, tmp_path: Path, query: str
) -> None:
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    front.conf.set("spark.icebergpy.catalog.lake.warehouse", str(tmp_path))
    register(front)
    catalog.create_namespace("db")
    mode = {"write.upsert.mode": "equality-deletes"}
    table = catalog.create_table("db.t", "id bigint, name string", properties=mode)
    table.append(arrow([(1, 1, "a")]).select(["id", "name"]))
    with table.update_spec() as update:
        update.add_field("bucket(2, id)")
    table.upsert(arrow([(1, 1, "one"), (20, 2, "twenty")]).select(["id", "name"]), ["id"])
    table.manage_snapshots().create_tag("first", table.snapshots()[0].snapshot_id).commit()
    kinds = ("files", "entries", "refs")
    for kind in kinds:
        load(front, f"lake.db.t.{kind}").createOrReplaceTempView(f"whole_{kind}")
    whole = front.sql(query.format(**{kind: f"whole_{kind}" for kind in kinds}))
    df = sql(front, query.format(**{kind: f"lake.db.t.{kind}" for kind in kinds}))
    assert rows(df) == rows(whole) != []
    assert "column_sizes" not in df._jdf.queryExecution().analyzed().toString()


def test_tasks_that_spark_puts_together_read_each_row_once(
    front: SparkSession, table: Table
) -> None:
    read = load(front, f"{table.location()}#entries", **{"split-size": "1"})
    entries = rows(read)
    assert read.rdd.getNumPartitions() > 1
    assert rows(read.coalesce(1)) == entries
    assert rows(read.union(read).coalesce(1)) == sorted(entries + entries, key=str)


def test_spark_takes_many_files_to_be_large(front: SparkSession, tmp_path: Path) -> None:
    def size(table: Table) -> int:
        plan = load(front, f"{table.location()}#files")._jdf.queryExecution().optimizedPlan()
        return int(plan.stats().sizeInBytes())

    table = people(tmp_path, count=6)
    few = size(table)
    for i in range(4):
        table.append(arrow([(100 + i, part, "more") for part in range(6)]))
    assert size(table) > 3 * few
