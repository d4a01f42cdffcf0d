"""Reads the session's settings for writes that are audited before they are published."""

from __future__ import annotations

from pyspark.sql import SparkSession

from icebergds.api.table import Table
from icebergds.errors import InvalidOptionError
from icebergds.spark.session import session_setting
from icebergds.spec.table_properties import WAP_ENABLED

AUDITED_BRANCH = "spark.wap.branch"
"""The session's setting of the branch that is written, and read once it exists."""

_BRANCH = "wap.branch"


def audit_options(spark: SparkSession, table: Table) -> dict[str, str]:
    """The session's branch or id for writes of a table; empty without `write.wap.enabled`.

    Raises:
        InvalidOptionError: the session has both.
    """
    if not WAP_ENABLED.of(table.properties):
        return {}
    setting = session_setting(spark)
    found = {
        name: value
        for name in ("wap.id", _BRANCH)
        if (value := setting(f"spark.{name}")) is not None
    }
    if len(found) > 1:
        raise InvalidOptionError(
            f"table {table.name}: the session has both spark.wap.id = {found['wap.id']!r} and "
            f"spark.wap.branch = {found[_BRANCH]!r}; unset one"
        )
    return found


def audited_branch(spark: SparkSession, table: Table) -> str | None:
    """The session's branch, which queries of a table read if it exists; None if there is none.

    Errors are those of `audit_options`.
    """
    branch = audit_options(spark, table).get(_BRANCH)
    return branch if branch in table.refs() else None
