"""What functions of `foreachBatch` write once, though Spark calls them again for a batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession, functions as f

from icebergds import Table, load_catalog, load_table, register

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

_Write = Callable[[DataFrame, int], None]


@pytest.fixture
def table(front: SparkSession, tmp_path: Path) -> Table:
    """The table `ends.db.t` with the ids 0 and 1."""
    warehouse = str(tmp_path / "ends")
    front.conf.set("spark.icebergpy.catalog.ends.warehouse", warehouse)
    register(front)
    catalog = load_catalog("ends", warehouse=warehouse)
    catalog.create_namespace("db")
    created = catalog.create_table("db.t", "id bigint, n bigint")
    created.append(front.range(2).withColumn("n", f.lit(0).cast("bigint")))
    return created


def _once(batch_id: int) -> dict[str, object]:
    return {"txn-app-id": "copy", "txn-version": batch_id}


def _append(batch: DataFrame, batch_id: int) -> None:
    batch.write.format("icebergpy").mode("append").options(**_once(batch_id)).save("ends.db.t")


def _merge(batch: DataFrame, batch_id: int) -> None:
    merge = load_table("ends.db.t").merge(batch, "target.id = source.id", options=_once(batch_id))
    merge.when_matched_update({"n": "target.n + source.n"}).when_not_matched_insert_all().execute()


def _merge_into(batch: DataFrame, _: int) -> None:
    merge = batch.alias("new").mergeInto("ends.db.t", f.expr("t.id = new.id"))
    merge.whenMatched().updateAll().whenNotMatched().insertAll().merge()


@pytest.mark.parametrize(
    ("write", "rows", "again"),
    [
        (_append, [(0, 0), (1, 0), (1, 5), (2, 5)], 0),
        (_merge, [(0, 0), (1, 5), (2, 5)], 0),
        (_merge_into, [(0, 0), (1, 5), (2, 5)], 1),
    ],
)
def test_a_batch_that_is_repeated_leaves_the_rows_of_one(
    write: _Write,
    rows: list[tuple[int, int]],
    again: int,
    front: SparkSession,
    table: Table,
    tmp_path: Path,
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"id": 1, "n": 5}\n{"id": 2, "n": 5}\n')
    calls: list[int] = []

    def noted(batch: DataFrame, batch_id: int) -> None:
        calls.append(batch_id)
        write(batch, batch_id)

    def run() -> int:
        stream = front.readStream.schema("id bigint, n bigint").json(str(tmp_path / "in"))
        query = stream.writeStream.foreachBatch(noted).trigger(availableNow=True)
        query.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
        found = table.refresh().scan().to_arrow().to_pylist()
        assert sorted(tuple(row.values()) for row in found) == rows
        return len(table.snapshots())

    snapshots = run()
    # As if the process had ended before Spark noted the end of the batch.
    for file in (tmp_path / "checkpoint" / "commits").iterdir():
        file.unlink()
    assert run() == snapshots + again
    assert calls == [0, 0]
