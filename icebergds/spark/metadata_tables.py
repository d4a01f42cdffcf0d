"""Loads metadata tables as DataFrames."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icebergds.commit.operations import TableState
from icebergds.operations.metadata_tables.kinds import MetadataTable
from icebergds.operations.metadata_tables.load import PARTS_OF_PARTITIONS, open_metadata_table
from icebergds.operations.metadata_tables.plan import (
    files_of_snapshot,
    filters_parts,
    plan_metadata_table,
)
from icebergds.operations.metadata_tables.read import read_metadata_table
from icebergds.operations.metadata_tables.tasks import MetadataTablePlan
from icebergds.operations.options.values import is_of_address
from icebergds.operations.read.options import METADATA_TABLE, ReadOptions, parse_read_options
from icebergds.operations.read.scan_options import scan_options
from icebergds.spark.arrow_output import shaper
from icebergds.spark.errors import own_errors, prepare_thread
from icebergds.spark.partition_totals import added_up
from icebergds.spark.session import in_zone_of
from icebergds.spark.types import spark_arrow_schema, spark_schema

# Above, `partitions` is added up by tasks: a shuffle takes longer than fewer files do.
_FILES_OF_ONE_PROCESS = 200_000


def metadata_table_frame(
    spark: SparkSession,
    state: TableState,
    kind: MetadataTable,
    options: Mapping[str, str],
    schema: StructType | None = None,
) -> DataFrame:
    """A metadata table of one state of a table.

    Args:
        options: which rows, columns and snapshot are read.
        schema: the columns that the user asks for; None for those of the options.

    Raises:
        IcebergError: the options do not fit the metadata table.
    """
    options = in_zone_of(spark, options)
    parsed = parse_read_options(options)
    plan = plan_metadata_table(kind, state, parsed)
    prepare_thread(spark)
    reader = spark.read.format("icebergpy")
    if schema is not None:
        reader = reader.schema(schema)
    given = scan_options(state.io, {METADATA_TABLE: kind.value}, options)
    if schema is None and _is_read_in_parts(plan, parsed):
        reader = reader.option(PARTS_OF_PARTITIONS, "true")
        given.pop("columns", None)
        with own_errors():
            parts = reader.options(**given).load(state.metadata_location)
            return added_up(parts, plan.columns)
    with own_errors():
        return reader.options(**given).load(state.metadata_location)


def _is_read_in_parts(plan: MetadataTablePlan, options: ReadOptions) -> bool:
    if plan.kind is not MetadataTable.PARTITIONS or not filters_parts(plan):
        return False
    return files_of_snapshot(plan, options) > _FILES_OF_ONE_PROCESS


def staged_metadata_table(
    spark: SparkSession, state: TableState, kind: MetadataTable, options: Mapping[str, str]
) -> DataFrame:
    """A metadata table of a state that is not committed, read in this process.

    Errors are those of `metadata_table_frame`.
    """
    parsed = parse_read_options(in_zone_of(spark, options))
    plan = plan_metadata_table(kind, state, parsed)
    batches = map(shaper(plan.columns), read_metadata_table(plan, parsed).to_batches())
    rows = pa.Table.from_batches(batches, spark_arrow_schema(plan.columns))
    return spark.createDataFrame(rows, spark_schema(plan.columns))


def load_metadata_table(
    spark: SparkSession, options: Mapping[str, str], schema: StructType | None
) -> DataFrame | None:
    """The metadata table that the options of a load name; None if they name a table.

    Errors are those of `open_metadata_table` and `metadata_table_frame`.
    """
    load = open_metadata_table(in_zone_of(spark, options))
    if load is None:
        return None
    further = {
        name: value
        for name, value in options.items()
        if not is_of_address(name.lower()) and name.lower() != METADATA_TABLE
    }
    return metadata_table_frame(spark, load.state, load.kind, further, schema)
