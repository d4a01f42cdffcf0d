"""Tables of random evolutions, as Spark's own reader and ours read them in a registered session."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest
from effort import examples
from hypothesis import HealthCheck, given, strategies as st
from pyspark.sql import SparkSession
from strategies.evolving_table import EvolvingTable

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_all_ways_to_read_find_the_rows_of_evolved_tables(
    front: SparkSession, tmp_path: Path, version: int
) -> None:
    numbers = count()

    @examples(40, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data: st.DataObject) -> None:
        made = EvolvingTable(data.draw, tmp_path, f"t{next(numbers)}", version)
        for _ in range(data.draw(st.integers(4, 10))):
            made.step()
        expected = made.expected()
        load = front.read.format("icebergpy").load(made.table.location())
        assert rows_of(load) == expected
        assert rows_of(made.table.scan().to_df(front)) == expected
        first = data.draw(st.integers(0, 6))
        chosen = [row for row in expected if row["id"] > first]
        assert rows_of(load.where(f"id > {first}")) == chosen
        assert rows_of(made.table.scan(f"id > {first}").to_df(front)) == chosen

    check()


def rows_of(df: Any) -> list[dict[str, Any]]:
    return sorted((row.asDict(recursive=True) for row in df.collect()), key=lambda row: row["id"])
