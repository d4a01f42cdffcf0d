"""CALL: procedures in the namespace `system` of a catalog."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

from icebergds import Catalog, Table, load_catalog, load_table, register
from icebergds.errors import (
    IcebergError,
    InvalidDataError,
    InvalidOptionError,
    InvalidStatementError,
    NoSuchSnapshotError,
    NoSuchTableError,
)

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    session = spark.newSession()
    session.conf.set("spark.icebergpy.catalog.lake.warehouse", str(tmp_path))
    session.conf.set("spark.sql.shuffle.partitions", "1")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    register(session, sql=True)
    yield session
    register(session)


@pytest.fixture
def catalog(lake: SparkSession, tmp_path: Path) -> Catalog:
    found = load_catalog("lake", warehouse=str(tmp_path))
    found.create_namespace("db")
    return found


@pytest.fixture
def table(catalog: Catalog) -> Table:
    """Three appends, of the ids 0 to 2."""
    created = catalog.create_table(
        "db.t",
        "id bigint, name string",
        properties={"format-version": "2", "write.delete.mode": "merge-on-read"},
    )
    for each in range(3):
        created.append(_rows(each))
    return created


@pytest.fixture
def database(lake: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A database of Spark's own catalog, with the table `events` of three files."""
    lake.sql(f"CREATE DATABASE calls LOCATION '{tmp_path / 'spark'}'")
    lake.sql(
        f"CREATE TABLE calls.events USING parquet PARTITIONED BY (day) "
        f"LOCATION '{tmp_path / 'events'}' AS "
        "SELECT id, date_add(DATE '2026-01-01', CAST(id AS INT)) AS day FROM range(0, 3, 1, 1)"
    )
    yield "calls"
    lake.sql("DROP DATABASE calls CASCADE")


def _rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{each}" for each in ids]})


def _call(lake: SparkSession, text: str, **arguments: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in lake.sql(f"CALL lake.system.{text}", **arguments).collect()]


def _ids(table: Table, **options: Any) -> list[int]:
    return sorted(table.refresh().scan(**options).to_arrow()["id"].to_pylist())


def _snapshots(table: Table) -> list[int]:
    return [snapshot.snapshot_id for snapshot in table.refresh().metadata.snapshots]


def test_the_current_snapshot_is_moved(lake: SparkSession, table: Table) -> None:
    first, second, third = _snapshots(table)
    assert _call(lake, f"rollback_to_snapshot('db.t', {second})") == [(third, second)]
    assert _ids(table) == [0, 1]
    assert _call(lake, f"set_current_snapshot('db.t', snapshot_id => {third})") == [(second, third)]
    table.refresh().manage_snapshots().create_tag("old", first).commit()
    assert _call(lake, "set_current_snapshot('db.t', ref => 'old')") == [(third, first)]
    assert _ids(table) == [0]
    for both in ("", f", snapshot_id => {first}, ref => 'old'"):
        with pytest.raises(InvalidStatementError, match="expected one of snapshot_id and ref"):
            _call(lake, f"set_current_snapshot('db.t'{both})")


def test_a_table_is_rolled_back_to_a_time(lake: SparkSession, table: Table) -> None:
    _, second, third = table.metadata.snapshots
    at = datetime.fromtimestamp(third.timestamp_ms / 1000, UTC)
    moved = _call(lake, f"rollback_to_timestamp('db.t', TIMESTAMP '{at.replace(tzinfo=None)}')")
    assert moved == [(third.snapshot_id, second.snapshot_id)]
    assert _ids(table) == [0, 1]


def test_ancestors_are_listed_newest_first(lake: SparkSession, table: Table) -> None:
    times = [(each.snapshot_id, each.timestamp_ms) for each in table.metadata.snapshots]
    assert _call(lake, "ancestors_of('db.t')") == times[::-1]
    assert _call(lake, f"ancestors_of('db.t', {times[1][0]})") == times[1::-1]
    with pytest.raises(NoSuchSnapshotError, match="snapshot 5 does not exist"):
        _call(lake, "ancestors_of('db.t', 5)")


