"""Replaces session methods: statements, tables, and creating tables in Spark's own catalog.

Creating tables of this format in Spark's own catalog is refused, because they could not be read
again. Spark does not call a data source when it creates a table with columns: CREATE TABLE,
`saveAsTable` with a path and `catalog.createTable` leave a name without its options, and so without
its location.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from icebergds.errors import InvalidOptionError
from icebergds.spark.registered import need_source, registered
from icebergds.spark.registration import CATALOG_PREFIX
from icebergds.spark.verbs import FORMAT, is_format

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def sql(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    """`SparkSession.sql`."""

    @wraps(of_spark)
    def sql(self: SparkSession, *args: Any, **kwargs: Any) -> Any:
        known = registered(self)
        if known is None:
            return of_spark(self, *args, **kwargs)
        if known.statements is not None:
            return known.statements.sql(self, *args, **kwargs)
        prepare_statement(self, args[0] if args else kwargs.get("sqlQuery"))
        return of_spark(self, *args, **kwargs)

    return sql


def prepare_statement(spark: SparkSession, statement: Any) -> None:
    """Prepares a registered session for a statement that Spark itself runs.

    Raises:
        InvalidOptionError: it creates a table of this format in Spark's own catalog.
    """
    if isinstance(statement, str) and FORMAT in statement.lower():
        if registered(spark) is not None and creates_session_table(statement):
            raise refused("CREATE TABLE ... USING icebergpy")
        need_source(spark)


def table(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    """`SparkSession.table`."""

    @wraps(of_spark)
    def table(self: SparkSession, tableName: str) -> Any:  # noqa: N803 - the name in PySpark
        known = registered(self)
        if known is None or known.statements is None:
            return of_spark(self, tableName)
        return known.statements.table(self, tableName)

    return table


def catalog(of_spark: Any) -> property:
    """`SparkSession.catalog`, which PySpark makes once for each object."""

    def catalog(self: SparkSession) -> Any:
        known = registered(self)
        if known is None or known.statements is None:
            return of_spark.__get__(self, type(self))
        return known.statements.catalog(self)

    return property(catalog, doc=of_spark.__doc__)


def new_session(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    """`SparkSession.newSession`: has its own settings, as in Spark, but keeps our catalogs."""

    @wraps(of_spark)
    def new_session(self: SparkSession) -> Any:
        found, known = of_spark(self), registered(self)
        if known is not None:
            for name, properties in known.catalogs.items():
                for key, value in properties.items():
                    found.conf.set(f"{CATALOG_PREFIX}{name}.{key}", value)
            known.again(found)
        return found

    return new_session


def create_table(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    """`Catalog.createTable`."""

    @wraps(of_spark)
    def create_table(
        self: Any,
        tableName: str,  # noqa: N803 - the name in PySpark
        path: str | None = None,
        source: str | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if is_format(source) and registered(self._sparkSession) is not None:
            raise refused("catalog.createTable")
        return of_spark(self, tableName, path, source, *args, **kwargs)

    return create_table


def creates_session_table(statement: str) -> bool:
    """Whether a statement is `CREATE TABLE ... USING icebergpy`."""
    if FORMAT not in statement.lower():
        return False
    from sqlglot import tokenize
    from sqlglot.errors import TokenError

    try:
        words = [token.text.upper() for token in tokenize(statement, read="spark")]
    except TokenError:
        return False
    # Tables only: a view may have columns and options before USING, too.
    head = words[: words.index("USING")] if "USING" in words else []
    is_table = (
        head[:1] in (["CREATE"], ["REPLACE"]) and "TABLE" in head[:5] and "VIEW" not in head[:5]
    )
    return is_table and words[len(head) + 1 : len(head) + 2] == [FORMAT.upper()]


def refused(what: str) -> InvalidOptionError:
    """The error of a call that would leave such a table."""
    return InvalidOptionError(
        f"{what}: tables of Spark's session catalog are not supported, because it drops their "
        "options, so that they could not be read again. Create the table with "
        "icebergds.load_catalog(...).create_table(...), or by df.write.format('icebergpy')"
        ".save(...) or .saveAsTable('<catalog>.<namespace>.<table>') in a registered session"
        "; to name it in SQL, create a temporary view: CREATE TEMPORARY VIEW v USING icebergpy "
        "OPTIONS (path '<table location>')"
    )
