"""Gives registered sessions a writer of ours: `df.write.format("icebergpy")`.

Spark's writers choose the class of themselves where they are asked for a format, at one place for
classic Spark and at one for Spark Connect. Writers of other formats and other sessions stay as they
are, and so does what was set before the format.
"""

from __future__ import annotations

import logging
from functools import wraps
from typing import TYPE_CHECKING, Any

from icebergds.errors import NoSuchTableError
from icebergds.spark.session import acting_in, is_connect
from icebergds.spark.sources import need_source
from icebergds.spark.verbs import is_format
from icebergds.spark.writers import saves
from icebergds.spark.writers.request import request_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WRITER = "spark.icebergpy.writer"
"""The setting of a session whose writers are ours."""

_IS_OURS = "_icebergds_writer"
_LOG = logging.getLogger(__name__)


def take_over_writer(spark: SparkSession) -> None:
    """Makes `df.write` of this session, and of others with the setting, give our writer."""
    kind: Any = _writer_class(spark)
    if getattr(kind, _IS_OURS, None) is None:
        _take_over(kind)


def _writer_class(spark: SparkSession) -> type:
    if is_connect(spark):
        from pyspark.sql.connect.readwriter import DataFrameWriter as ConnectWriter

        return ConnectWriter
    from pyspark.sql.readwriter import DataFrameWriter

    return DataFrameWriter


def _take_over(kind: Any) -> None:
    choose = kind.format
    ours: Any = type("IcebergDataFrameWriter", (_Verbs, kind), {"_save_by_spark": kind.save})

    @wraps(choose)
    def format(self: Any, source: str) -> Any:
        if is_format(source) and self._spark.conf.get(WRITER, "false") == "true":
            self.__class__ = ours
            return choose(self, source)
        if is_format(source):
            need_source(self._spark)
        if isinstance(self, ours):
            self.__class__ = kind
        return choose(self, source)

    save, save_as_table = kind.save, kind.saveAsTable

    @wraps(save)
    def saved(
        self: Any,
        path: str | None = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,  # noqa: N803 - the name in PySpark
        **options: Any,
    ) -> None:
        if format is not None:
            self.format(format)
        # The format may have changed the class.
        if isinstance(self, ours):
            self._saved(path, mode, partitionBy, options)
        else:
            save(self, path, None, mode, partitionBy, **options)

    @wraps(save_as_table)
    def saved_as_table(
        self: Any,
        name: str,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,  # noqa: N803 - the name in PySpark
        **options: Any,
    ) -> None:
        if format is not None:
            self.format(format)
        if isinstance(self, ours):
            self._saved_as_table(name, mode, partitionBy, options)
        else:
            save_as_table(self, name, None, mode, partitionBy, **options)

    kind.format, kind.save, kind.saveAsTable = format, saved, saved_as_table
    setattr(kind, _IS_OURS, ours)


def _saved_by_server(writer: Any, error: NoSuchTableError) -> bool:
    """Whether the data source has written, as only the server of Spark Connect reaches the table.

    Args:
        error: of this process, which has written nothing.
    """
    from pyspark.errors import PySparkException

    if not is_connect(writer._spark):
        return False
    options = writer._write.options
    path = options.pop("path", None)
    try:
        writer._save_by_spark(path)
    except PySparkException as refused:
        if "NoSuchTableError" in str(refused):
            return False
        raise
    finally:
        if path is not None:
            options["path"] = path
    _LOG.info("the server has written to %s; this process does not reach it: %s", path, error)
    return True


class _Verbs:
    """A writer of Iceberg tables, which shuffles and sorts rows as the tables ask for."""

    def _saved(
        self: Any, path: str | None, mode: str | None, partition_by: Any, options: dict[str, Any]
    ) -> None:
        """Writes to a table by its location, or with a catalog by its name.

        Errors are those of `saves.save`.
        """
        self._set(mode, partition_by, options)
        if path is not None:
            self.option("path", path)
        try:
            with acting_in(self._spark):
                saves.save(request_of(self))
        except NoSuchTableError as error:
            if not _saved_by_server(self, error):
                raise

    def _saved_as_table(
        self: Any, name: str, mode: str | None, partition_by: Any, options: dict[str, Any]
    ) -> None:
        """Writes to a table of a catalog by its name.

        Errors are those of `saves.save_as_table`.
        """
        self._set(mode, partition_by, options)
        with acting_in(self._spark):
            saves.save_as_table(request_of(self), name)

    def insertInto(
        self: Any,
        tableName: str,  # noqa: N803 - the name in PySpark
        overwrite: bool | None = None,
    ) -> None:
        """Writes to the columns of a table by position.

        Errors are those of `saves.insert_into`.
        """
        if overwrite is not None:
            self.mode("overwrite" if overwrite else "append")
        with acting_in(self._spark):
            saves.insert_into(request_of(self), tableName)

    def _set(self: Any, mode: str | None, partition_by: Any, options: dict[str, Any]) -> None:
        self.mode(mode).options(**options)
        if partition_by is not None:
            self.partitionBy(partition_by)
