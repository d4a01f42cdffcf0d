"""Implements the writers of registered sessions: `df.write.format("icebergpy")`.

They shuffle and sort rows as the tables require. What was set before the format counts, too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from icebergds.errors import NoSuchTableError, UnsupportedFeatureError
from icebergds.spark.registered import need_source, registered
from icebergds.spark.session import acting_in, is_connect
from icebergds.spark.session_verbs import refused
from icebergds.spark.verbs import WRITER, has_format, is_ours, is_ours_by_name
from icebergds.spark.writers import saves
from icebergds.spark.writers.request import WriteRequest, request_of

_LOG = logging.getLogger(__name__)


def save(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    """`DataFrameWriter.save` to a location, or to a name in a catalog; raises as `saves`."""

    @wraps(of_spark)
    def save(
        self: Any,
        path: str | None = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,  # noqa: N803 - the name in PySpark
        **options: Any,
    ) -> None:
        if format is not None:
            self.format(format)
        if not is_ours(self, WRITER):
            of_spark(self, path, None, mode, partitionBy, **options)
            return
        _set(self, mode, partitionBy, options)
        if path is not None:
            self.option("path", path)
        try:
            with acting_in(self._spark):
                request = request_of(self)
                if request is not None:
                    saves.save(request)
        except NoSuchTableError as error:
            if not _saved_by_server(self, error, of_spark):
                raise
            return
        if request is None:
            need_source(self._spark)
            of_spark(self)

    return save


def save_as_table(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    """`DataFrameWriter.saveAsTable` to a name in a catalog; raises as `saves`."""

    @wraps(of_spark)
    def save_as_table(
        self: Any,
        name: str,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,  # noqa: N803 - the name in PySpark
        **options: Any,
    ) -> None:
        if format is not None:
            self.format(format)
        if is_ours_by_name(self, WRITER, name, may_be_temporary=False):
            _set(self, mode, partitionBy, options)
            with acting_in(self._spark):
                saves.save_as_table(_request(self, name), name)
            return
        if has_format(self) and registered(self._spark) is not None:
            raise refused("saveAsTable")
        of_spark(self, name, None, mode, partitionBy, **options)

    return save_as_table


def insert_into(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    """`DataFrameWriter.insertInto`, by column position; raises as `saves`."""

    @wraps(of_spark)
    def insert_into(
        self: Any,
        tableName: str,  # noqa: N803 - the name in PySpark
        overwrite: bool | None = None,
    ) -> None:
        if not is_ours_by_name(self, WRITER, tableName):
            of_spark(self, tableName, overwrite)
            return
        if overwrite is not None:
            self.mode("overwrite" if overwrite else "append")
        with acting_in(self._spark):
            saves.insert_into(_request(self, tableName), tableName)

    return insert_into


def _request(writer: Any, name: str) -> WriteRequest:
    request = request_of(writer)
    if request is None:
        raise UnsupportedFeatureError(
            f"table {name}: what this Spark's writer was asked for cannot be known, so it cannot "
            "write to tables by name; use load_catalog(...).load_table(...).append(df)"
        )
    return request


def _set(writer: Any, mode: str | None, partition_by: Any, options: dict[str, Any]) -> None:
    writer.mode(mode).options(**options)
    if partition_by is not None:
        writer.partitionBy(partition_by)


def _saved_by_server(writer: Any, error: NoSuchTableError, save: Callable[..., Any]) -> bool:
    """Saves with the data source if only the Connect server reaches the table; True if it did.

    Args:
        error: the error of this process, which has written nothing.
    """
    from pyspark.errors import PySparkException

    if not is_connect(writer._spark):
        return False
    options = writer._write.options
    path = options.pop("path", None)
    try:
        save(writer, path)
    except PySparkException as refused:
        if "NoSuchTableError" in str(refused):
            return False
        raise
    finally:
        if path is not None:
            options["path"] = path
    _LOG.info("the server has written to %s; this process does not reach it: %s", path, error)
    return True
