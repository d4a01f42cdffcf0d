"""COMMENT ON TABLE and COMMENT ON COLUMN."""

from __future__ import annotations

from pyspark.sql import DataFrame

from icebergds.api.table import Table
from icebergds.errors import NoSuchNamespaceError, NoSuchTableError
from icebergds.statements.commands.definitions.alter_columns import set_column_comment
from icebergds.statements.commands.definitions.change import AlteredTable
from icebergds.statements.names.scope import CatalogName, NameScope
from icebergds.statements.names.table_names import read_name
from icebergds.statements.names.tables import find_table_to_write
from icebergds.statements.results import nothing
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor


def comment_on_table(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `COMMENT ON TABLE table IS 'text'`, which sets the property `comment`."""
    cursor.expect("COMMENT", "ON", "TABLE")
    name = scope.table(read_name(scope, cursor))
    if name is None:
        return None
    text = _text(cursor)
    find_table_to_write(scope, name).table.set_properties({"comment": text})
    return nothing(scope.spark)


def comment_on_column(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `COMMENT ON COLUMN table.column IS 'text'`."""
    cursor.expect("COMMENT", "ON", "COLUMN")
    parts = cursor.name("the name of a column, behind that of its table")
    names = [(scope.table(parts[:at]), parts[at:]) for at in range(len(parts) - 1, 0, -1)]
    ours = [(name, path) for name, path in names if name is not None]
    if not ours:
        return None
    text = _text(cursor)
    table, path = _find(scope, ours)
    set_column_comment(path, text)(AlteredTable(scope.spark, table))
    return nothing(scope.spark)


def _find(
    scope: NameScope, names: list[tuple[CatalogName, tuple[str, ...]]]
) -> tuple[Table, tuple[str, ...]]:
    """The table of the longest name that there is, and what follows it: the path of a column.

    Raises:
        NoSuchTableError: there is no such table.
    """
    missing: NoSuchTableError | NoSuchNamespaceError | None = None
    for name, path in names:
        try:
            return scope.catalog(name.catalog).load_table(name.parts), path
        except (NoSuchTableError, NoSuchNamespaceError) as error:
            missing = missing or error
    assert missing is not None, "there is a name"
    raise missing


def _text(cursor: Cursor) -> str:
    """Reads `IS 'text'`; NULL is the empty text, as in Spark."""
    cursor.expect("IS")
    text = "" if cursor.take("NULL") else cursor.text("the text of the comment in quotes, or NULL")
    cursor.expect_end()
    return text