def test_staged_snapshots_are_published(lake: SparkSession, table: Table) -> None:
    for each, wap_id in ((7, "a"), (8, "b"), (9, "b")):
        table.append(_rows(each), options={"wap.id": wap_id})
    *_, staged, again, _ = _snapshots(table)
    assert _call(lake, "publish_changes('db.t', wap_id => 'a')") == [(staged, staged)]
    assert _ids(table) == [0, 1, 2, 7]
    with pytest.raises(InvalidStatementError, match="are all staged as 'b'"):
        _call(lake, "publish_changes('db.t', 'b')")
    [(picked, current)] = _call(lake, f"cherrypick_snapshot('db.t', {again})")
    assert picked == again
    assert current == table.refresh().metadata.current_snapshot_id
    assert _ids(table) == [0, 1, 2, 7, 8]


def test_branches_are_moved_forward(lake: SparkSession, table: Table) -> None:
    first, _, third = _snapshots(table)
    assert _call(lake, "fast_forward('db.t', 'new', 'main')") == [("new", None, third)]
    table.refresh().manage_snapshots().create_branch("behind", first).commit()
    assert _call(lake, "fast_forward('db.t', branch => 'behind', to => 'main')") == [
        ("behind", first, third)
    ]
    assert _ids(table, branch="behind") == [0, 1, 2]


def test_snapshots_expire(lake: SparkSession, table: Table) -> None:
    first, second, third = _snapshots(table)
    [counts] = _call(lake, f"expire_snapshots('db.t', snapshot_ids => array({first}, {second}))")
    assert counts == (0, 0, 0, 0, 2, 0)
    assert _snapshots(table) == [third]
    _call(lake, "expire_snapshots('db.t', now(), 1, 4, false, clean_expired_metadata => true)")
    assert _ids(table) == [0, 1, 2]


def test_orphan_files_are_found_and_deleted(
    lake: SparkSession, table: Table, tmp_path: Path
) -> None:
    orphan, listed = (tmp_path / "db" / "t" / "data" / name for name in ("orphan", "listed"))
    orphan.write_text("")
    os.utime(orphan, (0, 0))
    found = _call(lake, "remove_orphan_files(table => 'db.t', dry_run => true)")
    assert [Path(location.removeprefix("file:")) for (location,) in found] == [orphan]
    assert orphan.exists()
    assert _call(lake, "remove_orphan_files(table => 'db.t', stream_results => true)") == found
    assert not orphan.exists()
    for path in (orphan, listed):
        path.write_text("")
        os.utime(path, (0, 0))
    lake.sql(
        f"CREATE TEMPORARY VIEW files AS SELECT '{listed}' AS file_path, "
        "TIMESTAMP '2020-01-01 00:00:00' AS last_modified"
    )
    _call(lake, "remove_orphan_files('db.t', file_list_view => 'files')")
    assert (orphan.exists(), listed.exists()) == (True, False)
    lake.catalog.dropTempView("files")
    assert _ids(table) == [0, 1, 2]


