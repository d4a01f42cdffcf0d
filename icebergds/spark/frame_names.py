"""Gives DataFrames names in classic Spark, for as long as a text that has these names is analyzed.

What PySpark does for a DataFrame in a text, `createOrReplaceTempView`, runs a command, which takes
Spark ten times as long as to keep the view.
"""

from __future__ import annotations

import uuid
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from icebergds.spark.jvm import Private, in_jvm, with_private

# What Spark knows of a temporary view besides its plan; it is the same for all that have a plan.
_descriptions: weakref.WeakKeyDictionary[SparkSession, Any] = weakref.WeakKeyDictionary()


@contextmanager
def named(spark: SparkSession, frames: Sequence[DataFrame]) -> Iterator[list[str]]:
    """Names of temporary views of DataFrames, which exist until the block ends.

    Args:
        spark: a classic session.
    """
    names = [new_name() for _ in frames]
    try:
        for name, frame in zip(names, frames, strict=True):
            keep = partial(_keep, spark, name, frame)
            with_private(Private.VIEWS, keep, partial(frame.createOrReplaceTempView, name))
        yield names
    finally:
        for name in names:
            drop = partial(_drop, spark, name)
            with_private(Private.VIEWS, drop, partial(spark.catalog.dropTempView, name))


def new_name() -> str:
    """A name as PySpark gives to DataFrames in a text."""
    return f"_pyspark_{uuid.uuid4().hex}"


def _drop(spark: SparkSession, name: str) -> bool:
    return bool(_views(spark).dropTempView(name))


def _views(spark: SparkSession) -> Any:
    return spark._jsparkSession.sessionState().catalog()


def _keep(spark: SparkSession, name: str, frame: DataFrame) -> None:
    views = _views(spark)
    description = _descriptions.get(spark)
    if description is None:
        first = new_name()
        frame.createOrReplaceTempView(first)
        try:
            description = views.getRawTempView(first).get().tableMeta()
        finally:
            spark.catalog.dropTempView(first)
        _descriptions[spark] = description
    plan: Any = frame._jdf
    relation = in_jvm(spark, "org.apache.spark.sql.catalyst.catalog.TemporaryViewRelation")
    plan = in_jvm(spark, "scala.Some")(plan.logicalPlan())
    views.createTempView(name, relation(description, plan), False)
