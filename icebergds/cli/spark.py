"""Starts the Spark session of the process, for what Spark does."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def quiet_session(remote: str | None = None) -> Iterator[SparkSession]:
    """A registered session of Spark, whose logs are not shown, and which is stopped at the end.

    Args:
        remote: the address of a Spark Connect server; None for a session in this process.
    """
    from pyspark.sql import SparkSession

    from icebergds.statements.registration import register

    # Of versions of pandas, for whoever calls its functions.
    warnings.filterwarnings("ignore", module=r"pyspark\.")
    # It repeats every error of a query, as JSON with the JVM's trace.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    builder = SparkSession.builder.appName("icebergds")
    if remote is not None:
        spark = builder.remote(remote).getOrCreate()
    else:
        with _stderr_of_jvm():
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


@contextmanager
def _stderr_of_jvm() -> Iterator[None]:
    """Gives the JVM that starts in the block a standard error of its own, shown if it fails.

    What goes wrong later, Python raises.
    """
    sys.stderr.flush()
    own = os.dup(2)
    with TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        except BaseException:
            file.seek(0)
            os.write(own, file.read())
            raise
        finally:
            os.dup2(own, 2)
            os.close(own)
