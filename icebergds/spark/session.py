"""Finds the active Spark session, and what is set in a session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from icebergds.errors import InvalidOptionError
from icebergds.operations.conditions import Setting, default_setting

_acting: ContextVar[SparkSession | None] = ContextVar("acting", default=None)


@contextmanager
def acting_in(spark: SparkSession) -> Iterator[None]:
    """Makes a session, with its catalogs, the active one for this package in the block."""
    token = _acting.set(spark)
    try:
        yield
    finally:
        _acting.reset(token)


def active_session(asked: str = "this") -> SparkSession:
    """The session of `acting_in` or of this thread, or the default one.

    Args:
        asked: what needs it, for the message.

    Raises:
        InvalidOptionError: there is no session.
    """
    try:
        return _acting.get() or SparkSession.active()
    except Exception:
        raise InvalidOptionError(
            f"{asked} needs Spark, and no SparkSession is active; start one, or pass it as spark="
        ) from None


def session_or_active(spark: SparkSession | None) -> SparkSession | None:
    """A session, or else the active one; None if there is none.

    Raises:
        InvalidOptionError: `spark` is not a session.
    """
    if spark is not None and not hasattr(spark, "conf"):
        raise InvalidOptionError(f"spark = {spark!r}: expected a SparkSession")
    try:
        return spark or active_session()
    except InvalidOptionError:
        return None


def session_zone(spark: SparkSession | None) -> str | None:
    """The time zone of a session, or of the active one; None if there is none."""
    session = session_or_active(spark)
    return None if session is None else session.conf.get("spark.sql.session.timeZone")


def session_setting(spark: SparkSession | None) -> Setting:
    """The settings of a session, or of the active one; Spark's defaults if there is none."""
    session = session_or_active(spark)
    if session is None:
        return default_setting

    def setting(name: str) -> str | None:
        try:
            return session.conf.get(name)
        except PySparkException:
            # This version of Spark does not have it.
            return None

    return setting


def draws_bars() -> bool:
    """Whether Spark draws bars of its own on the terminal."""
    context = SparkContext._active_spark_context
    try:
        conf = None if context is None else context.getConf()
        return conf is not None and conf.get("spark.ui.showConsoleProgress") == "true"
    except Exception:
        # The JVM has ended.
        return False


def is_connect(spark: SparkSession) -> bool:
    """Whether a session is a Spark Connect session."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def in_zone_of(spark: SparkSession, options: Mapping[str, str]) -> dict[str, str]:
    """Adds the session's time zone to the options of a load, unless they name one."""
    if any(name.lower() == "time-zone" for name in options):
        return dict(options)
    zone = session_zone(spark)
    return dict(options) if zone is None else {**options, "time-zone": zone}
