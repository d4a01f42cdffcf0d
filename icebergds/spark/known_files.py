"""Makes DataFrames of Parquet files that Spark need not look for, or looks for once.

Spark's own reader of Parquet looks for each file twice, and on S3 three times, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icebergds.spark.jvm import NONE, in_jvm, new_attributes, relation_plan, resolved_dataset

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
    return relation.frame(roots, len(addresses), _new_cache(spark, session))


@dataclass(frozen=True, slots=True)
class ListedFiles:
    """The files of a relation, which later ones need not list: objects of the JVM.

    Attributes:
        session: whose settings are those of the relations.
        cache: Spark's, of what it has listed; of these relations alone.
        roots: a sequence of the paths of the files.
        nbytes: the size of all files.
        schema, partitions: of the columns in the files, and of those beside.
        file_format: Spark's for Parquet.
        options: of the reader.
    """

    session: Any
    cache: Any
    roots: Any
    nbytes: int
    schema: Any
    partitions: Any
    file_format: Any
    options: Any

    @staticmethod
    def of(spark: SparkSession, session: Any, relation: Any) -> ListedFiles:
        """Those of a relation of a session, both of the JVM."""
        location = relation.location()
        return ListedFiles(
            session,
            _new_cache(spark, session),
            location.rootPaths(),
            location.sizeInBytes(),
            relation.dataSchema(),
            relation.partitionSchema(),
            relation.fileFormat(),
            relation.options(),
        )

    def relation(self, spark: SparkSession) -> Any:
        """Another relation of the files; None if Spark has lost some of them, or parts.

        Each one knows its files by itself: Spark may be told to list those of another one again.
        """
        index = _new_index(spark, self.session, self.roots, self.options, self.cache)
        if index.sizeInBytes() != self.nbytes:
            return None
        parts = self.partitions, self.schema, in_jvm(spark, NONE), self.file_format, self.options
        return in_jvm(spark, f"{_SOURCES}.HadoopFsRelation")(index, *parts, self.session)


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

    def frame(self, roots: Any, count: int, cache: Any) -> DataFrame | None:
        """The rows; None if the relation has not all of the files.

        Args:
            roots: a sequence of the JVM with the paths.
            count: how many these are.
            cache: has the files that need not be listed.
        """
        spark, options = self.spark, self._scala_options()
        index = _new_index(spark, self.session, roots, options, cache)
        if index.allFiles().size() != count:
            # Those that the cache dropped, and that are not there any more.
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
        plan = relation_plan(spark, relation, new_attributes(spark, schema))
        return DataFrame(resolved_dataset(spark, spark._jsparkSession, plan), spark)

    def _scala_options(self) -> Any:
        return in_jvm(self.spark, "org.apache.spark.api.python.PythonUtils.toScalaMap")(
            self.options
        )


def _new_cache(spark: SparkSession, session: Any) -> Any:
    """A part of Spark's cache of what it has listed."""
    return in_jvm(spark, f"{_SOURCES}.FileStatusCache.getOrCreate")(session)


def _new_index(spark: SparkSession, session: Any, roots: Any, options: Any, cache: Any) -> Any:
    """Spark's index of files, those that are not in the cache listed now."""
    none = in_jvm(spark, NONE)
    index = in_jvm(spark, f"{_SOURCES}.InMemoryFileIndex")
    return index(session, roots, options, none, cache, none, none)


_BLOCK_SIZE = 128 << 20
