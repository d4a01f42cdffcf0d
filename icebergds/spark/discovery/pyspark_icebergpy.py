"""Found by Spark, which imports top-level modules named `pyspark_*` for their data source.

Installed at the top level, so that `spark.read.format("icebergpy")` works with no call at all.
"""

from icebergds.spark.datasource import IcebergDataSource as DefaultSource

__all__ = ["DefaultSource"]
