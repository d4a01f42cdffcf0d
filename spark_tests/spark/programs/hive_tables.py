"""Makes tables of those that Hive's classes read, in a metastore of its own.

python hive_tables.py DIRECTORY
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from icebergds import Catalog, load_catalog, migrate, register, snapshot
from icebergds.errors import InvalidOptionError


def main(directory: str) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.warehouse.dir", f"{directory}/hive")
        .config("spark.hadoop.hive.exec.dynamic.partition.mode", "nonstrict")
        .config(
            "spark.hadoop.javax.jdo.option.ConnectionURL",
            f"jdbc:derby:;databaseName={directory}/metastore;create=true",
        )
        .enableHiveSupport()
        .getOrCreate()
    )
    register(spark)
    print(json.dumps(see(spark, load_catalog("lake", warehouse=f"{directory}/lake"))))


def see(spark: SparkSession, catalog: Catalog) -> dict[str, Any]:
    catalog.create_namespace("db")
    seen: dict[str, Any] = {}
    for name in ("parquet", "orc"):
        spark.sql(
            f"CREATE TABLE of_{name} (id BIGINT, name STRING) PARTITIONED BY (day DATE) "
            f"STORED AS {name}"
        )
        spark.sql(
            f"INSERT INTO of_{name} VALUES (1, 'a', DATE'2026-01-01'), (2, null, "
            "DATE'2026-01-02'), (3, 'c', null)"
        )
        snapshot(spark, f"of_{name}", f"db.trial_{name}", catalog=catalog)
        seen[name] = _rows(spark, catalog, f"db.trial_{name}")
    migrate(spark, "of_parquet", "db.migrated", catalog=catalog)
    seen["migrated"] = _rows(spark, catalog, "db.migrated")
    for name in ("avro", "textfile"):
        spark.sql(f"CREATE TABLE of_{name} (id BIGINT) STORED AS {name}")
        seen[name] = _refusal(lambda name=name: snapshot(spark, f"of_{name}", "t", catalog=catalog))
    spark.conf.set("spark.sql.hive.convertMetastoreOrc", "false")
    seen["unconverted"] = _refusal(lambda: snapshot(spark, "of_orc", "db.t", catalog=catalog))
    return seen


def _rows(spark: SparkSession, catalog: Catalog, name: str) -> list[list[Any]]:
    rows = catalog.load_table(name).scan().to_df(spark).orderBy("id").collect()
    return [[row.id, row.name, row.day and str(row.day)] for row in rows]


def _refusal(use: Callable[[], object]) -> str:
    try:
        use()
    except InvalidOptionError as error:
        return str(error)
    return "not refused"


if __name__ == "__main__":
    main(sys.argv[1])
