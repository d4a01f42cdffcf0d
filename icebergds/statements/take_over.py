"""Lets a session's own `spark.sql`, `spark.table` and `spark.catalog` know our catalogs."""

from __future__ import annotations

from functools import wraps
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from icebergds.catalog.naming import table_name_parts
from icebergds.errors import NoSuchTableError
from icebergds.expr.names import in_backticks
from icebergds.spark.session import acting_in
from icebergds.statements.names.audits import AUDITED_BRANCH
from icebergds.statements.names.scope import NameScope
from icebergds.statements.queries.temporary_views import temporary_view
from icebergds.statements.run import sql as run
from icebergds.statements.session_catalog import catalog_of_session
from icebergds.statements.taken_over import OWN_CATALOG, OWN_SQL, OWN_TABLE


def take_over_sql(spark: SparkSession) -> None:
    """Makes `sql`, `table` and `catalog` of this object of a session ours."""
    if getattr(spark, OWN_SQL, None) is not None:
        return
    own_sql: Any = spark.sql
    own_table: Any = spark.table
    own_catalog: Any = spark.catalog

    @wraps(own_sql)
    def sql(sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:  # noqa: N803
        return run(spark, sqlQuery, args, **kwargs)

    @wraps(own_table)
    def table(tableName: str) -> DataFrame:  # noqa: N803
        parts = table_name_parts(tableName) or (tableName,)
        with acting_in(spark):
            name = NameScope(spark).table(parts)
        if name is None and temporary_view(spark, parts) is not None:
            return run(spark, f"TABLE {in_backticks(parts)}")
        if name is None and len(parts) > 2:
            return run(spark, f"TABLE {in_backticks(parts)}")
        if name is None:
            found: DataFrame = own_table(tableName)
            return found
        # The reader knows neither the branch that the session's queries read nor views.
        if spark.conf.get(AUDITED_BRANCH, None) is None:
            try:
                return spark.read.format("icebergpy").table(str(name))
            except NoSuchTableError:
                pass
        return run(spark, f"TABLE {in_backticks((name.catalog, *name.parts))}")

    _set(spark, OWN_SQL, own_sql)
    _set(spark, OWN_TABLE, own_table)
    _set(spark, OWN_CATALOG, own_catalog)
    _set(spark, "sql", sql)
    _set(spark, "table", table)
    _set(spark, "catalog", catalog_of_session(spark))


def _set(spark: SparkSession, name: str, value: Any) -> None:
    setattr(spark, name, value)
