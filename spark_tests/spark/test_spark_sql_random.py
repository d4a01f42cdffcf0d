"""Random queries give the rows of plain Spark, whatever is pruned."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from effort import rounds
from pyspark.sql import DataFrame, SparkSession
from sql_queries import SCHEMA, TABLES, random_query, random_rows, random_view
from sql_sessions import lake_session

from icebergds import load_catalog, register

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]
_NAMES = [f"lake.db.t{table}" for table in range(TABLES)]
_COPIES = [f"plain{table}" for table in range(TABLES)]


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    session = lake_session(spark, tmp_path)
    yield session
    register(session)
    for name in ("plain_view", "view", *_COPIES):
        session.catalog.dropTempView(name)


def test_rows_are_those_of_plain_copies(lake: SparkSession, rng: random.Random) -> None:
    _fill(lake, rng)
    for _ in range(rounds("ICEBERGDS_QUERIES", pull=4, nightly=500)):
        query = random_query(rng)
        expected = _rows(lake.sql(query.format(*_COPIES)))
        assert _rows(lake.sql(query.format(*_NAMES))) == expected, query


def test_rows_of_views_are_those_of_views_of_plain_copies(
    lake: SparkSession, rng: random.Random
) -> None:
    _fill(lake, rng)
    for _ in range(rounds("ICEBERGDS_QUERIES", pull=4, nightly=200)):
        definition, query = random_view(rng), random_query(rng)
        ours = rng.choice(["VIEW lake.db.view", "TEMPORARY VIEW view"])
        plain = f"CREATE OR REPLACE TEMPORARY VIEW plain_view AS {definition.format(*_COPIES)}"
        lake.sql(plain)
        lake.sql(f"CREATE OR REPLACE {ours} AS {definition.format(*_NAMES)}")
        expected = _rows(lake.sql(query.format("plain_view", *_COPIES[1:])))
        found = _rows(lake.sql(query.format(ours.split()[-1], *_NAMES[1:])))
        assert found == expected, f"{query}, where 0 is {definition}"


def _fill(lake: SparkSession, rng: random.Random) -> None:
    """Tables of several files each, with deletes, and plain copies of their rows."""
    catalog = load_catalog("lake")
    for table in range(TABLES):
        created = catalog.create_table(f"db.t{table}", SCHEMA, partition_spec="day")
        for _ in range(3):
            created.append(random_rows(rng, rng.randrange(1, 8)))
        rows = created.scan().to_arrow()
        lake.createDataFrame(rows).createTempView(_COPIES[table])


def _rows(df: DataFrame) -> Counter[tuple[object, ...]]:
    return Counter(map(tuple, df.collect()))
