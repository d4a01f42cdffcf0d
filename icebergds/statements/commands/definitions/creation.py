"""What all statements do that create a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from icebergds.errors import AlreadyExistsError
from icebergds.statements.names.scope import CatalogName, NameScope
from icebergds.statements.spark_sql import Arguments, spark_sql

_OWNER = "owner"


def create_once(
    scope: NameScope, name: CatalogName, create: Callable[[], object], *, if_not_exists: bool
) -> None:
    """Creates a table.

    Raises:
        AlreadyExistsError: there is one of the name, and the statement does not say IF NOT EXISTS.
    """
    catalog = scope.catalog(name.catalog)
    if if_not_exists and catalog.table_exists(name.parts):
        return
    try:
        create()
    except AlreadyExistsError:
        # Another writer may have created it meanwhile, and a view may have the name.
        if not if_not_exists or not catalog.table_exists(name.parts):
            raise


def with_owner(spark: SparkSession, properties: Mapping[str, str]) -> dict[str, str]:
    """The properties of a new table and its owner: the session's user, as Spark has it."""
    (row,) = spark_sql(spark, "SELECT current_user", Arguments()).collect()
    return {**properties, _OWNER: str(row[0])}
