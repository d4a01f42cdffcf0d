"""Makes the format known to a session where Spark cannot find it by itself."""

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

    Spark finds an installed package without it, unless another module named `pyspark_*` fails to
    import, or icebergds reaches the session in another way than by installation.

    What the session's configuration says of catalogs by now, as
    `spark.icebergpy.catalog.<name>.<key>`, holds for loads and writes with
    `option("catalog", "<name>")`, under their own options, and in this process for `load_catalog`
    and `load_table`, under their arguments.

    Args:
        fast_writes: batches to Python writers are then bounded by their rows alone, which makes
            writes about 1.7 times as fast. With very wide rows, lower
            `spark.sql.execution.arrow.maxRecordsPerBatch`: a batch of its 10,000 rows is in memory.
        native_scans: `table.scan(...).to_df(spark)` then leaves Parquet files without deletes to
            Spark's own reader, which must reach the table's storage by itself. Spark reads Parquet
            by field id in this session from then on, where a schema has ids.
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

    # A class of its own, for it travels to Spark's other processes as it is.
    class SessionDataSource(IcebergDataSource):
        session_catalogs = catalogs

    spark.dataSource.register(SessionDataSource)
