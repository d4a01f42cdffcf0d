"""What is Spark's own of a session whose `sql`, `table` and `catalog` are ours."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

OWN_SQL = "_icebergds_spark_sql"
"""The attribute with Spark's own method `sql`, if it was taken over."""

OWN_TABLE = "_icebergds_spark_table"
"""The attribute with Spark's own method `table`, if it was taken over."""

OWN_CATALOG = "_icebergds_spark_catalog"
"""The attribute with Spark's own object `catalog`, if it was taken over."""


def own_catalog(spark: SparkSession) -> Any:
    """Spark's own `catalog`, which does not know our catalogs."""
    return getattr(spark, OWN_CATALOG, None) or spark.catalog


def give_back_sql(spark: SparkSession) -> None:
    """Undoes `take_over.take_over_sql`."""
    if getattr(spark, OWN_SQL, None) is None:
        return
    for name, own in (("sql", OWN_SQL), ("table", OWN_TABLE), ("catalog", OWN_CATALOG)):
        setattr(spark, name, getattr(spark, own))
        delattr(spark, own)
