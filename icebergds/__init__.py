"""Reads and writes Apache Iceberg tables in PySpark, in pure Python, without a JVM jar.

spark.read.format("icebergpy").load("s3://bucket/warehouse/db/events")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icebergds.api.catalog import Catalog, load_catalog
    from icebergds.api.load import load_table
    from icebergds.api.table import Table
    from icebergds.errors import IcebergError
    from icebergds.spark.registration import register
    from icebergds.spec.partition import PartitionField, PartitionSpec
    from icebergds.spec.schema import Schema
    from icebergds.spec.sort import SortField, SortOrder
    from icebergds.spec.types import NestedField

__version__ = "0.1.0"

# Every Python worker of Spark imports this package, so names are imported on first use.
_HOMES = {
    "Catalog": "icebergds.api.catalog",
    "IcebergError": "icebergds.errors",
    "NestedField": "icebergds.spec.types",
    "PartitionField": "icebergds.spec.partition",
    "PartitionSpec": "icebergds.spec.partition",
    "Schema": "icebergds.spec.schema",
    "SortField": "icebergds.spec.sort",
    "SortOrder": "icebergds.spec.sort",
    "Table": "icebergds.api.table",
    "load_catalog": "icebergds.api.catalog",
    "load_table": "icebergds.api.load",
    "register": "icebergds.spark.registration",
}

__all__ = [
    "Catalog",
    "IcebergError",
    "NestedField",
    "PartitionField",
    "PartitionSpec",
    "Schema",
    "SortField",
    "SortOrder",
    "Table",
    "load_catalog",
    "load_table",
    "register",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