@pytest.mark.parametrize(
    ("where", "rewritten"),
    [
        ("lake.system.bucket(2, id) = 1", 2),
        ("lake.system.days(ts) = DATE ''2026-01-01''", 2),
        ("lake.system.truncate(2, s) = ''ab'' AND lake.system.bucket(2, id) >= 0", 4),
        ("date(ts) > DATE ''2026-01-01''", 2),
        ("lake.system.years(ts) < 56", 0),
    ],
)
def test_files_are_chosen_by_transforms(
    lake: SparkSession, catalog: Catalog, where: str, rewritten: int
) -> None:
    lake.sql(
        "CREATE TABLE lake.db.b (id BIGINT, ts TIMESTAMP, s STRING) "
        "PARTITIONED BY (bucket(2, id), days(ts))"
    )
    for _ in range(2):
        lake.sql(
            "INSERT INTO lake.db.b VALUES (0, TIMESTAMP'2026-01-01 01:00:00Z', 'abc'), "
            "(3, TIMESTAMP'2026-01-02 01:00:00Z', 'abd')"
        )
    given = f"'db.b', where => '{where}', options => map('rewrite-all', 'true')"
    [done] = _call(lake, f"rewrite_data_files({given})")
    assert done[0] == rewritten
    [(count,)] = lake.sql("SELECT count(*) FROM lake.db.b").collect()
    assert count == 4


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ("lake.system.buckets(2, id) = 1", r"buckets does not exist; did you mean bucket"),
        ("lake.system.bucket(id) = 1", r"expected bucket\(numBuckets, value\)"),
        ("lake.system.bucket(2, nope) = 1", "compare bucket of a column .* with constants"),
        ("lake.system.bucket(2, id) = id", "compare bucket of a column .* with constants"),
        ("lake.system.bucket(2, id) = 1 ORDER BY id", "is not a condition of Spark SQL"),
        ("no.system.bucket(2, id) = 1", "no.system.bucket.* is not supported"),
        ("bucket(2, id) = 1", "Iceberg's function is lake.system.bucket"),
    ],
)
def test_conditions_that_cannot_choose_files_are_refused(
    lake: SparkSession, table: Table, where: str, error: str
) -> None:
    with pytest.raises(IcebergError, match=error):
        _call(lake, f"rewrite_data_files('db.t', where => '{where}')")


def test_data_files_and_manifests_are_rewritten(lake: SparkSession, table: Table) -> None:
    assert _call(lake, "rewrite_manifests('db.t', use_caching => true)") == [(3, 1)]
    [done] = _call(
        lake, "rewrite_data_files('db.t', options => map('min-input-files', 2), where => 'id >= 1')"
    )
    assert (done[:2], done[3:]) == ((2, 1), (0, 0))
    [done] = _call(
        lake,
        "rewrite_data_files('db.t', sort_order => 'id DESC', options => map('rewrite-all','true'))",
    )
    assert done[:2] == (2, 1)
    [task] = table.refresh().scan().plan_files()
    assert table.scan().to_arrow()["id"].to_pylist() == [2, 1, 0], task


def test_a_branch_is_rewritten(lake: SparkSession, table: Table) -> None:
    table.manage_snapshots().create_branch("b").commit()
    before = table.refresh().metadata.current_snapshot_id
    rewrite = "options => map('rewrite-all', 'true')"
    assert _call(lake, f"rewrite_data_files('db.t.branch_b', {rewrite})")[0][:2] == (3, 1)
    assert _call(lake, f"rewrite_data_files('db.t', {rewrite}, branch => 'b')")[0][:2] == (1, 1)
    assert table.refresh().metadata.current_snapshot_id == before
    assert len(list(table.scan(branch="b").plan_files())) == 1
    with pytest.raises(InvalidStatementError, match="name it without branch_b"):
        _call(lake, "expire_snapshots('db.t.branch_b')")


def test_deletes_are_rewritten_converted_and_removed(lake: SparkSession, table: Table) -> None:
    table.append(_rows(*range(10, 20)))
    for each in (10, 11):
        table.delete(f"id = {each}")
    [done] = _call(
        lake, "rewrite_position_delete_files('db.t', options => map('rewrite-all', 'true'))"
    )
    assert done[:2] == (2, 1)
    [(upserted, _)] = _call(
        lake,
        "upsert('db.t', 'SELECT id, \"new\" AS name FROM range(12, 14)', array('id'), "
        "options => map('write.upsert.mode', 'equality-deletes'))",
    )
    assert upserted == 2
    assert _call(lake, "convert_equality_deletes('db.t')") == [(1, 0, 1, 2)]
    assert _ids(table) == [0, 1, 2, *range(12, 20)]
    table.refresh().delete("id >= 10")
    assert _call(lake, "remove_dangling_deletes('db.t')")[0][0] >= 0
    assert _ids(table) == [0, 1, 2]


