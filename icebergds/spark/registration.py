"""Registers the format with a Spark session, with its catalogs and faster reads and writes."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from icebergds.catalog.config import (
    SessionCatalogs,
    catalog_properties,
    set_session_catalogs,
)
from icebergds.spark.datasource import IcebergDataSource
from icebergds.spark.native import NATIVE_SCANS
from icebergds.spark.quick_batches import FAST_WRITES, MAX_BYTES_PER_BATCH, UNBOUNDED
from icebergds.spark.registered import (
    SESSION_ID,
    Registered,
    Statements,
    forget_source,
    registered,
    session_of,
    sessions,
)
from icebergds.spark.session import active_session, is_connect
from icebergds.spark.verbs import READER, WRITER

CATALOG_PREFIX = "spark.icebergpy.catalog."
_LOG = logging.getLogger(__name__)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource


def register(
    spark: SparkSession,
    *,
    fast_writes: bool | None = None,
    native_scans: bool = True,
    reader: bool = True,
    writer: bool = True,
    statements: Statements | None,
    again: Callable[[SparkSession], None],
) -> None:
    """Registers the format `icebergpy` with a session, and the catalogs of its configuration.

    Spark gets the format as a class, which it passes to all its processes. `icebergds.register`
    documents the other arguments.

    Args:
        statements: what runs SQL; None for Spark itself.
        again: registers another session in the same way.
    """
    settings = {
        NATIVE_SCANS: _text(native_scans),
        READER: _text(reader),
        WRITER: _text(writer),
        FAST_WRITES: _text(fast_writes is not False),
        SESSION_ID: session_of(spark).key,
    }
    if fast_writes:
        settings[MAX_BYTES_PER_BATCH] = UNBOUNDED
    now = spark.conf.getAll
    known = sessions.get(session_of(spark).key)
    before = {name: now.get(name) for name in settings} | dict(known.before if known else {})
    for name, value in settings.items():
        spark.conf.set(name, value)
    _forget_ended(application := _application(spark))
    catalogs = _catalogs_of(now)
    _set(
        spark,
        Registered(
            application=application,
            catalogs=catalogs,
            session=weakref.ref(spark),
            source=_source(catalogs),
            statements=statements,
            again=again,
            before=before,
        ),
    )
    if is_connect(spark) and catalogs:
        _warn_of_hidden(spark, catalogs)


def unregister(spark: SparkSession) -> bool:
    """Undoes `register`; returns whether no session of this process is registered any more."""
    session = session_of(spark)
    if session.id is not None:
        known = sessions.pop(session.key, None)
        _publish_catalogs()
        for name, value in {**(known.before if known else {}), SESSION_ID: None}.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)
        forget_source(spark, IcebergDataSource)
        session.id = None
        session.kept.clear()
    return not sessions


def read_catalogs_again(spark: SparkSession) -> None:
    """Adds catalogs that were set on a registered session since, in whatever way.

    It reads all settings of the session, so it is called only for unknown names.
    """
    known = registered(spark)
    if known is not None and (catalogs := _catalogs_of(spark.conf.getAll)) != known.catalogs:
        of_session = weakref.ref(spark)
        source = _source(catalogs)
        _set(spark, replace(known, catalogs=catalogs, session=of_session, source=source))


def following(of_spark: Callable[..., None]) -> Callable[..., None]:
    """`RuntimeConfig.set` and `unset`, which change the catalogs of a registered session.

    Looking for changed catalogs in every statement would take longer than running it.
    """

    @wraps(of_spark)
    def following(self: Any, key: str, *args: Any, **kwargs: Any) -> None:
        of_spark(self, key, *args, **kwargs)
        if key.startswith(CATALOG_PREFIX):
            known = sessions.get(self.get(SESSION_ID, None) or "")
            spark = None if known is None else known.session()
            if spark is not None:
                read_catalogs_again(spark)

    return following


def _catalogs_of(settings: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The catalogs in a session's settings."""
    catalogs: dict[str, dict[str, str]] = {}
    for key, value in settings.items():
        if key.startswith(CATALOG_PREFIX):
            name, _, rest = key.removeprefix(CATALOG_PREFIX).partition(".")
            catalogs.setdefault(name, {})[rest] = value
    return catalogs


def _source(catalogs: dict[str, dict[str, str]]) -> type[DataSource]:
    """The data source of a session with these catalogs."""
    if not catalogs:
        return IcebergDataSource

    # A subclass, so that the properties are pickled with the class to Spark's other processes.
    class SessionDataSource(IcebergDataSource):
        session_catalogs = catalogs

    return SessionDataSource


def _set(spark: SparkSession, known: Registered) -> None:
    session = session_of(spark)
    sessions[session.key], session.id = known, session.key
    _publish_catalogs()
    if is_connect(spark):
        spark.dataSource.register(known.source)


def _publish_catalogs() -> None:
    by_session = {key: known.catalogs for key, known in sessions.items()}
    set_session_catalogs(SessionCatalogs(by_session, _active_session_id))


def _warn_of_hidden(spark: SparkSession, catalogs: Mapping[str, Mapping[str, str]]) -> None:
    """Warns of catalog properties that Spark Connect does not give its clients.

    Spark shows that they are set, but hides their values if their names look secret.
    """
    try:
        settings = spark.sql("SET").collect()
    except PySparkException as error:
        _LOG.info("the session does not list its settings: %s", error)
        return
    for key, *_ in settings:
        name, _, rest = key.removeprefix(CATALOG_PREFIX).partition(".")
        if not key.startswith(CATALOG_PREFIX) or rest in catalogs.get(name, ()):
            continue
        if rest not in catalog_properties(name, {}):
            variable = f"PYICEBERG_CATALOG__{name}__{rest.replace('.', '__').replace('-', '_')}"
            # An underscore in a variable's name stands for a hyphen.
            others = "" if "_" in name + rest else f" or the environment ({variable.upper()})"
            _LOG.warning(
                "catalog %s has no %s: Spark Connect keeps %s secret from its clients; set it "
                "where this program runs, in .pyiceberg.yaml%s",
                *(name, rest, key, others),
            )


def _forget_ended(application: str | None) -> None:
    """Forgets sessions that have ended with Spark."""
    for key, known in list(sessions.items()):
        if application is not None and known.application not in (None, application):
            del sessions[key]


def _application(spark: SparkSession) -> str | None:
    """The id of the application that runs in this process; None for Spark Connect."""
    try:
        return spark.sparkContext.applicationId
    except Exception:
        return None


def _active_session_id() -> str | None:
    try:
        return session_of(active_session()).id
    except Exception:
        # There is no application, or it has ended.
        return None


def _text(value: bool) -> str:
    return "true" if value else "false"
