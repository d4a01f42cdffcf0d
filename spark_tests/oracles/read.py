"""The seam between expectations and the reader under test."""

from __future__ import annotations

from oracles.canon import canonical_rows
from oracles.collect import collect
from oracles.comparison import difference
from oracles.index import Expectation
from pyspark.sql import SparkSession


def read_rows(spark: SparkSession, location: str, expected: Expectation) -> list[str]:
    """Canonical rows that icebergds reads from a table, with the options of an expectation."""
    frame = spark.read.format("icebergpy").options(**dict(expected.options)).load(location)
    names = [field["name"] for field in expected.schema["fields"]]
    if frame.columns != names:
        raise AssertionError(f"{location}: columns {frame.columns} read, {names} expected")
    return canonical_rows(collect(frame), expected.schema)


def mismatch(spark: SparkSession, location: str, expected: Expectation) -> str | None:
    """What differs between the rows that icebergds reads and the expected ones, None if nothing."""
    what = f"{location} {dict(expected.options) or ''}"
    return difference(read_rows(spark, location, expected), expected.rows(), what)
