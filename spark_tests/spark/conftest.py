"""The format is registered with the shared session: a checkout is not installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from icebergds import register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session", autouse=True)
def _registered(spark: SparkSession) -> None:
    # Many tests make tasks fail on purpose.
    spark.sparkContext.setLogLevel("OFF")
    register(spark)
