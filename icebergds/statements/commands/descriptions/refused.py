"""Rejects Spark statements that do not apply to Iceberg tables, each with its own error."""

from __future__ import annotations

from pyspark.sql import DataFrame

from icebergds.errors import UnsupportedFeatureError
from icebergds.statements.names.scope import NameScope
from icebergds.statements.names.table_names import read_name
from icebergds.statements.queries.references import find_references
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor


def show_partitions(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Rejects `SHOW PARTITIONS name`, as Java does."""
    cursor.expect("SHOW", "PARTITIONS")
    return _refuse(
        scope,
        cursor,
        "SHOW PARTITIONS is of tables of Hive's; query the metadata table {name}.partitions",
    )


def repair_table(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Rejects `[MSCK] REPAIR TABLE name`."""
    cursor.take("MSCK")
    cursor.expect("REPAIR", "TABLE")
    return _refuse(
        scope,
        cursor,
        "REPAIR TABLE is of tables of Hive's: the metadata of {name} lists its "
        "files; import others with the procedure add_files",
    )


def load_data(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Rejects `LOAD DATA ... INTO TABLE name`."""
    cursor.expect("LOAD", "DATA")
    cursor.until("INTO")
    cursor.expect("INTO", "TABLE")
    return _refuse(
        scope,
        cursor,
        "LOAD DATA is of tables of Hive's; import the files into {name} with the "
        "procedure add_files, or insert their rows",
    )


def create_function(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Rejects `CREATE FUNCTION ... RETURN query` if the query reads our tables.

    Spark stores the text, and does not know our catalogs when it calls the function.
    """
    cursor.until("RETURN")
    for reference in find_references(cursor.rest()):
        name = scope.table(reference.name)
        if name is not None:
            raise UnsupportedFeatureError(
                f"CREATE FUNCTION: functions cannot read {name}; create a view, or give its rows "
                "to the function"
            )
    return None


def _refuse(scope: NameScope, cursor: Cursor, message: str) -> DataFrame | None:
    name = scope.table(read_name(scope, cursor))
    if name is None:
        return None
    raise UnsupportedFeatureError(message.format(name=name))
