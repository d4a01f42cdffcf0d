"""What rows are shuffled and sorted by, before Spark hands them to the writer."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icebergds.formats.arrow_transforms import apply_transform
from icebergds.spark.distribution import sort_within_tasks
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.sort import NullOrder, SortDirection, SortField, SortOrder
from icebergds.spec.transforms import BucketTransform
from icebergds.spec.types import INT, LONG, STRING, TIMESTAMP, TIMESTAMPTZ, NestedField, ScalarType

pytestmark = pytest.mark.spark

_BUCKETS = BucketTransform(16)


@pytest.mark.parametrize(
    ("source", "values"),
    [
        (INT, "cast(id * 7919 - 100000 AS int)"),
        (LONG, "id * 1234567890123 - 9000000000"),
        (TIMESTAMP, "cast(timestamp_micros(id * 98765432109 - 5000000) AS timestamp_ntz)"),
        (TIMESTAMPTZ, "timestamp_micros(id * 98765432109 - 5000000)"),
        (STRING, "concat('value ', id)"),
    ],
    ids=str,
)
def test_rows_are_sorted_by_the_buckets_of_the_table(
    spark: SparkSession, source: ScalarType, values: str
) -> None:
    rows = spark.range(0, 200, 1, 1).selectExpr(f"CASE WHEN id % 9 > 0 THEN {values} END AS c")
    field = SortField((1,), _BUCKETS, SortDirection.ASC, NullOrder.NULLS_FIRST)
    schema = Schema((NestedField(1, "c", source),))
    ordered = sort_within_tasks(rows, schema, PartitionSpec(), SortOrder(1, (field,)))
    buckets = _buckets(source, ordered.toArrow().column("c").combine_chunks())
    assert buckets == sorted(buckets)
    assert set(buckets) == {-1, *range(16)}


def _buckets(source: ScalarType, column: pa.Array) -> list[int]:
    """The table's own, -1 for null."""
    return apply_transform(_BUCKETS, source, column).fill_null(-1).to_pylist()
