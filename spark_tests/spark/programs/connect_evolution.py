"""Shapes tables through Spark Connect, and reads their metadata."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession, functions as f, types as t

from icebergds import load_catalog, register


def see(spark: SparkSession, warehouse: str) -> dict[str, Any]:
    """The rows and columns of a table after each change, and what its metadata tables hold."""
    spark.conf.set("spark.icebergpy.catalog.shaped.warehouse", warehouse)
    register(spark)
    catalog = load_catalog("shaped", warehouse=warehouse)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id bigint, part int", partition_spec="part")
    table.append(spark.createDataFrame([(1, 0), (2, 1), (3, 0)], "id bigint, part int"))
    wider = spark.createDataFrame([(9, 1, "nine", 1.5)], "id bigint, part int, s string, d double")
    with table.update_schema() as schema:
        schema.add_column("day", t.DateType()).union_by_name(wider.schema).move_first("part")
    with table.update_spec() as spec:
        spec.add_field("bucket(2, id)")
    seen: dict[str, Any] = {"columns": table.refresh().schema().as_struct().__str__()}

    with table.transaction() as tx:
        tx.append(wider)
        seen["updated"] = tx.update({"s": f.concat("s", f.lit("!"))}, f.col("id") == 9).updated
        seen["deleted"] = tx.delete("id = 1").deleted
        source = wider.select("part", f.expr("id + 1 AS id"), "s", "d", f.lit(None).alias("day"))
        merge = tx.merge(
            source.withColumn("day", f.col("day").cast("date")), "target.id = source.id"
        )
        merge.when_not_matched_insert_all().execute()
        tx.manage_snapshots().create_tag("done").commit()
    seen["commits"] = len(table.refresh().snapshots())
    read = spark.read.format("icebergpy").table("shaped.db.t")
    seen["rows"] = [row.asDict() for row in read.select("id", "part", "s").orderBy("id").collect()]

    files = spark.read.format("icebergpy").table("shaped.db.t.files")
    seen["rows by files"] = files.agg(f.sum("record_count")).first()[0]
    chosen = table.inspect.to_df(spark, "partitions", filter="partition.part = 1")
    seen["partition"] = [row.record_count for row in chosen.collect()]
    by_column = table.scan(f.col("id") > 2, columns=["id"])
    seen["by column"] = sorted(row.id for row in by_column.to_df(spark).collect())
    seen["counted by column"] = by_column.count(spark)
    seen["refs"] = sorted(row.name for row in table.inspect.to_df(spark, "refs").collect())
    return seen
