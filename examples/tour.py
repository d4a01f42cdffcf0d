"""Walks through what icebergds does, and compares the rows after every step with DuckDB.

    make tour                                     # classic Spark, format version 3
    python examples/tour.py --connect             # Spark Connect
    python examples/tour.py --format-version 2    # copy-on-write, without deletion vectors

DuckDB makes every change to a plain table of its own, the model. After each step the Iceberg table
must have the rows and types of the model, as icebergds reads it, and as DuckDB's own reader of
Iceberg tables does. The tour ends with exit code 1 at the first difference.

It needs DuckDB and its extensions: `pip install 'icebergds[test]'`.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, functions as f
from tour_errors import errors
from tour_model import SCHEMA, Tour, start

import icebergds

TABLES = Path(__file__).resolve().parent / "tables"


def appends_and_overwrites(tour: Tour) -> None:
    def save(rides: DataFrame, mode: str, **options: str) -> None:
        write = rides.write.format("icebergpy").mode(mode).option("distribution-mode", "none")
        write.options(**{k.replace("_", "-"): v for k, v in options.items()}).save(tour.location)

    insert = "INSERT INTO rides FROM new"
    tour.table.append(tour.rides(0, 10))
    tour.done("append a DataFrame", insert)
    tour.rides(10, 15)
    tour.table.append(tour.rows("FROM new"))
    tour.done("append Arrow data", insert)
    save(tour.rides(15, 30), "append")
    tour.done("save", insert)
    save(tour.rides(30, 60), "overwrite")
    tour.done("overwrite everything", "DELETE FROM rides", insert)
    day = "DATE '2026-03-02'"
    save(tour.rides(61, 72, step=3), "overwrite", overwrite_mode="dynamic")
    tour.done("overwrite partitions", f"DELETE FROM rides WHERE day = {day}", insert)
    day = "DATE '2026-03-03'"
    save(tour.rides(62, 66, step=3), "overwrite", overwrite_filter=f"day = {day}")
    tour.done("overwrite files", f"DELETE FROM rides WHERE day = {day}", insert)
    condition = "city = 'city-1' AND fare > 18"
    tour.table.overwrite(tour.rides(71, 78, step=2), condition)
    tour.done("overwrite single rows", f"DELETE FROM rides WHERE {condition}", insert)


def sql_views(tour: Tour) -> None:
    view = "CREATE OR REPLACE TEMPORARY VIEW rides USING icebergpy OPTIONS (path '{}'{})"
    tour.spark.sql(view.format(tour.location, ""))
    tour.rides(80, 85).createOrReplaceTempView("new_rides")
    tour.spark.sql("INSERT INTO rides SELECT * FROM new_rides")
    tour.done("INSERT INTO a view", "INSERT INTO rides FROM new")
    tour.spark.sql(view.format(tour.location, ", filter 'city = \"city-1\" OR id < 50'"))
    query = "SELECT city, count(*) AS rides, max(fare) AS highest FROM {} GROUP BY city"
    model = query.format("(FROM rides WHERE city = 'city-1' OR id < 50)")
    tour.same("SELECT from a view", tour.spark.sql(query.format("rides")), model)


def row_changes(tour: Tour) -> None:
    table = tour.table
    condition = "city = 'city-2' AND started < timestamp'2026-03-02 12:00:00Z'"
    deleted = table.delete(condition).deleted
    assert deleted == tour.count(f"rides WHERE {condition}")
    tour.done("delete", f"DELETE FROM rides WHERE {condition}")

    values = {"fare": "fare * 1.175", "stop.name": "upper(stop.name)", "city": "'moved'"}
    updated = table.update(values, f.expr("id % 7 = 3")).updated
    assert updated == tour.count("rides WHERE id % 7 = 3")
    stop = "{'name': upper(stop.name), 'zone': stop.zone}"
    assignments = f"fare = fare * 1.175, stop = {stop}, city = 'moved'"
    tour.done("update", f"UPDATE rides SET {assignments} WHERE id % 7 = 3")

    source = tour.rides(40, 100, "* REPLACE (fare + 1 AS fare), id % 9 = 0 AS gone")
    computed = {"fare": "target.fare * 0.755 + source.fare / 8", "city": "source.city"}
    some = {"id": "source.id", "day": "source.day", "fare": "source.fare / 16"}
    counts = (
        table.merge(source, "target.id = source.id")
        .when_matched_delete("source.gone")
        .when_matched_update(computed, "source.id % 2 = 0")
        .when_matched_update_all()
        .when_not_matched_insert(some, "source.id > 95")
        .when_not_matched_insert_all("NOT source.gone")
        .when_not_matched_by_source_update({"tags": "array('left')"}, "target.id % 2 = 0")
        .when_not_matched_by_source_delete("target.id > 30")
        .execute()
    )
    names = tour.duckdb.sql("FROM rides").columns
    merged = tour.rows(f"""
        MERGE INTO rides AS target USING new AS source ON target.id = source.id
        WHEN MATCHED AND source.gone THEN DELETE
        WHEN MATCHED AND source.id % 2 = 0 THEN
            UPDATE SET fare = target.fare * 0.755 + source.fare * 0.125, city = source.city
        WHEN MATCHED THEN UPDATE SET {", ".join(f"{name} = source.{name}" for name in names)}
        WHEN NOT MATCHED AND source.id > 95 THEN
            INSERT (id, day, fare) VALUES (source.id, source.day, source.fare * 0.0625)
        WHEN NOT MATCHED AND NOT source.gone THEN
            INSERT VALUES ({", ".join(f"source.{name}" for name in names)})
        WHEN NOT MATCHED BY SOURCE AND target.id % 2 = 0 THEN UPDATE SET tags = ['left']
        WHEN NOT MATCHED BY SOURCE AND target.id > 30 THEN DELETE
        RETURNING merge_action
    """)["merge_action"].to_pylist()
    ours = {"INSERT": counts.inserted, "UPDATE": counts.updated, "DELETE": counts.deleted}
    assert ours == {action: merged.count(action) for action in ours}, (ours, merged)
    tour.done("merge")


def changes_by_key(tour: Tour) -> None:
    keys = ["id", "day"]
    insert = "INSERT INTO rides BY NAME FROM new"
    delete = "DELETE FROM rides USING new WHERE rides.id = new.id AND rides.day = new.day"
    tour.table.upsert(tour.rides(60, 95, "* REPLACE ('upserted' AS city)"), keys)
    tour.done("upsert", delete, insert)

    tour.rides(60, 62, "* REPLACE ('Arrow' AS city)")
    tour.table.upsert(tour.rows("FROM new UNION ALL BY NAME (FROM new)"), keys, order_by="started")
    tour.done("upsert Arrow data, the latest row of a key wins", delete, insert)

    changes = "* REPLACE ('changed' AS city), CASE WHEN id % 3 = 0 THEN '-D' ELSE '+U' END AS op"
    tour.table.delta(tour.rides(58, 110, changes), "op", keys)
    inserted = "INSERT INTO rides SELECT * EXCLUDE (op) FROM new WHERE op = '+U'"
    tour.done("apply changes (delta)", delete, inserted)

    tour.table.delete_keys(tour.rides(90, 94).select(*keys), keys)
    tour.done("delete keys", delete)

    save = tour.rides(90, 92).write.format("icebergpy").mode("append")
    save.options(**{"write-operation": "upsert", "upsert-keys": "id, day"}).save(tour.location)
    tour.done("save with write-operation = upsert", delete, insert)


def branches(tour: Tour) -> None:
    new = "FROM rides UNION ALL FROM new"
    main = tour.table.current_snapshot()
    rides = tour.rides(200, 205)
    tour.table.append(rides, branch="experiment", options={"create-branch": "true"})
    tour.same("branch", tour.load(branch="experiment"), new)
    tour.same("versionAsOf a branch", tour.load(versionAsOf="experiment"), new)
    save = rides.write.format("icebergpy").mode("append").option("distribution-mode", "none")
    save.option("wap.branch", "audit").save(tour.location)
    tour.same("wap.branch", tour.load(branch="audit"), new)
    tour.table.append(rides, options={"wap.id": "nightly"})
    tour.table.refresh()
    (staged,) = [s for s in tour.table.snapshots() if s.summary.get("wap.id") == "nightly"]
    tour.same("wap.id", tour.load(snapshot_id=staged.snapshot_id), new)
    assert tour.table.current_snapshot() == main
    print("write to branches and stage a snapshot: main stays as it is")


def time_travel(tour: Tour) -> None:
    for snapshot_id, model in tour.models.items():
        rows = tour.table.scan(snapshot_id=snapshot_id).to_arrow()
        tour.same(f"snapshot {snapshot_id}", rows, f"FROM {model}")
    snapshot_id, model = list(tour.models.items())[4]
    (committed,) = [s for s in tour.table.snapshots() if s.snapshot_id == snapshot_id]
    at = committed.timestamp_ms
    committed_at = datetime.fromtimestamp(at / 1000, UTC).isoformat()
    ways = {"snapshot_id": snapshot_id, "versionAsOf": snapshot_id, "as_of_timestamp": at}
    for name, value in {**ways, "timestampAsOf": committed_at}.items():
        tour.same(name, tour.load(**{name: value}), f"FROM {model}")
    print(f"travel in time to {len(tour.models)} snapshots")

    # A table of Java Iceberg, which has a tag and was moved here.
    moved = {"file:///warehouse/demo": str(TABLES)}
    orders = icebergds.load_table(TABLES / "orders_v2", location_map=moved)
    tagged = orders.refs()["second-quarter"].snapshot_id
    model = (
        f"FROM iceberg_scan('{TABLES}/orders_v2', snapshot_from_id = {tagged}, version = '7', "
        "version_name_format = 'v%s%s.metadata.json', allow_moved_paths = true)"
    )
    scan = orders.scan(tag="second-quarter")
    tour.same("tag", scan.to_df(tour.spark), model)
    print("travel in time to a tag")


def changes_feed(tour: Tour) -> None:
    models = list(tour.models.items())
    commits = [
        f"SELECT '{kind}' AS _change_type, {ordinal}::INTEGER AS _change_ordinal, "
        f"{snapshot_id}::BIGINT AS _commit_snapshot_id, * FROM (FROM {a} EXCEPT ALL FROM {b})"
        for ordinal, ((_, old), (snapshot_id, new)) in enumerate(pairwise(models))
        for kind, a, b in (("DELETE", old, new), ("INSERT", new, old))
    ]
    tour.duckdb.execute(f"CREATE TABLE feed AS {' UNION ALL '.join(commits)}")
    columns = ", ".join(tour.duckdb.sql("FROM feed").columns)
    first, last = models[0][0], models[-1][0]
    feed = tour.table.changes(first).to_df(tour.spark)
    tour.same("change feed", feed.selectExpr(*columns.split(", ")), "FROM feed")

    update = "'UPDATE_' || CASE _change_type WHEN 'INSERT' THEN 'AFTER' ELSE 'BEFORE' END"
    twice = "count(*) OVER (PARTITION BY _change_ordinal, id) = 2"
    updates = f"SELECT * REPLACE (if({twice}, {update}, _change_type) AS _change_type) FROM feed"
    load = tour.load(
        read_change_feed="true",
        start_snapshot_id=first,
        end_snapshot_id=last,
        identifier_columns="id",
    )
    tour.same("changes with updates", load.selectExpr(*columns.split(", ")), updates)

    net = tour.load(read_change_feed="true", net_changes="true", start_snapshot_id=first)
    names = ", ".join(["_change_type", *tour.duckdb.sql("FROM rides").columns])
    differences = (
        f"SELECT 'DELETE' AS _change_type, * FROM (FROM {models[0][1]} EXCEPT ALL FROM rides) "
        f"UNION ALL SELECT 'INSERT', * FROM (FROM rides EXCEPT ALL FROM {models[0][1]})"
    )
    tour.same("net changes", net.selectExpr(*names.split(", ")), differences)
    appended = tour.table.appends(first, end_snapshot_id=models[2][0]).to_df(tour.spark)
    tour.same("appended rows", appended, f"FROM {models[2][1]} EXCEPT ALL FROM {models[0][1]}")
    print(f"read the changes of {len(models)} snapshots: {feed.count()} rows")


def streams(tour: Tour) -> None:
    directory = tour.directory
    rides = tour.rides(110, 170, step=3)
    (directory / "incoming").mkdir()
    tour.duckdb.execute(f"COPY new TO '{directory}/incoming/rides.parquet'")
    source = tour.spark.readStream.schema(rides.schema).parquet(str(directory / "incoming"))
    start(source, tour.location, directory / "checkpoints/in", {"distribution-mode": "none"})
    tour.done("write a stream", "INSERT INTO rides FROM new")

    copy = tour.catalog.create_table("tour.copy", SCHEMA, properties={"format-version": "2"})
    feed = tour.spark.readStream.format("icebergpy").options(
        **{"read-change-feed": "true", "stream-from": "earliest"}
    )
    changes = (
        feed.load(tour.location)
        .withColumn("at", f.expr("_change_ordinal * 2 + if(_change_type = 'INSERT', 1, 0)"))
        .withColumnRenamed("_change_type", "op")
        .drop("_change_ordinal", "_commit_snapshot_id")
        .repartition("id")
    )
    options = {
        "write-operation": "delta",
        "row-kind-column": "op",
        "upsert-keys": "id",
        "upsert-order-by": "at",
    }
    start(changes, copy.location(), directory / "checkpoints/copy", options)
    copy.refresh()
    tour.same("copy by a stream of changes", copy.scan().to_df(tour.spark), "FROM rides")
    tour.duckdb_reads("copy by a stream of changes", copy, "FROM rides")
    print("follow the table with a stream of its changes")


def schema_merging(tour: Tour) -> None:
    columns = "* REPLACE (fare::DECIMAL(12, 2) AS fare), 0.1::DOUBLE AS tip"
    tour.table.append(tour.rides(300, 305, columns), options={"merge-schema": "true"})
    tour.done(
        "merge schemas",
        "ALTER TABLE rides ALTER fare TYPE DECIMAL(12, 2)",
        "ALTER TABLE rides ADD COLUMN tip DOUBLE",
        "INSERT INTO rides BY NAME FROM new",
    )
    tour.rides(305, 307)
    tour.table.append(tour.rows("SELECT id, day, stop FROM new"))
    tour.done("append some columns", "INSERT INTO rides BY NAME SELECT id, day, stop FROM new")


def scans(tour: Tour) -> None:
    condition = "day = date'2026-03-02' AND city = 'changed'"
    scan = tour.table.scan(condition, columns=["id", "stop.name"])
    model = f"rides WHERE {condition}"
    name = "{'name': stop.name} AS stop"
    tour.same("columns and rows", scan.to_df(tour.spark), f"SELECT id, {name} FROM {model}")
    assert scan.count() == scan.count(tour.spark) == tour.count(model)
    assert scan.count() > 0
    scan.explain(tour.spark)
    files = list(scan.plan_files())
    assert len(files) == scan.plan_summary().counts.files.kept
    for task in files:
        print(task.file.record_count, "rows,", len(task.delete_files), "deletes:", task.residual)
    for value in (tour.table, tour.table.schema(), tour.table.snapshots(), scan, tour.table.refs()):
        print(value)
    icebergds.register(tour.spark, native_scans=True, fast_writes=True)
    tour.same("native scan", tour.table.scan().to_df(tour.spark), "FROM rides")
    positions = tour.load(columns="id, _file, _pos, _deleted").where("NOT _deleted")
    assert positions.select("_file", "_pos").distinct().count() == tour.count("rides")


def conversions(tour: Tour) -> None:
    schema = "id int, narrow decimal(5, 2), whole int, large bigint, day date, moment timestamp_ntz"
    table = tour.catalog.create_table("tour.numbers", schema)
    tour.duckdb.execute("""
        CREATE TABLE numbers (id INTEGER, narrow DECIMAL(5, 2), whole INTEGER, large BIGINT,
                              day DATE, moment TIMESTAMP)
    """)

    def done(step: str, change: str) -> None:
        tour.duckdb.execute(change)
        table.refresh()
        tour.same(step, table.scan().to_df(tour.spark), "FROM numbers")
        tour.duckdb_reads(step, table, "FROM numbers")
        print(step)

    tour.duckdb.execute("""
        CREATE TABLE wide AS
        SELECT i AS id, (i * 1.0050000001 - 7)::DECIMAL(20, 10) AS narrow, i * 1.7 - 9.9 AS whole,
               (i * 12345.5)::DECIMAL(20, 1) AS large,
               TIMESTAMP '2026-03-01 23:00:00' + to_hours(i) AS day, DATE '2026-03-01' AS moment
        FROM range(20) AS numbers(i)
    """)
    wide = tour.spark.createDataFrame(tour.rows("FROM wide"))
    table.append(wide)
    insert = """
        INSERT INTO numbers
        SELECT id, narrow, trunc(whole), trunc(large), day::DATE, moment FROM wide
    """
    done("append wider types", insert)
    table.append(tour.rows("FROM wide"))
    done("append wider types as Arrow data", insert)
    table.update({"narrow": "narrow * 1.005", "whole": "large * 0.3", "large": "narrow / 8"})
    assignments = (
        "narrow = narrow * 1.005, whole = trunc(large * 0.3), large = trunc(narrow * 0.125)"
    )
    done("update with decimal arithmetic", f"UPDATE numbers SET {assignments}")
    merge = table.merge(wide, "id")
    merge.when_matched_update({"narrow": "target.narrow - source.narrow * 0.0155"}).execute()
    assignments = "narrow = numbers.narrow - wide.narrow * 0.0155"
    change = f"UPDATE numbers SET {assignments} FROM wide WHERE numbers.id = wide.id"
    done("merge with decimal arithmetic", change)


def maintenance(tour: Tour) -> None:
    table, now = tour.table, datetime.now(UTC)
    print(table.health())
    table.maintain(dry_run=True)
    before = table.current_snapshot()
    print(table.maintain())
    tour.done("maintain")
    everything = {"rewrite-all": "true"}
    table.rewrite_data_files("sort", sort_order="city, fare desc", options=everything)
    tour.done("sort")
    table.rewrite_data_files("zorder", sort_order="city, fare", options=everything)
    tour.done("order by a curve")
    table.rewrite_manifests()
    table.remove_dangling_deletes()
    tour.done("rewrite manifests")
    assert before is not None
    assert table.changes(before.snapshot_id).to_arrow().num_rows == 0
    assert table.expire_snapshots(older_than=now, dry_run=True).expired_snapshot_ids
    print(table.remove_orphan_files(dry_run=True))


STEPS = (
    appends_and_overwrites,
    sql_views,
    row_changes,
    changes_by_key,
    branches,
    changes_feed,
    streams,
    schema_merging,
    scans,
    maintenance,
    time_travel,
    conversions,
    errors,
)


def run(spark: SparkSession, directory: Path, format_version: str) -> None:
    tour = Tour(spark, directory, format_version)
    for step in STEPS:
        step(tour)
    print(f"{tour.comparisons} comparisons")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--connect", action="store_true")
    parser.add_argument("--format-version", choices=["2", "3"], default="3")
    arguments = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: SparkSession.Builder = SparkSession.builder
    spark = (
        (builder.remote("local[2]") if arguments.connect else builder.master("local[2]"))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "OFF")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    with tempfile.TemporaryDirectory() as directory:
        run(spark, Path(directory), arguments.format_version)
    spark.stop()


if __name__ == "__main__":
    main()
