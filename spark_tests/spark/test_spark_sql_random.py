"""Random queries give the rows of plain Spark, whatever is pruned."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from effort import rounds
from pyspark.errors import AnalysisException
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
    lake.conf.set("spark.icebergpy.local-rows", rng.choice(["0", "6", "1000"]))
    for _ in range(rounds("ICEBERGDS_QUERIES", pull=4, nightly=250)):
        query = random_query(rng)
        expected = _plain_rows(lake, query.format(*_COPIES))
        if expected is None:
            continue
        assert _rows(lake.sql(query.format(*_NAMES))) == expected, query


def test_rows_of_views_are_those_of_views_of_plain_copies(
    lake: SparkSession, rng: random.Random
) -> None:
    _fill(lake, rng)
    lake.conf.set("spark.icebergpy.local-rows", rng.choice(["0", "6", "1000"]))
    for _ in range(rounds("ICEBERGDS_QUERIES", pull=4, nightly=100)):
        definition, query = random_view(rng), random_query(rng)
        ours = rng.choice(["VIEW lake.db.view", "TEMPORARY VIEW view"])
        plain = f"CREATE OR REPLACE TEMPORARY VIEW plain_view AS {definition.format(*_COPIES)}"
        lake.sql(plain)
        lake.sql(f"CREATE OR REPLACE {ours} AS {definition.format(*_NAMES)}")
        expected = _plain_rows(lake, query.format("plain_view", *_COPIES[1:]))
        if expected is None:
            continue
        found = _rows(lake.sql(query.format(ours.split()[-1], *_NAMES[1:])))
        assert found == expected, f"{query}, where 0 is {definition}"


_OF_STRUCTS = [
    *("s.a", "t.s.a", "t.s.b.c", "s.b.d", "`s`.`B`", "s", "s['a']", "(s).b.c", "s.b.added"),
    *(
        "s IS NULL",
        "s.b IS NULL",
        "s.b.c = 1",
        "get(s.many, 0).x",
        "s.many.x",
        "struct(s.b.c, s.a)",
    ),
    *("named_struct('s', 1).s", "transform(s.many, s -> s.x)", "to_json(s)", "a", "b.c"),
    "(SELECT max(s.c) FROM (SELECT t.s.b AS s))",
]


@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_fields_of_structs_are_those_of_plain_copies(
    lake: SparkSession, rng: random.Random, file_format: str
) -> None:
    lake.sql(
        "CREATE TABLE lake.db.t (a int, b struct<c: int>, s struct<a: int, "
        "b: struct<c: int, d: string>, many: array<struct<x: int, y: int>>>) "
        f"TBLPROPERTIES ('write.format.default' = '{file_format}')"
    )
    lake.sql(
        "INSERT INTO lake.db.t VALUES (1, null, null), "
        "(2, named_struct('c', 3), named_struct('a', 1, 'b', null, 'many', array())), "
        "(3, null, named_struct('a', null, 'b', named_struct('c', 1, 'd', 'x'), "
        "'many', array(named_struct('x', 5, 'y', 6), null)))"
    )
    lake.sql("ALTER TABLE lake.db.t ADD COLUMN s.b.added int")
    lake.sql(
        "INSERT INTO lake.db.t SELECT a + 3, b, named_struct('a', 9, "
        "'b', named_struct('c', 7, 'd', 'y', 'added', 8), 'many', s.many) FROM lake.db.t"
    )
    rows = load_catalog("lake").load_table("db.t").scan().to_arrow()
    lake.createDataFrame(rows).createTempView(_COPIES[0])
    for _ in range(rounds("ICEBERGDS_QUERIES", pull=12, nightly=100)):
        items = enumerate(rng.sample(_OF_STRUCTS, rng.randrange(1, 4)))
        where = rng.choice(["", "WHERE s.a > 0", "WHERE t.s.b.c = 7", "WHERE s IS NOT NULL"])
        query = f"SELECT {', '.join(f'{item} AS x{at}' for at, item in items)} FROM {{}} t {where}"
        expected = sorted(map(str, lake.sql(query.format(_COPIES[0])).collect()))
        found = sorted(map(str, lake.sql(query.format("lake.db.t")).collect()))
        assert found == expected, query


def _fill(lake: SparkSession, rng: random.Random) -> None:
    """Tables of several files each, with deletes, and plain copies of their rows."""
    catalog = load_catalog("lake")
    for table in range(TABLES):
        created = catalog.create_table(f"db.t{table}", SCHEMA, partition_spec="day")
        for _ in range(3):
            created.append(random_rows(rng, rng.randrange(1, 8)))
        rows = created.scan().to_arrow()
        lake.createDataFrame(rows).createTempView(_COPIES[table])


def _plain_rows(spark: SparkSession, query: str) -> Counter[tuple[object, ...]] | None:
    """The rows of a query of plain copies; None if Spark loses columns while it analyses it."""
    try:
        return _rows(spark.sql(query))
    except AnalysisException as error:
        if not (error.getCondition() or "").startswith("MISSING_ATTRIBUTES"):
            raise
        return None


def _rows(df: DataFrame) -> Counter[tuple[object, ...]]:
    return Counter(map(tuple, df.collect()))
