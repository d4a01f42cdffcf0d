"""Files that Spark has written become tables: `add_files`, `snapshot` and `migrate`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from effort import IS_NIGHTLY
from pyspark.sql import Row
from spark_reads import run_program, session_conf

import icebergds
from icebergds import (
    AddedFiles,
    Catalog,
    MigratedTable,
    SnapshotTable,
    load_catalog,
    migrate,
    snapshot,
)
from icebergds.errors import (
    AlreadyExistsError,
    InvalidDataError,
    InvalidOptionError,
    NoSuchTableError,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS = """
    SELECT id, CAST(id % 3 AS int) AS kind, named_struct('a', id, 'b', array(id, null)) AS nested,
        IF(id = 4, double('nan'), id / 2) AS number, map('k', id) AS pairs,
        CAST(id AS decimal(9, 2)) AS price,
        date_add(date'1969-12-30', CAST(id DIV 4 * 3 AS int)) AS day,
        IF(id % 2 = 0, 'a b/c=%', null) AS country
    FROM range(8)
"""


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    lake = load_catalog("lake", warehouse=str(tmp_path / "warehouse"))
    lake.create_namespace("db")
    return lake


@pytest.fixture
def database(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A database of Spark, of which everything is dropped afterwards."""
    spark.sql(f"CREATE DATABASE imports LOCATION '{tmp_path / 'spark'}'")
    yield "imports"
    spark.sql("DROP DATABASE imports CASCADE")


def same_rows(found: DataFrame, expected: DataFrame) -> bool:
    def canonical(frame: DataFrame) -> list[str]:
        return sorted(repr(row) for row in frame.select(expected.columns).collect())

    return canonical(found) == canonical(expected)


@pytest.mark.parametrize("source", ["parquet", "orc"])
def test_a_folder_that_spark_wrote_has_its_rows(
    spark: SparkSession, tmp_path: Path, catalog: Catalog, source: str
) -> None:
    frame = spark.sql(_ROWS)
    folder = tmp_path / "folder"
    frame.write.partitionBy("day", "country").format(source).save(str(folder))
    schema = spark.read.format(source).load(str(folder)).schema
    table = catalog.create_table("db.t", schema, partition_spec="day, country")
    assert table.add_files(folder).changed_partition_count == 4
    assert same_rows(table.scan().to_df(spark), frame)
    for condition in ("number > 1", "isnan(number)", "country = 'a b/c=%'", "price = 3", "id < 2"):
        assert same_rows(table.scan(condition).to_df(spark), frame.where(condition)), condition


def test_timestamps_of_orc_files_are_refused_as_instants(
    spark: SparkSession, tmp_path: Path, catalog: Catalog
) -> None:
    frame = spark.sql("SELECT timestamp'2026-01-01 00:00:00' AS ts")
    frame.write.orc(str(tmp_path / "folder"))
    table = catalog.create_table("db.t", frame.schema)
    with pytest.raises(InvalidDataError, match=r"\.orc cannot be added: column 'ts' is stored as"):
        table.add_files(tmp_path / "folder")


