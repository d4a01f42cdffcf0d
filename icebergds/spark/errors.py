"""Carries icebergds errors through Spark, and prepares threads for data sources."""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from icebergds import errors

# An exception as Python prints it: Spark passes on nothing else from another process.
_PRINTED = re.compile(r"(?:^|: )icebergds\.errors\.(\w+): ", re.MULTILINE)
# What may follow its message: Java stack frames, other exceptions, Spark's error state.
_AFTER = re.compile(
    r"""
    ^\s*at\ [^\s(]+\(([^()]+:\d+|Native\ Method|Unknown\ Source)\)$
    | ^\s*\.\.\.\ \d+\ more$
    | ^(Caused\ by|\s*Suppressed):\ [\w.$]+
    | ^(Driver|JVM)\ stacktrace:
    | ^Traceback\ \(most\ recent\ call\ last\):$
    | ^(The\ above\ exception\ was\ the|During\ handling\ of\ the\ above\ exception)\b
    | \s*SQLSTATE:\ \w{5}$
    """,
    re.MULTILINE | re.VERBOSE,
)

QUERY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""The loggers to which PySpark writes the errors of queries."""

_caught: ContextVar[bool] = ContextVar("caught", default=False)


@contextmanager
def own_errors() -> Iterator[None]:
    """Unwraps icebergds errors of other processes from PySparkException.

    Python does not print the PySparkException, which says the same among Java stack frames; it
    stays the `__context__`. An error that PySpark raises as Ctrl-C cancels its job is raised as
    KeyboardInterrupt.
    """
    before = sys.exception()
    try:
        yield
    except PySparkException as wrapped:
        _raise_interrupt(wrapped, before)
        found = printed_error(str(wrapped))
        if found is None:
            raise
        raise found from None
    except Exception as raised:
        _raise_interrupt(raised, before)
        # PySpark unwraps errors of Arrow results only if they are direct causes.
        java = getattr(raised, "java_exception", None)
        if java is None:
            raise
        of_spark = _of_spark(java)
        raise printed_error(str(of_spark)) or of_spark from None


def _raise_interrupt(error: Exception, before: BaseException | None) -> None:
    """Raises KeyboardInterrupt if an error hides one that came after another error."""
    hidden: BaseException | None = error
    while hidden is not None and hidden is not before:
        if isinstance(hidden, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        hidden = hidden.__context__


@contextmanager
def unlogged() -> Iterator[None]:
    """Keeps PySpark from logging errors in the block, which the caller catches and rephrases.

    PySpark logs errors of queries when it creates the exceptions, with Java stack frames.
    """
    for name in QUERY_LOGGERS:
        PySparkLogger.getLogger(name).addFilter(_is_logged)
    token = _caught.set(True)
    try:
        yield
    finally:
        _caught.reset(token)


def _is_logged(_: logging.LogRecord) -> bool:
    return not _caught.get()


def _of_spark(java: Any) -> PySparkException:
    """The first in a chain of Java exceptions that PySpark has a class for, or else the last."""
    from pyspark.errors.exceptions.captured import UnknownException, convert_exception

    while True:
        converted: PySparkException = convert_exception(java)
        cause = java.getCause()
        if cause is None or not isinstance(converted, UnknownException):
            return converted
        java = cause


@contextmanager
def without_frames() -> Iterator[None]:
    """Makes Spark show only the message of an icebergds error, if Spark started this process.

    Spark's message then begins with ours instead of a traceback.
    """
    try:
        yield
    except errors.IcebergError:
        # The process ends with this error, so the setting affects no other.
        if _is_of_spark():
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise


def printed_error(text: str) -> errors.IcebergError | None:
    """The last icebergds error in Spark's text, with all lines of its message; None without one.

    Args:
        text: the string of a PySparkException: Python tracebacks, and maybe Java stack frames.
    """
    printed = list(_PRINTED.finditer(text))
    if not printed:
        return None
    kind = getattr(errors, printed[-1][1], None)
    if not (isinstance(kind, type) and issubclass(kind, errors.IcebergError)):
        return None
    start = printed[-1].end()
    after = _AFTER.search(text, start)
    return kind(text[start : after.start() if after else None].rstrip())


def prepare_thread(spark: SparkSession) -> None:
    """Makes Python data sources available in the current thread, if it is not the main one.

    Otherwise classic Spark does not find them there (DATA_SOURCE_NOT_FOUND).
    """
    if threading.current_thread() is not threading.main_thread():
        spark.createDataFrame([], "a int")


def _is_of_spark() -> bool:
    """Whether Spark started this process, to call data sources and functions."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name.startswith("pyspark.")
