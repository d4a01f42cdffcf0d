"""Conditions as text have the meaning that the session gives them, though settings change it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from effort import some
from pyspark.sql import SparkSession
from spark_reads import session_conf

from icebergds import Table, load_catalog, register

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

_ANSI = "spark.sql.ansi.enabled"
_QUOTES = "spark.sql.ansi.doubleQuotedIdentifiers"
_ESCAPES = "spark.sql.parser.escapedStringLiterals"
_ROWS = [
    (1, "a", "b", 0.5),
    (2, "b", "b", 0.1),
    (3, "x\\y", "c", 16777216.0),
    (4, "c", "q", 2.0),
    (5, "x\\\\y", "z", 3.0),
    (6, "it's", "d", 4.0),
    (7, "it''s", "d", 5.0),
    (8, "${my.own}", "d", 6.0),
    (9, "mine", "d", 7.0),
]
CASES = {
    "quoted names": (_QUOTES, "true", 'b = "c"', 2),
    "escapes": (_ESCAPES, "true", r"b = 'x\\y'", 5),
    "doubled quotes": (_ESCAPES, "true", "b = 'it''s'", 7),
    "variables": ("my.own", "mine", "b = '${my.own}'", 9),
    "text as a number": (_ANSI, "false", "f = '0.1'", 2),
    "rounded numbers": (_ANSI, "false", "f = 16777217", 3),
}


def deleted(spark: SparkSession, table: Table, condition: str) -> None:
    table.delete(condition)


def overwritten(spark: SparkSession, table: Table, condition: str) -> None:
    nothing = spark.createDataFrame([], "n int, b string, c string, f float")
    nothing.writeTo("harbour.db.t").using("icebergpy").overwrite(condition)


def overwritten_by_option(spark: SparkSession, table: Table, condition: str) -> None:
    nothing = spark.createDataFrame([], "n int, b string, c string, f float")
    writer = nothing.write.format("icebergpy").mode("overwrite")
    writer.option("overwrite-filter", condition).save(table.location())


def merged(spark: SparkSession, table: Table, condition: str) -> None:
    merge = table.merge(spark.range(1), on="target.n = source.id")
    merge.when_not_matched_by_source_delete(condition).execute()


VERBS: dict[str, Callable[[SparkSession, Table, str], None]] = {
    "delete": deleted,
    "writeTo.overwrite": overwritten,
    "overwrite-filter": overwritten_by_option,
    "merge": merged,
}


@pytest.mark.parametrize(("case", "verb"), some(list(product(CASES, VERBS)), 6))
def test_the_rows_are_those_that_spark_finds(
    front: SparkSession, tmp_path: Path, case: str, verb: str
) -> None:
    setting, value, condition, match = CASES[case]
    warehouse = str(tmp_path / "harbour")
    front.conf.set("spark.icebergpy.catalog.harbour.warehouse", warehouse)
    register(front)
    catalog = load_catalog("harbour", warehouse=warehouse)
    catalog.create_namespace("db")
    rows = front.createDataFrame(_ROWS, "n int, b string, c string, f float").coalesce(1)
    # A file for each row, which metadata alone could leave out or delete.
    rows.writeTo("harbour.db.t").using("icebergpy").partitionedBy("b", "f").create()
    table = catalog.load_table("db.t")
    with session_conf(front, setting, value):
        found = front.read.format("icebergpy").load(table.location()).where(condition)
        assert [row.n for row in found.collect()] == [match]
        VERBS[verb](front, table, condition)
    left = table.refresh().scan().to_arrow()["n"].to_pylist()
    assert sorted(left) == [n for n, *_ in _ROWS if n != match]