@pytest.mark.parametrize("stored", ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
def test_timestamps_of_parquet_files_are_read(
    spark: SparkSession, tmp_path: Path, catalog: Catalog, stored: str
) -> None:
    frame = spark.sql("SELECT timestamp'2026-01-01 12:00:00' AS ts, timestamp_ntz'1960-01-01' AS n")
    spark.conf.set("spark.sql.parquet.outputTimestampType", stored)
    try:
        frame.write.parquet(str(tmp_path / "folder"))
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    table = catalog.create_table("db.t", frame.schema)
    table.add_files(tmp_path / "folder")
    assert same_rows(table.scan().to_df(spark), frame)


def test_many_footers_are_read_by_tasks_of_spark(
    spark: SparkSession, tmp_path: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icebergds.operations.imports import describe_files

    monkeypatch.setattr(describe_files, "_FILES_OF_A_TASK", 3)
    frame = spark.range(20, numPartitions=8).toDF("id")
    frame.write.parquet(str(tmp_path / "folder"))
    table = catalog.create_table("db.t", frame.schema)
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup()
    assert table.add_files(tmp_path / "folder", spark=spark) == AddedFiles(8, 1)
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup()) > len(jobs)
    assert same_rows(table.scan().to_df(spark), frame)


def _source(spark: SparkSession, name: str, using: str, external: Path | None = None) -> DataFrame:
    location = f"LOCATION '{external}'" if external else ""
    spark.sql(
        f"CREATE TABLE {name} USING {using} PARTITIONED BY (day, country) {location} "
        f"COMMENT 'events' TBLPROPERTIES ('owner-team' = 'x') AS {_ROWS}"
    )
    return spark.sql(_ROWS)


@pytest.mark.parametrize("using", ["parquet", "orc"])
def test_a_snapshot_has_the_rows_and_its_own_location(
    spark: SparkSession, tmp_path: Path, catalog: Catalog, database: str, using: str
) -> None:
    frame = _source(spark, "imports.events", using)
    done = snapshot(spark, "imports.events", "db.trial", properties={"a": "b"}, catalog=catalog)
    table = catalog.load_table("db.trial")
    assert done == SnapshotTable(len(spark.table("imports.events").inputFiles()))
    assert same_rows(table.scan().to_df(spark), frame)
    assert table.location() == str(tmp_path / "warehouse" / "db" / "trial")
    wanted = {"snapshot": "true", "gc.enabled": "false", "owner-team": "x", "a": "b"}
    assert wanted.items() <= table.properties.items()
    assert [str(part.transform) for part in table.spec().fields] == ["identity", "identity"]
    table.delete("id > 2")
    table.append(frame.where("id = 5"))
    assert same_rows(table.refresh().scan().to_df(spark), frame.where("id <= 2 or id = 5"))
    assert same_rows(spark.table("imports.events"), frame)


def test_a_snapshot_has_the_partitions_that_spark_knows(
    spark: SparkSession, tmp_path: Path, catalog: Catalog, database: str
) -> None:
    frame = _source(spark, "imports.events", "parquet", tmp_path / "outside dir")
    spark.sql("ALTER TABLE imports.events DROP PARTITION (day = '1970-01-02', country = null)")
    snapshot(spark, "imports.events", tmp_path / "trial")
    found = icebergds.load_table(tmp_path / "trial").scan().to_df(spark)
    assert found.count() == 6
    assert same_rows(found, frame.where("day <> '1970-01-02' or country is not null"))


def test_a_snapshot_of_an_empty_table_is_empty(
    spark: SparkSession, catalog: Catalog, database: str
) -> None:
    spark.sql("CREATE TABLE imports.events (id bigint) USING parquet")
    assert snapshot(spark, "imports.events", "db.t", catalog=catalog) == SnapshotTable(0)
    assert catalog.load_table("db.t").scan().to_df(spark).collect() == []


@pytest.mark.parametrize(
    ("sql", "error", "why"),
    [
        ("SELECT 1", NoSuchTableError, "no table imports.x"),
        ("CREATE VIEW imports.x AS SELECT 1", InvalidOptionError, "a view"),
        ("CREATE TABLE imports.x (a int) USING csv", InvalidOptionError, "in the format csv"),
        (
            "CREATE TABLE imports.x (a int) USING parquet CLUSTERED BY (a) INTO 2 BUCKETS",
            InvalidOptionError,
            "is bucketed by a",
        ),
    ],
)
def test_other_sources_are_refused(
    spark: SparkSession, catalog: Catalog, database: str, sql: str, error: Any, why: str
) -> None:
    spark.sql(sql)
    with pytest.raises(error, match=why):
        snapshot(spark, "imports.x", "db.t", catalog=catalog)


def test_files_are_refused_that_lack_a_column_with_a_default(
    spark: SparkSession, catalog: Catalog, database: str
) -> None:
    spark.sql("CREATE TABLE imports.old (id int, given int DEFAULT 4) USING parquet")
    spark.sql("INSERT INTO imports.old VALUES (1, DEFAULT)")
    spark.sql("ALTER TABLE imports.old ADD COLUMNS (plain int, empty int DEFAULT NULL)")
    assert snapshot(spark, "imports.old", "db.t", catalog=catalog).imported_files_count == 1
    spark.sql("ALTER TABLE imports.old ADD COLUMNS (late int DEFAULT 9)")
    with pytest.raises(InvalidDataError, match="cannot be added: it lacks column 'late'"):
        snapshot(spark, "imports.old", "db.u", catalog=catalog)
    assert not catalog.table_exists("db.u")


def test_old_dates_in_another_calendar_are_refused(
    spark: SparkSession, catalog: Catalog, database: str
) -> None:
    with session_conf(spark, "spark.sql.parquet.datetimeRebaseModeInWrite", "LEGACY"):
        spark.sql("CREATE TABLE imports.new USING parquet AS SELECT date'1600-01-01' AS day")
        spark.sql("CREATE TABLE imports.old USING parquet AS SELECT date'1500-01-01' AS day")
    assert snapshot(spark, "imports.new", "db.t", catalog=catalog).imported_files_count == 1
    with pytest.raises(InvalidDataError, match="column 'day' in the Julian calendar"):
        snapshot(spark, "imports.old", "db.u", catalog=catalog)


def test_a_partition_column_may_have_any_name(
    spark: SparkSession, catalog: Catalog, database: str
) -> None:
    spark.sql("CREATE TABLE imports.old (id int, `P p` int) USING parquet PARTITIONED BY (`P p`)")
    spark.sql("INSERT INTO imports.old VALUES (1, 2)")
    snapshot(spark, "imports.old", "db.t", catalog=catalog)
    assert catalog.load_table("db.t").scan().to_arrow().to_pylist() == [{"id": 1, "P p": 2}]


def test_a_snapshot_does_not_mix_files(
    spark: SparkSession, tmp_path: Path, catalog: Catalog, database: str
) -> None:
    _source(spark, "imports.events", "parquet", tmp_path / "outside dir")
    with pytest.raises(InvalidOptionError, match=r"overlaps with .*/outside dir, that of"):
        snapshot(spark, "imports.events", tmp_path / "outside dir" / "trial")


def test_a_migrated_table_has_the_rows_and_leaves_a_backup(
    spark: SparkSession, catalog: Catalog, database: str
) -> None:
    frame = _source(spark, "imports.events", "parquet")
    done = migrate(spark, "imports.events", "db.events", catalog=catalog)
    table = catalog.load_table("db.events")
    assert done == MigratedTable(len(table.inspect.files()), "imports.events_BACKUP_")
    assert same_rows(table.scan().to_df(spark), frame)
    assert spark.catalog.tableExists("imports.events_BACKUP_")
    assert not spark.catalog.tableExists("imports.events")
    assert table.properties["migrated"] == "true"


@pytest.mark.usefixtures("compiled")
def test_a_backup_is_dropped_without_its_files(
    spark: SparkSession, tmp_path: Path, catalog: Catalog, database: str
) -> None:
    frame = _source(spark, "imports.events", "orc", tmp_path / "outside dir")
    done = migrate(spark, "imports.events", "db.events", drop_backup=True, catalog=catalog)
    assert done.backup_table is None
    # Views of other tests belong to every database.
    assert [t for t in spark.catalog.listTables("imports") if not t.isTemporary] == []
    assert same_rows(catalog.load_table("db.events").scan().to_df(spark), frame)


def test_a_managed_table_is_not_dropped(
    spark: SparkSession, catalog: Catalog, database: str
) -> None:
    frame = _source(spark, "imports.events", "parquet")
    with pytest.raises(InvalidOptionError, match=r"imports\.events is managed"):
        migrate(spark, "imports.events", "db.events", drop_backup=True, catalog=catalog)
    assert same_rows(spark.table("imports.events"), frame)


def test_a_table_that_cannot_be_migrated_keeps_its_name(
    spark: SparkSession, tmp_path: Path, catalog: Catalog, database: str
) -> None:
    _source(spark, "imports.events", "parquet", tmp_path / "outside dir")
    folder = "outside dir/day=1969-12-30/country=__HIVE_DEFAULT_PARTITION__"
    spark.sql("SELECT 'x' AS id").write.mode("append").parquet(str(tmp_path / folder))
    with pytest.raises(InvalidDataError, match=r"cannot be added: column 'id' is stored as string"):
        migrate(spark, "imports.events", "db.events", catalog=catalog)
    assert not catalog.table_exists("db.events")
    assert not spark.catalog.tableExists("imports.events_BACKUP_")
    assert len(spark.table("imports.events").inputFiles()) == 5


def test_a_table_whose_files_do_not_fit_is_not_renamed(
    spark: SparkSession, catalog: Catalog, database: str
) -> None:
    """Spark's catalog in memory loses partitions with such names by a rename."""
    spark.sql(
        "CREATE TABLE imports.t USING orc PARTITIONED BY (k) "
        "AS SELECT timestamp_seconds(id) AS t, concat('a/', id) AS k FROM range(3)"
    )
    with pytest.raises(InvalidDataError, match=r"/t/k=.* cannot be added"):
        migrate(spark, "imports.t", "db.t", catalog=catalog)
    assert spark.table("imports.t").count() == 3


def test_nothing_is_renamed_if_the_new_table_exists(
    spark: SparkSession, catalog: Catalog, database: str
) -> None:
    frame = _source(spark, "imports.events", "parquet")
    catalog.create_table("db.events", "id bigint")
    with pytest.raises(AlreadyExistsError, match="choose another name"):
        migrate(spark, "imports.events", "db.events", catalog=catalog)
    assert same_rows(spark.table("imports.events"), frame)


def test_a_backup_takes_no_name_that_is_taken(
    spark: SparkSession, catalog: Catalog, database: str
) -> None:
    for name in ("t", "other"):
        spark.sql(f"CREATE TABLE imports.{name} USING parquet AS SELECT 1 AS id")
    with pytest.raises(AlreadyExistsError, match="choose another backup_table_name"):
        migrate(spark, "imports.t", "db.t", backup_table_name="other", catalog=catalog)
    assert not catalog.table_exists("db.t")


def test_a_backup_is_named_as_asked(spark: SparkSession, catalog: Catalog, database: str) -> None:
    spark.sql("CREATE TABLE imports.`select` USING parquet AS SELECT 1 AS id")
    migrate(spark, "imports.`select`", "db.t", backup_table_name="from", catalog=catalog)
    assert spark.table("imports.`from`").collect() == [Row(id=1)]
    assert catalog.load_table("db.t").scan().to_df(spark).collect() == [Row(id=1)]


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_rows_are_of_the_partitions_of_files_whatever_folders_they_are_in(
    spark: SparkSession, catalog: Catalog, database: str, tmp_path: Path, kind: str
) -> None:
    spark.sql(
        f"CREATE TABLE {database}.t (id BIGINT, p STRING) USING {kind} PARTITIONED BY (p) "
        f"LOCATION '{tmp_path / 'external'}'"
    )
    spark.sql(f"INSERT INTO {database}.t VALUES (1, 'a b/c=%'), (2, 'y'), (3, null)")
    spark.sql(f"ALTER TABLE {database}.t PARTITION (p = 'y') RENAME TO PARTITION (p = 'z')")
    for place, value in (("elsewhere", "v"), ("p=other", "w")):
        location = tmp_path / "more" / place
        spark.sql(f"ALTER TABLE {database}.t ADD PARTITION (p = '{value}') LOCATION '{location}'")
        spark.sql(f"INSERT INTO {database}.t PARTITION (p = '{value}') VALUES (4)")
    expected = spark.table(f"{database}.t")
    assert len({row.p for row in expected.collect()}) == 5
    snapshot(spark, f"{database}.t", "db.trial", catalog=catalog)
    assert same_rows(catalog.load_table("db.trial").scan().to_df(spark), expected)
    before = expected.collect()
    migrate(spark, f"{database}.t", "db.t", catalog=catalog)
    moved = catalog.load_table("db.t").scan().to_df(spark).collect()
    assert sorted(map(repr, moved)) == sorted(map(repr, before))


@pytest.mark.skipif(not IS_NIGHTLY, reason="a metastore of Hive is started in the nightly profile")
def test_tables_of_hive_are_imported_by_the_formats_of_their_files(tmp_path: Path) -> None:
    seen = run_program("hive_tables.py", str(tmp_path), directory=tmp_path)
    expected = [[1, "a", "2026-01-01"], [2, None, "2026-01-02"], [3, "c", None]]
    assert seen["parquet"] == seen["orc"] == seen["migrated"] == expected
    assert "whose files Spark does not list; create a table and add the folder" in seen["avro"]
    assert "in the format org.apache.hadoop.mapred.TextInputFormat" in seen["textfile"]
    assert "set spark.sql.hive.convertMetastoreOrc = true in the session" in seen["unconverted"]
