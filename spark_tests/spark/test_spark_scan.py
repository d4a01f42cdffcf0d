"""`table.scan(...).to_df(spark)`."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from spark_reads import ids, ids_of_each, message_of, session_conf, spellings
from spark_tables import ALL_PEOPLE, DELETED_PEOPLE, LIVE_PEOPLE, people

from icebergds import Table, load_table
from icebergds.errors import InvalidOptionError
from icebergds.operations.read.options import ReadOptions
from icebergds.operations.read.snapshot_read import plan_read
from icebergds.scan.packing import pack_scan
from icebergds.spark.planned_load import PLANNED_SCAN

pytestmark = pytest.mark.spark

SECRET = "hunter2-of-the-storage"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("scan")
    builder = people(directory / "db" / "people")
    builder.tag("first", 1001)
    builder.branch("dev", 1001)
    return directory


@pytest.fixture(scope="module")
def table(warehouse: Path) -> Table:
    return load_table(str(warehouse / "db" / "people"))


def test_rows_columns_and_snapshot(spark: SparkSession, table: Table) -> None:
    df = table.scan(filter="id < 4", columns=["name", "id"], snapshot_id=1001).to_df(spark)
    assert df.columns == ["name", "id"]
    assert sorted(df.collect()) == [("a", 0), ("b", 1), ("c", 2), ("d", 3)]


def test_spark_knows_that_a_scan_of_no_file_is_empty(spark: SparkSession, table: Table) -> None:
    df = table.scan(filter="id > 100").to_df(spark)
    assert df.schema == table.scan().to_df(spark).schema
    assert "LocalRelation <empty>" in df._jdf.queryExecution().optimizedPlan().toString()


def test_what_a_scan_reads(spark: SparkSession, table: Table) -> None:
    scans = {
        "all": (table.scan(), LIVE_PEOPLE),
        "snapshot": (table.scan(snapshot_id=1001), ALL_PEOPLE),
        "branch": (table.scan(branch="dev"), ALL_PEOPLE),
        "tag": (table.scan(tag="first", filter="id < 2"), [0, 1]),
        "options": (table.scan(options={"versionAsOf": "first"}), ALL_PEOPLE),
        "column text": (table.scan(columns="id, _deleted"), ALL_PEOPLE),
        "none left": (table.scan(filter="id > 100"), []),
    }
    found = ids_of_each({name: scan.to_df(spark) for name, (scan, _) in scans.items()})
    assert found == {name: expected for name, (_, expected) in scans.items()}
    in_arrow = {
        name: sorted(scan.to_arrow().column("id").to_pylist()) for name, (scan, _) in scans.items()
    }
    assert in_arrow == found


def test_every_call_is_a_load_of_its_own(
    spark: SparkSession, table: Table, pushdown_conf: str
) -> None:
    scan = table.scan(options={"pushdown": pushdown_conf})
    one, other = scan.to_df(spark), scan.to_df(spark)
    both = one.where("id = 1").union(other.where("id = 2"))
    assert ids(both) == [1, 2]
    assert ids(scan.to_df(spark)) == LIVE_PEOPLE


@pytest.mark.parametrize(
    ("zone", "hour"), [("UTC", 0), ("America/New_York", -5), ("+05:30", 5), ("GMT+2", 2)]
)
def test_timestamps_are_in_the_time_zone_of_the_session(
    spark: SparkSession, table: Table, zone: str, hour: int
) -> None:
    day, minute = ("1970-01-01", 30) if zone == "+05:30" else ("1970-01-01", 0)
    day = "1969-12-31" if hour < 0 else day
    moment = f"{day} {hour % 24:02}:{minute:02}:04"
    with session_conf(spark, "spark.sql.session.timeZone", zone):
        df = table.scan(filter=f"at < '{moment}'").to_df(spark)
        assert ids(df) == ids(df.where(f"at < '{moment}'")) == [1, 2]


def test_the_time_zone_may_be_given(spark: SparkSession, table: Table) -> None:
    scan = table.scan(filter="at < '1970-01-01 01:00:04'", options={"time-zone": "+01:00"})
    assert ids(scan.to_df(spark)) == [1, 2]
    assert sorted(scan.to_arrow().column("id").to_pylist()) == [1, 2]


def test_a_time_to_travel_to_is_in_the_time_zone_of_the_session(
    spark: SparkSession, table: Table
) -> None:
    with session_conf(spark, "spark.sql.session.timeZone", "Europe/Berlin"):
        scan = table.scan(options={"timestampAsOf": "2023-11-14 23:13:21"})
        assert ids(scan.to_df(spark)) == ALL_PEOPLE


def test_a_scan_stays_with_the_table_as_it_was_loaded(spark: SparkSession, tmp_path: Path) -> None:
    builder = people(tmp_path / "t")
    loaded = load_table(str(builder.location))
    builder.commit(builder.data_file([(77, "x", None)]))
    assert ids(loaded.scan().to_df(spark)) == LIVE_PEOPLE


def test_a_table_of_a_catalog(spark: SparkSession, warehouse: Path) -> None:
    properties = {"catalog.warehouse": str(warehouse)}
    loaded = load_table("db.people", catalog="lake", properties=properties)
    assert ids(loaded.scan(columns=["id"]).to_df(spark)) == LIVE_PEOPLE


def test_a_table_named_relative_to_the_working_directory(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(warehouse)
    assert ids(load_table("db/people").scan(columns=["id"]).to_df(spark)) == LIVE_PEOPLE


def test_a_moved_table(spark: SparkSession, tmp_path: Path) -> None:
    old = people(tmp_path / "old").location
    new = shutil.move(old, tmp_path / "new")
    loaded = load_table(str(new), location_map={str(old): str(new)})
    assert ids(loaded.scan().to_df(spark)) == LIVE_PEOPLE


def test_storage_properties_reach_the_data_source(spark: SparkSession, table: Table) -> None:
    loaded = load_table(table.metadata_location, properties={"s3.endpoint": "http://localhost:1"})
    assert ids(loaded.scan(columns=["id"]).to_df(spark)) == LIVE_PEOPLE


def test_arguments_and_options_that_say_the_same_are_refused(
    spark: SparkSession, table: Table
) -> None:
    scan = table.scan(filter="id = 1", options={"Filter": "id = 2"})
    with pytest.raises(InvalidOptionError, match="filter: given as an argument"):
        scan.to_df(spark)
    with pytest.raises(InvalidOptionError, match="filter: given as an argument"):
        scan.to_arrow()


def test_snapshots_named_twice_are_refused(spark: SparkSession, table: Table) -> None:
    scan = table.scan(snapshot_id=1001, options={"tag": "first"})
    with pytest.raises(InvalidOptionError, match="contradict"):
        scan.to_arrow()
    with pytest.raises(InvalidOptionError, match="contradict"):
        scan.to_df(spark)


def test_no_columns_are_refused(spark: SparkSession, table: Table) -> None:
    with pytest.raises(InvalidOptionError, match="no column is named"):
        table.scan(columns=[]).to_arrow()
    with pytest.raises(InvalidOptionError, match="no column is named"):
        table.scan(columns=[]).to_df(spark)


def test_deleted_rows(spark: SparkSession, table: Table) -> None:
    df = table.scan(columns=["id", "_deleted"], filter="id < 5").to_df(spark)
    assert ids(df.where("_deleted")) == DELETED_PEOPLE


def test_spark_takes_no_scan_for_small(
    spark: SparkSession, table: Table, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would broadcast what it takes for small, however large it is."""
    for scan in (table.scan(), table.changes()):
        scan.to_df(spark).explain("cost")
        assert "sizeInBytes=8.0 EiB" in capsys.readouterr().out


