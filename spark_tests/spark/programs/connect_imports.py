"""Makes tables of those of Spark's session catalog, through Spark Connect."""

from __future__ import annotations

import os
from typing import Any

from pyspark.sql import SparkSession

from icebergds import load_catalog, migrate, register, snapshot
from icebergds.errors import NoSuchTableError


def see(spark: SparkSession, directory: str) -> dict[str, Any]:
    """The ids and days that tables have which were made of a table of Spark."""
    register(spark)
    catalog = load_catalog("imports", warehouse=os.path.join(directory, "warehouse"))
    catalog.create_namespace("db")
    spark.sql(
        "CREATE TABLE imported USING parquet PARTITIONED BY (day) LOCATION "
        f"'{os.path.join(directory, 'source')}' AS SELECT id, date'2026-01-01' AS day FROM range(3)"
    )
    files = snapshot(spark, "imported", "db.trial", catalog=catalog).imported_files_count
    seen: dict[str, Any] = {"files": files}
    seen["rows"] = [
        [row.id, str(row.day)]
        for row in catalog.load_table("db.trial").scan().to_df(spark).orderBy("id").collect()
    ]
    done = migrate(spark, "imported", "db.events", drop_backup=True, catalog=catalog)
    seen["backup"] = done.backup_table
    seen["is there"] = spark.catalog.tableExists("imported")
    seen["migrated"] = sorted(catalog.load_table("db.events").scan().to_arrow()["id"].to_pylist())
    try:
        snapshot(spark, "imported", "db.again", catalog=catalog)
    except NoSuchTableError as error:
        seen["missing"] = str(error)
    return seen
