"""Lets Spark discover the data source, by importing top-level modules named `pyspark_*`.

Installed at the top level, so that `spark.read.format("icebergpy")` works without registration.
Every session imports it at its first use of any Python data source, so it imports nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql.datasource import DataSource

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):
    """Makes an `IcebergDataSource`, which is imported when a session uses this format."""

    def __new__(cls, options: Mapping[str, str]) -> Any:
        from icebergds.spark.datasource import IcebergDataSource

        return IcebergDataSource(options)

    @classmethod
    def name(cls) -> str:
        return "icebergpy"
