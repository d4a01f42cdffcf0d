"""The tables in `examples/tables` read as Java Iceberg, which wrote them, reads them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from oracles.index import ExpectedTable, load_index
from oracles.read import mismatch
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

_TABLES = Path(__file__).resolve().parents[2] / "examples" / "tables"
_LOCATION_MAP = {"location-map": json.dumps({"file:///warehouse/demo": _TABLES.as_uri()})}
_EXPECTED = load_index(_TABLES / "expected")


@pytest.mark.parametrize("table", _EXPECTED.values(), ids=_EXPECTED)
def test_demo_table_reads_where_its_metadata_does_not_say_it_is(
    spark: SparkSession, table: ExpectedTable
) -> None:
    for expected in (table.current, *table.time_travel):
        here = replace(expected, options={**expected.options, **_LOCATION_MAP})
        problem = mismatch(spark, str(_TABLES / table.name), here)
        assert problem is None, problem
