"""Maintenance of tables by Spark tasks."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from icebergds import load_catalog


def test_files_are_rewritten_by_tasks_and_rows_stay(spark: SparkSession, tmp_path: Path) -> None:
    lake = load_catalog("lake", warehouse=str(tmp_path))
    lake.create_namespace("db")
    properties = {"format-version": "3", "write.delete.mode": "merge-on-read"}
    table = lake.create_table(
        "db.t", "id bigint, day int", partition_spec="day", properties=properties
    )
    for start in range(0, 500, 100):
        table.append(spark.range(start, start + 100).selectExpr("id", "cast(id % 2 as int) as day"))
    table.delete("id % 10 = 4")
    columns = ["id", "day", "_row_id", "_last_updated_sequence_number"]
    before = table.scan(columns=columns).to_df(spark).orderBy("id").collect()
    done = table.rewrite_data_files(options={"rewrite-all": "true"})
    assert done.added_data_files_count == 2
    assert done.rewritten_data_files_count > 2
    assert table.scan(columns=columns).to_df(spark).orderBy("id").collect() == before
