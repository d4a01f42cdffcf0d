"""Lets Spark discover the data source, by importing top-level modules named `pyspark_*`.

Installed at the top level, so that `spark.read.format("icebergpy")` works without registration.
"""

from icebergds.spark.datasource import IcebergDataSource as DefaultSource

__all__ = ["DefaultSource"]