def test_deletes_of_files_that_a_transform_chooses_are_converted(
    lake: SparkSession, catalog: Catalog
) -> None:
    created = catalog.create_table(
        "db.b",
        "id bigint, day date",
        partition_spec="day",
        properties={"format-version": "2", "write.upsert.mode": "equality-deletes"},
    )
    days = pa.array([20_000, 20_001], pa.int32()).cast(pa.date32())
    created.append(pa.table({"id": pa.array([1, 1], pa.int64()), "day": days}))
    for day in days:
        keys = pa.table({"id": pa.array([1], pa.int64()), "day": pa.array([day])})
        created.delete_keys(keys, ["id", "day"])
    where = 'lake.system.days(day) = DATE"2024-10-04"'
    assert _call(lake, f"convert_equality_deletes('db.b', where => '{where}')") == [(1, 1, 1, 1)]
    assert _call(lake, "convert_equality_deletes('db.b')") == [(1, 0, 1, 1)]


def test_statistics_files_are_computed(lake: SparkSession, catalog: Catalog) -> None:
    created = catalog.create_table("db.t", "id bigint, day int", partition_spec="day")
    assert _call(lake, "compute_table_stats('db.t')") == []
    created.append(pa.table({"id": pa.array([1], pa.int64()), "day": pa.array([1], pa.int32())}))
    [(of_table,)] = _call(lake, "compute_table_stats('db.t', columns => array('id'))")
    [(of_partitions,)] = _call(lake, "compute_partition_stats('db.t')")
    created.refresh()
    assert [file.statistics_path for file in created.statistics_files()] == [of_table]
    assert created.partition_statistics_files()[0].statistics_path == of_partitions


def test_tables_of_spark_are_taken_in(lake: SparkSession, catalog: Catalog, database: str) -> None:
    assert _call(lake, f"snapshot('{database}.events', 'db.trial')") == [(3,)]
    catalog.create_namespace(database)
    assert _call(lake, f"migrate('{database}.events', map('owner', 'me'))") == [(3,)]
    migrated = catalog.load_table(f"{database}.events")
    assert _ids(migrated) == _ids(catalog.load_table("db.trial")) == [0, 1, 2]
    assert migrated.properties["owner"] == "me"
    assert lake.catalog.tableExists(f"spark_catalog.{database}.events_BACKUP_")
    with pytest.raises(NoSuchTableError):
        _call(lake, "snapshot('spark_catalog.default.nothing', 'db.other')")
    with pytest.raises(InvalidStatementError, match="ignore_missing_files = true is not supported"):
        _call(lake, "snapshot('a', 'b', ignore_missing_files => true)")


def test_files_are_added(
    lake: SparkSession, catalog: Catalog, database: str, tmp_path: Path
) -> None:
    for name in ("folder", "named"):
        catalog.create_table(f"db.{name}", "id bigint, day date", partition_spec="day")
    source = f"`parquet`.`{tmp_path / 'events'}`"
    only = "partition_filter => map('day', '2026-01-02')"
    assert _call(lake, f"add_files('db.folder', '{source}', {only})") == [(1, 1)]
    assert _ids(catalog.load_table("db.folder")) == [1]
    assert _call(lake, f"add_files('db.named', '{database}.events')") == [(3, 3)]
    assert _ids(catalog.load_table("db.named")) == [0, 1, 2]


def test_files_are_not_added_that_lack_a_column_with_a_default(
    lake: SparkSession, catalog: Catalog, database: str
) -> None:
    catalog.create_table("db.t", "id int, late int")
    lake.sql(f"CREATE TABLE spark_catalog.{database}.old USING parquet AS SELECT 1 AS id")
    lake.sql(f"ALTER TABLE spark_catalog.{database}.old ADD COLUMNS (late int DEFAULT 9)")
    with pytest.raises(InvalidDataError, match="cannot be added: it lacks column 'late'"):
        _call(lake, f"add_files('db.t', 'spark_catalog.{database}.old')")


