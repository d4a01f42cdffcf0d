"""NaN, the greatest number for Spark, which the bounds in Parquet files leave out."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession, functions as f

from icebergds import Table, load_catalog

pytestmark = pytest.mark.spark

_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("x", pa.float64()),
        ("y", pa.float32()),
        ("p", pa.struct([("x", pa.float64()), ("n", pa.int64())])),
    ]
)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Rows of 1, NaN and 2, in one row group."""
    catalog = load_catalog("lake", warehouse=str(tmp_path / "lake"))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", _SCHEMA)
    numbers = enumerate((1.0, math.nan, 2.0), start=1)
    rows = [{"id": i, "x": x, "y": x, "p": {"x": x, "n": i}} for i, x in numbers]
    table.append(pa.Table.from_pylist(rows, _SCHEMA))
    return table


CONDITIONS: dict[str, tuple[Any, list[int]]] = {
    "greater": ("x > 20", [2]),
    "equal": ("x = double('NaN')", [2]),
    "isnan": ("isnan(x)", [2]),
    "not less": ("not (x < 20)", [2]),
    "in": ("x in (5, double('NaN'))", [2]),
    "float": ("y > 20", [2]),
    "Column": (lambda: f.col("x") > 20, [2]),
    "field of a struct": ("p.x > 20", [2]),
    "struct beside it": ("p.n > 2", [3]),
    "less": ("x < 1.5", [1]),
}


def ids(df: DataFrame) -> list[int]:
    return sorted(row.id for row in df.collect())


@pytest.mark.parametrize("case", CONDITIONS)
def test_nan_is_found(front: SparkSession, table: Table, case: str) -> None:
    given, expected = CONDITIONS[case]
    condition = given() if callable(given) else given
    df = front.read.format("icebergpy").load(table.location())
    assert df.inputFiles()
    assert ids(df.where(condition)) == expected
    assert ids(table.scan().to_df(front).where(condition)) == expected
    df.createOrReplaceTempView("numbers")
    if isinstance(condition, str):
        assert ids(front.sql(f"SELECT id FROM numbers WHERE {condition}")) == expected


CHANGES: dict[str, tuple[Callable[[Table, SparkSession], object], list[int]]] = {
    "delete": (lambda table, spark: table.delete("x > 20", spark=spark), [1, 3]),
    "delete of floats": (lambda table, spark: table.delete("y > 20", spark=spark), [1, 3]),
    "update": (lambda table, spark: table.update({"id": "9"}, "x > 20", spark=spark), [1, 3, 9]),
    "overwrite": (
        lambda table, spark: table.overwrite(spark.sql("SELECT 7L id, 0D x"), "x > 20"),
        [1, 3, 7],
    ),
}


@pytest.mark.parametrize("case", CHANGES)
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_rows_of_nan_are_changed(front: SparkSession, table: Table, mode: str, case: str) -> None:
    change, expected = CHANGES[case]
    data = table.scan().to_arrow()
    other = load_catalog("lake", warehouse=str(Path(table.location()).parents[1])).create_table(
        "db.changed",
        _SCHEMA,
        properties={f"write.{verb}.mode": mode for verb in ("delete", "update")},
    )
    other.append(data)
    change(other, front)
    assert sorted(other.refresh().scan().to_arrow()["id"].to_pylist()) == expected
