"""INSERT."""

from __future__ import annotations

from pyspark.sql import DataFrame

from icebergds.statements.names.scope import NameScope
from icebergds.statements.names.tables import find_table_to_write
from icebergds.statements.queries.query import run_query
from icebergds.statements.results import nothing
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor


def insert(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `INSERT INTO table query`."""
    cursor.expect("INSERT")
    cursor.expect("INTO")
    cursor.take("TABLE")
    name = scope.table(cursor.name("the name of a table"))
    if name is None:
        return None
    found = find_table_to_write(scope, name)
    rows = run_query(scope, cursor.rest(), arguments)
    names = [field.name for field in found.table.schema().fields]
    found.table.append(rows.toDF(*names), branch=found.branch)
    return nothing(scope.spark)
