"""Makes DataFrames of Parquet files whose columns classic Spark matches by field id.

Matching by id is a setting of the session that a relation belongs to. The relations here belong to
a copy of the user's session, so that no other read of the user's session changes.

Spark's own Parquet reader looks up each file twice, and on S3 three times, one after the other. The
relations here have files that Spark need not list, or lists once.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icebergds.spark.jvm import (
    NONE,
    Private,
    Title,
    in_jvm,
    new_attributes,
    relation_plan,
    resolved_dataset,
    with_private,
)
from icebergds.spark.kept_relations import keep_rows, kept_rows

_LOG = logging.getLogger(__name__)

V1_SOURCES = "spark.sql.sources.useV1SourceList"
"""The setting that lists the formats whose readers return the file and position of a row."""

READ_OPTIONS = {
    # Paths are not patterns, and a directory such as `day=1` is not a column.
    "__globPaths__": "false",
    "recursiveFileLookup": "true",
    # A session may be set to skip missing or corrupt files, which would lose rows.
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "mergeSchema": "false",
    # Iceberg dates and timestamps use the proleptic Gregorian calendar.
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}
"""How Spark reads data files."""

_BY_ID = {
    # Spark's V2 reader returns neither positions of rows nor the files that it has listed.
    V1_SOURCES: "parquet",
    "spark.sql.parquet.fieldId.read.enabled": "true",
    # A file without ids is an error instead of nulls.
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    # The row-based reader takes the setting to match by id from the query's session instead of the
    # relation's, and would not find columns that have other names.
    "spark.sql.parquet.enableVectorizedReader": "true",
    "spark.sql.parquet.enableNestedColumnVectorizedReader": "true",
}
# Spark lists more paths than this in a job, a task each, which local disks do not need.
_LISTED_BY_JOB = {"spark.sql.sources.parallelPartitionDiscovery.threshold": str(2**31 - 1)}
_FEW_LISTING_TASKS = {"spark.sql.sources.parallelPartitionDiscovery.parallelism": "32"}


_LOCAL = "file://"
_SOURCES = "org.apache.spark.sql.execution.datasources"


@dataclass(frozen=True, slots=True)
class SessionById:
    """A copy of a session (all attributes are JVM objects).

    Attributes:
        conf: the configuration of the original.
        settings: the settings of the original when the copy was made.
        options: `READ_OPTIONS`.
    """

    session: Any
    conf: Any
    settings: Any
    options: Any


def parquet_by_id(
    spark: SparkSession, schema: StructType, addresses: Sequence[str], title: Title | None
) -> DataFrame | None:
    """The rows of Parquet files in classic Spark; None if Spark cannot access them.

    Args:
        schema: its fields have the metadata `parquet.field.id`; those without are found by name.
        addresses: of at least one file, without line breaks.
        title: what Spark's UI calls the scan.
    """

    def listed() -> DataFrame | None:
        is_local = all(address.startswith(_LOCAL) for address in addresses)
        copy = session_by_id(spark, is_local=is_local)
        if not is_local:
            return listed_files(spark, copy.session, schema, addresses, copy.options, title)
        key = schema.json(), tuple(addresses), title
        paths = [address.removeprefix(_LOCAL) for address in addresses]
        rows = kept_rows(spark, copy, key, paths)
        if rows is None:
            rows = listed_files(spark, copy.session, schema, addresses, copy.options, title)
            if rows is not None:
                keep_rows(spark, copy, key, paths, rows)
        return rows

    return _unless_refused(addresses[0], listed)


def parquet_with_options(
    spark: SparkSession,
    schema: StructType,
    addresses: Sequence[str],
    options: Mapping[str, str],
    sizes: Sequence[int],
    title: Title | None,
) -> DataFrame | None:
    """The rows of Parquet files that Hadoop opens by options, as `parquet_by_id`.

    Args:
        options: of Hadoop, in addition to the session's.
        sizes: the current sizes of the files in bytes.
    """

    def known() -> DataFrame | None:
        copy = session_by_id(spark, is_local=False)
        given = {**READ_OPTIONS, **options}
        return known_files(spark, copy.session, schema, addresses, sizes, given, title)

    return _unless_refused(addresses[0], known)


def _unless_refused(address: str, read: Callable[[], DataFrame | None]) -> DataFrame | None:
    """What a call returns; None if Spark cannot access the files, or is not as expected."""
    from py4j.protocol import Py4JJavaError

    def unless_refused() -> DataFrame | None:
        try:
            return read()
        except (PySparkException, Py4JJavaError) as error:
            log_refusal(address, error)
            return None

    return with_private(Private.SCANS, unless_refused, lambda: None)


def log_refusal(address: str, error: Exception) -> None:
    """Logs why Spark does not read files; names one of them."""
    # Py4J's own text says where the error happened, not what it is.
    told = str(getattr(error, "java_exception", error)).partition("\n")[0]
    _LOG.info("Spark cannot read %s by itself: %s", address, told)


_sessions: weakref.WeakKeyDictionary[SparkSession, dict[bool, SessionById]] = (
    weakref.WeakKeyDictionary()
)


def session_by_id(spark: SparkSession, *, is_local: bool) -> SessionById:
    """A copy of the session's current state in which columns are matched by field id."""
    copies = _sessions.setdefault(spark, {})
    original: Any = spark._jsparkSession
    known = copies.get(is_local)
    conf = original.sessionState().conf() if known is None else known.conf
    settings = conf.getAllConfs()
    if known is not None and known.settings.equals(settings):
        return known
    session = original.cloneSession()
    listing = _LISTED_BY_JOB if is_local else _FEW_LISTING_TASKS
    for name, value in {**_BY_ID, **listing}.items():
        session.conf().set(name, value)
    options = in_jvm(spark, "java.util.HashMap")()
    for name, value in READ_OPTIONS.items():
        options.put(name, value)
    copies[is_local] = SessionById(session, conf, settings, options)
    return copies[is_local]


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
