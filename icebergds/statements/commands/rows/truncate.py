"""TRUNCATE TABLE."""

from __future__ import annotations

from pyspark.sql import DataFrame

from icebergds.errors import UnsupportedFeatureError
from icebergds.statements.commands.rows.target import read_target
from icebergds.statements.names.scope import NameScope
from icebergds.statements.results import nothing
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor


def truncate(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `TRUNCATE TABLE table`, which deletes all rows.

    Errors are those of `Table.delete`.
    """
    cursor.expect("TRUNCATE", "TABLE")
    target = read_target(scope, cursor)
    if target is None:
        return None
    if cursor.is_at("PARTITION"):
        raise UnsupportedFeatureError(
            f"table {target.named.name}: TRUNCATE TABLE ... PARTITION is not supported; use DELETE "
            "FROM ... WHERE with the values of the partition"
        )
    cursor.expect_end()
    target.table.delete("true", spark=scope.spark, **target.write_arguments(scope))
    return nothing(scope.spark)
