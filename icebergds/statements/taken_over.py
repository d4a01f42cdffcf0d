"""Spark's own methods of a session whose `spark.sql` and `spark.table` are ours."""

from __future__ import annotations

from pyspark.sql import SparkSession

OWN_SQL = "_icebergds_spark_sql"
"""The attribute with Spark's own method `sql`, if it was taken over."""

OWN_TABLE = "_icebergds_spark_table"
"""The attribute with Spark's own method `table`, if it was taken over."""


def give_back_sql(spark: SparkSession) -> None:
    """Undoes `take_over.take_over_sql`."""
    if getattr(spark, OWN_SQL, None) is None:
        return
    for name, own in (("sql", OWN_SQL), ("table", OWN_TABLE)):
        setattr(spark, name, getattr(spark, own))
        delattr(spark, own)
