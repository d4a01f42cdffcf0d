"""Runs SHOW CREATE TABLE, SHOW TBLPROPERTIES and SHOW COLUMNS."""

from __future__ import annotations

from pyspark.sql import DataFrame

from icebergds.api.table import Table
from icebergds.api.view import View
from icebergds.errors import InvalidStatementError, UnsupportedFeatureError
from icebergds.statements.commands.descriptions.ddl import (
    column_line,
    escaped,
    listed,
    partition_terms,
    property_lines,
)
from icebergds.statements.commands.descriptions.details import (
    COMMENT,
    table_properties,
    view_properties,
)
from icebergds.statements.names.scope import CatalogName, NameScope
from icebergds.statements.names.table_names import read_name, shown_name
from icebergds.statements.names.tables import NamedTable
from icebergds.statements.queries.relations import source_schema, table_or_view
from icebergds.statements.results import rows
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor
from icebergds.statements.text.properties import read_property_name


def show_create_table(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `SHOW CREATE TABLE name` for a table or view."""
    cursor.expect("SHOW", "CREATE", "TABLE")
    name = scope.table(read_name(scope, cursor))
    if name is None:
        return None
    if cursor.take("AS", "SERDE"):
        raise UnsupportedFeatureError(f"{name} is an Iceberg table: leave out AS SERDE")
    cursor.expect_end()
    source = table_or_view(scope, name)
    text = (
        _view_text(name, source)
        if isinstance(source, View)
        else _table_text(name, _whole_table(name, source))
    )
    return rows(scope.spark, "createtab_stmt string NOT NULL", [(text,)])


def show_properties(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `SHOW TBLPROPERTIES name [(key)]` for a table or view."""
    cursor.expect("SHOW", "TBLPROPERTIES")
    name = scope.table(read_name(scope, cursor))
    if name is None:
        return None
    key = None
    if cursor.is_at_sign("("):
        within = cursor.group()
        key = read_property_name(within)
        within.expect_end()
    cursor.expect_end()
    source = table_or_view(scope, name)
    if isinstance(source, View):
        what, found = "View", view_properties(source)
    else:
        what, found = "Table", table_properties(_whole_table(name, source).metadata)
    if key is not None:
        found = {key: found.get(key, f"{what} {name} does not have property: {key}")}
    return rows(scope.spark, "key string NOT NULL, value string NOT NULL", found.items())


def show_columns(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `SHOW COLUMNS IN name [IN namespace]` for a table or view."""
    cursor.expect("SHOW", "COLUMNS")
    _expect_in(cursor)
    parts = read_name(scope, cursor)
    if not cursor.is_done:
        _expect_in(cursor)
        namespace = read_name(scope, cursor, "the name of a namespace")
        cursor.expect_end()
        if len(parts) == 1:
            parts = (*namespace, *parts)
        elif parts[-1 - len(namespace) : -1] != namespace:
            raise InvalidStatementError(
                f"SHOW COLUMNS names two namespaces, {'.'.join(parts[:-1])} and "
                f"{'.'.join(namespace)}; name one"
            )
    name = scope.table(parts)
    if name is None:
        return None
    names = source_schema(scope.spark, table_or_view(scope, name)).names
    return rows(scope.spark, "col_name string NOT NULL", [(each,) for each in names])


def _expect_in(cursor: Cursor) -> None:
    if cursor.take_any("FROM", "IN") is None:
        raise cursor.error("FROM or IN")


def _whole_table(name: CatalogName, named: NamedTable) -> Table:
    if named.metadata_table is not None:
        raise InvalidStatementError(
            f"{name} is a metadata table of {named.name}, which has no definition of its own"
        )
    return named.table


def _table_text(name: CatalogName, table: Table) -> str:
    schema, comment = table.schema(), table.properties.get(COMMENT)
    terms = partition_terms(schema, table.spec().fields)
    return "".join(
        (
            f"CREATE TABLE {_shown(name)} {listed(map(column_line, schema.fields))}",
            "USING iceberg\n",
            f"PARTITIONED BY ({', '.join(terms)})\n" if terms else "",
            "" if comment is None else f"COMMENT '{escaped(comment)}'\n",
            f"LOCATION '{escaped(table.location())}'\n",
            f"TBLPROPERTIES {listed(property_lines(table_properties(table.metadata).items()))}",
        )
    )


def _view_text(name: CatalogName, view: View) -> str:
    comment = view.properties.get(COMMENT)
    columns = [
        shown_name([field.name]) + (f" COMMENT '{escaped(field.doc)}'" if field.doc else "")
        for field in view.schema().fields
    ]
    return "".join(
        (
            f"CREATE VIEW {_shown(name)} {listed(columns)}",
            "" if comment is None else f"COMMENT '{escaped(comment)}'\n",
            f"TBLPROPERTIES {listed(property_lines(view_properties(view).items()))}",
            f"AS\n{view.sql_for()}\n",
        )
    )


def _shown(name: CatalogName) -> str:
    return shown_name((name.catalog, *name.parts))
