"""Shorthands of the tests that write through Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from built.contents import files_besides_metadata, live_files
from built.files import ids_in
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType
from spark_reads import message_of

from icebergds import load_table
from icebergds.spark.datasource import IcebergDataSource
from icebergds.spark.writer import IcebergWriter


def save(df: DataFrame, path: Path | str, mode: str = "append", **options: Any) -> None:
    """A save of its own; options that hold a hyphen are passed as `**{"write-format": ...}`."""
    df.write.format("icebergpy").mode(mode).options(**options).save(str(path))


def create(df: DataFrame, path: Path, **options: Any) -> Path:
    """A table that a save makes, with the rows of a DataFrame."""
    save(df, path, create="true", **options)
    return path


def planned_write(
    schema: str | StructType, path: Path | str, *, overwrite: bool = False, **options: str
) -> IcebergWriter:
    """The writer of a save, made as Spark makes it, without Spark: what writes no rows is quick."""
    if isinstance(schema, str):
        schema = StructType.fromDDL(schema)
    return IcebergDataSource({**options, "path": str(path)}).writer(schema, overwrite)


def refused(df: DataFrame, path: Path, mode: str = "append", **options: Any) -> str:
    """What Spark says of a save that fails and leaves the table and its files as they were."""
    before = files_besides_metadata(path), load_table(path).metadata_location
    message = message_of(lambda: save(df, path, mode, **options))
    assert (files_besides_metadata(path), load_table(path).metadata_location) == before
    return message


def ids_in_files(path: Path) -> list[list[int]]:
    """The ids in each live Parquet file, in the order they are stored."""
    return [ids_in(f) for f in live_files(path)]
