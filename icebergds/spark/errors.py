"""Errors of this package that Spark has wrapped in its own, and what Spark needs of a thread."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from icebergds import errors

# As Python prints an exception, which is what Spark hands on of one that another process raised.
_PRINTED = re.compile(r"^icebergds\.errors\.(\w+): (.*)", re.MULTILINE)


@contextmanager
def own_errors() -> Iterator[None]:
    """Raises what this package raised in other processes as the error that it was.

    Spark's exception, with its traceback, is the cause.
    """
    try:
        yield
    except PySparkException as wrapped:
        found = _own(str(wrapped))
        if found is None:
            raise
        raise found from wrapped


def prepare_thread(spark: SparkSession) -> None:
    """Makes Python data sources known to the current thread, where it is not the main one.

    Without it classic Spark knows none there (DATA_SOURCE_NOT_FOUND).
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
