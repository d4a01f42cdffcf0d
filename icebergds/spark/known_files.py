"""Makes DataFrames of Parquet files that Spark need not list, or lists once.

Spark's own Parquet reader looks up each file twice, and on S3 three times, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icebergds.spark.jvm import NONE, Title, in_jvm, new_attributes, relation_plan, resolved_dataset

_SOURCES = "org.apache.spark.sql.execution.datasources"


def known_files(
    spark: SparkSession,
    session: Any,
    schema: StructType,
    addresses: Sequence[str],
    sizes: Sequence[int],
    options: Mapping[str, str],
    title: Title | None,
) -> DataFrame | None:
    """The rows of Parquet files in classic Spark; None if Spark does not find all of them.

    Args:
        spark: the session that will run the queries.
        session: the JVM session whose settings the relation has.
        sizes: the current sizes of the files in bytes.
        options: of the reader and of Hadoop.
        title: what Spark's UI calls the scan.

    Raises:
        Py4JError: the files cannot be accessed.
    """
    given = in_jvm(spark, "java.util.HashMap")()
    for name, value in options.items():
        given.put(name, value)
    relation = _Relation(spark, session, schema, given, title)
    paths = relation.paths(addresses)
    relation.storage_of(paths[0]).getFileStatus(paths[0])
    status_of = in_jvm(spark, "org.apache.hadoop.fs.FileStatus")
    gateway: Any = spark.sparkContext._gateway
    # Only a cache: Spark lists the files itself if it drops them, or is told to refresh.
    cache = _new_cache(spark, session)
    roots = in_jvm(spark, "java.util.ArrayList")()
    for path, size in zip(paths, sizes, strict=True):
        statuses = gateway.new_array(status_of, 1)
        statuses[0] = status_of(size, False, 1, _BLOCK_SIZE, 0, path)
        roots.add(path)
        cache.putLeafFiles(path, statuses)
    sequence = in_jvm(spark, "org.apache.spark.api.python.PythonUtils.toSeq")(roots)
    return relation.frame(sequence, len(paths), cache)


def listed_files(
    spark: SparkSession,
    session: Any,
    schema: StructType,
    addresses: Sequence[str],
    options: Any,
    title: Title | None,
) -> DataFrame | None:
    """The rows of Parquet files that Spark lists by the session's settings, as `known_files`.

    Args:
        addresses: without line breaks.
        options: of the reader, as a JVM map.
    """
    relation = _Relation(spark, session, schema, options, title)
    # Takes a few JVM calls for all paths together.
    texts = in_jvm(spark, "java.util.regex.Pattern.compile")("\n").split("\n".join(addresses))
    paths = in_jvm(spark, "org.apache.hadoop.util.StringUtils.stringToPath")(texts)
    roots = in_jvm(spark, "scala.collection.immutable.ArraySeq.unsafeWrapArray")(paths)
    return relation.frame(roots, len(addresses), _new_cache(spark, session))


@dataclass(frozen=True, slots=True)
class _Relation:
    """A relation of Parquet files; its attributes are the arguments of `listed_files`."""

    spark: SparkSession
    session: Any
    schema: StructType
    options: Any
    title: Title | None

    def paths(self, addresses: Iterable[str]) -> list[Any]:
        return list(map(in_jvm(self.spark, "org.apache.hadoop.fs.Path"), addresses))

    def storage_of(self, path: Any) -> Any:
        """The Hadoop file system of a path."""
        conf = self.session.sessionState().newHadoopConfWithOptions(self._scala_options())
        return path.getFileSystem(conf)

    def frame(self, roots: Any, count: int, cache: Any) -> DataFrame | None:
        """The rows; None if the relation does not have all files.

        Args:
            roots: a JVM sequence of the paths.
            count: the number of paths.
            cache: holds the files that need not be listed.
        """
        spark, options = self.spark, self._scala_options()
        index = _new_index(spark, self.session, roots, options, cache)
        if index.allFiles().size() != count:
            # Some were dropped by the cache and do not exist any more.
            return None
        schema = self.session.parseDataType(self.schema.json())
        relation = in_jvm(spark, f"{_SOURCES}.HadoopFsRelation")(
            index,
            in_jvm(spark, "org.apache.spark.sql.types.StructType")(),
            schema,
            in_jvm(spark, NONE),
            in_jvm(spark, f"{_SOURCES}.parquet.ParquetFileFormat")(),
            options,
            self.session,
        )
        plan = relation_plan(spark, relation, new_attributes(spark, schema), self.title)
        return DataFrame(resolved_dataset(spark, spark._jsparkSession, plan), spark)

    def _scala_options(self) -> Any:
        return in_jvm(self.spark, "org.apache.spark.api.python.PythonUtils.toScalaMap")(
            self.options
        )


def _new_cache(spark: SparkSession, session: Any) -> Any:
    """A new part of Spark's cache of listed files."""
    return in_jvm(spark, f"{_SOURCES}.FileStatusCache.getOrCreate")(session)


def _new_index(spark: SparkSession, session: Any, roots: Any, options: Any, cache: Any) -> Any:
    """Spark's index of files; lists those that are not in the cache."""
    none = in_jvm(spark, NONE)
    index = in_jvm(spark, f"{_SOURCES}.InMemoryFileIndex")
    return index(session, roots, options, none, cache, none, none)


_BLOCK_SIZE = 128 << 20
