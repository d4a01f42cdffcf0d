"""Starts the Spark session of the process, for what Spark does."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from icebergds.errors import InvalidOptionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECONDS_TO_CONNECT = 10.0


@contextmanager
def quiet_session(remote: str | None = None) -> Iterator[SparkSession]:
    """A registered session of Spark, whose logs are not shown, and which is stopped at the end.

    Args:
        remote: the address of a Spark Connect server; None for that of the environment variable
            `SPARK_REMOTE`, or else for a session in this process.

    Raises:
        InvalidOptionError: there is no such server.
        ImportError: PySpark lacks what Spark Connect needs.
    """
    from pyspark.sql import SparkSession

    from icebergds.spark.errors import QUERY_LOGGERS
    from icebergds.statements.registration import register

    # Of versions of pandas, for whoever calls its functions.
    warnings.filterwarnings("ignore", module=r"pyspark\.")
    for name in QUERY_LOGGERS:
        # They repeat every error of a query, as JSON with the JVM's trace.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    builder = SparkSession.builder.appName("icebergds")
    remote = remote or os.environ.get("SPARK_REMOTE")
    if remote:
        _check_server(remote)
        # PySpark refuses to have both.
        os.environ.pop("MASTER", None)
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


def _check_server(remote: str) -> None:
    """Raises InvalidOptionError if no server answers: the client would try for ten minutes."""
    # What follows may be a token.
    shown = remote.partition(";")[0]
    if not remote.startswith("sc://"):
        raise InvalidOptionError(
            f"--remote {shown!r}: expected the address of a Spark Connect server, such as "
            "sc://localhost:15002"
        )
    from pyspark.sql.connect.client import DefaultChannelBuilder

    with DefaultChannelBuilder(remote).toChannel() as channel:
        if not _is_ready(channel):
            raise InvalidOptionError(
                f"--remote {shown}: no Spark Connect server answers there; check the address, or "
                "start one with sbin/start-connect-server.sh of Spark"
            )


def _is_ready(channel: Any) -> bool:
    """Whether a channel of gRPC can connect."""
    states = SimpleQueue[Any]()
    channel.subscribe(states.put, try_to_connect=True)
    try:
        while (state := states.get(timeout=_SECONDS_TO_CONNECT).name) != "READY":
            if state in ("TRANSIENT_FAILURE", "SHUTDOWN"):
                return False
    except Empty:
        return False
    return True


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
