"""Registers the format with a Spark session, with its catalogs and faster reads and writes."""

from __future__ import annotations

import logging
import uuid
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from icebergds.catalog.config import (
    SessionCatalogs,
    catalog_properties,
    set_session_catalogs,
)
from icebergds.spark.datasource import IcebergDataSource
from icebergds.spark.frames.readers import READER, take_over_reader
from icebergds.spark.native import NATIVE_SCANS
from icebergds.spark.native_failures import tell_of_native_scans
from icebergds.spark.quick_batches import FAST_WRITES, MAX_BYTES_PER_BATCH, UNBOUNDED
from icebergds.spark.session import active_session, is_connect
from icebergds.spark.session_tables import guard_session_tables
from icebergds.spark.sources import SESSION_ID, forget_source, set_source
from icebergds.spark.stream_verbs import take_over_streams
from icebergds.spark.writers.save_writer import WRITER, take_over_writer
from icebergds.spark.writers.table_writer import take_over_table_writer

_CATALOG_PREFIX = "spark.icebergpy.catalog."
_IS_OURS = "_icebergds_follows"
_LOG = logging.getLogger(__name__)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(
    spark: SparkSession,
    *,
    fast_writes: bool | None = None,
    native_scans: bool = True,
    reader: bool = True,
    writer: bool = True,
) -> None:
    """Registers the format `icebergpy` with a session, and the catalogs of its configuration.

    Spark asks for the format by a class, which all its processes get; the reader and the writers
    are replaced in this one. `icebergds.register` says what the arguments mean.
    """
    guard_session_tables(spark)
    spark.conf.set(NATIVE_SCANS, "true" if native_scans else "false")
    spark.conf.set(READER, "true" if reader else "false")
    spark.conf.set(WRITER, "true" if writer else "false")
    take_over_reader(spark)
    take_over_writer(spark)
    take_over_table_writer(spark)
    take_over_streams(spark)
    tell_of_native_scans()
    spark.conf.set(FAST_WRITES, "false" if fast_writes is False else "true")
    if fast_writes:
        spark.conf.set(MAX_BYTES_PER_BATCH, UNBOUNDED)
    catalogs = _catalogs_of(spark)
    _define_catalogs(spark, catalogs)
    _follow_settings(spark)
    if is_connect(spark) and catalogs:
        _warn_of_hidden(spark, catalogs)


def read_catalogs_again(spark: SparkSession) -> None:
    """Takes over catalogs that a registered session has got since, by whatever way.

    It reads all settings of the session, so it is for names that are not known.
    """
    registered = _registered.get(_session_id(spark) or "")
    if registered is not None and (catalogs := _catalogs_of(spark)) != registered.catalogs:
        _define_catalogs(spark, catalogs)


def _catalogs_of(spark: SparkSession) -> dict[str, dict[str, str]]:
    """The catalogs of a session's settings."""
    catalogs: dict[str, dict[str, str]] = {}
    for key, value in spark.conf.getAll.items():
        if key.startswith(_CATALOG_PREFIX):
            name, _, rest = key.removeprefix(_CATALOG_PREFIX).partition(".")
            catalogs.setdefault(name, {})[rest] = value
    return catalogs


def _follow_settings(spark: SparkSession) -> None:
    """Takes over catalogs as soon as `conf.set` or `conf.unset` of a registered session is called.

    Looking for them in every statement would take longer than to run it.
    """
    kind: Any = type(spark.conf)
    if not getattr(kind.set, _IS_OURS, False):
        kind.set, kind.unset = _followed(kind.set), _followed(kind.unset)


def _followed(change: Callable[..., None]) -> Callable[..., None]:
    @wraps(change)
    def changed(self: Any, key: str, *args: Any, **kwargs: Any) -> None:
        change(self, key, *args, **kwargs)
        if key.startswith(_CATALOG_PREFIX):
            registered = _registered.get(self.get(SESSION_ID, None) or "")
            spark = None if registered is None else registered.session()
            if spark is not None:
                read_catalogs_again(spark)

    setattr(changed, _IS_OURS, True)
    return changed


def _define_catalogs(spark: SparkSession, catalogs: dict[str, dict[str, str]]) -> None:
    """Makes these the catalogs of a session, also for its data source."""
    session = _add_catalogs(spark, catalogs)
    if not catalogs:
        set_source(spark, session, IcebergDataSource)
        return

    # A subclass, so that the properties are pickled with the class to Spark's other processes.
    class SessionDataSource(IcebergDataSource):
        session_catalogs = catalogs

    set_source(spark, session, SessionDataSource)


def _warn_of_hidden(spark: SparkSession, catalogs: Mapping[str, Mapping[str, str]]) -> None:
    """Warns of properties of catalogs that Spark Connect does not give its clients.

    It says that they are set, but not as what, where their names look secret.
    """
    try:
        settings = spark.sql("SET").collect()
    except PySparkException as error:
        _LOG.info("the session does not list its settings: %s", error)
        return
    for key, *_ in settings:
        name, _, rest = key.removeprefix(_CATALOG_PREFIX).partition(".")
        if not key.startswith(_CATALOG_PREFIX) or rest in catalogs.get(name, ()):
            continue
        if rest not in catalog_properties(name, {}):
            variable = f"PYICEBERG_CATALOG__{name}__{rest.replace('.', '__').replace('-', '_')}"
            # An underscore of a variable stands for a hyphen.
            others = "" if "_" in name + rest else f" or the environment ({variable.upper()})"
            _LOG.warning(
                "catalog %s has no %s: Spark Connect keeps %s secret from its clients; set it "
                "where this program runs, in .pyiceberg.yaml%s",
                *(name, rest, key, others),
            )


@dataclass(frozen=True, slots=True)
class _Registered:
    """A session's catalogs; `application` is None if the session runs in another process."""

    application: str | None
    catalogs: dict[str, dict[str, str]] = field(repr=False)
    session: weakref.ref[SparkSession]


_registered: dict[str, _Registered] = {}


def _add_catalogs(spark: SparkSession, catalogs: dict[str, dict[str, str]]) -> str:
    """Replaces the session's catalogs; forgets those of sessions that have ended with Spark.

    Returns the session's id.
    """
    application = _application(spark)
    for other, registered in list(_registered.items()):
        if application is not None and registered.application not in (None, application):
            del _registered[other]
            forget_source(other)
    session = _session_id(spark)
    if session is None:
        session = str(uuid.uuid4())
        spark.conf.set(SESSION_ID, session)
    _registered[session] = _Registered(application, catalogs, weakref.ref(spark))
    by_session = {key: registered.catalogs for key, registered in _registered.items()}
    set_session_catalogs(SessionCatalogs(by_session, _active_session_id))
    return session


def _application(spark: SparkSession) -> str | None:
    """The id of the application that runs in this process; None for Spark Connect."""
    try:
        return spark.sparkContext.applicationId
    except Exception:
        return None


def _session_id(spark: SparkSession) -> str | None:
    return spark.conf.get(SESSION_ID, None)


def _active_session_id() -> str | None:
    try:
        return _session_id(active_session())
    except Exception:
        # There is none, or it has ended.
        return None
