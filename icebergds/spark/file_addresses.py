"""Maps file locations to the addresses and names that Spark uses for them."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

from pyspark.sql import SparkSession

from icebergds.commit.operations import TableState
from icebergds.io.fileio import FileIO
from icebergds.io.hadoop_clients import client_of
from icebergds.io.locations import is_local
from icebergds.spark.jvm import Private, in_jvm, with_private
from icebergds.spark.session import is_connect


def storage_obstacle(spark: SparkSession, state: TableState) -> str | None:
    """Why Spark cannot use a storage's properties; None if it can, or if there are none."""
    root = state.io.resolve(state.metadata.location)
    if is_local(root) or not state.io.all_properties or is_connect(spark):
        # A Connect server without a storage client says so when Spark asks it for the files.
        return None
    from py4j.java_gateway import JavaClass

    client = client_of(root)
    if client is None:
        return None
    name = client.java_class
    if with_private(
        Private.SCANS, lambda: isinstance(in_jvm(spark, name), JavaClass), lambda: False
    ):
        return None
    return f"the table has storage properties, and Spark has no {client.name} to pass them to"


def address_of(io: FileIO, location: str) -> str:
    """The address of a file for Spark, independent of its default file system."""
    path = listed_name(io, location)
    return path.replace("file:", "file://", 1) if path.startswith("file:") else path


def row_name(io: FileIO, location: str) -> str:
    """How Spark's `_metadata.file_path` names a file that `is_plain_path`."""
    return quote(listed_name(io, location), safe="/:=+@,~")


def listed_name(io: FileIO, location: str) -> str:
    """How Spark names a file that it has listed."""
    path = io.resolve(location)
    if is_local(path):
        return f"file:{path}"
    client = client_of(path) if io.all_properties else None
    return path if client is None else client.address(io, path)


def hadoop_options(io: FileIO, locations: Iterable[str]) -> dict[str, str]:
    """Options with which Spark opens files on a storage that has properties."""
    if not io.all_properties:
        return {}
    paths = list(map(io.resolve, locations))
    client = client_of(paths[0]) if paths else None
    return {} if client is None else {**_FEW_REQUESTS, **client.options(io, paths)}


_FEW_REQUESTS = {
    # Each of these reads a few bytes per column and row group, one request after the other.
    "parquet.filter.bloom.enabled": "false",
    "parquet.filter.columnindex.enabled": "false",
    "parquet.filter.dictionary.enabled": "false",
}
