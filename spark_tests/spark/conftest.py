"""The format is registered with the shared session: a checkout is not installed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import effort
import pytest
from server_process import QUICK_SPARK
from spark_reads import session_conf

from icebergds import register
from icebergds.spark import jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATA_SOURCE_ALONE = {"reader": False, "writer": False, "native_scans": False}

os.environ.setdefault("JAVA_TOOL_OPTIONS", QUICK_SPARK)


@pytest.fixture(scope="session", autouse=True)
def _registered(spark: SparkSession) -> Iterator[None]:
    # Many tests make tasks fail on purpose.
    spark.sparkContext.setLogLevel("OFF")
    register(spark, **DATA_SOURCE_ALONE)
    yield
    assert not jvm._logged, "private classes of this Spark are not as expected"


@pytest.fixture(autouse=True)
def _data_source_alone(spark: SparkSession) -> Iterator[None]:
    """Most tests are of the data source, as where nothing is registered; some register."""
    # The session of a test before may still be the active one, for Spark and for PySpark.
    spark.sparkContext._jvm.SparkSession.setActiveSession(spark._jsparkSession)
    type(spark)._activeSession = spark
    yield
    for name in ("reader", "writer", "native-scans"):
        spark.conf.set(f"spark.icebergpy.{name}", "false")


@pytest.fixture(params=["true", "false"], ids=["pushdown-on", "pushdown-off"])
def pushdown_conf(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs a test with Spark's filter pushdown for Python sources switched on and off."""
    with session_conf(spark, "spark.sql.python.filterPushdown.enabled", request.param):
        yield request.param


@pytest.fixture
def pushdown_enabled(spark: SparkSession) -> Iterator[None]:
    with session_conf(spark, "spark.sql.python.filterPushdown.enabled", "true"):
        yield


@pytest.fixture
def compiled(spark: SparkSession) -> Iterator[None]:
    """Lets Spark compile queries: interpreted, it cannot do all of them."""
    with session_conf(spark, "spark.sql.codegen.factoryMode", "FALLBACK"):
        yield


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Modules that take long come first: no worker waits at the end for one that began last."""
    items.sort(key=lambda item: -effort.SECONDS.get(item.nodeid.partition("::")[0], 0))


@pytest.fixture
def front(spark: SparkSession) -> Iterator[SparkSession]:
    """A session of its own that is registered as users do."""
    session = spark.newSession()
    register(session)
    session.conf.set("spark.sql.shuffle.partitions", "1")
    yield session
    session.catalog.clearCache()
