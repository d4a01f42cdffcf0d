"""Makes DataFrames of Parquet files without asking their storage for them.

Spark would ask S3 three times for each, one after the other.
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
) -> DataFrame | None:
    """The rows of Parquet files in classic Spark; None if Spark does not find all of them.

    Args:
        spark: will run the queries.
        session: of the JVM, whose settings are those of the relation.
        sizes: of the files in bytes, as they are now.
        options: of the reader, and of Hadoop.

    Raises:
        Py4JError: the files cannot be accessed.
    """
    given = in_jvm(spark, "java.util.HashMap")()
    for name, value in options.items():
        given.put(name, value)
    scala_options = in_jvm(spark, "org.apache.spark.api.python.PythonUtils.toScalaMap")(given)
    path_of = in_jvm(spark, "org.apache.hadoop.fs.Path")
    status_of = in_jvm(spark, "org.apache.hadoop.fs.FileStatus")
    gateway: Any = spark.sparkContext._gateway
    # Only a cache: Spark lists the files itself if it drops them, or is told to refresh.
    cache = in_jvm(spark, f"{_SOURCES}.FileStatusCache.getOrCreate")(session)
    paths = in_jvm(spark, "java.util.ArrayList")()
    for address, size in zip(addresses, sizes, strict=True):
        path = path_of(address)
        paths.add(path)
        statuses = gateway.new_array(status_of, 1)
        statuses[0] = status_of(size, False, 1, _BLOCK_SIZE, 0, path)
        cache.putLeafFiles(path, statuses)
    first = paths.get(0)
    conf = session.sessionState().newHadoopConfWithOptions(scala_options)
    first.getFileSystem(conf).getFileStatus(first)
    none = in_jvm(spark, "scala.Option.empty")()
    index = in_jvm(spark, f"{_SOURCES}.InMemoryFileIndex")(
        session,
        in_jvm(spark, "org.apache.spark.api.python.PythonUtils.toSeq")(paths),
        scala_options,
        none,
        cache,
        none,
        none,
    )
    if index.allFiles().size() != len(addresses):
        # Those that the cache dropped, and that are not there any more.
        return None
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
