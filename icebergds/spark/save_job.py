"""Runs the tasks of a planned write as a Spark job, and commits what they wrote."""

from __future__ import annotations

import pickle

from pyspark.sql import DataFrame

from icebergds.commit.snapshot_commit import Committed
from icebergds.operations.write.jobs import PlannedJob, commit_job, discard_unreported
from icebergds.spark.errors import own_errors
from icebergds.spark.writer import ReportingTask


def run_job(df: DataFrame, planned: PlannedJob) -> Committed | None:
    """Writes the rows of a DataFrame, one task per partition, and commits in this process.

    Returns:
        None if there was nothing to commit.

    Raises:
        IcebergError: the rows or the commit were refused, as by `commit_job`.
        PySparkException: the job failed for another reason.
    """
    task = ReportingTask(planned.task, tuple(df.columns))
    # mapInArrow parses dots and backticks in column names.
    plain = df.toDF(*(f"c{at}" for at in range(len(df.columns))))
    try:
        with own_errors():
            reports = plain.mapInArrow(task, "result binary").collect()
    except BaseException:
        discard_unreported(planned)
        raise
    results = [pickle.loads(report.result) for report in reports]
    return commit_job(planned.job, results, planned.table)
