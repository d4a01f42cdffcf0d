"""The queries of TPC-DS over loads of a registered session; DuckDB tells the answers.

`ICEBERGDS_TPCDS` says how many hundredths of scale 1 the data has; without it, only nightly runs
ask the queries, at scale 1.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from effort import rounds
from pyspark.sql import SparkSession
from sqlglot import exp

from icebergds import load_catalog, register

HUNDREDTHS = rounds("ICEBERGDS_TPCDS", pull=0, nightly=100)
pytestmark = [
    pytest.mark.spark,
    pytest.mark.every_spark,
    pytest.mark.skipif(HUNDREDTHS == 0, reason="TPC-DS is asked by make nightly"),
]
# So that some queries prune.
PARTITIONED = {
    "catalog_sales": "truncate(cs_sold_date_sk, 200)",
    "store_sales": "truncate(ss_sold_date_sk, 200)",
    "web_sales": "truncate(ws_sold_date_sk, 200)",
    "item": "i_category",
}
Row = tuple[Any, ...]


@pytest.fixture(scope="module")
def duck() -> Iterator[Any]:
    duckdb = pytest.importorskip("duckdb")
    package = pytest.importorskip("duckdb_extension_tpcds")
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    (extension,) = Path(package.__file__).parent.rglob("*.duckdb_extension")
    connection.execute(f"LOAD '{extension}'")
    connection.execute(f"CALL dsdgen(sf={HUNDREDTHS / 100})")
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def tpcds(spark: SparkSession, duck: Any, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """A session with a view of each table."""
    session = spark.newSession()
    register(session)
    session.conf.set("spark.sql.shuffle.partitions", "4")
    # Some tables of less than 10 MB take more memory than tests have, if they are broadcast.
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "1m")
    catalog = load_catalog("tpcds", warehouse=str(tmp_path_factory.mktemp("tpcds")))
    catalog.create_namespace("tpcds")
    for (name,) in duck.execute("SELECT table_name FROM duckdb_tables()").fetchall():
        rows = duck.execute(f"SELECT * FROM {name}").to_arrow_table()
        table = catalog.create_table(
            f"tpcds.{name}", rows.schema, partition_spec=PARTITIONED.get(name)
        )
        table.append(rows)
        session.read.format("icebergpy").load(table.location()).createOrReplaceTempView(name)
    return session


@pytest.mark.parametrize("number", range(1, 100))
def test_a_query_has_the_answer_of_duckdb(tpcds: SparkSession, duck: Any, number: int) -> None:
    for text, in_spark in _statements(duck, number):
        expected = _ordered(duck.execute(text).fetchall())
        rows = _ordered(tuple(row) for row in tpcds.sql(in_spark).collect())
        assert len(rows) == len(expected)
        wrong = [pair for pair in zip(rows, expected, strict=True) if not _equal(*pair)]
        assert not wrong, f"{len(wrong)} of {len(rows)} rows, such as {wrong[0]}"


def _statements(duck: Any, number: int) -> Iterator[tuple[str, str]]:
    """A query's statements in the SQL of DuckDB and of Spark, with all rows of their answers.

    Which rows are the first is not determined if some are equal in the order; nor is how a quotient
    is rounded, which is a decimal number in Spark only, and as an integer is rounded by DuckDB and
    cut off by Spark.
    """
    found = duck.execute(f"SELECT query FROM tpcds_queries() WHERE query_nr = {number}").fetchone()
    for parsed in sqlglot.parse(found[0], read="duckdb"):
        if parsed is not None:
            everything = parsed.transform(_unrounded)
            for clause in ("order", "limit"):
                everything.set(clause, None)
            yield everything.sql("duckdb"), everything.sql("spark")


def _unrounded(node: Any) -> Any:
    if node.key == "cast" and str(node.to).upper() in ("INT", "INTEGER"):
        number = node.this.unnest()
        number = number.this.unnest() if number.key == "round" else number
        if number.key == "div":
            return exp.Floor(this=number)
    return node.this if node.key == "round" else node


def _ordered(rows: Any) -> list[Row]:
    return sorted((tuple(map(_plain, row)) for row in rows), key=lambda row: tuple(map(_key, row)))


def _plain(value: Any) -> Any:
    """Numbers are compared as floating-point numbers: quotients have other scales in Spark."""
    if isinstance(value, Decimal | int) and not isinstance(value, bool):
        return float(value)
    return value.isoformat() if isinstance(value, datetime.date) else value


def _key(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4e}"
    return "" if value is None else str(value)


def _equal(row: Row, expected: Row) -> bool:
    return all(
        math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-5)
        if isinstance(a, float) and isinstance(b, float)
        else a == b
        for a, b in zip(row, expected, strict=True)
    )
