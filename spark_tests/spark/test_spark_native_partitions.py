"""Files without the identity partition columns of their table, which Spark's own reader reads."""

from __future__ import annotations

from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from built.tables import TableBuilder
from pyspark.sql import DataFrame, SparkSession, functions as f
from spark_reads import session_conf

from icebergds import load_table
from icebergds.spec.manifest import DataFile
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import (
    BOOLEAN,
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    NestedField,
)

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

_ID = NestedField(1, "id", INT)
_PARTS = {
    BOOLEAN: (True, False),
    INT: (-(2**31), 7),
    LONG: (2**63 - 1, 0),
    DecimalType(20, 3): (Decimal("-12.340"), Decimal("1.000")),
    DATE: (-800_000, 19_000),
    TIMESTAMP: (-62_000_000_000_000_001, 1),
    TIMESTAMPTZ: (1_700_000_000_123_456, 0),
    STRING: ("it's \\ 'ü'", ""),
}
_COLUMNS = tuple(NestedField(i, f"p{i}", t) for i, t in enumerate(_PARTS, 2))


def _by(*columns: NestedField) -> PartitionSpec:
    fields = [
        PartitionField((column.field_id,), 1000 + column.field_id, IdentityTransform(), column.name)
        for column in columns
    ]
    return PartitionSpec(1, tuple(fields))


def _load(spark: SparkSession, builder: TableBuilder) -> DataFrame:
    return spark.read.format("icebergpy").load(str(builder.location))


def _is_native(df: DataFrame) -> bool:
    return "BatchScan" not in df._jdf.queryExecution().executedPlan().toString()


def _ours(spark: SparkSession, builder: TableBuilder) -> DataFrame:
    with session_conf(spark, "spark.icebergpy.native-scans", "false"):
        return load_table(str(builder.location)).scan().to_df(spark)


def _texts(df: DataFrame) -> list[tuple[Any, ...]]:
    rows = df.select([f.col(name).cast("string") for name in df.columns])
    return sorted((tuple(row) for row in rows.collect()), key=repr)


def _without(builder: TableBuilder, ids: list[int], partition: tuple[Any, ...]) -> DataFile:
    """A file with the ids alone."""
    rows = [(i,) for i in ids]
    return builder.data_file(rows, partition=partition, schema=Schema((_ID,)))


@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns"])
def test_values_are_those_of_the_partition(front: SparkSession, tmp_path: Path, zone: str) -> None:
    builder = TableBuilder(tmp_path / "t", Schema((_ID, *_COLUMNS)), spec=_by(*_COLUMNS))
    partitions = [*zip(*_PARTS.values(), strict=True), (None,) * len(_PARTS)]
    for number, partition in enumerate(partitions):
        builder.commit(_without(builder, [number, number + 10], partition))
        builder.commit(builder.data_file([(number + 20, *partition)], partition=partition))
    with session_conf(front, "spark.sql.session.timeZone", zone):
        df, expected = _load(front, builder), _ours(front, builder)
        assert _is_native(df)
        assert len(_texts(df)) == 9
        assert _texts(df) == _texts(expected)
        conditions = [f"{column.name} is null" for column in _COLUMNS]
        conditions += [f"{column.name} = p2 or {column.name} <=> null" for column in _COLUMNS[:1]]
        conditions += ["p3 = 7", "p3 > -5", "p9 = ''", "not (p4 <=> 0)", "p5 < 0", "p3 + id = 8"]
        assert _met(df, conditions) == _met(expected, conditions)
        counts = df.groupBy("p3").count().collect()
        assert sorted(row["count"] for row in counts) == [3, 3, 3]


def _met(df: DataFrame, conditions: list[str]) -> list[tuple[Any, ...]]:
    """The ids of the rows that meet each condition."""
    found = [df.where(text).select(f.lit(text), "id") for text in conditions]
    return sorted(map(tuple, reduce(DataFrame.union, found).collect()))


def test_a_file_that_has_the_column_has_its_own_values(front: SparkSession, tmp_path: Path) -> None:
    """Even if nothing but the file itself tells that it has the column, and others beside it."""
    part = NestedField(2, "p", INT)
    builder = TableBuilder(tmp_path / "t", Schema((_ID, part)), spec=_by(part))
    builder.commit(
        builder.data_file([(1, 5), (2, None)], partition=(4,), with_metrics=False),
        _without(builder, [3], (4,)),
        _without(builder, [4], (5,)),
    )
    df = _load(front, builder)
    assert _is_native(df)
    assert _texts(df) == _texts(_ours(front, builder))
    assert sorted(map(tuple, df.collect()), key=repr) == [(1, 5), (2, None), (3, 4), (4, 5)]
    frame = load_table(str(builder.location)).scan().to_df(front)
    for condition, ids in (("p = 5", [1, 4]), ("p is null", [2]), ("p <=> 4", [3])):
        assert sorted(row.id for row in frame.where(condition).collect()) == ids


def test_a_partition_without_a_value_comes_before_the_default(
    front: SparkSession, tmp_path: Path
) -> None:
    part = NestedField(2, "p", STRING, initial_default="new")
    builder = TableBuilder(tmp_path / "t", Schema((_ID,)), format_version=3)
    builder.commit(builder.data_file([(0,)]))
    builder.evolve(Schema((_ID, part), 1), _by(part))
    builder.commit(_without(builder, [1], (None,)), _without(builder, [2], ("x",)))
    df = _load(front, builder)
    assert _is_native(df)
    assert sorted(map(tuple, df.collect())) == [(0, "new"), (1, None), (2, "x")]


def test_statements_change_rows_of_such_files(front: SparkSession, tmp_path: Path) -> None:
    part = NestedField(2, "p", INT)
    builder = TableBuilder(tmp_path / "t", Schema((_ID, part)), spec=_by(part))
    builder.commit(_without(builder, [1, 2], (7,)), _without(builder, [3, 4], (8,)))
    table = load_table(str(builder.location))
    assert table.delete("p + id in (8, 12)", spark=front).deleted == 2
    rows = [tuple(row) for row in table.refresh().scan().to_df(front).collect()]
    assert sorted(rows) == [(2, 7), (3, 8)]


def test_files_of_many_partitions_are_read_by_us(front: SparkSession, tmp_path: Path) -> None:
    part = NestedField(2, "p", INT)
    builder = TableBuilder(tmp_path / "t", Schema((_ID, part)), spec=_by(part))
    builder.commit(*(_without(builder, [i], (i,)) for i in range(33)))
    df = _load(front, builder)
    assert not _is_native(df)
    assert sorted(map(tuple, df.collect())) == [(i, i) for i in range(33)]
    some = df.where("p < 8")
    assert _is_native(some)
    assert sorted(map(tuple, some.collect())) == [(i, i) for i in range(8)]
