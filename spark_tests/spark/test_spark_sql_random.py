"""Random queries give the rows of plain Spark, whatever is pruned."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from effort import rounds
from pyspark.sql import DataFrame, SparkSession
from sql_queries import SCHEMA, TABLES, random_query, random_rows

from icebergds import load_catalog, register

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    session = spark.newSession()
    session.conf.set("spark.icebergpy.catalog.lake.warehouse", str(tmp_path))
    session.conf.set("spark.sql.shuffle.partitions", "1")
    register(session, sql=True)
    yield session
    for table in range(TABLES):
        session.catalog.dropTempView(f"plain{table}")


def test_rows_are_those_of_plain_copies(
    lake: SparkSession, tmp_path: Path, rng: random.Random
) -> None:
    _fill(lake, tmp_path, rng)
    names = [f"lake.db.t{table}" for table in range(TABLES)]
    copies = [f"plain{table}" for table in range(TABLES)]
    for _ in range(rounds("ICEBERGDS_QUERIES", pull=5, nightly=600)):
        query = random_query(rng)
        expected = _rows(lake.sql(query.format(*copies)))
        assert _rows(lake.sql(query.format(*names))) == expected, query


def _fill(lake: SparkSession, warehouse: Path, rng: random.Random) -> None:
    """Tables of several files each, with deletes, and plain copies of their rows."""
    catalog = load_catalog("lake", warehouse=str(warehouse))
    catalog.create_namespace("db")
    for table in range(TABLES):
        created = catalog.create_table(f"db.t{table}", SCHEMA, partition_spec="day")
        for _ in range(3):
            created.append(random_rows(rng, rng.randrange(1, 8)))
        rows = created.scan().to_arrow()
        lake.createDataFrame(rows).createTempView(f"plain{table}")


def _rows(df: DataFrame) -> Counter[tuple[object, ...]]:
    return Counter(map(tuple, df.collect()))
