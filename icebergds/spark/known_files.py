"""Makes DataFrames of Parquet files that Spark need not look for, or looks for once.

Spark's own reader of Parquet looks for each file twice, and on S3 three times, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icebergds.spark.jvm import in_jvm, new_attributes, relation_plan, resolved_dataset

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
    relation = _Relation(spark, session, schema, given)
    paths = relation.paths(addresses)
    relation.storage_of(paths[0]).getFileStatus(paths[0])
    status_of = in_jvm(spark, "org.apache.hadoop.fs.FileStatus")
    gateway: Any = spark.sparkContext._gateway
    # Only a cache: Spark lists the files itself if it drops them, or is told to refresh.
    cache = relation.cache()
    roots = in_jvm(spark, "java.util.ArrayList")()
    for path, size in zip(paths, sizes, strict=True):
        statuses = gateway.new_array(status_of, 1)
        statuses[0] = status_of(size, False, 1, _BLOCK_SIZE, 0, path)
        roots.add(path)
        cache.putLeafFiles(path, statuses)
    sequence = in_jvm(spark, "org.apache.spark.api.python.PythonUtils.toSeq")(roots)
    return relation.frame(sequence, len(paths), cache)


def listed_files(
    spark: SparkSession, session: Any, schema: StructType, addresses: Sequence[str], options: Any
) -> DataFrame | None:
    """The rows of Parquet files that Spark lists as the session says, as `known_files`.

    Args:
        addresses: without line breaks.
        options: of the reader, a map of the JVM.
    """
    relation = _Relation(spark, session, schema, options)
    # A few calls for all paths.
    texts = in_jvm(spark, "java.util.regex.Pattern.compile")("\n").split("\n".join(addresses))
    paths = in_jvm(spark, "org.apache.hadoop.util.StringUtils.stringToPath")(texts)
    roots = in_jvm(spark, "scala.collection.immutable.ArraySeq.unsafeWrapArray")(paths)
    return relation.frame(roots, len(addresses), relation.cache())


@dataclass(frozen=True, slots=True)
class _Relation:
    """A relation of Parquet files; the attributes are those of `listed_files`."""

    spark: SparkSession
    session: Any
    schema: StructType
    options: Any

    def paths(self, addresses: Iterable[str]) -> list[Any]:
        return list(map(in_jvm(self.spark, "org.apache.hadoop.fs.Path"), addresses))

    def storage_of(self, path: Any) -> Any:
        """The file system of Hadoop that has a path."""
        conf = self.session.sessionState().newHadoopConfWithOptions(self._scala_options())
        return path.getFileSystem(conf)

    def cache(self) -> Any:
        """Spark's cache of what it has listed, of which this relation has a part of its own."""
        return in_jvm(self.spark, f"{_SOURCES}.FileStatusCache.getOrCreate")(self.session)

    def frame(self, paths: Any, count: int, cache: Any) -> DataFrame | None:
        """The rows; None if the relation has not all of the files.

        Args:
            paths: a sequence of the JVM.
            count: how many these are.
            cache: has the files that need not be listed.
        """
        spark, options = self.spark, self._scala_options()
        none = in_jvm(spark, "scala.Option.empty")()
        index = in_jvm(spark, f"{_SOURCES}.InMemoryFileIndex")(
            self.session, paths, options, none, cache, none, none
        )
        if index.allFiles().size() != count:
            # Those that the cache dropped, and that are not there any more.
            return None
        schema = self.session.parseDataType(self.schema.json())
        relation = in_jvm(spark, f"{_SOURCES}.HadoopFsRelation")(
            index,
            in_jvm(spark, "org.apache.spark.sql.types.StructType")(),
            schema,
            none,
            in_jvm(spark, f"{_SOURCES}.parquet.ParquetFileFormat")(),
            options,
            self.session,
        )
        plan = relation_plan(spark, relation, new_attributes(spark, schema))
        return DataFrame(resolved_dataset(spark, spark._jsparkSession, plan), spark)

    def _scala_options(self) -> Any:
        return in_jvm(self.spark, "org.apache.spark.api.python.PythonUtils.toScalaMap")(
            self.options
        )


_BLOCK_SIZE = 128 << 20