def test_a_planned_scan_takes_no_other_schema(spark: SparkSession, table: Table) -> None:
    snapshot, plan = plan_read(table._state, ReadOptions())
    assert snapshot is not None
    packed = base64.b64encode(pack_scan(plan, [])).decode()
    reader = spark.read.format("icebergpy").option(PLANNED_SCAN, packed)
    assert reader.load().columns == ["id", "name", "at"]
    loaded = reader.schema("name string, id bigint").load()
    assert "load it without a schema" in message_of(loaded.collect)


@pytest.mark.parametrize("text", ["x", "AAAA", "gASVCwAAAAAAAACMB2V2YWyUk5Qu"])
def test_planned_scans_of_others_are_refused(spark: SparkSession, text: str) -> None:
    reader = spark.read.format("icebergpy").option(PLANNED_SCAN, text)
    assert "InvalidOptionError" in message_of(lambda: reader.load().collect())


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(
            lambda table, spark: table.scan(columns=["_deleted"]).to_df(spark), id="planned"
        ),
        pytest.param(lambda table, spark: table.changes().to_df(spark), id="changes"),
        pytest.param(
            lambda table, spark: table.scan(options={"pushdown": "true"}).to_df(spark),
            id="pushdown",
        ),
        pytest.param(lambda table, spark: table.inspect.to_df(spark, "all_files"), id="metadata"),
    ],
)
def test_spark_shows_no_secret_of_a_storage(
    spark: SparkSession, warehouse: Path, frame: Callable[..., DataFrame]
) -> None:
    """In plans that it writes into its event log, such as that of a new temporary view."""
    location = str(warehouse / "db" / "people")
    properties = {"adls.account-key": SECRET, "adls.connection-string": f"AccountKey={SECRET}"}
    df = frame(load_table(location, properties=properties), spark)
    shown = df._jdf.queryExecution().analyzed().collectLeaves().head().verboseStringWithOperatorId()
    assert "-secret=***" in shown
    assert not [text for text in spellings(SECRET.encode()) if text in shown.encode()]
