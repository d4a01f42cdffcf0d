"""Makes DataFrames of Parquet files without asking their storage for them.

Spark would ask S3 three times for each. What it would be told is in the manifests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icebergds.spark.jvm import in_jvm, plan_dataset

_SOURCES = "org.apache.spark.sql.execution.datasources"


def known_files(
    spark: SparkSession,
    session: Any,
    schema: StructType,
    addresses: Sequence[str],
    sizes: Sequence[int],
    options: Mapping[str, str],
) -> DataFrame:
    """The rows of Parquet files in classic Spark; the first file is looked for.

    Args:
        spark: will run the queries.
        session: of the JVM, whose settings are those of the relation.
        sizes: of the files, in bytes.
        options: of the reader, and of Hadoop.

    Raises:
        Py4JError: the files cannot be accessed.
    """
    given = in_jvm(spark, "java.util.HashMap")()
    for name, value in options.items():
        given.put(name, value)
    scala_options = in_jvm(spark, "org.apache.spark.api.python.PythonUtils.toScalaMap")(given)
    path_of = in_jvm(spark, "org.apache.hadoop.fs.Path")
    first = path_of(addresses[0])
    conf = session.sessionState().newHadoopConfWithOptions(scala_options)
    first.getFileSystem(conf).getFileStatus(first)
    status = in_jvm(spark, "org.apache.hadoop.fs.FileStatus")
    gateway: Any = spark.sparkContext._gateway
    statuses = gateway.new_array(status, len(addresses))
    for at, (address, size) in enumerate(zip(addresses, sizes, strict=True)):
        statuses[at] = status(size, False, 1, _BLOCK_SIZE, 0, path_of(address))
    known = in_jvm(spark, f"{_SOURCES}.FileStatusCache.getOrCreate")(session)
    # All of them at once, as if they were in the first one.
    known.putLeafFiles(first, statuses)
    roots = in_jvm(spark, "java.util.ArrayList")()
    roots.add(first)
    none = in_jvm(spark, "scala.Option.empty")()
    index = in_jvm(spark, f"{_SOURCES}.InMemoryFileIndex")(
        session,
        in_jvm(spark, "org.apache.spark.api.python.PythonUtils.toSeq")(roots),
        scala_options,
        none,
        known,
        none,
        none,
    )
    relation = in_jvm(spark, f"{_SOURCES}.HadoopFsRelation")(
        index,
        in_jvm(spark, "org.apache.spark.sql.types.StructType")(),
        session.parseDataType(schema.json()),
        none,
        in_jvm(spark, f"{_SOURCES}.parquet.ParquetFileFormat")(),
        scala_options,
        session,
    )
    plan = session.baseRelationToDataFrame(relation).logicalPlan()
    return DataFrame(plan_dataset(spark, spark._jsparkSession, plan), spark)


_BLOCK_SIZE = 128 << 20
