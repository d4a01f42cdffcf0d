"""Frames of metadata tables, and of tables that Spark does not read itself, read what they name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from effort import some
from pyspark.sql import DataFrame, SparkSession, Window, functions as f
from spark_changes import arrow, people
from spark_reads import load

from icebergds import Table, load_catalog, register
from icebergds.operations.metadata_tables.kinds import MetadataTable
from icebergds.spark.frames import table_load

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

Query = Callable[[DataFrame], DataFrame]


@pytest.fixture(autouse=True)
def _all_is_read(front: SparkSession) -> None:
    """Aggregates are read, as if metadata answered none."""
    front.conf.set("spark.icebergpy.metadata-aggregates", "false")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Two versions of a partitioned table, with deletes by key and by position."""
    table = people(tmp_path_factory.mktemp("used"), 3)
    with table.update_spec() as update:
        update.add_field("bucket(2, id)")
    table.upsert(arrow([(1, 1, "one"), (20, 2, "twenty")]), ["id"])
    table.delete_keys(pa.table({"id": [1]}), ["id"])
    return table


def rows(df: DataFrame) -> list[str]:
    return sorted(str(row.asDict(recursive=True)) for row in df.collect())


FILES: dict[str, Query] = {
    "sums": lambda df: df.agg(f.count("*"), f.sum("record_count"), f.max("file_size_in_bytes")),
    "sums by column": lambda df: df.groupBy("content").sum("record_count"),
    "count by field": lambda df: df.groupBy("partition.part").count(),
    "groups of a condition": lambda df: (
        df.where("record_count > 1").groupBy(df["spec_id"]).agg(f.min("file_path"))
    ),
    "distinct values of two": lambda df: df.agg(
        f.countDistinct("partition.part"), f.countDistinct("readable_metrics.id.lower_bound")
    ),
    "field of a field": lambda df: df.select("readable_metrics.id.upper_bound"),
    "all fields of a field": lambda df: df.select("readable_metrics.id.*", "content"),
    "elements": lambda df: df.select(f.expr("lower_bounds[1]"), f.expr("split_offsets[0]")),
    "whole and part": lambda df: df.select("partition", "partition.part"),
    "no struct": lambda df: df.where("partition is null").select("content"),
    "struct is there": lambda df: df.select(f.col("readable_metrics").isNull(), "content"),
    "structs compared": lambda df: df.where("partition = partition").agg(f.count("*")),
    "lambda": lambda df: df.select(f.transform("split_offsets", lambda x: x + 1)),
    "function of Python": lambda df: df.select(f.udf(str, "string")("partition.part")),
    "numbers of rows": lambda df: df.select(
        f.row_number().over(Window.partitionBy("content").orderBy("record_count", "file_path"))
    ),
    "cube": lambda df: df.cube("content", "spec_id").agg(f.sum("record_count")),
    "pivot": lambda df: df.groupBy("spec_id").pivot("content").sum("record_count"),
    "sets of groups": lambda df: df.groupBy("content").agg(f.sum("record_count")).distinct(),
    "dropped": lambda df: df.drop("readable_metrics").groupBy("content").count(),
    "joined with what it was": lambda df: df.select("file_path").join(
        df.groupBy("file_path", "content").count(), "file_path"
    ),
    "columns of a frame before": lambda df: df.select("file_path", "content").where(
        df["content"] == 0
    ),
    "of a cached frame": lambda df: df.where("content = 0").cache().groupBy("spec_id").count(),
    "ordered": lambda df: df.select("file_path", "record_count").orderBy("record_count").limit(9),
    "random": lambda df: df.where(f.rand() < 2).groupBy("content").count(),
    "by a query": lambda df: (
        df.where("file_path in (select path from values ('nothing') as other(path))")
        .groupBy("content")
        .count()
    ),
    "filtered aggregate": lambda df: df.agg(f.expr("count(*) filter (where content = 0)")),
    "ordered by what is not shown": lambda df: df.select("file_path").sort("record_count"),
    "conditions on what is not shown": lambda df: df.select("file_path").where("content = 0"),
    "conditions of groups": lambda df: df.groupBy("content").count().where("max(spec_id) > 0"),
    "groups by their order": lambda df: df.groupBy("content").count().orderBy(f.max("file_path")),
    "struct of fields that are shown": lambda df: df.select("partition.part").where(
        "partition is not null"
    ),
    "with itself": lambda df: (lambda x: x.union(x))(df.select("partition.part", "content")),
    "counted query": lambda df: df.sparkSession.range(df.groupBy("content").count().count()),
    "first": lambda df: df.select("content").orderBy("content").limit(1).select("content"),
    "generated": lambda df: df.select(f.explode("split_offsets"), "content"),
}


@pytest.fixture
def fewer_rules(front: SparkSession) -> None:
    """Spark does not drop what a query does not use."""
    names = ("ColumnPruning", "CollapseProject", "SimplifyExtractValueOps")
    front.conf.set(
        "spark.sql.optimizer.excludedRules",
        ",".join(f"org.apache.spark.sql.catalyst.optimizer.{name}" for name in names),
    )


