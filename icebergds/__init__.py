"""Apache Iceberg tables in PySpark, in pure Python, with no JVM jar.

spark.read.format("icebergpy").load("s3://bucket/warehouse/db/events")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icebergds.errors import IcebergError
    from icebergds.spark.registration import register
    from icebergds.table.table import Table, load_table

__version__ = "0.1.0"

# Every Python worker of Spark imports this package: what it does not use must cost it nothing.
_HOMES = {
    "IcebergError": "icebergds.errors",
    "Table": "icebergds.table.table",
    "load_table": "icebergds.table.table",
    "register": "icebergds.spark.registration",
}

__all__ = ["IcebergError", "Table", "load_table", "register"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
