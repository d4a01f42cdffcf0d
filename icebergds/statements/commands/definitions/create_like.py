"""CREATE TABLE ... LIKE."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame

from icebergds.errors import InvalidStatementError, UnsupportedFeatureError
from icebergds.expr.names import in_backticks
from icebergds.spark.dataframe_schema import iceberg_schema, optional_columns
from icebergds.spark.patches import own
from icebergds.spec.table_properties import FORMAT_VERSION
from icebergds.statements.commands.definitions.creation import create_once, with_owner
from icebergds.statements.commands.definitions.new_table import TableDefinition, read_like_clause
from icebergds.statements.names.scope import CatalogName, NameScope
from icebergds.statements.names.table_names import read_name
from icebergds.statements.names.tables import find_table
from icebergds.statements.results import nothing
from icebergds.statements.text.cursor import Cursor


def create_like(
    scope: NameScope, name: CatalogName | None, cursor: Cursor, *, if_not_exists: bool
) -> DataFrame | None:
    """Runs what follows LIKE: the new table has the columns and the layout of another one.

    It has neither its rows nor its properties, but for the format version of a table of Iceberg.
    """
    given = read_name(scope, cursor)
    source = scope.table(given)
    if name is None:
        if source is None:
            return None
        raise UnsupportedFeatureError(
            f"CREATE TABLE ... LIKE {source}: a table of Spark's own cannot be created like one of "
            "Iceberg; use CREATE TABLE ... AS SELECT * FROM ... LIMIT 0"
        )
    clauses = TableDefinition()
    while read_like_clause(cursor, clauses):
        pass
    cursor.expect_end()
    create = (
        partial(_create_like_spark, scope, name, clauses, given)
        if source is None
        else partial(_create_like_ours, scope, name, clauses, source)
    )
    create_once(scope, name, create, if_not_exists=if_not_exists)
    return nothing(scope.spark)


def _create_like_ours(
    scope: NameScope, name: CatalogName, clauses: TableDefinition, source: CatalogName
) -> None:
    found = find_table(scope, source)
    if found.metadata_table is not None or found.options:
        raise InvalidStatementError(
            f"CREATE TABLE ... LIKE {source}: expected the name of a table alone, without a "
            "branch, a version or a metadata table"
        )
    table = found.table
    version = {FORMAT_VERSION: str(table.metadata.format_version)}
    scope.catalog(name.catalog).create_table(
        name.parts,
        table.schema(),
        clauses.location,
        table.spec(),
        table.sort_order(),
        with_owner(scope.spark, {**version, **clauses.properties}),
    )


def _create_like_spark(
    scope: NameScope, name: CatalogName, clauses: TableDefinition, source: tuple[str, ...]
) -> None:
    quoted = in_backticks(source)
    partitioned = [c.name for c in own(scope.spark, "catalog").listColumns(quoted) if c.isPartition]
    scope.catalog(name.catalog).create_table(
        name.parts,
        optional_columns(iceberg_schema(scope.spark.table(quoted).schema)),
        clauses.location,
        [in_backticks((column,)) for column in partitioned],
        properties=with_owner(scope.spark, clauses.properties),
    )
