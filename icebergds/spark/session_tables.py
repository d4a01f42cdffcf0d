"""Refuses tables of this format in Spark's session catalog, where they could not be read again.

Spark asks no data source when a table with columns is created: CREATE TABLE, `saveAsTable` with a
path and `catalog.createTable` leave a name whose options, and so its location, are lost.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from icebergds.errors import InvalidOptionError
from icebergds.spark.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FORMAT = "icebergpy"
_IS_GUARDED = "_icebergds_refuses_session_tables"
_IS_OURS = "_icebergds_is_format"

_P = ParamSpec("_P")
_R = TypeVar("_R")


def guard_session_tables(spark: SparkSession) -> None:
    """Makes a session refuse to create tables of this format in Spark's own catalog.

    SQL is refused in this session; the methods of DataFrames and catalogs, whose classes all
    sessions share, for this format alone.
    """
    if not getattr(spark, _IS_GUARDED, False):
        setattr(spark, "sql", _guarded_sql(spark.sql))  # noqa: B010 - a method of this object
        setattr(spark, _IS_GUARDED, True)
    _guard_catalog(type(spark.catalog))
    _guard_writer(_writer_class(spark))


def creates_session_table(statement: str) -> bool:
    """Whether a statement is `CREATE TABLE ... USING icebergpy`."""
    if _FORMAT not in statement.lower():
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
    return is_table and words[len(head) + 1 : len(head) + 2] == [_FORMAT.upper()]


def _guarded_sql(sql: Callable[_P, _R]) -> Callable[_P, _R]:
    @wraps(sql)
    def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        statement = args[0] if args else kwargs.get("sqlQuery")
        if isinstance(statement, str) and creates_session_table(statement):
            raise _refused("CREATE TABLE ... USING icebergpy")
        return sql(*args, **kwargs)

    return guarded


def _guard_catalog(catalog: Any) -> None:
    create_table = catalog.createTable
    if getattr(create_table, _IS_GUARDED, False):
        return

    @wraps(create_table)
    def guarded(
        self: Any,
        tableName: str,  # noqa: N803 - the name in PySpark
        path: str | None = None,
        source: str | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if _is_format(source):
            raise _refused("catalog.createTable")
        return create_table(self, tableName, path, source, *args, **kwargs)

    setattr(guarded, _IS_GUARDED, True)
    catalog.createTable = guarded


def _guard_writer(writer: Any) -> None:
    choose, save = writer.format, writer.saveAsTable
    if getattr(save, _IS_GUARDED, False):
        return

    @wraps(choose)
    def format(self: Any, source: str) -> Any:
        setattr(self, _IS_OURS, _is_format(source))
        return choose(self, source)

    @wraps(save)
    def guarded(self: Any, name: str, format: str | None = None, *args: Any, **kwargs: Any) -> Any:
        if _is_format(format) or (format is None and getattr(self, _IS_OURS, False)):
            raise _refused("saveAsTable")
        return save(self, name, format, *args, **kwargs)

    setattr(guarded, _IS_GUARDED, True)
    writer.format, writer.saveAsTable = format, guarded


def _is_format(source: object) -> bool:
    return isinstance(source, str) and source.lower() == _FORMAT


def _writer_class(spark: SparkSession) -> type:
    if is_connect(spark):
        from pyspark.sql.connect.readwriter import DataFrameWriter as ConnectWriter

        return ConnectWriter
    from pyspark.sql.readwriter import DataFrameWriter

    return DataFrameWriter


def _refused(what: str) -> InvalidOptionError:
    return InvalidOptionError(
        f"{what}: tables of Spark's session catalog are not supported, because it drops their "
        "options, so that they could not be read again. Create the table with "
        "icebergds.load_catalog(...).create_table(...), or by df.write.format('icebergpy')"
        ".save(...) or .saveAsTable('<catalog>.<namespace>.<table>') in a registered session"
        "; to name it in SQL, create a temporary view: CREATE TEMPORARY VIEW v USING icebergpy "
        "OPTIONS (path '<table location>')"
    )
