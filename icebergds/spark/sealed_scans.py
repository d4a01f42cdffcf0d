"""Passes planned scans of encrypted files on to a data source that alone can read them.

Spark shows options of loads, also in its event log. So tasks with keys are encrypted there, by a
key of this process, which the class of the data source has: Spark keeps that in memory and shows
none of it, as it does with the class that has the catalogs of a session.
"""

from __future__ import annotations

import secrets
from functools import lru_cache
from typing import ClassVar

from pyspark.sql import SparkSession

from icebergds.spark.datasource import IcebergDataSource
from icebergds.spark.registered import need_further_source

__all__ = ["sealed_source"]

_NAME = "icebergpy_sealed"
_KEY_LENGTH = 32


def sealed_source(spark: SparkSession) -> tuple[str, bytes]:
    """The name of a data source for scans that are packed with a key, and that key.

    Registers the source with Spark, once in a session.
    """
    source, key = _source()
    need_further_source(spark, source)
    return _NAME, key


@lru_cache(maxsize=1)
def _source() -> tuple[type[IcebergDataSource], bytes]:
    key = secrets.token_bytes(_KEY_LENGTH)

    # Defined here, so that it is pickled with the key to Spark's other processes.
    class SealedDataSource(IcebergDataSource):
        scan_key: ClassVar[bytes] = key

        @classmethod
        def name(cls) -> str:
            return _NAME

    return SealedDataSource, key
