"""Registers the format with a Spark session, with its catalogs and faster reads and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icebergds.catalog.config import set_session_catalogs
from icebergds.spark.datasource import IcebergDataSource
from icebergds.spark.native import enable_native_scans

_CATALOG_PREFIX = "spark.icebergpy.catalog."
_MAX_BYTES_PER_BATCH = "spark.sql.execution.arrow.maxBytesPerBatch"
_UNBOUNDED = "2147483647"

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession, *, fast_writes: bool = False, native_scans: bool = False) -> None:
    """Registers the format `icebergpy` with a session.

    Spark finds the format of an installed package without this call, unless another module named
    `pyspark_*` fails to import, or icebergds is on the path without being installed.

    The call also takes over catalogs from the session's configuration, as it is now:
    `spark.icebergpy.catalog.<name>.<key>` is the property `<key>` of the catalog `<name>`. It
    applies to reads and writes with `option("catalog", "<name>")` and, in this process, to
    `load_catalog` and `load_table`; their own options and arguments take precedence.

    Args:
        spark: the session.
        fast_writes: make writes about 1.7 times as fast, by limiting the batches that Spark sends
            to Python by number of rows only. With very wide rows, lower
            `spark.sql.execution.arrow.maxRecordsPerBatch`: a whole batch (10,000 rows by default)
            is held in memory.
        native_scans: let Spark's own reader read Parquet files without deletes in
            `table.scan(...).to_df(spark)`. Spark must be able to access the table's storage. From
            then on, Spark reads Parquet by field id in this session, if a schema has ids.
    """
    if native_scans:
        enable_native_scans(spark)
    if fast_writes:
        spark.conf.set(_MAX_BYTES_PER_BATCH, _UNBOUNDED)
    catalogs: dict[str, dict[str, str]] = {}
    for key, value in spark.conf.getAll.items():
        if key.startswith(_CATALOG_PREFIX):
            name, _, rest = key.removeprefix(_CATALOG_PREFIX).partition(".")
            catalogs.setdefault(name, {})[rest] = value
    set_session_catalogs(catalogs)
    if not catalogs:
        spark.dataSource.register(IcebergDataSource)
        return

    # A subclass, so that the properties are pickled with the class to Spark's other processes.
    class SessionDataSource(IcebergDataSource):
        session_catalogs = catalogs

    spark.dataSource.register(SessionDataSource)
