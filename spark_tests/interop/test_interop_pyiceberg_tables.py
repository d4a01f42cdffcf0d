"""Tables that PyIceberg wrote read as PyIceberg reads them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from oracles.index import ExpectedTable, load_index
from oracles.pyiceberg_tables import PYICEBERG_TABLES, write_pyiceberg_tables
from oracles.read import mismatch
from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.interop]


@pytest.fixture(scope="session")
def pyiceberg_tables(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, ExpectedTable]:
    """All tables of `oracles.pyiceberg_tables`."""
    directory = tmp_path_factory.mktemp("pyiceberg")
    write_pyiceberg_tables(directory)
    return load_index(directory)


@pytest.mark.parametrize("name", PYICEBERG_TABLES)
def test_rows_are_those_that_pyiceberg_reads(
    spark: SparkSession, pyiceberg_tables: Mapping[str, ExpectedTable], name: str
) -> None:
    table = pyiceberg_tables[name]
    problem = mismatch(spark, table.location, table.current)
    assert problem is None, problem


@pytest.mark.parametrize("name", PYICEBERG_TABLES)
def test_time_travel_reads_what_pyiceberg_reads(
    spark: SparkSession, pyiceberg_tables: Mapping[str, ExpectedTable], name: str
) -> None:
    table = pyiceberg_tables[name]
    found = [mismatch(spark, table.location, travel) for travel in table.time_travel]
    problems = [problem for problem in found if problem is not None]
    assert not problems, "\n".join(problems)
