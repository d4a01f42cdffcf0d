"""Tells how Spark finds and names the files of a storage."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

from pyspark.sql import SparkSession

from icebergds.io.fileio import FileIO
from icebergds.io.hadoop_s3a import S3A, is_of_s3, s3a_address, s3a_options
from icebergds.io.locations import is_local
from icebergds.spark.jvm import in_jvm
from icebergds.spark.session import is_connect


def storage_obstacle(spark: SparkSession, io: FileIO) -> str | None:
    """Why Spark cannot use the properties of a storage; None if it can, or if there are none."""
    if not io.all_properties:
        return None
    if is_connect(spark):
        return "the table has storage properties, which Spark does not get through Connect"
    from py4j.java_gateway import JavaClass

    if not isinstance(in_jvm(spark, S3A), JavaClass):
        return "the table has storage properties, and Spark has no S3A (hadoop-aws) to pass them to"
    return None


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
    return s3a_address(io, path) if io.all_properties and is_of_s3(path) else path


def hadoop_options(io: FileIO, locations: Iterable[str]) -> dict[str, str]:
    """Options by which Spark opens the addresses of files on storages with properties."""
    if not io.all_properties:
        return {}
    paths = [path for path in map(io.resolve, locations) if not is_local(path)]
    return s3a_options(io, paths) if paths else {}
