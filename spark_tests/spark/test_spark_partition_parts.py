"""`partitions` added up by tasks of Spark, as one process adds it up."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from built.api_tables import new_table
from pyspark.sql import DataFrame, SparkSession
from spark_changes import WAYS, arrow, people
from spark_reads import load

from icebergds import Schema, Table, load_catalog, register, sql
from icebergds.operations.metadata_tables.kinds import MetadataTable
from icebergds.operations.metadata_tables.schemas import metadata_table_schema
from icebergds.spark import metadata_tables
from icebergds.spark.types import spark_schema
from icebergds.spec.types import BINARY, DOUBLE, LONG, TIMESTAMPTZ, DecimalType, NestedField

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


@pytest.fixture(autouse=True)
def by_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adds small tables up by tasks, too."""
    monkeypatch.setattr(metadata_tables, "_FILES_OF_ONE_TASK", 0)


def partitions(spark: SparkSession, table: Table, **options: str) -> DataFrame:
    """A task for each manifest."""
    return load(spark, f"{table.location()}#partitions", **{"split-size": "1", **options})


def seen(df: DataFrame) -> list[str]:
    """Its rows in any order, as text, which tells 0.0 from -0.0 and has NaN equal to itself."""
    return sorted(map(repr, df.collect()))


def added_up_here(spark: SparkSession, table: Table, **chosen: Any) -> DataFrame:
    """The rows that one process adds up, with the types that Spark has for them."""
    return spark.createDataFrame(table.inspect.partitions(**chosen))


def expect_equal(spark: SparkSession, table: Table) -> None:
    read = partitions(spark, table)
    assert read.schema == spark_schema(
        metadata_table_schema(MetadataTable.PARTITIONS, table._state.metadata).schema
    )
    plan = read._jdf.queryExecution().executedPlan().toString()
    assert "partition_key" in plan, "tasks add it up"
    assert seen(read) == seen(added_up_here(spark, table)) != []


@pytest.mark.parametrize(("version", "mode"), WAYS)
def test_files_deletes_and_specs_add_up(
    front: SparkSession, tmp_path: Path, version: int, mode: str
) -> None:
    table = people(tmp_path, version, mode)
    table.delete("id = 4")
    if version > 1:
        table.upsert(arrow([(1, 1, "one")]), ["id"])
    with table.update_spec() as update:
        update.add_field("bucket(2, id)")
    table.append(arrow([(30, 1, "a"), (31, None, "b")]))
    expect_equal(front, table)


def test_the_newest_snapshot_that_is_left_tells_the_spec(
    front: SparkSession, tmp_path: Path
) -> None:
    table = people(tmp_path)
    with table.update_spec() as update:
        update.add_field("name")
    with table.update_spec() as update:
        update.remove_field("name")
    table.append(arrow([(30, 1, "a")]))
    expect_equal(front, table)
    table.expire_snapshots(snapshot_ids=[table.snapshots()[0].snapshot_id])
    expect_equal(front, table)


def test_values_are_told_apart_as_in_one_process(front: SparkSession, tmp_path: Path) -> None:
    fields = {"d": DOUBLE, "m": DecimalType(9, 2), "b": BINARY, "t": TIMESTAMPTZ}
    schema = Schema(tuple(NestedField(i, *one) for i, one in enumerate(fields.items(), 1)))
    table = new_table(tmp_path, schema, partition_by="d, m, b, day(t)")
    at = datetime(2026, 1, 1, tzinfo=UTC)
    others = [(Decimal("1.10"), b"\0", at), (None, b"", None), (Decimal("1.10"), None, at)]
    for _ in range(2):
        for d in (0.0, -0.0, math.nan, None):
            table.append(arrow([(d, *other) for other in others], schema))
    expect_equal(front, table)
    assert partitions(front, table).count() == 12


def test_a_table_without_partitions_is_one(front: SparkSession, tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "id", LONG),))
    table = new_table(tmp_path, schema)
    assert partitions(front, table).collect() == []
    for ids in ([1], [2, 3]):
        table.append(arrow([(i,) for i in ids], schema))
    expect_equal(front, table)


def test_conditions_and_columns_choose(front: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    for condition in ("partition.part > 0", "file_count = 2", "spec_id = 0"):
        wanted = added_up_here(front, table, filter=condition, columns="partition,record_count")
        read = partitions(front, table, filter=condition, columns="partition,record_count")
        assert seen(read) == seen(wanted), condition
    assert partitions(front, table, filter="partition.part = 7").collect() == []
    assert partitions(front, table, columns="Record_Count").columns == ["record_count"]


def test_a_snapshot_is_added_up(front: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    first = table.snapshots()[0].snapshot_id
    read = partitions(front, table, **{"snapshot-id": str(first)})
    assert seen(read) == seen(added_up_here(front, table, snapshot_id=first))


@pytest.fixture
def named(front: SparkSession, tmp_path: Path) -> str:
    """The name of a table with two partition fields."""
    front.conf.set("spark.icebergpy.catalog.lake.warehouse", str(tmp_path))
    register(front)
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table(
        "db.t", "id bigint, `p.q` int", partition_spec="`p.q`, bucket(4, id)"
    )
    for base in range(3):
        rows = {"id": list(range(10)), "p.q": [base % 2] * 10}
        table.append(pa.table(rows, pa.schema([("id", pa.int64()), ("p.q", pa.int32())])))
    return "lake.db.t"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM {0}.partitions",
        "SELECT partition.id_bucket AS b, sum(record_count) AS n FROM {0}.partitions GROUP BY 1",
        "SELECT partition.`p.q` AS q, file_count FROM {0}.partitions WHERE partition.`p.q` = 1",
        "SELECT count(*) AS n FROM {0}.partitions WHERE last_updated_at IS NOT NULL",
    ],
)
def test_queries_by_name_are_answered(
    front: SparkSession, named: str, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_tasks = seen(sql(front, query.format(named)))
    monkeypatch.setattr(metadata_tables, "_FILES_OF_ONE_TASK", 1_000)
    assert by_tasks == seen(sql(front, query.format(named))) != []
