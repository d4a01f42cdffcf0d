"""Drops the rows of a large table that no source row can match, before a merge shuffles the rest.

Spark shuffles both sides of a join that keeps all rows of a small side.
"""

from __future__ import annotations

import logging

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, functions as f

from icebergds.expr.names import in_backticks, split_name
from icebergds.spark.jvm import Private, is_broadcast, with_new_attributes, with_private
from icebergds.spark.row_level.match_filter import Sides, equal_columns
from icebergds.spark.row_level.rows import StatementRows
from icebergds.spark.session import is_connect

_LOG = logging.getLogger(__name__)

# Shuffling fewer rows takes less time than computing the source ahead.
_LEAST_ROWS = 1_000_000


def only_matching(sides: Sides, on: object, rows: StatementRows) -> tuple[DataFrame, DataFrame]:
    """Drops rows of the table that match no source row, if the keys of the source are few.

    Args:
        on: SQL, a column, or names of columns.

    Returns:
        The rows of the table, and the source, which is computed once: if a second computation gave
        other keys, matching rows would seem to be new.
    """
    spark = sides.target.spark
    count = sum(file.entry.data_file.record_count for file in rows.files)
    pairs = equal_columns(sides, on)
    if is_connect(spark) or count < _LEAST_ROWS or not pairs:
        return rows.frame, sides.source
    wanted = list(dict.fromkeys(in_backticks(split_name(pair.of_source)[:1]) for pair in pairs))
    keys = sides.source.select(*wanted)
    if not with_private(Private.MERGES, lambda: is_broadcast(spark, keys), lambda: False):
        return rows.frame, sides.source
    try:
        source = sides.source.localCheckpoint()
    except PySparkException as error:
        _LOG.info("the source of a merge cannot be kept: %s", str(error).partition("\n")[0])
        return rows.frame, sides.source
    are_equal = f.lit(True)
    for pair in pairs:
        of_target = in_backticks((sides.target_alias, *split_name(pair.of_target)))
        of_source = in_backticks((sides.source_alias, *split_name(pair.of_source)))
        are_equal = are_equal & (f.col(of_target) == f.col(of_source))
    # Clauses may use columns of the source, which must be in the plan once.
    fresh = with_private(Private.MERGES, lambda: with_new_attributes(spark, source), lambda: None)
    if fresh is None:
        return rows.frame, source
    keys = fresh.select(*wanted).alias(sides.source_alias)
    return rows.frame.alias(sides.target_alias).join(keys, are_equal, "left_semi"), source
