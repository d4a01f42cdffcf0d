"""Reads the changes of a table by Spark's options of change data (`changes`)."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from icebergds.api.table import load_table
from icebergds.catalog.naming import table_name_parts
from icebergds.expr.nodes import TRUE
from icebergds.spark.frames.chosen_rows import chosen_rows, query_options
from icebergds.spark.session import acting_in
from icebergds.statements.names.scope import NameScope
from icebergds.statements.names.tables import find_table


def changes(spark: SparkSession, name: str, **options: Any) -> DataFrame:
    """The row-level changes of a table, as `spark.read.changes` of Spark 4.2 gives them.

    It works with every version of Spark, and in sessions that are not registered. The rows have the
    table's columns and `_change_type` (`insert`, `delete`, `update_preimage`, `update_postimage`),
    `_commit_version` and `_commit_timestamp`.

    Args:
        name: of the table, as `spark.read.table` or `load_table` takes it: a name, which may end
            with a branch (`lake.db.events.branch_audit`), or a location.
        options: `startingVersion`, `endingVersion`, `startingTimestamp`, `endingTimestamp`,
            `startingBoundInclusive`, `endingBoundInclusive`, `deduplicationMode`,
            `computeUpdates`, and other read options.

    Raises:
        NoSuchTableError: the table does not exist.
        NoSuchSnapshotError: a version does not exist or has expired.
        InvalidOptionError: an option is unknown or malformed, or options contradict each other.

    >>> changes(spark, "lake.db.events", startingVersion="release")  # doctest: +SKIP
    """
    given = {option: _text(value) for option, value in options.items()}
    with acting_in(spark):
        scope, of_name = NameScope(spark), dict[str, str]()
        named = scope.table(table_name_parts(name) or (name,), may_be_temporary=False)
        if named is None or "/" in name:
            table = load_table(name)
        else:
            found = find_table(scope, named)
            table, of_name = found.table, dict(found.options)
        read = query_options(spark, {**of_name, **given, "changes": "true"})
        return chosen_rows(spark, table._state, read, TRUE, None)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
