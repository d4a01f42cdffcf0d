"""The session's settings for writes that are audited before they are published."""

from __future__ import annotations

from pyspark.sql import SparkSession

from icebergds.api.table import Table
from icebergds.errors import InvalidOptionError
from icebergds.spark.session import session_setting


def audit_options(spark: SparkSession, table: Table) -> dict[str, str]:
    """The option `wap.branch` or `wap.id` of the session, if the table has `write.wap.enabled`.

    Raises:
        InvalidOptionError: the session has both.
    """
    if table.properties.get("write.wap.enabled", "false").lower() != "true":
        return {}
    setting = session_setting(spark)
    found = {
        name: value
        for name in ("wap.id", "wap.branch")
        if (value := setting(f"spark.{name}")) is not None
    }
    if len(found) > 1:
        raise InvalidOptionError(
            f"table {table.name}: the session has both spark.wap.id = {found['wap.id']!r} and "
            f"spark.wap.branch = {found['wap.branch']!r}; unset one"
        )
    return found


def audited_branch(spark: SparkSession, table: Table) -> str | None:
    """The branch that the session's queries read, as in Java Iceberg; None until it exists.

    Errors are those of `audit_options`.
    """
    branch = audit_options(spark, table).get("wap.branch")
    return branch if branch in table.refs() else None
