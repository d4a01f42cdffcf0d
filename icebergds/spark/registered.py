"""Tracks which sessions are registered, and what is kept for a session.

A session is one of the JVM or the Connect server, not a PySpark object: `df.sparkSession` in
`foreachBatch`, `SparkSession.active()` and `SQLContext` may be other objects for the same session.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from icebergds.spark.jvm import Private, in_jvm, with_private
from icebergds.spark.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.datasource import DataSource

_LOG4J = "org.apache.logging.log4j."
_LOGGER = "org.apache.spark.sql.execution.datasources.DataSourceManager"
_WARNING = "The data source icebergpy(_sealed)? replaced a .*"
_LOG = logging.getLogger(__name__)
_quiet: weakref.WeakSet[Any] = weakref.WeakSet()


SESSION_ID = "spark.icebergpy.session-id"
"""The setting with the id of a registered session; Spark's copies of the session have it, too."""

_SESSION = "_icebergds_session"


class Statements(Protocol):
    """What `spark.sql`, `spark.table` and `spark.catalog` do in a session, and names mean."""

    def sql(self, spark: SparkSession, /, *args: Any, **kwargs: Any) -> DataFrame: ...

    def table(self, spark: SparkSession, tableName: str, /) -> DataFrame: ...  # noqa: N803

    def catalog(self, spark: SparkSession, /) -> Any: ...

    def whole_name(
        self, spark: SparkSession, table: str, /, *, may_be_temporary: bool
    ) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Registered:
    """How a session is registered.

    Attributes:
        application: its id; None if the session runs in another process.
        source: the data source, which knows the catalogs.
        statements: runs SQL; None if the session was registered without SQL.
        again: registers another session in the same way.
        before: values of the settings that registration replaced; None for those that were not set.
    """

    application: str | None
    catalogs: Mapping[str, Mapping[str, str]] = field(repr=False)
    session: weakref.ref[SparkSession]
    source: type[DataSource]
    statements: Statements | None
    again: Callable[[SparkSession], None]
    before: Mapping[str, str | None]


@dataclass(slots=True, weakref_slot=True, eq=False)
class Session:
    """A session of the JVM or of the Connect server.

    Attributes:
        key: Spark's own id of it.
        id: the id that it is registered under; a copy has the id of its original.
        kept: what modules of this package keep for it, by name.
    """

    key: str
    id: str | None
    kept: dict[str, Any] = field(default_factory=dict)


sessions: dict[str, Registered] = {}
"""The registered sessions of this process, by their ids."""

_known: weakref.WeakValueDictionary[str, Session] = weakref.WeakValueDictionary()
# The data sources that the JVM's sessions have.
_sources: dict[str, type[DataSource]] = {}


def session_of(spark: SparkSession) -> Session:
    """The session behind a PySpark object."""
    found: Session | None = spark.__dict__.get(_SESSION)
    if found is None:
        key = _key(spark)
        found = _known.get(key)
        if found is None:
            original = spark.conf.get(SESSION_ID, None) if sessions else None
            found = _known.setdefault(key, Session(key, original, _copied(original)))
        spark.__dict__[_SESSION] = found
    return found


def _key(spark: SparkSession) -> str:
    either: Any = spark
    if is_connect(spark):
        return str(either._session_id)
    jvm_session = either._jsparkSession
    return with_private(
        Private.SESSIONS,
        lambda: str(jvm_session.sessionUUID()),
        lambda: str(jvm_session.hashCode()),
    )


def _copied(original: str | None) -> dict[str, Any]:
    """Copies what is kept for a session to its copy, as Spark copies views and functions."""
    known = _known.get(original or "")
    return {} if known is None else {name: copy(value) for name, value in known.kept.items()}


def registered(spark: SparkSession) -> Registered | None:
    """How a session, or the session that it is a copy of, is registered; None if it is not."""
    return sessions.get(session_of(spark).id or "") if sessions else None


def need_source(spark: SparkSession) -> None:
    """Registers a session's data source with Spark, before classic Spark is asked for the format.

    Not sooner: Spark then searches all Python packages for sources, in a separate process, which
    takes longer than planning a read, and reads by Spark's own reader need no data source. Does
    nothing if the session has it, or is not registered.
    """
    known = registered(spark)
    if known is None or is_connect(spark):
        return
    key = session_of(spark).key
    if _sources.get(key) is not known.source:
        _keep_replacement_quiet(spark)
        spark.dataSource.register(known.source)
        _sources[key] = known.source


def need_further_source(spark: SparkSession, source: type[DataSource]) -> None:
    """Registers a data source of another name with Spark, unless the session has it."""
    kept = session_of(spark).kept
    if kept.get(source.name()) is not source:
        if not is_connect(spark):
            _keep_replacement_quiet(spark)
        spark.dataSource.register(source)
        kept[source.name()] = source


def forget_source(spark: SparkSession, plain: type[DataSource]) -> None:
    """Replaces a session's data source, if Spark has one, with one that knows no catalogs."""
    if is_connect(spark) or _sources.pop(session_of(spark).key, None) is not None:
        _keep_replacement_quiet(spark)
        spark.dataSource.register(plain)


def _keep_replacement_quiet(spark: SparkSession) -> None:
    """Filters only Spark's warning that this format's data source was replaced.

    Spark warns again for each copy of a session, and reads and writes make copies. Replacing the
    source is intended: the registered one knows the session's catalogs. The warning stays with
    Spark Connect, and if Spark does not log with Log4j.
    """
    if is_connect(spark):
        return
    try:
        jvm: Any = spark._jvm
        if jvm not in _quiet:
            _add_filter(spark)
            _quiet.add(jvm)
    except Exception as error:
        # If Python cannot configure the JVM's logging, the session must still get the format.
        _LOG.debug("Spark will warn that the data source is replaced: %s", error)


def _add_filter(spark: SparkSession) -> None:
    result = in_jvm(spark, f"{_LOG4J}core.Filter.Result")
    create = in_jvm(spark, f"{_LOG4J}core.filter.RegexFilter.createFilter")
    denying = create(_WARNING, None, False, result.DENY, result.NEUTRAL)
    context = in_jvm(spark, f"{_LOG4J}LogManager.getContext")(False)
    # Filter at the nearest configured logger, by default the root: Spark shows even messages below
    # the session's level of each logger that has its own configuration.
    context.getConfiguration().getLoggerConfig(_LOGGER).addFilter(denying)
    context.updateLoggers()
