"""Uses tables of catalogs as users do; prints what it saw of each as a line of JSON.

The catalogs are configured by the environment. The format is registered as users do.

    catalog_life.py cluster|connect DIRECTORY CATALOG...
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from typing import Any

from pyspark.sql import SparkSession

import icebergds


def main(kind: str, directory: str, *catalogs: str) -> None:
    spark = _cluster(directory) if kind == "cluster" else _connect()
    icebergds.register(spark)
    seen = {name: live(spark, name, os.path.join(directory, kind, name)) for name in catalogs}
    told = _told_by_ui(spark) if kind == "cluster" else ""
    spark.stop()
    with open(os.path.join(directory, f"{kind}.ui.json"), "w") as file:
        file.write(told)
    print(json.dumps(seen), flush=True)


def _cluster(directory: str) -> SparkSession:
    os.makedirs(os.path.join(directory, "events"))
    return (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.port", "0")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "WARN")
        .config("spark.executor.memory", "512m")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.compress", "false")
        .config("spark.eventLog.rolling.enabled", "false")
        .config("spark.eventLog.dir", f"file:{directory}/events")
        # Executors are started without the driver's environment.
        .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
        .getOrCreate()
    )


def _connect() -> SparkSession:
    return (
        SparkSession.builder.remote("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )


def live(spark: SparkSession, name: str, directory: str) -> dict[str, Any]:
    """What a table looked like after each thing that was done to it."""
    database = f"db_{'connect' if 'connect' in type(spark).__module__ else 'classic'}"
    catalog = icebergds.load_catalog(name)
    catalog.create_namespace(database)
    table_name = f"{name}.{database}.t"

    def rows() -> list[list[Any]]:
        read = spark.read.format("icebergpy").table(table_name)
        return sorted([row.id, row.s] for row in read.select("id", "s").collect())

    created = spark.range(6).selectExpr("id", "concat('v', id) as s").write.format("icebergpy")
    created.partitionBy("bucket(2, id)").saveAsTable(table_name)
    seen: dict[str, Any] = {"created": rows()}
    appended = spark.range(6, 8).selectExpr("id", "'new' as s").write.format("icebergpy")
    appended.mode("append").saveAsTable(table_name)
    seen["appended"] = rows()
    table = icebergds.load_table(table_name)
    table.delete("id < 2")
    table.update({"s": "'changed'"}, "id = 2")
    changes = spark.range(7, 9).selectExpr("id", "'upserted' as s")
    table.upsert(changes, keys=["id"])
    source = spark.range(8, 10).selectExpr("id", "'merged' as s")
    merge = table.merge(source, "id").when_matched_update_all()
    merge.when_not_matched_insert_all().execute()
    seen["changed"] = rows()
    with table.update_schema() as update:
        update.add_column("more", "string")
    seen["columns"] = [field.name for field in icebergds.load_table(table_name).schema().fields]
    seen["streamed"] = _stream(spark, name, database, directory)
    table.refresh().rewrite_data_files()
    seen["compacted"] = rows()
    files = spark.read.format("icebergpy").table(f"{table_name}.files")
    seen["files"] = files.where("content = 0").count() == len(table.refresh().inspect.data_files())
    _show(spark, table)
    seen["tables"] = sorted(".".join(found) for found in catalog.list_tables(database))
    seen["by SQL"] = _by_sql(spark, name, database)
    return seen


def _show(spark: SparkSession, table: icebergds.Table) -> None:
    """Makes views of all kinds of loads, whose options Spark shows then."""
    for number, df in enumerate(
        (
            table.changes().to_df(spark),
            table.scan(columns=["id", "_deleted"]).to_df(spark),
            table.scan(options={"pushdown": "true"}).to_df(spark),
            table.inspect.to_df(spark, "position_deletes"),
        )
    ):
        df.createOrReplaceTempView(f"view_{number}")


def _by_sql(spark: SparkSession, name: str, database: str) -> dict[str, Any]:
    """The rows that statements left in a table, and the tables that were listed after its drop."""
    table = f"{name}.{database}.by_sql"
    for statement in (
        f"CREATE TABLE {table} (id bigint, day date) USING iceberg PARTITIONED BY (months(day))",
        f"INSERT INTO {table} VALUES (1, DATE'2024-01-01'), (2, DATE'2024-02-02'), (3, NULL)",
        f"UPDATE {table} SET day = DATE'2025-03-03' WHERE id = 1",
        f"DELETE FROM {table} WHERE id = 3",
        f"MERGE INTO {table} t USING (SELECT explode(array(2, 4)) AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
        f"ALTER TABLE {table} ADD COLUMN s string",
        f"CALL {name}.system.rewrite_data_files(table => '{database}.by_sql')",
    ):
        icebergds.sql(spark, statement)
    found = icebergds.sql(
        spark,
        f"SELECT id, year(day) AS year, s FROM {table} WHERE day IS NULL OR day > '2025-01-01'",
    )
    rows = sorted(list(row) for row in found.collect())
    icebergds.sql(spark, f"DROP TABLE {table} PURGE")
    left = icebergds.sql(spark, f"SHOW TABLES IN {name}.{database}").collect()
    return {"rows": rows, "left": sorted(row.tableName for row in left)}


def _stream(spark: SparkSession, name: str, database: str, directory: str) -> list[int]:
    """The ids that a stream from one table to another left there."""
    identifier, source = f"{database}.copy", f"{database}.t"
    icebergds.load_catalog(name).create_table(identifier, "id bigint, s string, more string")
    reader = spark.readStream.format("icebergpy").option("catalog", name)
    stream = reader.option("streaming-skip-overwrite-snapshots", "true").option(
        "streaming-skip-delete-snapshots", "true"
    )
    query = (
        stream.load(source)
        .writeStream.format("icebergpy")
        .option("catalog", name)
        .option("checkpointLocation", os.path.join(directory, "checkpoint"))
        .trigger(availableNow=True)
        .start(identifier)
    )
    query.awaitTermination()
    copied = icebergds.load_table(f"{name}.{identifier}").scan().to_arrow()
    return sorted(copied["id"].to_pylist())


def _told_by_ui(spark: SparkSession) -> str:
    """All that Spark's UI tells of the application."""
    url = f"{spark.sparkContext.uiWebUrl}/api/v1/applications/{spark.sparkContext.applicationId}"
    told = []
    for part in ("environment", "jobs", "stages?details=true", "sql?details=true&length=1000"):
        with urllib.request.urlopen(f"{url}/{part}", timeout=60) as answer:
            told.append(answer.read().decode())
    return "\n".join(told)


if __name__ == "__main__":
    main(*sys.argv[1:])
