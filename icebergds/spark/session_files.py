"""Describes tables of Spark's session catalog that are folders of files, and renames them.

Uses only SQL and the DataFrame API, so that it works the same through Spark Connect.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession, functions as f

from icebergds.catalog.address import identifier_of
from icebergds.errors import InvalidOptionError, NoSuchTableError
from icebergds.expr.names import in_backticks
from icebergds.operations.imports.foreign_table import ForeignTable
from icebergds.operations.imports.source_files import SourceFile, values_of
from icebergds.spark.dataframe_schema import iceberg_schema
from icebergds.spark.job_descriptions import describing

_SESSION_CATALOG = "spark_catalog"
_PROVIDERS = ("parquet", "orc", "avro")
_HIVE = "hive"
_REMEDIES = {
    "parquet": "set spark.sql.hive.convertMetastoreParquet = true in the session",
    "orc": "set spark.sql.hive.convertMetastoreOrc = true in the session",
    "avro": "create a table and add the folder to it, by add_files",
}


def session_table(spark: SparkSession, name: str) -> ForeignTable:
    """A table of the session catalog, and the files that Spark would read.

    Raises:
        NoSuchTableError: there is no such table.
        InvalidOptionError: it is a view, a bucketed table, or of another catalog or format.
        InvalidDataError: a column has a type that Iceberg lacks.
    """
    quoted = in_backticks(identifier_of(name))
    told = _described(spark, quoted, name)
    provider = str(told.get("provider", "")).lower()
    file_format = _format_of_hive(told) if provider == _HIVE else provider
    if told.get("catalog_name") != _SESSION_CATALOG or file_format not in _PROVIDERS:
        raise InvalidOptionError(
            f"table {name}: expected a table of Spark's session catalog in the format "
            f"{', '.join(_PROVIDERS)}, but it is "
            + (f"in the format {file_format}" if provider else "a view")
            + f" (catalog {told.get('catalog_name')})"
        )
    if told.get("bucket_columns"):
        raise InvalidOptionError(
            f"table {name} is bucketed by {', '.join(told['bucket_columns'])}, in another way than "
            "Iceberg's tables are; write its rows to a new table"
        )
    spark.catalog.refreshTable(quoted)
    frame = spark.table(quoted)
    paths = sorted(map(_decoded, frame.inputFiles()))
    location = _plain(told["location"])
    if provider == _HIVE and paths == [location]:
        raise InvalidOptionError(
            f"table {name} is one of Hive in the format {file_format}, whose files Spark does not "
            f"list; {_REMEDIES[file_format]}"
        )
    partition_columns: list[str] = told.get("partition_columns", [])
    with describing(f"list files of {name}"):
        values = _partition_values(frame, partition_columns)
    return ForeignTable(
        name,
        iceberg_schema(frame.schema),
        partition_columns,
        location,
        told.get("table_properties", {}),
        [SourceFile(path, None, values.get(path, values_of(path))) for path in paths],
        told.get("type") == "MANAGED",
        frozenset(name for name in frame.columns if _has_default(frame, name))
        - frozenset(partition_columns),
    )


def _has_default(frame: DataFrame, name: str) -> bool:
    """Whether Spark reads a value other than null from files that lack a column."""
    text = frame.schema[name].metadata.get("EXISTS_DEFAULT")
    return text is not None and not text.upper().startswith(("NULL", "CAST(NULL "))


def _partition_values(frame: DataFrame, columns: Sequence[str]) -> dict[str, dict[str, str | None]]:
    """The partition values of each file that has rows, by its location.

    Folder names may differ from them: a partition of an external table can be renamed, and can have
    any location.
    """
    if not columns:
        return {}
    texts = [f.col(in_backticks((column,))).cast("string") for column in columns]
    rows = frame.select(f.col("_metadata.file_path"), *texts).distinct().collect()
    return {
        _decoded(path): dict(zip(columns, values, strict=True))
        for path, *values in map(tuple, rows)
    }


def _decoded(location: str) -> str:
    """Removes Spark's encoding from the location of a file."""
    return _plain(unquote(location))


def _format_of_hive(told: Mapping[str, Any]) -> str:
    """The format of a Hive table by its input format class, or else the class's name."""
    name = str(told.get("input_format", ""))
    found = (each for each in _PROVIDERS if f".{each}." in name.lower())
    return next(found, name or _HIVE)


def rename_session_table(spark: SparkSession, name: str, new_name: str) -> None:
    """Renames a table of the session catalog.

    Raises:
        PySparkException: it cannot be renamed.
    """
    target = identifier_of(new_name)
    if target[0] == _SESSION_CATALOG:
        # Spark does not accept a catalog there.
        target = target[1:]
    spark.sql(f"ALTER TABLE {in_backticks(identifier_of(name))} RENAME TO {in_backticks(target)}")


def drop_session_table(spark: SparkSession, name: str) -> None:
    """Drops a table of the session catalog; if it is managed, with its files.

    Raises:
        PySparkException: it cannot be dropped.
    """
    spark.sql(f"DROP TABLE {in_backticks(identifier_of(name))}")


def _plain(location: str) -> str:
    """A local path without its scheme, which Spark writes with one slash or three."""
    path = location.removeprefix("file:")
    return location if path == location else "/" + path.lstrip("/")


def _described(spark: SparkSession, quoted: str, name: str) -> Mapping[str, Any]:
    try:
        row = spark.sql(f"DESCRIBE TABLE EXTENDED {quoted} AS JSON").head()
    except AnalysisException as error:
        if error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND":
            raise NoSuchTableError(f"Spark's session catalog has no table {name}") from None
        raise
    assert row is not None, "DESCRIBE returns a row"
    described: Mapping[str, Any] = json.loads(row[0])
    return described