def test_a_copy_of_a_table_is_prepared(lake: SparkSession, table: Table, tmp_path: Path) -> None:
    call = f"rewrite_table_path('db.t', '{tmp_path / 'db' / 't'}', '/elsewhere/t'"
    [(version, listed, manifests, deletes)] = _call(lake, f"{call})")
    assert (version, manifests, deletes) == (Path(table.metadata_location).name, 3, 0)
    assert "/elsewhere/t/metadata/" in Path(listed.removeprefix("file:")).read_text()
    assert _call(lake, f"{call}, create_file_list => false)")[0][1] == "N/A"


def test_a_table_is_registered_and_its_files_deleted(lake: SparkSession, tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path / 'catalog.db'}"
    catalog = load_catalog("sql", type="sql", uri=uri, warehouse=str(tmp_path / "sql"))
    catalog.create_namespace("db")
    created = catalog.create_table("db.t", "id bigint, name string")
    created.append(_rows(1, 2))
    catalog.drop_table("db.t")
    for key, value in {"type": "sql", "uri": uri, "warehouse": str(tmp_path / "sql")}.items():
        lake.conf.set(f"spark.icebergpy.catalog.sql.{key}", value)
    register(lake, sql=True)
    location = created.metadata_location
    [done] = lake.sql(f"CALL sql.system.register_table('db.u', '{location}')").collect()
    assert tuple(done) == (created.metadata.current_snapshot_id, 2, 1)
    assert _ids(catalog.load_table("db.u")) == [1, 2]
    catalog.drop_table("db.u")
    [counts] = lake.sql(f"CALL sql.system.delete_reachable_files('{location}')").collect()
    assert tuple(counts)[:5] == (1, 0, 0, 1, 1)
    with pytest.raises(NoSuchTableError):
        load_table(location)


def test_changes_are_a_temporary_view(lake: SparkSession, table: Table) -> None:
    first, _, third = _snapshots(table)
    table.append(_rows(3))
    assert _call(lake, "create_changelog_view('db.t')") == [("`t_changes`",)]
    assert lake.sql("SELECT count(*) FROM t_changes WHERE _change_type = 'INSERT'").head() == (4,)
    options = f"options => map('start-snapshot-id', '{first}', 'end-snapshot-id', '{third}')"
    assert _call(lake, f"create_changelog_view('db.t', 'some', {options})") == [("some",)]
    assert lake.sql("SELECT id FROM some ORDER BY id").collect() == [(1,), (2,)]
    table.refresh().overwrite(pa.table({"id": pa.array([3], pa.int64()), "name": ["x"]}), "id = 3")
    _call(lake, "create_changelog_view('db.t', 'some', identifier_columns => array('id'))")
    kinds = lake.sql("SELECT _change_type FROM some WHERE id = 3 ORDER BY 1").collect()
    assert [kind for (kind,) in kinds] == ["INSERT", "UPDATE_AFTER", "UPDATE_BEFORE"]
    for view in ("some", "t_changes"):
        lake.catalog.dropTempView(view)


def test_rows_of_tables_and_views_are_upserted(lake: SparkSession, table: Table) -> None:
    lake.sql("CREATE TEMPORARY VIEW fresh AS SELECT id, 'f' AS name FROM range(2, 4)")
    [(rows, snapshot_id)] = _call(lake, "upsert('db.t', 'fresh', keys => array('id'))")
    assert (rows, snapshot_id) == (2, table.refresh().metadata.current_snapshot_id)
    query = "-- twice\nSELECT 0 AS id, name FROM lake.db.t -- all"
    _call(lake, "upsert('db.t', :query, array('id'), order_by => 'name')", args={"query": query})
    names = {row["id"]: row["name"] for row in table.refresh().scan().to_arrow().to_pylist()}
    assert names == {0: "n1", 1: "n1", 2: "f", 3: "f"}
    for wrong in (
        "DROP TABLE lake.db.t",
        "SELECT 1; SELECT 2",
        "WITH a AS (SELECT 1) DELETE FROM t",
    ):
        with pytest.raises((InvalidStatementError, ParseException)):
            _call(lake, "upsert('db.t', :query, array('id'))", args={"query": wrong})
    lake.catalog.dropTempView("fresh")


