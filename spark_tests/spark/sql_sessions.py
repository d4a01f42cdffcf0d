"""Sessions whose `spark.sql` runs statements on a catalog `lake`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from icebergds import register
from icebergds.statements.names.scope import CurrentNamespace, set_current_namespace


def lake_session(spark: SparkSession, directory: Path) -> SparkSession:
    """A session of its own with a catalog that has views, and in it the namespace `db`."""
    session = spark.newSession()
    conf = {
        "type": "sql",
        "uri": f"sqlite:///{directory}/catalog.db",
        "schema_version": "v1",
        "warehouse": str(directory / "lake"),
    }
    for key, value in conf.items():
        session.conf.set(f"spark.icebergpy.catalog.lake.{key}", value)
    session.conf.set("spark.sql.shuffle.partitions", "1")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    register(session, sql=True)
    session.sql("CREATE NAMESPACE lake.db")
    return session


def rows(session: SparkSession, statement: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in session.sql(statement).collect()]


def in_spark(session: SparkSession) -> None:
    """Makes Spark's own catalog the current one again."""
    set_current_namespace(session, CurrentNamespace())
