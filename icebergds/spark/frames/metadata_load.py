"""Loads metadata tables in registered sessions; of classic Spark, with the columns of a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icebergds.expr.nodes import Expr
from icebergds.operations.metadata_tables.load import open_metadata_table
from icebergds.operations.metadata_tables.plan import plan_metadata_table
from icebergds.operations.metadata_tables.tasks import MetadataTablePlan
from icebergds.operations.read.options import ReadOptions
from icebergds.spark.errors import prepare_thread
from icebergds.spark.frames.used_fields import narrowed, padded
from icebergds.spark.metadata_tables import LOCAL, metadata_table_frame, planned_frame
from icebergds.spark.session import in_zone_of, is_connect
from icebergds.spark.types import spark_schema
from icebergds.spec.schema import Schema
from icebergds.spec.types import NestedField


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


@dataclass(frozen=True, slots=True)
class MetadataLoad:
    """A metadata table of one state of a table, pinned by a load.

    Attributes:
        schema: of the DataFrames.
    """

    plan: MetadataTablePlan
    options: ReadOptions
    schema: StructType

    @property
    def table_schema(self) -> Schema:
        return self.plan.table.schema

    @property
    def fields(self) -> tuple[NestedField, ...]:
        """The columns of the load."""
        return self.plan.columns.fields

    def rows(self, spark: SparkSession, condition: Expr, used: frozenset[int] | None) -> DataFrame:
        """The rows, at least those that meet a condition; planned now.

        Args:
            condition: bound to the metadata table's schema.
            used: ids of the fields that are read, the columns being those that have them; None for
                all.

        Raises:
            MissingFileError, CorruptFileError: metadata is missing or damaged.
        """
        whole = self.plan.columns
        read = whole if used is None else narrowed(whole, used)
        plan = replace(self.plan, columns=read)
        frame = planned_frame(spark, plan, self.options, condition, may_be_joined=used is None)
        return padded(frame, whole, read, self.schema)

    def count(self, spark: SparkSession) -> int | None:
        """None: its rows are counted."""
        return None
