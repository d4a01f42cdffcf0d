"""Replaces `spark.sql`, `spark.table` and `spark.catalog` in sessions with `sql=True`."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from icebergds.catalog.naming import split_version, table_name_parts
from icebergds.errors import InvalidFilterError, NoSuchTableError
from icebergds.expr.names import in_backticks, split_name
from icebergds.spark.patches import own
from icebergds.spark.session import acting_in
from icebergds.statements.names.scope import AUDITED_BRANCH, NameScope
from icebergds.statements.queries.temporary_views import temporary_view
from icebergds.statements.run import sql
from icebergds.statements.session_catalog import catalog_of_session

__all__ = ["catalog", "sql", "table", "whole_name"]

_CATALOG = "_icebergds_catalog"


def table(spark: SparkSession, tableName: str) -> DataFrame:  # noqa: N803 - the name in PySpark
    """A table or view of any catalog, by its name, which may end with a version.

    Raises:
        InvalidOptionError: the version is malformed.
    """
    plain, version = split_version(tableName)
    at = tableName[len(plain) :]
    parts = _parts(plain)
    with acting_in(spark):
        name = NameScope(spark).table(parts)
    if name is None and (len(parts) > 2 or temporary_view(spark, parts) is not None):
        return sql(spark, f"TABLE {in_backticks(parts)}{at}")
    if name is None:
        found: DataFrame = own(spark, "table")(tableName)
        return found
    # In backticks, an @ in the name is not the sign of a version.
    whole = in_backticks((name.catalog, *name.parts))
    # The reader does not know views, or the branch that the session's queries read.
    if version or spark.conf.get(AUDITED_BRANCH, None) is None:
        try:
            return spark.read.format("icebergpy").options(**version).table(whole)
        except NoSuchTableError:
            pass
    return sql(spark, f"TABLE {whole}{at}")


def whole_name(spark: SparkSession, table: str, *, may_be_temporary: bool) -> str | None:
    """The name of a table or view with that of our catalog; None if it is Spark's own.

    Args:
        may_be_temporary: look for temporary views first.
    """
    with acting_in(spark):
        name = NameScope(spark).table(_parts(table), may_be_temporary=may_be_temporary)
    return None if name is None else str(name)


def _parts(name: str) -> tuple[str, ...]:
    parts = table_name_parts(name)
    if not parts and not any(sign in name for sign in "./:"):
        # A name of one part may be in backticks.
        with suppress(InvalidFilterError):
            parts = split_name(name)
    return parts or (name,)


def catalog(spark: SparkSession) -> Any:
    """The `catalog` of a session object, created once."""
    found = spark.__dict__.get(_CATALOG)
    if found is None:
        found = spark.__dict__[_CATALOG] = catalog_of_session(spark)
    return found
