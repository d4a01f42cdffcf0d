"""Makes DataFrames of scans: by Spark's own reader where it reads right, by ours elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from icebergds.commit.operations import TableState
from icebergds.operations.read.snapshot_read import native_rule_of, plan_native_files, plan_read
from icebergds.spark.errors import prepare_thread
from icebergds.spark.native import has_native_scans, native_frame


def scan_dataframe(spark: SparkSession, state: TableState, options: Mapping[str, str]) -> DataFrame:
    """A scan as a DataFrame, from a load of its own, pinned to one state of the table.

    Args:
        options: of the load (`scan_options`).

    Raises:
        InvalidFilterError, InvalidOptionError, NoSuchSnapshotError: as `plan_read`, where the
            session has native scans.
    """
    zone = spark.conf.get("spark.sql.session.timeZone")
    options = {**({"time-zone": zone} if zone else {}), **options}
    prepare_thread(spark)
    frame: DataFrame | None = None
    if has_native_scans(spark):
        parsed, snapshot, plan = plan_read(state, options)
        reads_snapshot = parsed.changes is None and not parsed.pushdown
        if reads_snapshot and (rule := native_rule_of(state, plan)) is not None:
            files, has_others = plan_native_files(state, snapshot, plan, rule)
            data_files = [file.entry.data_file for file in files]
            frame = native_frame(spark, plan, data_files, state.metadata.schemas)
            if frame is not None and not has_others:
                return frame
    if frame is not None:
        options["skip-native-files"] = "true"
    ours = spark.read.format("icebergpy").options(**options).load(state.metadata_location)
    return ours if frame is None else frame.union(ours)
