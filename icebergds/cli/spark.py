"""Starts the Spark session of the process, for what Spark does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def quiet_session(remote: str | None = None) -> Iterator[SparkSession]:
    """A registered session of Spark, which logs errors alone and is stopped at the end.

    Args:
        remote: the address of a Spark Connect server; None for a session in this process.
    """
    from pyspark.sql import SparkSession

    from icebergds.statements.registration import register

    builder = SparkSession.builder.appName("icebergds")
    if remote is not None:
        spark = builder.remote(remote).getOrCreate()
    else:
        # Before the JVM starts, which prints what it does.
        os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--conf spark.log.level=ERROR pyspark-shell")
        spark = (
            builder.master(os.environ.get("MASTER", "local[*]"))
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .getOrCreate()
        )
    try:
        register(spark)
        yield spark
    finally:
        spark.stop()
