"""DROP TABLE."""

from __future__ import annotations

from pyspark.sql import DataFrame

from icebergds.errors import NoSuchNamespaceError, NoSuchTableError
from icebergds.statements.names.scope import NameScope
from icebergds.statements.names.table_names import read_name
from icebergds.statements.results import nothing
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor


def drop_table(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `DROP TABLE [IF EXISTS] table [PURGE]`; only with PURGE are files deleted."""
    cursor.expect("DROP", "TABLE")
    if_exists = cursor.take("IF", "EXISTS")
    name = scope.table(read_name(scope, cursor))
    if name is None:
        return None
    purge = cursor.take("PURGE")
    cursor.expect_end()
    catalog = scope.catalog(name.catalog)
    try:
        if purge:
            catalog.purge_table(name.parts)
        else:
            catalog.drop_table(name.parts)
    except (NoSuchTableError, NoSuchNamespaceError):
        if not if_exists:
            raise
    return nothing(scope.spark)
