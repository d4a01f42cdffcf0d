"""Rows of files with other values in a partition column than their partition, read by Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from built.schemas import optional
from built.tables import TableBuilder
from pyspark.sql import SparkSession

from icebergds import load_table
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import INT, LONG


@pytest.fixture
def builder(tmp_path: Path) -> TableBuilder:
    """Partitions 1 and 2; of the rows in partition 1, one says 5."""
    spec = PartitionSpec(0, (PartitionField((2,), 1000, IdentityTransform(), "c"),))
    schema = Schema((optional(1, "id", LONG), optional(2, "c", INT)))
    builder = TableBuilder(tmp_path / "t", schema, spec=spec)
    builder.commit(
        builder.data_file([(1, 1), (2, 5)], partition=(1,)),
        builder.data_file([(3, 2)], partition=(2,)),
        builder.data_file([(4, 1)], partition=(1,)),
    )
    return builder


def test_frames_have_the_values_in_the_file(spark: SparkSession, builder: TableBuilder) -> None:
    table = load_table(str(builder.location))

    def rows(condition: str | None = None) -> list[tuple[int, int]]:
        scan = table.scan() if condition is None else table.scan(filter=condition)
        return sorted(map(tuple, scan.to_df(spark).collect()))

    assert rows() == [(1, 1), (2, 5), (3, 2), (4, 1)]
    assert rows("c = 1") == [(1, 1), (4, 1)]
    assert rows("c = 5") == [(2, 5)]
    assert table.scan(filter="c = 1").to_df(spark).count() == 2


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize(("condition", "left"), [("c = 1", [2, 3]), ("c = 5", [1, 3, 4])])
def test_rows_are_deleted_by_the_values_in_the_file(
    spark: SparkSession, builder: TableBuilder, condition: str, left: list[int], mode: str
) -> None:
    builder.set_properties({"write.delete.mode": mode})
    load_table(str(builder.location)).delete(condition)
    found = load_table(str(builder.location)).scan().to_arrow()
    assert sorted(found["id"].to_pylist()) == left
