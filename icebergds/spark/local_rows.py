"""DataFrames of rows that are in this process, which Spark keeps in its plans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from icebergds.formats.arrow.types import to_array
from icebergds.scan.read_plan import PLAIN_TYPES, ShownTypes
from icebergds.spark.arrow_output import shaper
from icebergds.spark.jvm import Private, in_jvm, with_private
from icebergds.spark.session import is_connect
from icebergds.spark.types import all_nullable, spark_arrow_schema, spark_schema
from icebergds.spec.schema import Schema


def local_rows(spark: SparkSession, columns: Schema, rows: Sequence[Sequence[Any]]) -> DataFrame:
    """A DataFrame of a few rows.

    Args:
        rows: in-memory values of scalar columns.
    """
    arrays = [
        to_array(field.field_type, [row[at] for row in rows])
        for at, field in enumerate(columns.fields)
    ]
    batch = pa.record_batch(arrays, names=[field.name for field in columns.fields])
    return local_batches(spark, columns, [batch] if rows else [])


def local_batches(
    spark: SparkSession,
    columns: Schema,
    batches: Iterable[pa.RecordBatch],
    *,
    are_nullable: bool = True,
    shown: ShownTypes = PLAIN_TYPES,
) -> DataFrame:
    """A DataFrame of batches of few rows.

    Args:
        batches: in the storage types of the columns.
        are_nullable: whether all columns are nullable, whatever they are in the table.
        shown: the types that Spark gets.
    """
    shape = shaper(columns, shown)
    shaped = pa.Table.from_batches(map(shape, batches), spark_arrow_schema(columns, shown))
    schema = spark_schema(columns, shown)
    if are_nullable:
        schema = all_nullable(schema)

    def by_python() -> DataFrame:
        # PySpark does not accept empty Arrow columns.
        return spark.createDataFrame(shaped if shaped.num_rows else [], schema)

    if is_connect(spark) or not shaped.num_rows:
        return by_python()

    def by_stream() -> DataFrame:
        # PySpark's own way takes eight times as many calls to the JVM, and a file.
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, shaped.schema) as writer:
            writer.write_table(shaped)
        stream = in_jvm(spark, "java.io.ByteArrayInputStream")(sink.getvalue().to_pybytes())
        channel = in_jvm(spark, "java.nio.channels.Channels.newChannel")(stream)
        converters = in_jvm(spark, "org.apache.spark.sql.execution.arrow.ArrowConverters$.MODULE$")
        found = in_jvm(spark, "org.apache.spark.sql.api.python.PythonSQLUtils.toDataFrame")(
            converters.getBatchesFromStream(channel), schema.json(), spark._jsparkSession
        )
        return DataFrame(found, spark)

    return with_private(Private.LOCAL_ROWS, by_stream, by_python)


def no_rows(spark: SparkSession, columns: Schema, shown: ShownTypes = PLAIN_TYPES) -> DataFrame:
    """An empty DataFrame that Spark knows to be empty when it plans a query.

    Spark would compile conditions on local rows at once, and fails to compile `typeof`; with
    partitions it first finds that there are none.

    Args:
        shown: the types that Spark gets.
    """
    schema = spark_schema(columns, shown)

    def by_python() -> DataFrame:
        return spark.createDataFrame([], schema).coalesce(1)

    if is_connect(spark):
        return by_python()

    def local() -> DataFrame:
        session: Any = spark._jsparkSession
        rows = in_jvm(spark, "java.util.ArrayList")()
        frame = session.createDataFrame(rows, session.parseDataType(schema.json()))
        return DataFrame(frame.coalesce(1), spark)

    return with_private(Private.FRAMES, local, by_python)