def test_maintenance_says_what_it_would_do(lake: SparkSession, table: Table) -> None:
    for each in range(3, 8):
        table.append(_rows(each))
    [health] = lake.sql("CALL lake.system.health('db.t')").collect()
    assert (health.is_healthy, health.data_files_count, health.data_rows_count) == (False, 8, 8)
    assert health.advice[0].startswith("rewrite_data_files: ")
    planned = lake.sql("CALL lake.system.maintain('db.t', dry_run => true)").collect()
    assert tuple(planned[0])[:2] == ("rewrite_data_files", "would be done")
    assert len(_snapshots(table)) == 8
    done = _call(lake, "maintain('db.t', max_seconds => 600, expire_snapshots => false)")
    assert done[0][:2] == ("rewrite_data_files", "done")
    assert _ids(table) == list(range(8))


def test_deleted_rows_go_for_good(lake: SparkSession, table: Table) -> None:
    lake.sql("ALTER TABLE lake.db.t CREATE TAG before")
    lake.sql("DELETE FROM lake.db.t WHERE id = 1")
    ((path, content, count, _, refs, note),) = _call(lake, "find_stored_rows('db.t', 'id = 1')")
    assert (content, count, refs, note) == ("data", 1, ["tag 'before'"], "")
    kept = _call(lake, "maintain('db.t', purge_deleted => true)")[-1]
    assert kept[:2] == ("purge_deleted", "kept")
    assert "remove_tag('before')" in kept[4]
    assert os.path.exists(path)
    lake.sql("ALTER TABLE lake.db.t DROP TAG before")
    purged = _call(lake, "maintain('db.t', purge_deleted => true)")[-1]
    assert purged[:2] == ("purge_deleted", "purged")
    assert _call(lake, "find_stored_rows('db.t', 'id = 1')") == []
    assert not os.path.exists(path)


def test_results_have_the_columns_and_nullability_of_java(lake: SparkSession, table: Table) -> None:
    schema = lake.sql("CALL lake.system.set_current_snapshot('db.t', ref => 'main')").schema
    assert [(field.name, field.dataType.simpleString(), field.nullable) for field in schema] == [
        ("previous_snapshot_id", "bigint", True),
        ("current_snapshot_id", "bigint", False),
    ]


def test_arguments_are_constant_expressions(lake: SparkSession, table: Table) -> None:
    everything = _call(lake, "ancestors_of('db.t')")
    for given in ("concat('db', '.t')", "'db' '.t'", "CAST('db.t' AS string)", "r'`db`.`t`'"):
        assert _call(lake, f"ANCESTORS_OF(TABLE => {given}, snapshot_id => NULL)") == everything
    assert _call(lake, "ancestors_of(?)", args=["lake.db.t"]) == everything
    newest = "(SELECT max_by(snapshot_id, committed_at) FROM lake.db.t.snapshots)"
    assert _call(lake, f"ancestors_of('db.t', {newest})") == everything


