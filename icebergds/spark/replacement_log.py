"""Keeps Spark from warning that registration replaces the data source that it has discovered.

Spark warns again for each copy of a session, and reads and writes make copies. That the source of
a registered session comes first is intended: it knows the session's catalogs.
"""

from __future__ import annotations

import logging
import weakref
from typing import TYPE_CHECKING, Any

from icebergds.spark.jvm import in_jvm
from icebergds.spark.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG4J = "org.apache.logging.log4j."
_LOGGER = "org.apache.spark.sql.execution.datasources.DataSourceManager"
_WARNING = "The data source icebergpy replaced a .*"
_LOG = logging.getLogger(__name__)
_quiet: weakref.WeakSet[Any] = weakref.WeakSet()


def keep_replacement_quiet(spark: SparkSession) -> None:
    """Filters Spark's warning that this format's source was replaced, and no other one.

    The warning stays with Spark Connect, and where Spark does not log by Log4j.
    """
    if is_connect(spark):
        return
    try:
        jvm: Any = spark._jvm
        if jvm not in _quiet:
            _add_filter(spark)
            _quiet.add(jvm)
    except Exception as error:
        # Whatever keeps the JVM's logging from Python must not keep the format from a session.
        _LOG.debug("Spark will warn that the data source is replaced: %s", error)


def _add_filter(spark: SparkSession) -> None:
    result = in_jvm(spark, f"{_LOG4J}core.Filter.Result")
    create = in_jvm(spark, f"{_LOG4J}core.filter.RegexFilter.createFilter")
    denying = create(_WARNING, None, False, result.DENY, result.NEUTRAL)
    context = in_jvm(spark, f"{_LOG4J}LogManager.getContext")(False)
    # Of the nearest logger that is configured, the root one by default: Spark shows what is below
    # the session's level of each logger that has a configuration of its own.
    context.getConfiguration().getLoggerConfig(_LOGGER).addFilter(denying)
    context.updateLoggers()
