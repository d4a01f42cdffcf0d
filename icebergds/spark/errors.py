"""Unwraps icebergds errors from PySparkException, and prepares threads for data sources."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from icebergds import errors

# An exception as printed by Python, which is all that Spark passes on from another process.
_PRINTED = re.compile(r"^icebergds\.errors\.(\w+): (.*)", re.MULTILINE)


@contextmanager
def own_errors() -> Iterator[None]:
    """Re-raises icebergds errors of other processes as what they were, not as a PySparkException.

    The PySparkException, with its traceback, is the cause.
    """
    try:
        yield
    except PySparkException as wrapped:
        found = _own(str(wrapped))
        if found is None:
            raise
        raise found from wrapped


def prepare_thread(spark: SparkSession) -> None:
    """Makes Python data sources available in the current thread, if it is not the main one.

    Otherwise classic Spark does not find them there (DATA_SOURCE_NOT_FOUND).
    """
    if threading.current_thread() is not threading.main_thread():
        spark.createDataFrame([], "a int")


def _own(message: str) -> errors.IcebergError | None:
    printed = _PRINTED.findall(message)
    if not printed:
        return None
    name, text = printed[-1]
    kind = getattr(errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, errors.IcebergError)):
        return None
    return kind(text)
