"""Registers the format with a Spark session, with its catalogs and faster reads and writes."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from icebergds.catalog.config import SessionCatalogs, set_session_catalogs
from icebergds.spark.datasource import IcebergDataSource
from icebergds.spark.frames.readers import READER, take_over_reader
from icebergds.spark.native import NATIVE_SCANS
from icebergds.spark.quick_batches import FAST_WRITES, MAX_BYTES_PER_BATCH, UNBOUNDED
from icebergds.spark.replacement_log import keep_replacement_quiet
from icebergds.spark.session import active_session
from icebergds.spark.session_tables import guard_session_tables
from icebergds.spark.writers.save_writer import WRITER, take_over_writer
from icebergds.spark.writers.table_writer import take_over_table_writer

_CATALOG_PREFIX = "spark.icebergpy.catalog."
# Identifies a session, also where PySpark returns another object for it.
_SESSION_ID = "spark.icebergpy.session-id"

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(
    spark: SparkSession,
    *,
    fast_writes: bool | None = None,
    native_scans: bool = True,
    reader: bool = True,
    writer: bool = True,
) -> None:
    """Registers the format `icebergpy` with a session.

    Spark finds the format of an installed package without this call, unless another module named
    `pyspark_*` fails to import, or icebergds is on the path without being installed.

    The call also takes over catalogs from the session's configuration, as it is now:
    `spark.icebergpy.catalog.<name>.<key>` is the property `<key>` of the catalog `<name>`. It
    applies to reads and writes with `option("catalog", "<name>")` and, in this process, to
    `load_catalog` and `load_table`; their own options and arguments take precedence. Python sees
    the catalogs of all registered sessions; of those that define a catalog differently, the active
    one counts.

    Tables of this format in Spark's own catalog, which could not be read again, are refused from
    then on: CREATE TABLE, `saveAsTable`, `catalog.createTable`.

    Args:
        spark: the session.
        fast_writes: whether Spark limits the batches that it sends to Python by number of rows
            only, which makes writes about 1.7 times as fast. By default in writes of methods of
            `Table` and of `writer`, if no column has binary values, lists or maps. True: in all
            queries of the session; with very wide rows, lower
            `spark.sql.execution.arrow.maxRecordsPerBatch`: a whole batch (10,000 rows by default)
            is held in memory. False: never.
        native_scans: let Spark's own reader read the Parquet files that it reads correctly, where
            it can access them: faster, and all columns are nullable.
        reader: make `spark.read.format("icebergpy")` give a reader of ours, whose DataFrames leave
            out files by the conditions of their `where` and `filter`.
        writer: make `df.write.format("icebergpy")` and `df.writeTo` give writers of ours, which
            shuffle and sort rows as the tables ask for, and create and replace tables.
    """
    guard_session_tables(spark)
    spark.conf.set(NATIVE_SCANS, "true" if native_scans else "false")
    spark.conf.set(READER, "true" if reader else "false")
    spark.conf.set(WRITER, "true" if writer else "false")
    take_over_reader(spark)
    take_over_writer(spark)
    take_over_table_writer(spark)
    spark.conf.set(FAST_WRITES, "false" if fast_writes is False else "true")
    if fast_writes:
        spark.conf.set(MAX_BYTES_PER_BATCH, UNBOUNDED)
    catalogs: dict[str, dict[str, str]] = {}
    for key, value in spark.conf.getAll.items():
        if key.startswith(_CATALOG_PREFIX):
            name, _, rest = key.removeprefix(_CATALOG_PREFIX).partition(".")
            catalogs.setdefault(name, {})[rest] = value
    _add_catalogs(spark, catalogs)
    keep_replacement_quiet(spark)
    if not catalogs:
        spark.dataSource.register(IcebergDataSource)
        return

    # A subclass, so that the properties are pickled with the class to Spark's other processes.
    class SessionDataSource(IcebergDataSource):
        session_catalogs = catalogs

    spark.dataSource.register(SessionDataSource)


@dataclass(frozen=True, slots=True)
class _Registered:
    """A session's catalogs; `application` is None if the session runs in another process."""

    application: str | None
    catalogs: dict[str, dict[str, str]] = field(repr=False)


_registered: dict[str, _Registered] = {}


def _add_catalogs(spark: SparkSession, catalogs: dict[str, dict[str, str]]) -> None:
    """Replaces the session's catalogs; forgets those of sessions that have ended with Spark."""
    application = _application(spark)
    for other, registered in list(_registered.items()):
        if application is not None and registered.application not in (None, application):
            del _registered[other]
    session = _session_id(spark)
    if session is None:
        session = str(uuid.uuid4())
        spark.conf.set(_SESSION_ID, session)
    _registered[session] = _Registered(application, catalogs)
    by_session = {key: registered.catalogs for key, registered in _registered.items()}
    set_session_catalogs(SessionCatalogs(by_session, _active_session_id))


def _application(spark: SparkSession) -> str | None:
    """The id of the application that runs in this process; None for Spark Connect."""
    try:
        return spark.sparkContext.applicationId
    except Exception:
        return None


def _session_id(spark: SparkSession) -> str | None:
    return spark.conf.get(_SESSION_ID, None)


def _active_session_id() -> str | None:
    try:
        return _session_id(active_session())
    except Exception:
        # There is none, or it has ended.
        return None
