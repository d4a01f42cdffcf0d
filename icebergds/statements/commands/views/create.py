"""Runs CREATE VIEW in a catalog, and CREATE TEMPORARY VIEW over our tables."""

from __future__ import annotations

from pyspark.sql import DataFrame

from icebergds.errors import AlreadyExistsError, InvalidStatementError, UnsupportedFeatureError
from icebergds.statements.commands.views.alter import catalog_of_metrics, refuse_ours_in_spark
from icebergds.statements.commands.views.new_view import analysed_view, read_definition
from icebergds.statements.names.scope import NameScope
from icebergds.statements.names.table_names import read_name
from icebergds.statements.queries.query import our_frame
from icebergds.statements.queries.temporary_views import TemporaryView, keep_temporary_view
from icebergds.statements.queries.view_columns import with_columns
from icebergds.statements.results import nothing
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor


def create_view(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `CREATE [OR REPLACE] VIEW [IF NOT EXISTS] name ... AS query`."""
    cursor.expect("CREATE")
    replaces = cursor.take("OR", "REPLACE")
    cursor.expect("VIEW")
    may_exist = cursor.take("IF", "NOT", "EXISTS")
    if may_exist and replaces:
        raise cursor.error("the name of a view: OR REPLACE does without IF NOT EXISTS, before")
    parts = read_name(scope, cursor, "the name of a view")
    name = scope.table(parts, may_be_temporary=False)
    if name is None:
        refuse_ours_in_spark(scope, parts, cursor.rest())
        return None
    made = analysed_view(scope, name, read_definition(cursor), arguments)
    if replaces:
        made.create_or_replace(scope)
        return nothing(scope.spark)
    try:
        made.create(scope)
    except AlreadyExistsError:
        if not may_exist:
            raise
    return nothing(scope.spark)


_GLOBAL = "global_temp"


def create_temporary_view(
    scope: NameScope, cursor: Cursor, arguments: Arguments
) -> DataFrame | None:
    """Runs `CREATE [OR REPLACE] [GLOBAL] TEMPORARY VIEW name ... AS query`.

    Statements read the current state of our tables through it. To Spark itself, it shows the tables
    at its creation.
    """
    cursor.expect("CREATE")
    replaces = cursor.take("OR", "REPLACE")
    is_global = cursor.take("GLOBAL")
    cursor.next()
    cursor.expect("VIEW")
    if not _has_query(cursor):
        # CREATE TEMPORARY VIEW ... USING.
        return None
    parts = read_name(scope, cursor, "the name of a view")
    if _has_metrics(cursor):
        _refuse_metrics(scope, parts, cursor)
        return None
    definition = read_definition(cursor)
    frame = our_frame(scope, definition.query, arguments)
    if frame is None:
        return None
    if definition.has_clauses:
        raise InvalidStatementError(
            f"view {'.'.join(parts)}: temporary views have no TBLPROPERTIES and no SCHEMA BINDING"
        )
    if is_global and len(parts) == 2 and parts[0].lower() == _GLOBAL:
        parts = parts[1:]
    if len(parts) > 1:
        raise InvalidStatementError(
            f"view {'.'.join(parts)}: the name of a temporary view has no other parts"
        )
    query = frame.schema
    frame = with_columns(frame, parts[0], definition.columns)
    if is_global:
        create = frame.createOrReplaceGlobalTempView if replaces else frame.createGlobalTempView
    else:
        create = frame.createOrReplaceTempView if replaces else frame.createTempView
    create(parts[0])
    view = TemporaryView(
        definition.query, arguments, scope.current, query, tuple(definition.columns)
    )
    keep_temporary_view(scope.spark, (_GLOBAL, *parts) if is_global else parts, view)
    return nothing(scope.spark)


def _has_metrics(cursor: Cursor) -> bool:
    ahead = cursor.part()
    ahead.until("AS", "METRICS")
    return ahead.is_at("METRICS")


def _refuse_metrics(scope: NameScope, view: tuple[str, ...], cursor: Cursor) -> None:
    """Refuses a temporary metric view over our tables; Spark refuses all others."""
    if (catalog := catalog_of_metrics(scope, cursor)) is not None:
        raise UnsupportedFeatureError(
            f"view {'.'.join(view)}: Spark has no temporary metric views, and metric views of its "
            f"own catalog cannot read tables of {catalog}; create a TEMPORARY VIEW with the "
            "measures as columns (AS SELECT dimension, measure ... GROUP BY dimension)"
        )


def _has_query(cursor: Cursor) -> bool:
    ahead = cursor.part()
    ahead.until("AS")
    return not ahead.is_done
