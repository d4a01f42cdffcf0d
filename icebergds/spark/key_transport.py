"""Warns if keys of encrypted files travel between Spark's machines in clear."""

from __future__ import annotations

import logging

from pyspark.sql import SparkSession

from icebergds.commit.operations import TableState
from icebergds.spark.session import is_connect

_LOG = logging.getLogger(__name__)
# Any of them has Spark encrypt what its processes send each other.
_ENCRYPTING = (
    "spark.network.crypto.enabled",
    "spark.authenticate.enableSaslEncryption",
    "spark.ssl.rpc.enabled",
)


def warn_of_clear_keys(spark: SparkSession, state: TableState) -> None:
    """Warns once in a process that tasks of an encrypted table send keys in clear.

    Nothing is known of the server of a Spark Connect session.

    Args:
        state: the table that is read or written.
    """
    global _warned
    if state.keys is None or _warned or is_connect(spark):
        return
    conf = spark.sparkContext.getConf()
    master = spark.sparkContext.master or ""
    if master.startswith("local") or any(
        conf.get(name, "false").strip().lower() == "true" for name in _ENCRYPTING
    ):
        return
    _warned = True
    _LOG.warning(
        "table %s is encrypted, and Spark sends the keys of its files to executors in clear: set "
        "%s, or %s, in the configuration of the application",
        state.name,
        _ENCRYPTING[0],
        _ENCRYPTING[-1],
    )


_warned = False
