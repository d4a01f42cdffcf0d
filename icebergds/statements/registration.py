"""Registers the format with a Spark session, and SQL on its catalogs (`register`)."""

from __future__ import annotations

from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from icebergds.spark import registration
from icebergds.spark.patches import apply_patches, undo_patches
from icebergds.spark.registered import Statements


def register(
    spark: SparkSession,
    *,
    fast_writes: bool | None = None,
    native_scans: bool = True,
    reader: bool = True,
    writer: bool = True,
    sql: bool = False,
) -> None:
    """Registers the format `icebergpy` with a session.

    Spark finds the format of an installed package without this call, unless another module named
    `pyspark_*` fails to import, or icebergds is on the path without being installed.

    The call also takes over catalogs from the session's configuration, as it is now and as
    `spark.conf.set` and `unset` change it later: `spark.icebergpy.catalog.<name>.<key>` is the
    property `<key>` of the catalog `<name>`. It
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
        sql: make `spark.sql` and `spark.table` run statements on tables of our catalogs, as
            `icebergds.sql` does, and let `spark.catalog` know these; False undoes it.
    """
    statements: Statements | None = None
    if sql:
        # Sessions without it start sooner.
        from icebergds.statements import take_over

        statements = take_over
    arguments: dict[str, Any] = {
        "fast_writes": fast_writes,
        "native_scans": native_scans,
        "reader": reader,
        "writer": writer,
    }
    again = partial(register, **arguments, sql=sql)
    registration.register(spark, **arguments, statements=statements, again=again)
    apply_patches(spark)


def unregister(spark: SparkSession) -> None:
    """Undoes `register`: the session's settings, statements, readers and writers are as before it.

    What `register` replaces in PySpark's classes is put back when no session of this process is
    registered any more. Does nothing if the session is not registered.

    Args:
        spark: the session.
    """
    if registration.unregister(spark):
        undo_patches()