def test_arguments_of_wrong_types_are_refused(lake: SparkSession, table: Table) -> None:
    for call, problem in {
        "ancestors_of('db.t', 1.5)": "snapshot_id = 1.5 is of type decimal.2,1., expected BIGINT",
        "ancestors_of(map('a', 1))": "of type map<string,int>, expected STRING",
        "rollback_to_timestamp('db.t', 5)": "is of type int, expected TIMESTAMP",
        "expire_snapshots('db.t', retain_last => true)": "of type boolean, expected INT",
        "expire_snapshots('db.t', older_than => 'then')": r"older_than = 'then' \(TIMESTAMP\): ",
        "expire_snapshots(table = 'db.t')": "table = 'db.t': expected table => and its value",
        "expire_snapshots('db.t', retain_last => 3000000000)": "out of the range of INT",
        "expire_snapshots('db.t', snapshot_ids => array('a'))": "expected ARRAY<BIGINT>",
        "expire_snapshots('db.t', snapshot_ids => array(1, NULL))": "has NULL in it",
        "rewrite_data_files('db.t', options => array('a'))": "expected MAP<STRING, STRING>",
        "ancestors_of(NULL)": "argument table is NULL, but needs a value",
        "ancestors_of('')": "argument table is empty, but needs a value",
        "ancestors_of('db..t')": "expected the name of a table",
        "ancestors_of('spark_catalog.db.t')": "is a table of catalog spark_catalog",
    }.items():
        with pytest.raises(InvalidStatementError, match=problem):
            _call(lake, call)
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        _call(lake, "ancestors_of(some_column)")
    with pytest.raises(InvalidOptionError, match="min-input-filez"):
        _call(lake, "rewrite_data_files('db.t', options => map('min-input-filez', '2'))")


def test_names_resolve_in_the_current_namespace(lake: SparkSession, table: Table) -> None:
    lake.conf.set("spark.icebergpy.default-catalog", "lake")
    everything = _call(lake, "ancestors_of('db.t')")
    assert [tuple(row) for row in lake.sql("CALL System.ancestors_of('db.t')").collect()] == (
        everything
    )
    with pytest.raises(NoSuchTableError):
        lake.sql("CALL system.ancestors_of('t')")
    lake.conf.unset("spark.icebergpy.default-catalog")


def test_times_long_ago_are_times(lake: SparkSession, table: Table) -> None:
    with pytest.raises(NoSuchSnapshotError, match="cannot be rolled back to 1999-01-01T00:00:00Z"):
        _call(lake, "rollback_to_timestamp('db.t', TIMESTAMP '1999-01-01 00:00:00Z')")
    assert _call(lake, "expire_snapshots('db.t', TIMESTAMP '1999-01-01')") == [(0,) * 6]


def test_unknown_procedures_are_refused(lake: SparkSession, table: Table) -> None:
    for name, problem in {
        "lake.system.ancestor_of": "did you mean lake.system.ancestors_of",
        "lake.system.x": "SHOW PROCEDURES IN lake.system lists",
        "lake.ancestors_of": "CALL lake.system.ancestors_of",
        "lak.system.ancestors_of": "no catalog lak is configured.*did you mean lake",
        "lake.db.x": "procedures are in the namespace lake.system",
    }.items():
        with pytest.raises(InvalidStatementError, match=problem):
            lake.sql(f"CALL {name}('db.t')")


def test_other_procedures_and_malformed_calls_are_those_of_spark(lake: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="does not support procedures"):
        lake.sql("CALL spark_catalog.system.ancestors_of('db.t')")
    for malformed in ("CALL lake.system.ancestors_of 'db.t'", "CALL lake.system.ancestors_of('t'"):
        with pytest.raises(ParseException):
            lake.sql(malformed)


def test_procedures_are_listed_and_described(lake: SparkSession) -> None:
    listed = lake.sql("SHOW PROCEDURES IN lake.system")
    assert listed.columns == ["catalog", "namespace", "schema", "procedure_name"]
    assert ("lake", ["system"], "system", "fast_forward") in listed.collect()
    assert lake.sql("SHOW PROCEDURES FROM lake").count() == listed.count() == 27
    assert lake.sql("SHOW PROCEDURES IN lake.db").collect() == []
    described = lake.sql("DESC PROCEDURE lake.system.ancestors_of").collect()
    assert [line for (line,) in described] == [
        "Procedure:   ancestors_of",
        "Description: Lists a snapshot, the current one by default, and its ancestors",
        "Parameters:  IN table       STRING",
        "             IN snapshot_id BIGINT DEFAULT NULL",
    ]
    with pytest.raises(AnalysisException, match="does not support procedures"):
        lake.sql("DESCRIBE PROCEDURE spark_catalog.system.x")
