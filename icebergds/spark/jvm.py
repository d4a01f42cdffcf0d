"""Finds classes and static methods in classic Spark's JVM, and copes if they are missing.

Spark's private classes may change in any release, and platforms may hide them from Python. All code
that uses them goes through `with_private`.

Each dot of `spark._jvm.org.apache...` asks the JVM again, which takes about as long as the call
itself. What has been found is cached here, as long as its view of the JVM lives.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from typing import Any, TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")

NONE = "scala.None$.MODULE$"
"""The name, for `in_jvm`, of Scala's empty option."""

_found: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()
# By schema: parsing one takes longer than copying the relation.
_empty: weakref.WeakKeyDictionary[SparkSession, dict[str, Any]] = weakref.WeakKeyDictionary()
_MOST_EMPTY = 64

_CATALOG = "org.apache.spark.sql.catalyst.catalog"
_entries: weakref.WeakKeyDictionary[Any, _PartsOfEntries] = weakref.WeakKeyDictionary()

_logged: set[Private] = set()


class Private(StrEnum):
    """What Spark's private classes are used for, and what it costs to do without them."""

    FRAMES = "DataFrames of tables choose files by the conditions that Spark passes on alone"
    READERS = "DataFrames of tables leave it to Spark when a table is loaded"
    WRITERS = "Spark's writer hands rows to the data source, by paths alone"
    SCANS = "Spark's own Parquet reader reads no files of tables"
    BATCHES = "Spark counts the bytes of rows that are written"
    CONDITIONS = "conditions that are Columns are evaluated row by row"
    MERGES = "merges read all rows of the files that may match"
    SESSIONS = "sessions are known by the hash codes of their objects"
    LOCAL_ROWS = "few rows are sent to the JVM in a file"
    VIEWS = "each table in a text is made a temporary view by a command"
    TITLES = "Spark's UI does not name the tables that Spark's own Parquet reader reads"
    STATEMENTS = "Spark explains each statement to find out whether it can be parsed"


def with_private(use: Private, call: Callable[[], _T], otherwise: Callable[[], _T]) -> _T:
    """Calls a function that uses Spark's private classes, or another if they are not as expected.

    The first time, this is logged as a warning. If the other call fails, too, the user gets its
    error.
    """
    try:
        return call()
    except _failures() as error:
        found = otherwise()
        if use not in _logged:
            _logged.add(use)
            reason = str(error).partition("\n")[0]
            _LOG.warning("this Spark is not as icebergds knows it: %s (%s)", use.value, reason)
        return found


def _failures() -> tuple[type[Exception], ...]:
    """The errors raised if a class or method is missing or has other arguments."""
    from py4j.protocol import Py4JError

    return Py4JError, PySparkException, AttributeError, TypeError


def in_jvm(spark: SparkSession, name: str) -> Any:
    """A class, its static method or its only instance, by the full dotted name.

    Args:
        spark: a classic session.
    """
    jvm: Any = spark._jvm
    known = _found.setdefault(jvm, {})
    if name not in known:
        known[name] = reduce(getattr, name.split("."), jvm)
    return known[name]


def plan_dataset(spark: SparkSession, session: Any, plan: Any) -> Any:
    """Makes a JVM `Dataset` of a logical plan.

    Args:
        session: the JVM session that will run it.
    """
    return in_jvm(spark, "org.apache.spark.sql.classic.Dataset.ofRows")(session, plan)


def resolved_dataset(spark: SparkSession, session: Any, leaf: Any) -> Any:
    """Makes a JVM `Dataset` of a relation that Spark need not analyze.

    Args:
        session: the JVM session that will run it.
    """
    leaf.setAnalyzed()
    return plan_dataset(spark, session, leaf)


def new_attributes(spark: SparkSession, schema: Any) -> Any:
    """Creates Catalyst attributes for the fields of a schema; both are JVM objects.

    Args:
        spark: a classic session.
    """
    name = "org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes"
    return in_jvm(spark, name)(schema)


def empty_relation(spark: SparkSession, schema: str) -> Any:
    """A logical plan without rows, whose attributes belong to no other plan.

    Args:
        spark: a classic session.
        schema: as JSON.
    """
    known = _empty.setdefault(spark, {})
    plan = known.get(schema)
    if plan is None:
        attributes = new_attributes(spark, spark._jsparkSession.parseDataType(schema))
        local = in_jvm(spark, "org.apache.spark.sql.catalyst.plans.logical.LocalRelation")
        no_rows = in_jvm(spark, "scala.collection.immutable.Nil$.MODULE$")
        plan = local(attributes, no_rows, False, in_jvm(spark, NONE))
        if len(known) >= _MOST_EMPTY:
            known.clear()
        known[schema] = plan
    return plan.newInstance()


