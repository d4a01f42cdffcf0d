"""Maintenance entry points of `Table`; imports Spark lazily."""

"""Prepares maintenance of a table: where its tasks run, and what its arguments mean."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from icebergds.api.outcomes import nothing_committed
from icebergds.api.rewrite_strategy import rewriter_of
from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.operations import TableState
from icebergds.errors import InvalidFilterError
from icebergds.operations.maintenance.rewrite_data_files import (
    RewrittenDataFiles,
    rewrite_data_files,
)
from icebergds.operations.maintenance.rewrite_options import RewriteOptions
from icebergds.operations.maintenance.runner import LocalRunner, Runner
from icebergds.operations.options.arguments import mapping_argument, text_argument
from icebergds.operations.write.options import WriteOptions
from icebergds.spec.sort import SortOrder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rewrite_files(
    table: LoadedTable,
    strategy: str,
    where: str | None,
    sort_order: str | SortOrder | None,
    write: WriteOptions,
    options: Mapping[str, str] | None,
    spark: SparkSession | None,
) -> tuple[RewrittenDataFiles, TableState]:
    """Implements `Table.rewrite_data_files`."""
    where = text_argument("where", where)
    chosen = RewriteOptions.of(mapping_argument("options", options), table.metadata.properties)
    runner, zone = _runner(spark)
    write = replace(write, time_zone=write.time_zone or zone)
    rewriter = rewriter_of(table, strategy, sort_order, chosen, spark)
    with nullcontext() if chosen.partial_progress else nothing_committed(table.name):
        return rewrite_data_files(table, runner, write, chosen, where, rewriter)


def _runner(spark: SparkSession | None) -> tuple[Runner, str | None]:
    """A runner on a Spark session, or on the active one, or else here; and the session's zone."""
    if spark is None and "pyspark" not in sys.modules:
        return LocalRunner(), None
    from icebergds.spark.runner import runner_of
    from icebergds.spark.session import session_zone

    return runner_of(spark), session_zone(spark)


def task_runner(spark: SparkSession | None) -> Runner:
    """Runs tasks on a session, or on the active one; in this process if there is none."""
    if not _may_have_session(spark):
        return LocalRunner()
    from icebergds.spark.runner import runner_of

    return runner_of(spark)


def zone_of(spark: SparkSession | None) -> str | None:
    """The time zone of a session, or of the active one; None if there is none."""
    if not _may_have_session(spark):
        return None
    from icebergds.spark.session import session_zone

    return session_zone(spark)


def sql_argument(name: str, value: object) -> str | None:
    """A condition as Spark SQL, or None.

    Raises:
        InvalidFilterError: it is not text.
    """
    if value is not None and not isinstance(value, str):
        raise InvalidFilterError(
            f"{name} = {value!r} is of type {type(value).__name__}; expected the condition as SQL "
            'text, such as "day = 5"'
        )
    return value


def _may_have_session(spark: SparkSession | None) -> bool:
    """Whether there may be a session: without pyspark there is none, and it is slow to import."""
    return spark is not None or "pyspark" in sys.modules
