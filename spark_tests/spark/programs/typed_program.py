"""A program of a user, which `make check` checks, and nightly runs as where it is installed."""

from __future__ import annotations

from datetime import timedelta

from pyspark.sql import DataFrame, SparkSession, functions as f

import icebergds
from icebergds.types import LongType, NestedField, StringType, StructType


def main(spark: SparkSession, updates: DataFrame) -> int:
    icebergds.register(spark, sql=True)
    catalog = icebergds.load_catalog("lake", warehouse="/tmp/lake")
    schema = icebergds.Schema(
        [
            NestedField(1, "id", LongType(), required=True),
            NestedField(2, "name", StringType()),
            NestedField(3, "address", StructType([NestedField(4, "city", StringType())])),
        ],
        identifier_field_ids=(1,),
    )
    table = catalog.create_table("db.events", schema, partition_spec="bucket(4, id)")
    table.append(updates)
    counts = (
        table.merge(updates, "target.id = source.id")
        .when_matched_update({"name": f.lit("x")})
        .when_not_matched_insert_all()
        .execute()
    )
    inserted: int = counts.inserted
    table.update({"name": "upper(name)"}, "id = 1")
    table.delete("id = 2")
    table.upsert(updates, ["id"])
    table.overwrite(updates, overwrite_filter="id = 3")
    with table.update_schema() as update:
        update.add_column("device", "string").rename_column("name", "label")
    with table.transaction() as tx:
        tx.set_properties({"owner": "me"})
        tx.append(updates)
    table.manage_snapshots().create_tag("end-of-year").commit()
    snapshot = table.current_snapshot()
    first: int | None = None if snapshot is None else snapshot.snapshot_id
    loaded = icebergds.load_table("lake.db.events")
    scan = loaded.scan("id > 1", columns=["id"], snapshot_id=first)
    frame: DataFrame = scan.to_df(spark)
    rows: int = scan.to_arrow().num_rows + scan.count() + len(scan.to_pandas())
    changes: DataFrame = loaded.changes(loaded.snapshots()[0].snapshot_id).to_df(spark)
    files: int = loaded.inspect.files().num_rows
    report: icebergds.MaintenanceReport = loaded.maintain(max_seconds=600)
    loaded.expire_snapshots(older_than=timedelta(days=7), retain_last=10)
    try:
        catalog.load_table("db.none")
    except icebergds.NoSuchTableError as error:
        print(error, report)
    result: DataFrame | None = icebergds.sql(spark, "SELECT 1")
    return rows + files + inserted + frame.count() + changes.count() + (result is None)