@pytest.mark.parametrize("case", FILES)
def test_queries_of_files_have_the_rows_of_plain_spark(
    spark: SparkSession, front: SparkSession, table: Table, case: str
) -> None:
    path = f"{table.location()}#files"
    assert rows(FILES[case](load(front, path))) == rows(FILES[case](load(spark, path)))


@pytest.mark.parametrize("case", some(list(FILES), 8))
def test_so_they_have_where_spark_drops_no_columns(
    spark: SparkSession, front: SparkSession, fewer_rules: None, table: Table, case: str
) -> None:
    path = f"{table.location()}#files"
    assert rows(FILES[case](load(front, path))) == rows(FILES[case](load(spark, path)))


@pytest.mark.parametrize("kind", some(list(MetadataTable), 6))
def test_each_column_is_read_alone(
    spark: SparkSession, front: SparkSession, table: Table, kind: MetadataTable
) -> None:
    path = f"{table.location()}#{kind}"
    found, plain = load(front, path), load(spark, path)
    assert found.schema == plain.schema
    assert found.count() == plain.count()
    whole = plain.toArrow()
    for name in plain.columns:
        alone = found.select(name).toArrow()
        assert sorted(map(str, alone[name].to_pylist())) == sorted(
            map(str, whole[name].to_pylist())
        )


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The names of columns that are read, of each scan."""
    seen: list[list[str]] = []
    plan = table_load.planned_frame

    def planned(spark: SparkSession, of: Any, *more: Any, **named: Any) -> DataFrame:
        seen.append([_shown(field) for field in of.columns.fields])
        return plan(spark, of, *more, **named)

    monkeypatch.setattr(table_load, "planned_frame", planned)
    return seen


def _shown(field: Any) -> str:
    inner = getattr(field.field_type, "fields", ())
    return f"{field.name}({','.join(map(_shown, inner))})" if inner else str(field.name)


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (lambda df: df.agg(f.sum("data_file.record_count")), ["data_file(record_count)"]),
        (
            lambda df: df.where("status < 2").groupBy("data_file.content").count(),
            ["status", "data_file(content)"],
        ),
        (lambda df: df.select(f.max("snapshot_id")), ["snapshot_id"]),
        (lambda df: df.select("sequence_number"), ["sequence_number"]),
        (lambda df: df.groupBy().count(), ["status"]),
        (
            lambda df: df.select("readable_metrics.id.lower_bound"),
            ["readable_metrics(id(lower_bound))"],
        ),
    ],
)
def test_only_what_a_query_names_is_read(
    front: SparkSession, table: Table, read: list[list[str]], ask: Query, expected: list[str]
) -> None:
    ask(load(front, f"{table.location()}#entries")).collect()
    assert read == [expected]


def test_a_query_is_planned_once_for_all_its_actions(
    front: SparkSession, table: Table, read: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    df = load(front, f"{table.location()}#entries").groupBy("status").count()
    assert df.collect() == [tuple(row) for row in df.toPandas().itertuples(index=False)]
    df.show()
    assert "|status|count|" in capsys.readouterr().out
    assert read == [["status"]]


def test_all_is_read_where_spark_would_evaluate_what_is_not_named(
    front: SparkSession, fewer_rules: None, table: Table, read: list[list[str]]
) -> None:
    whole = load(front, f"{table.location()}#files")
    assert len(whole.agg(f.sum("partition.part")).collect()) == 1
    assert [len(columns) for columns in read] == [1, len(whole.columns)]


def test_manifests_without_rows_of_a_condition_are_not_read(
    front: SparkSession, tmp_path: Path
) -> None:
    table = people(tmp_path, 3)
    manifests = table.inspect.manifests()["path"].to_pylist()
    paths = load(front, f"{table.location()}#files").where("content = 1").select("file_path")
    for manifest in manifests:
        table.io.delete(manifest)
    assert paths.collect() == []


_GIVEN = [(1, 1, 1, {"q": 1, "w": "w"}), (2, 2, 2, None), (3, None, 3, {"q": 2, "w": None})]


def partitioned(directory: Path, third: str) -> Table:
    """Structs that are null, with a field that is not.

    Args:
        third: the name of a column.
    """
    catalog = load_catalog("lake", warehouse=str(directory))
    catalog.create_namespace("db")
    columns = f"id bigint, part int, `{third}` int, r struct<q: int not null, w: string>"
    return catalog.create_table("db.t", columns, partition_spec="part")


def append(table: Table, given: list[tuple[Any, ...]]) -> None:
    schema = table.scan().to_arrow().schema
    table.append(
        pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in given], schema)
    )


@pytest.fixture
def odd(tmp_path: Path) -> Table:
    """A table with a name that SQL would replace."""
    table = partitioned(tmp_path, "${spark.master}")
    append(table, _GIVEN)
    return table


@pytest.fixture
def mixed(tmp_path: Path) -> Table:
    """A table with files of Parquet, which Spark's own reader reads, and of ORC."""
    table = partitioned(tmp_path, "third")
    append(table, _GIVEN)
    table.set_properties({"write.format.default": "orc"})
    append(table, [(10 + number, *others) for number, *others in _GIVEN])
    return table


