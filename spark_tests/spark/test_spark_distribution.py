"""What rows are shuffled and sorted by, before Spark hands them to the writer."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession, functions as f

from icebergds.formats.arrow.transforms import apply_transform
from icebergds.formats.arrow.types import to_arrow
from icebergds.spark.distribution import distribute, partition_keys, sort_within_tasks
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.sort import NullOrder, SortDirection, SortField, SortOrder
from icebergds.spec.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    YearTransform,
)
from icebergds.spec.types import (
    BINARY,
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    FixedType,
    NestedField,
    ScalarType,
)

pytestmark = pytest.mark.spark

_BUCKETS = BucketTransform(16)
_MANY_BUCKETS = BucketTransform(1 << 20)
_ROWS = 400
# Of every length of bytes in a word, with bytes of zero, negative bytes, and more than a word.
_TEXT = "concat(repeat(chr(0), cast(id % 3 AS int)), substring('aé漢😀xyz', 1, id % 8), id % 40)"
_INSTANT = "timestamp_micros((id - 200) * 9876543210987 - 5000001)"
_VALUES: dict[ScalarType, str] = {
    INT: "cast(id * 7919 - 100000 AS int)",
    # Of more bits than a double has.
    LONG: "if(id % 2 = 0, 1, -1) * (9223372036854775000 + id)",
    DATE: "date_add(DATE'1960-01-01', cast(id * 29 AS int))",
    TIMESTAMP: f"cast({_INSTANT} AS timestamp_ntz)",
    TIMESTAMPTZ: _INSTANT,
    STRING: _TEXT,
    BINARY: f"cast({_TEXT} AS binary)",
    FixedType(3): "cast(lpad(id, 3, 'x') AS binary)",
    DecimalType(9, 2): "cast(id * 77 - 5000 AS decimal(9, 2))",
}
_OF_TIMES = (YearTransform(), MonthTransform(), DayTransform(), HourTransform())


def _cases() -> list[tuple[Transform, ScalarType]]:
    buckets = [(_BUCKETS, source) for source in _VALUES]
    many = [(_MANY_BUCKETS, source) for source in (STRING, BINARY, DATE)]
    truncated = [(TruncateTransform(3), t) for t in (INT, LONG, STRING, BINARY, DecimalType(9, 2))]
    times = [(part, t) for t in (DATE, TIMESTAMP, TIMESTAMPTZ) for part in _OF_TIMES]
    without_hours_of_dates = [(part, t) for part, t in times if (part, t) != (_OF_TIMES[3], DATE)]
    return [*buckets, *many, *truncated, *without_hours_of_dates]


@pytest.fixture
def far_away(spark: SparkSession) -> Iterator[SparkSession]:
    """A session in a time zone of its own: partitions are those of UTC."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.parametrize(("transform", "source"), _cases(), ids=str)
def test_rows_are_sorted_by_the_partitions_of_the_table(
    far_away: SparkSession, transform: Transform, source: ScalarType
) -> None:
    rows, schema = _rows(far_away, source)
    field = SortField((1,), transform, SortDirection.ASC, NullOrder.NULLS_FIRST)
    ordered = sort_within_tasks(rows, schema, PartitionSpec(), SortOrder(1, (field,)))
    values = _transformed(transform, source, ordered)
    assert len(values) == _ROWS
    is_null = [value is None for value in values]
    assert is_null == sorted(is_null, reverse=True)
    present = [value for value in values if value is not None]
    assert present == sorted(present)
    assert len(set(present)) > 1


@pytest.mark.parametrize("source", _VALUES, ids=str)
def test_rows_of_a_partition_have_one_key(far_away: SparkSession, source: ScalarType) -> None:
    rows, schema = _rows(far_away, source)
    transforms = [transform for transform, of in _cases() if of == source]
    keyed = partition_keys(rows, schema, _partitioned(*transforms))
    names = [str(transform) for transform in transforms]
    columns = [key.alias(name) for key, name in zip(keyed.keys, names, strict=True)]
    found = keyed.rows.select(*columns).toArrow()
    for transform, name in zip(transforms, names, strict=True):
        parts = _transformed(transform, source, rows)
        together = set(zip(parts, found.column(name).to_pylist(), strict=True))
        assert len(together) == len(set(parts)), transform


@pytest.mark.parametrize("mode", ["hash", "range"])
def test_shuffled_rows_have_the_columns_they_came_with(spark: SparkSession, mode: str) -> None:
    rows, schema = _rows(spark, STRING)
    # A name that ours would have, if no column had it.
    rows = rows.withColumn("_icebergds_bucket", f.lit(1)).withColumn("n", f.lit(2))
    shuffled = distribute(rows, schema, _partitioned(_BUCKETS), SortOrder(), mode)
    assert shuffled.columns == ["c", "_icebergds_bucket", "n"]
    assert sorted(shuffled.collect(), key=str) == sorted(rows.collect(), key=str)


def test_buckets_of_text_need_no_python(spark: SparkSession) -> None:
    rows, schema = _rows(spark, STRING)
    shuffled = distribute(rows, schema, _partitioned(_BUCKETS), SortOrder(), "hash")
    plan = shuffled._jdf.queryExecution().toString()
    assert "Arrow" not in plan
    assert "Python" not in plan


def test_two_buckets_of_text_are_told_apart(spark: SparkSession) -> None:
    schema = Schema((NestedField(1, "a", STRING), NestedField(2, "b", STRING)))
    rows = spark.range(200).selectExpr("concat('x', id) AS a", "concat('y', id % 10) AS b")
    spec = PartitionSpec(
        1,
        (
            PartitionField((1,), 1000, BucketTransform(4), "a_bucket"),
            PartitionField((2,), 1001, BucketTransform(8), "b_bucket"),
        ),
    )
    keyed = partition_keys(rows, schema, spec)
    found = keyed.rows.select("a", "b", *(k.alias(f"k{i}") for i, k in enumerate(keyed.keys)))
    table = found.toArrow()
    for name, key, buckets in (("a", "k0", 4), ("b", "k1", 8)):
        column = table.column(name).combine_chunks().cast(to_arrow(STRING))
        wanted = apply_transform(BucketTransform(buckets), STRING, column)
        assert table.column(key).to_pylist() == wanted.to_pylist()


def _rows(spark: SparkSession, source: ScalarType) -> tuple[DataFrame, Schema]:
    values = f"CASE WHEN id % 9 > 0 THEN {_VALUES[source]} END AS c"
    rows = spark.range(0, _ROWS, 1, 1).selectExpr(values)
    return rows, Schema((NestedField(1, "c", source),))


def _partitioned(*transforms: Transform) -> PartitionSpec:
    fields = (
        PartitionField((1,), 1000 + number, transform, f"part_{number}")
        for number, transform in enumerate(transforms)
    )
    return PartitionSpec(1, tuple(fields))


def _transformed(transform: Transform, source: ScalarType, rows: DataFrame) -> list[object]:
    column: pa.Array = rows.toArrow().column("c").combine_chunks()
    target = to_arrow(source)
    if pa.types.is_timestamp(target):
        column = column.cast(pa.timestamp("us")).cast(target)
    return apply_transform(transform, source, column.cast(target)).to_pylist()