def is_resolved(frame: DataFrame) -> bool:
    """Whether Spark has resolved all columns; False if some may belong to an outer query."""
    classic: Any = frame._jdf
    return with_private(
        Private.FRAMES, lambda: bool(classic.logicalPlan().resolved()), lambda: False
    )


@dataclass(frozen=True, slots=True)
class Title:
    """What Spark's UI, `explain` and listeners call a scan.

    Attributes:
        text: the name of the table, and more.
        location: of the table; listeners ask for it.
    """

    text: str
    location: str


def relation_plan(
    spark: SparkSession, relation: Any, attributes: Any, title: Title | None = None
) -> Any:
    """A logical plan that returns the columns of a `BaseRelation` as attributes.

    Args:
        spark: a classic session.
        attributes: named as the columns.
    """
    none = in_jvm(spark, NONE)
    entry = with_private(Private.TITLES, lambda: _entitled(spark, title), lambda: none)
    return _relation(spark, relation, attributes, entry)


def _relation(spark: SparkSession, relation: Any, attributes: Any, entry: Any) -> Any:
    plan = in_jvm(spark, "org.apache.spark.sql.execution.datasources.LogicalRelation")
    return plan(relation, attributes, entry, False, in_jvm(spark, NONE))


def _entitled(spark: SparkSession, title: Title | None) -> Any:
    """An entry of Spark's own catalog, in no catalog, with a name and a location; or none."""
    none, some = in_jvm(spark, NONE), in_jvm(spark, "scala.Some")
    if title is None:
        return none
    if (known := _entries.get(spark._jvm)) is None:
        known = _entries[spark._jvm] = _parts_of_entries(spark)
    name = in_jvm(spark, "org.apache.spark.sql.catalyst.TableIdentifier")(title.text, none, none)
    uri = in_jvm(spark, "org.apache.hadoop.fs.Path")(title.location).toUri()
    storage = in_jvm(spark, f"{_CATALOG}.CatalogStorageFormat")(some(uri), *known.storage)
    entry = in_jvm(spark, f"{_CATALOG}.CatalogTable")
    return some(entry(name, known.kind, storage, *known.others))


@dataclass(frozen=True, slots=True)
class _PartsOfEntries:
    """What all entries of Spark's own catalog have in common here.

    Attributes:
        kind: of the table.
        storage: all about it but the location.
        others: what follows the storage.
    """

    kind: Any
    storage: list[Any]
    others: list[Any]


def _parts_of_entries(spark: SparkSession) -> _PartsOfEntries:
    empty = in_jvm(spark, f"{_CATALOG}.CatalogStorageFormat.empty")()
    entry = f"{_CATALOG}.CatalogTable"
    count = in_jvm(spark, "java.lang.Class.forName")(entry).getConstructors()[0].getParameterCount()
    defaults = (in_jvm(spark, f"{entry}.apply$default${n}")() for n in range(5, count + 1))
    return _PartsOfEntries(
        in_jvm(spark, f"{_CATALOG}.CatalogTableType.EXTERNAL")(),
        [empty.productElement(at) for at in range(1, empty.productArity())],
        [in_jvm(spark, "org.apache.spark.sql.types.StructType")(), *defaults],
    )


def is_relation(plan: Any) -> bool:
    """Whether a plan is just one `BaseRelation`."""
    return bool(plan.getClass().getSimpleName() == "LogicalRelation")


def relation_with_attributes(spark: SparkSession, plan: Any, other: Any) -> Any:
    """Gives a plan that is one relation the attributes of another plan, all nullable.

    Args:
        spark: a classic session.

    Returns:
        None if the plan is anything else, or its columns have other names or types.
    """
    if not is_relation(plan):
        return None
    is_same = in_jvm(spark, "org.apache.spark.sql.types.DataType.equalsIgnoreNullability")
    if not is_same(plan.schema(), other.schema()):
        return None
    return _relation(spark, plan.relation(), other.output(), plan.catalogTable())


def is_broadcast(spark: SparkSession, frame: DataFrame) -> bool:
    """Whether Spark would broadcast a frame in a join, by its estimate of the size.

    Args:
        spark: a classic session.
    """
    jvm_frame: Any = frame._jdf
    size = jvm_frame.queryExecution().optimizedPlan().stats().sizeInBytes()
    limit: int = spark._jsparkSession.sessionState().conf().autoBroadcastJoinThreshold()
    return int(str(size)) <= limit


def with_new_attributes(spark: SparkSession, frame: DataFrame) -> DataFrame:
    """Gives a frame that is one relation new attributes.

    If a relation is in a plan twice, Spark itself chooses which of them keeps its attributes.
    """
    jvm_frame: Any = frame._jdf
    plan = jvm_frame.logicalPlan().newInstance()
    return DataFrame(plan_dataset(spark, spark._jsparkSession, plan), spark)
