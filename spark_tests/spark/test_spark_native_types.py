"""Types and defaults that Spark's own reader reads as ours does."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built.data_files import with_id, with_optional_keys, write_parquet
from built.tables import TableBuilder
from pyspark.sql import DataFrame, SparkSession, functions as f
from spark_reads import session_conf

from icebergds import Table, load_table
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    DATE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

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


_BYTES = FixedType(3)
_FIXED = Schema(
    (
        _ID,
        NestedField(2, "f", _BYTES),
        NestedField(3, "s", StructType((NestedField(4, "f", _BYTES),))),
        NestedField(5, "l", ListType(6, _BYTES)),
        NestedField(7, "m", MapType(8, STRING, 9, _BYTES)),
    )
)
_OF_FIXED = [
    "f = X'000701'",
    "f in (X'000101', X'00FF01', null)",
    "f > X'00FA01'",
    "f <=> null",
    "not (f < X'00FA01')",
    "s.f = X'000701'",
    "s.f is null",
    "l[0] = X'000701' or m['k'] = X'000801'",
]


@pytest.mark.parametrize("has_dictionaries", [True, False])
def test_bytes_of_a_fixed_length(
    front: SparkSession, tmp_path: Path, has_dictionaries: bool
) -> None:
    values = [None if i % 5 == 0 else bytes((0, i % 256, 1)) for i in range(600)]
    rows = [(i, v, (v,), [v, None], [("k", v)]) for i, v in enumerate(values)]
    builder = TableBuilder(tmp_path / "t", _FIXED)
    builder.commit(file := builder.data_file(rows))
    stored = pq.read_table(file.file_path)
    pq.write_table(stored, file.file_path, row_group_size=100, use_dictionary=has_dictionaries)
    df, expected = native(front, builder), ours(front, load_table(str(builder.location)))
    assert _rows(df) == _rows(expected)
    assert df.count() == df.groupBy().count().first()[0] == 600
    assert _rows(_by_condition(df)) == _rows(_by_condition(expected))


def _by_condition(df: DataFrame) -> DataFrame:
    """The ids of the rows that meet each condition."""
    found = [df.where(text).select(f.lit(text), "id") for text in _OF_FIXED]
    return reduce(DataFrame.union, found)


def _rows(df: DataFrame) -> list[str]:
    return sorted(map(repr, df.collect()))


def test_maps_with_optional_keys_are_read_alike(front: SparkSession, tmp_path: Path) -> None:
    pair = pa.struct([with_id("key", pa.string(), 3), with_id("value", pa.int32(), 4)])
    fields = [
        with_id("id", pa.int32(), 1),
        with_id("m", pa.list_(pa.field("element", pair, nullable=False)), 2),
    ]
    maps = [[{"key": "a", "value": 1}, {"key": "b", "value": None}], [], None]
    schema = Schema((_ID, NestedField(2, "m", MapType(3, STRING, 4, INT))))
    builder = TableBuilder(tmp_path / "t", schema)
    stored = builder.data_file([(number, None) for number in range(3)])
    write_parquet(Path(stored.file_path), fields, [range(3), maps])
    with_optional_keys(stored.file_path)
    size = Path(stored.file_path).stat().st_size
    builder.commit(replace(stored, file_size_in_bytes=size))
    read = texts(front.read.format("icebergpy").load(str(builder.location)))
    assert read == [("0", "{a -> 1, b -> null}"), ("1", "{}"), ("2", None)]
    assert read == texts(ours(front, load_table(str(builder.location))))
