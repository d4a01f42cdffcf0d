"""Types and defaults that Spark's own reader reads as ours does."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession, functions as f
from spark_reads import session_conf

from icebergds import Table, load_table
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    DATE,
    INT,
    TIMESTAMP,
    TIMESTAMPTZ,
    IcebergType,
    NestedField,
)
from icebergds.testing.tables import TableBuilder

pytestmark = pytest.mark.spark

_ID = NestedField(1, "id", INT)


def native(spark: SparkSession, builder: TableBuilder) -> DataFrame:
    """A scan of a table that Spark's reader reads in whole."""
    df = load_table(str(builder.location)).scan().to_df(spark)
    assert "BatchScan" not in df._jdf.queryExecution().executedPlan().toString()
    return df


def ours(spark: SparkSession, table: Table) -> DataFrame:
    with session_conf(spark, "spark.icebergpy.native-scans", "false"):
        return table.scan().to_df(spark)


def texts(df: DataFrame) -> list[tuple[str, ...]]:
    """The rows as Spark's texts: Python has no years after 9999."""
    rows = df.select([f.col(f"`{name}`").cast("string") for name in df.columns])
    return sorted((tuple(row) for row in rows.collect()), key=repr)


_FAR_TIMES: list[tuple[IcebergType, int]] = [
    (DATE, -(2**31)),
    (DATE, -719_529),
    (DATE, -719_530),
    (DATE, 2_932_897),
    (DATE, 2**31 - 1),
    (TIMESTAMP, -(2**63)),
    (TIMESTAMP, -62_135_596_800_000_001),
    (TIMESTAMP, 253_402_300_800_000_000),
    (TIMESTAMP, 2**63 - 1),
    (TIMESTAMPTZ, -(2**63)),
    (TIMESTAMPTZ, -62_135_596_800_000_001),
    (TIMESTAMPTZ, 253_402_300_800_000_001),
    (TIMESTAMPTZ, 2**63 - 1),
]


@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns"])
def test_defaults_before_year_1_and_after_year_9999(
    front: SparkSession, tmp_path: Path, zone: str
) -> None:
    added = tuple(
        NestedField(number, f"c{number}", field_type, initial_default=default)
        for number, (field_type, default) in enumerate(_FAR_TIMES, 2)
    )
    builder = TableBuilder(tmp_path / "t", Schema((_ID,)), format_version=3)
    builder.commit(builder.data_file([(1,)]))
    builder.evolve(Schema((_ID, *added), 1))
    builder.commit(builder.data_file([(2, *(default for _, default in _FAR_TIMES))]))
    with session_conf(front, "spark.sql.session.timeZone", zone):
        df = native(front, builder)
        (first, *others), (second, *stored) = texts(df)
        assert (first, second) == ("1", "2")
        assert others == stored
        assert texts(df) == texts(ours(front, load_table(str(builder.location))))
        kept = [f.col(field.name).isNotNull() for field in added]
        assert [df.where(condition).count() for condition in kept] == [2] * len(added)
