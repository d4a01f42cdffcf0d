"""Makes the format known to a session where Spark cannot find it by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icebergds.spark.datasource import IcebergDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Registers the format `icebergpy` with a session.

    Spark finds an installed package without it, unless another module named `pyspark_*` fails to
    import, or icebergds reaches the session in another way than by installation.
    """
    spark.dataSource.register(IcebergDataSource)