_QUERIES: list[Query] = [
    lambda df: df.agg(f.count("r.q"), f.count("r.w")),
    lambda df: df.groupBy("id").agg(f.count("r.q")),
    lambda df: df.where("r.q is null").where("id > 0").select("id"),
    lambda df: df.where("id > 0").where("r.q is null").select("id"),
    lambda df: df.select("r.w").where("r is null"),
    lambda df: df.select("r.w").where("r.q is not null"),
    lambda df: df.select("id").sort("part"),
    lambda df: df.select("id").distinct().sort("id"),
    lambda df: df.select("id").repartition("part"),
    lambda df: df.select(f"`{df.columns[2]}`"),
    lambda df: df.select("r.q").limit(9),
    lambda df: df.groupBy("r.w").count().sort("count"),
    lambda df: df.where("part = 2").agg(f.count("*"), f.max("id")),
    lambda df: df.select("part").where("r.q > 0").groupBy("part").pivot("part").count(),
    lambda df: df.select("id").join(df.groupBy("id").agg(f.max("part")), "id"),
    lambda df: df.where("id > 1").where(f.col("part").isNull()).select("r"),
    lambda df: df.sparkSession.createDataFrame([(1,)], "k int").lateralJoin(
        df.select((f.col("id") + f.col("k").outer()).alias("z"))
    ),
]


@pytest.mark.parametrize("ask", _QUERIES)
def test_queries_of_a_table_have_the_rows_of_plain_spark(
    spark: SparkSession, not_native: SparkSession, odd: Table, ask: Query
) -> None:
    found, plain = (load(session, odd.location()) for session in (not_native, spark))
    assert rows(ask(found)) == rows(ask(plain))


@pytest.mark.parametrize("ask", _QUERIES)
def test_so_have_those_of_files_that_spark_reads_in_part(
    spark: SparkSession, front: SparkSession, mixed: Table, ask: Query
) -> None:
    found, plain = (load(session, mixed.location()) for session in (front, spark))
    assert rows(ask(found)) == rows(ask(plain))


def test_what_a_query_is_part_of_may_be_run_by_other_rules(
    not_native: SparkSession, odd: Table
) -> None:
    df = load(not_native, odd.location())
    some, more = df.select("r.w"), df.groupBy("part").agg(f.max("r.w"))
    not_native.conf.set("spark.sql.optimizer.nestedSchemaPruning.enabled", "false")
    not_native.conf.set(
        "spark.sql.optimizer.excludedRules", "org.apache.spark.sql.catalyst.optimizer.ColumnPruning"
    )
    assert len(some.union(some).collect()) == len(more.union(more).collect()) == 6
    assert len(some.collect()) == len(more.collect()) == 3


@pytest.fixture
def not_native(spark: SparkSession) -> SparkSession:
    """A registered session in which Spark's own reader reads no files."""
    session = spark.newSession()
    register(session, native_scans=False)
    return session


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The columns of all scans of tables."""
    seen: list[list[str]] = []
    scan = table_load.scan_dataframe

    def planned(spark: SparkSession, of: Any, **more: Any) -> Any:
        seen.append([_shown(field) for field in of.plan.columns.fields])
        return scan(spark, of, **more)

    monkeypatch.setattr(table_load, "scan_dataframe", planned)
    return seen


def test_a_table_is_read_by_the_columns_of_the_query(
    not_native: SparkSession, table: Table, seen: list[list[str]]
) -> None:
    df = load(not_native, table.location())
    expected = table.scan().to_arrow()
    (found,) = df.where("part > 0").agg(f.max("id")).collect()
    assert found[0] == max(
        row["id"] for row in expected.to_pylist() if row["part"] and row["part"] > 0
    )
    assert df.select("id").count() == expected.num_rows
    assert seen[0] == ["id", "part"]


_WHOLE = ["id", "part", "third", "r(q,w)"]


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (lambda df: df.agg(f.max("id")), [["id"]]),
        (lambda df: df.where("part = 2").groupBy("part").count(), [["part"]]),
        (lambda df: df.select("id").sort("third"), [["id", "third"]]),
        # Spark's own reader reads structs whole.
        (lambda df: df.select("r.q"), [["r(q,w)"]]),
        # It reads all files of this partition, and the columns that a query needs.
        (lambda df: df.where("id < 3").agg(f.max("id")), [_WHOLE]),
    ],
)
def test_so_is_one_that_spark_reads_in_part(
    front: SparkSession, mixed: Table, seen: list[list[str]], ask: Query, expected: list[list[str]]
) -> None:
    ask(load(front, mixed.location())).collect()
    assert seen == expected


def test_what_spark_reads_in_part_is_planned_once(
    front: SparkSession, mixed: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = []
    plan = table_load.plan_scan

    def noted(*given: Any, **named: Any) -> Any:
        planned.append(given)
        return plan(*given, **named)

    monkeypatch.setattr(table_load, "plan_scan", noted)
    assert len(load(front, mixed.location()).groupBy("part").count().collect()) == 3
    assert len(planned) == 1
