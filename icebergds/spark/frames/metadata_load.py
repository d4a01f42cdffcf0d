"""Loads metadata tables in registered sessions; on classic Spark, with the columns of a query."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icebergds.operations.metadata_tables.load import open_metadata_table
from icebergds.operations.metadata_tables.plan import plan_metadata_table
from icebergds.spark.errors import prepare_thread
from icebergds.spark.frames.table_load import MetadataLoad
from icebergds.spark.metadata_tables import LOCAL, metadata_table_frame
from icebergds.spark.session import in_zone_of, is_connect
from icebergds.spark.types import spark_schema


def load_metadata_table(
    spark: SparkSession, options: Mapping[str, str], schema: StructType | None
) -> DataFrame | None:
    """The metadata table that the options of a load name; None if they name a table.

    Args:
        schema: the columns that the user asks for; None for those of the options.

    Errors are those of `open_metadata_table` and `metadata_table_frame`.
    """
    load = open_metadata_table(in_zone_of(spark, options))
    if load is None:
        return None

    def by_source() -> DataFrame:
        return metadata_table_frame(spark, load.state, load.kind, load.given, schema)

    if schema is not None or load.kind in LOCAL or is_connect(spark):
        return by_source()
    from icebergds.spark.frames.classic_frame import classic_frame

    plan = plan_metadata_table(load.kind, load.state, load.options)
    prepare_thread(spark)
    return classic_frame(
        spark, MetadataLoad(plan, load.options, spark_schema(plan.columns)), by_source
    )
