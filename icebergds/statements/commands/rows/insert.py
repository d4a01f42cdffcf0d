"""INSERT."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame

from icebergds.errors import UnsupportedFeatureError
from icebergds.spark.session import session_setting
from icebergds.statements.commands.rows.inserted_columns import (
    InsertedColumns,
    read_column_list,
    with_columns,
)
from icebergds.statements.commands.rows.inserted_defaults import with_defaults
from icebergds.statements.commands.rows.partition_values import read_partition_values
from icebergds.statements.commands.rows.replaced_rows import read_replaced_rows
from icebergds.statements.commands.rows.target import read_target
from icebergds.statements.names.scope import NameScope
from icebergds.statements.queries.common_tables import NONE, CommonTables
from icebergds.statements.queries.functions import replace_functions
from icebergds.statements.results import inserted_rows
from icebergds.statements.spark_sql import Arguments, written
from icebergds.statements.text.cursor import Cursor
from icebergds.statements.user_text import Piece

_MODE = "spark.sql.sources.partitionOverwriteMode"


def insert(
    scope: NameScope,
    cursor: Cursor,
    arguments: Arguments,
    common: CommonTables = NONE,
    source: Cursor | None = None,
) -> DataFrame | None:
    """Runs INSERT INTO and INSERT OVERWRITE in all forms that Spark has for tables of catalogs.

    Args:
        source: the clause `FROM relation`, if the statement begins with it.

    Returns:
        How many rows were inserted: `num_affected_rows` and `num_inserted_rows`.

    Raises:
        InvalidDataError: the columns of the query are not those of the table.

    Other errors are those of `Table.append` and `Table.overwrite`.
    """
    cursor.expect("INSERT")
    evolves = cursor.take("WITH", "SCHEMA", "EVOLUTION")
    is_overwrite = cursor.take("OVERWRITE")
    if is_overwrite and is_at_directory(cursor):
        return None
    if not is_overwrite:
        cursor.expect("INTO")
    cursor.take("TABLE")
    target = read_target(scope, cursor)
    if target is None:
        return None
    partition = read_partition_values(scope, cursor, target)
    if cursor.take("IF", "NOT", "EXISTS"):
        raise UnsupportedFeatureError(
            f"table {target.named.name}: INSERT ... IF NOT EXISTS is not supported"
        )
    evolves = evolves and target.may_evolve
    columns = InsertedColumns(target, partition, evolves=evolves)
    if cursor.take("BY", "NAME"):
        columns = columns.by_name()
    elif (names := read_column_list(cursor)) is not None:
        columns = columns.listed(names)
    condition = read_replaced_rows(cursor, target, partial(replace_functions, scope))
    query = cursor.rest()
    if source is None:
        pieces = with_defaults(query, columns)
    else:
        pieces = [written(source), Piece(" ", 0, is_users=False), written(query)]
    rows = with_columns(common.query(scope, arguments, query.statement, pieces), columns)
    given = target.write_arguments(scope)
    if evolves:
        given["options"]["merge-schema"] = "true"
    if condition is not None:
        counts = target.table.overwrite(rows, condition, **given)
    elif not is_overwrite:
        counts = target.table.append(rows, **given)
    elif _is_dynamic(scope):
        counts = target.table.dynamic_partition_overwrite(rows, **given)
    else:
        counts = target.table.overwrite(rows, partition.condition(), **given)
    return inserted_rows(scope.spark, counts)


def is_at_directory(cursor: Cursor) -> bool:
    """Whether INSERT OVERWRITE writes files, not a table."""
    if cursor.is_at("LOCAL", "DIRECTORY"):
        return True
    then = cursor.peek(1)
    return cursor.is_at("DIRECTORY") and (
        then is not None and (then.is_word("USING") or then.text[0] in "'\"")
    )


def _is_dynamic(scope: NameScope) -> bool:
    mode = session_setting(scope.spark)(_MODE)
    return mode is not None and mode.lower() == "dynamic"
