"""Adds to errors of Spark's Parquet reader which option lets icebergds read the file instead.

Planning reads only some footers of large tables, so Spark may be given a file it cannot read.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any
from urllib.parse import unquote

# icebergds cannot read files that do not exist either.
_FAILURE = re.compile(r"\[FAILED_READ_FILE\.(?!FILE_NOT_EXIST)\w+\].*? file (\S+?)\.?\s")
_SCHEME = re.compile(r"^[A-Za-z0-9+.-]+:/*")
_MOST_DIRECTORIES = 1 << 14
_directories: OrderedDict[str, None] = OrderedDict()


def know_native_files(addresses: Iterable[str]) -> None:
    """Remembers the directories of files that Spark reads for this package."""
    for directory in {_directory(address) for address in addresses}:
        _directories[directory] = None
        _directories.move_to_end(directory)
    while len(_directories) > _MOST_DIRECTORIES:
        _directories.popitem(last=False)


def converting(of_spark: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Wraps the function that makes classic PySpark's errors; adds the option for such files."""

    @wraps(of_spark)
    def converting(error: Any) -> Any:
        found = of_spark(error)
        text = getattr(found, "_desc", None)
        hint = _hint(text) if isinstance(text, str) else None
        if hint is None:
            return found
        from pyspark.errors.exceptions.captured import SparkRuntimeException

        # PySpark would raise a Py4J error instead of a class that it does not know.
        return SparkRuntimeException(f"{text}\n{hint}", found._stackTrace)

    return converting


def _hint(text: str) -> str | None:
    failure = _FAILURE.search(f"{text} ")
    if failure is None or _directory(failure[1]) not in _directories or _OPTION in text:
        return None
    return (
        f"Spark's own Parquet reader cannot read this file; if icebergds can, {_OPTION} "
        "has it read all files"
    )


_OPTION = "icebergds.register(spark, native_scans=False)"


def _directory(address: str) -> str:
    return _SCHEME.sub("/", unquote(address)).rpartition("/")[0]
