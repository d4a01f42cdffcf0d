"""What `spark.read.format("icebergpy")` gives in a registered session."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession, functions as f
from pyspark.sql.types import LongType, StringType, StructField, StructType
from spark_tables import LIVE_PEOPLE, people

from icebergds import Table, load_catalog, register, unregister
from icebergds.errors import (
    InvalidFilterError,
    InvalidOptionError,
    MissingFileError,
    NoSuchTableError,
)
from icebergds.spark.verbs import READER, is_ours

pytestmark = pytest.mark.spark

_DAY = date(2024, 1, 1)
_POINT = pa.struct([("x", pa.int64())])
_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("i", pa.int32()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us", tz="UTC")),
        ("n", pa.timestamp("us")),
        ("m", pa.decimal128(9, 2)),
        ("f", pa.float32()),
        ("g", pa.float64()),
        ("b", pa.bool_()),
        ("point", _POINT),
    ]
)


def row(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "i": number,
        "s": f"s{number}",
        "d": _DAY.replace(day=number + 1),
        "t": datetime(2024, 1, number + 1, 12, tzinfo=UTC),
        "n": datetime(2024, 1, number + 1, 12),
        "m": Decimal(number) + Decimal("0.25"),
        "f": number + 0.1,
        "g": number + 0.1,
        "b": number == 2,
        "point": {"x": number},
    }


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A table that tests only read: see `created`."""
    return created(tmp_path_factory.mktemp("frames"))


@pytest.fixture(scope="module")
def plain_table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """The table without the columns that Spark reads through expressions."""
    return created(tmp_path_factory.mktemp("frames"), ["id", "i", "s"])


@pytest.fixture(params=["table", "plain_table"])
def either_table(request: pytest.FixtureRequest) -> Table:
    return request.getfixturevalue(request.param)


@pytest.fixture
def own_table(tmp_path: Path) -> Table:
    """A table that a test may change: see `created`."""
    return created(tmp_path)


def created(directory: Path, names: Sequence[str] = _SCHEMA.names) -> Table:
    """Rows 0 to 4, each in a file of its own, and a file of which all but `id` is null."""
    catalog = load_catalog("lake", warehouse=str(directory / "lake"))
    catalog.create_namespace("db")
    schema = pa.schema([_SCHEMA.field(name) for name in names])
    table = catalog.create_table("db.t", schema)
    for values in (*map(row, range(5)), {"id": 5}):
        table.append(pa.Table.from_pylist([values], schema))
    return table


def load(spark: SparkSession, table: Table, **options: str) -> DataFrame:
    return spark.read.format("icebergpy").options(**options).load(table.location())


def ids(df: DataFrame) -> list[int]:
    return sorted(row.id for row in df.collect())


USED: dict[str, tuple[Any, list[int]]] = {
    "int = bigint": ("i = 3L", [3]),
    "int > decimal": ("i > 2.5", [3, 4]),
    "mirrored": ("3 <= i", [3, 4]),
    "in": ("i in (1, 4)", [1, 4]),
    "between": ("i between 1 and 2", [1, 2]),
    "not": ("not (i > 1)", [0, 1]),
    "or": ("i = 0 or s = 's3'", [0, 3]),
    "null": ("i is null", [5]),
    "not null": ("s is not null and id > 3", [4]),
    "null-safe": ("i <=> 2", [2]),
    "null-safe null": ("i <=> null", [5]),
    "prefix": (lambda df: df["s"].startswith("s4"), [4]),
    "text of a number": ("i = '3'", [3]),
    "text of a date": ("d = '2024-01-03'", [2]),
    "date arithmetic": ("d >= date '2024-01-06' - interval 2 days", [3, 4]),
    "Python date": (lambda df: df.d < date(2024, 1, 2), [0]),
    "timestamp": (lambda df: df.t > datetime(2024, 1, 4, tzinfo=UTC), [3, 4]),
    "text of a timestamp": ("t < timestamp '2024-01-01 13:00:00Z'", [0]),
    "timestamp without zone": ("n = timestamp_ntz '2024-01-02 12:00:00'", [1]),
    "decimal": ("m = 3.25", [3]),
    "decimal and int": ("m > 3", [3, 4]),
    "float as double": ("f > 3.0", [3, 4]),
    "double": (lambda df: f.col("g") <= 1.1, [0, 1]),
    "boolean": ("b", [2]),
    "field of a struct": ("point.x = 1", [1]),
    "part that is used": ("i = 3 and upper(s) = 'S3'", [3]),
    "number of text": ("id = 4 and cast(s as binary) is not null", [4]),
}


@pytest.mark.parametrize("case", USED)
def test_a_condition_leaves_files_without_such_rows_out(
    front: SparkSession, table: Table, case: str
) -> None:
    condition, expected = USED[case]
    df = load(front, table)
    found = df.where(condition(df) if callable(condition) else condition)
    assert ids(found) == expected
    assert len(found.inputFiles()) == len(expected)


NOT_USED = {
    "function of a column": "upper(s) = 'S3'",
    "two columns": "id = i",
    "time of the query": "t < current_timestamp() and i = i",
    "lossy cast": "cast(g as int) = 3",
    "part of an or": "i = 3 or length(s) = 2",
    "user's text": "s rlike '3'",
}


@pytest.mark.parametrize("case", NOT_USED)
def test_conditions_that_cannot_be_used_prune_nothing(
    front: SparkSession, table: Table, case: str
) -> None:
    df = load(front, table)
    found = df.where(NOT_USED[case])
    assert len(found.inputFiles()) == 6
    with_filter = front.createDataFrame(table.scan().to_arrow()).where(NOT_USED[case])
    assert ids(found) == ids(with_filter)


def test_a_condition_that_fails_does_so_where_spark_evaluates_it(
    front: SparkSession, table: Table
) -> None:
    df = load(front, table).where("i = 'three'")
    with pytest.raises(PySparkException, match="CAST_INVALID_INPUT"):
        df.collect()


def test_conditions_add_up_and_pass_selections_of_columns(
    front: SparkSession, table: Table
) -> None:
    df = load(front, table).where("i > 0").select("id", "i").filter("i < 3")
    df = df[["id"]].where(f.col("id") != 1)
    assert df.columns == ["id"]
    assert [row.id for row in df.collect()] == [2]
    assert len(df.inputFiles()) == 1


def test_new_columns_are_not_taken_for_those_of_the_table(
    front: SparkSession, table: Table
) -> None:
    df = load(front, table)
    assert ids(df.select("id", (5 - f.col("i")).alias("i")).where("i = 5")) == [0]
    assert df.select("point.x").withColumnRenamed("x", "i").where("i = 3").count() == 1
    assert df.withColumn("i", f.lit(3)).where("i = 3").count() == 6


def test_columns_of_earlier_frames_are_those_of_later_ones(
    front: SparkSession, either_table: Table
) -> None:
    df = load(front, either_table)
    narrow = df.where(df["i"] >= 2).select(df["id"], df.s)
    keys = front.range(6).withColumnRenamed("id", "key")
    joined = keys.join(narrow, keys["key"] == df["id"], "left")
    assert sorted(r.key for r in joined.where(df["id"].isNull()).collect()) == [0, 1, 5]
    assert len(narrow.inputFiles()) == 3


def test_columns_of_a_view_are_those_of_the_load(front: SparkSession, either_table: Table) -> None:
    df = load(front, either_table)
    df.createOrReplaceTempView("loaded")
    viewed = front.table("loaded")
    assert ids(viewed.where(df["i"] > 2)) == [3, 4]
    assert ids(viewed.select(df["id"], "s").where(df["i"] > 3)) == [4]
    front.catalog.dropTempView("loaded")


def test_files_that_spark_reads_as_they_are_are_one_relation(
    front: SparkSession, plain_table: Table
) -> None:
    df = load(front, plain_table).where("i > 2")
    optimized: Any = df._jdf.queryExecution().optimizedPlan()
    leaves = optimized.collectLeaves()
    assert [leaves.apply(i).nodeName() for i in range(leaves.size())] == ["LogicalRelation"]
    assert "Union" not in df._jdf.queryExecution().logical().toString()
    assert ids(df) == [3, 4]


def test_a_column_that_two_frames_have_is_ambiguous_as_ever(
    front: SparkSession, either_table: Table
) -> None:
    df = load(front, either_table)
    narrow = df.where("i > 2")
    with pytest.raises(AnalysisException, match="ambiguous"):
        df.join(narrow, df["id"] < narrow["id"]).collect()
    assert df.join(narrow, df["id"] == narrow["id"]).count() == 2


@pytest.mark.parametrize("inner", [["id"], ["id", "i"]])
def test_sub_queries_name_columns_of_the_query_around_them(
    front: SparkSession, either_table: Table, inner: list[str]
) -> None:
    keys = front.range(1, 7).withColumnRenamed("id", "key")
    equal = load(front, either_table).where(f.col("id") == f.col("key").outer()).select(*inner)
    assert sorted(r.key for r in keys.where(equal.exists()).collect()) == [1, 2, 3, 4, 5]
    known = equal.where("id > 3")
    assert sorted(r.key for r in keys.where(known.exists()).collect()) == [4, 5]
    values = [r[0] for r in keys.orderBy("key").select(equal.select("id").scalar()).collect()]
    assert values == [1, 2, 3, 4, 5, None]


@pytest.mark.parametrize(
    "change",
    [
        lambda df: df.withColumn("new", f.lit(1)),
        lambda df: df.alias("a"),
        lambda df: df.union(df),
        lambda df: df.dropDuplicates(["i"]),
        lambda df: df.join(df, "i"),
    ],
)
def test_other_methods_return_frames_of_spark(
    front: SparkSession, table: Table, change: Callable[[DataFrame], DataFrame]
) -> None:
    assert type(change(load(front, table).where("i = 1"))) is type(front.range(1))


def test_nothing_is_planned_before_rows_are_needed(front: SparkSession, own_table: Table) -> None:
    df = load(front, own_table)
    moved = shutil.move(
        own_table.metadata.current_snapshot().manifest_list, own_table.location() + "/x"
    )
    narrow = df.where("i = 3").select("id", "i")
    assert narrow.columns == ["id", "i"]
    assert [field.name for field in df.schema.fields][:2] == ["id", "i"]
    df.printSchema()
    with pytest.raises(MissingFileError):
        narrow.count()
    shutil.move(moved, own_table.metadata.current_snapshot().manifest_list)
    assert narrow.count() == 1


def test_a_load_is_one_snapshot_for_ever(front: SparkSession, own_table: Table) -> None:
    df = load(front, own_table)
    own_table.delete("id = 3")
    own_table.append(pa.Table.from_pylist([row(3) | {"id": 9}], _SCHEMA))
    assert ids(df) == [0, 1, 2, 3, 4, 5]
    assert ids(df.where("i = 3")) == [3]
    assert ids(load(front, own_table).where("i = 3")) == [9]


def test_rows_of_a_cached_frame_are_not_read_again(front: SparkSession, own_table: Table) -> None:
    df = load(front, own_table).cache()
    assert df.count() == 6
    shutil.rmtree(own_table.location() + "/data")
    assert ids(df.where("i = 3")) == [3]
    assert ids(df.select("id", "i").where("i > 3")) == [4]


def test_files_with_deletes_are_left_out_too(
    front: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    people(tmp_path / "t")
    df = front.read.format("icebergpy").load(str(tmp_path / "t"))
    assert ids(df) == LIVE_PEOPLE
    with caplog.at_level(logging.INFO):
        assert ids(df.where("id < 4")) == ids(df.where(df["id"] < 4)) == [1, 2]
    plans = [line for line in caplog.messages if "data files kept" in line]
    assert ["1 data files kept, 1 skipped" in line for line in plans] == [True, True]
    assert df.where("id > 100").collect() == []


def test_all_rows_are_counted_from_metadata(
    front: SparkSession, own_table: Table, tmp_path: Path
) -> None:
    people(tmp_path / "t")
    with_deletes = front.read.format("icebergpy").load(str(tmp_path / "t"))
    assert with_deletes.count() == with_deletes.select("id").count() == len(LIVE_PEOPLE)
    df, filtered = load(front, own_table), load(front, own_table, filter="i > 2")
    first = str(own_table.snapshots()[0].snapshot_id)
    assert load(front, own_table, **{"start-snapshot-id": first}).count() == 5
    assert df.where("i > 2").count() == 2
    shutil.rmtree(own_table.location() + "/data")
    assert df.count() == df.select("s", "i").count() == 6
    assert filtered.count() == 2
    assert df.where("i > 2").count() == 2
    # Nothing that is remembered of the files' footers is rows of them.
    with pytest.raises((MissingFileError, PySparkException), match="no such file"):
        df.where("i + 1 > 3").count()


def test_options_and_a_schema_are_given_before_or_after_the_format(
    front: SparkSession, table: Table
) -> None:
    wanted = StructType([StructField("s", StringType()), StructField("id", LongType())])
    before = front.read.option("filter", "i > 3").schema(wanted).format("icebergpy")
    df = before.load(table.location())
    assert df.columns == ["s", "id"]
    assert [tuple(row) for row in df.collect()] == [("s4", 4)]
    after = front.read.load(
        table.location(), format="icebergpy", schema="i int, id bigint", filter="i < 1"
    )
    assert [tuple(row) for row in after.where("i = 0").collect()] == [(0, 0)]


def test_values_of_options_may_have_any_text(front: SparkSession, table: Table) -> None:
    df = load(front, table, columns="id", filter="s = ' -> ' or\n s = 's3'")
    assert ids(df) == [3]


def test_a_table_is_read_by_its_name(front: SparkSession, own_table: Table, tmp_path: Path) -> None:
    reader = front.read.format("icebergpy").option("catalog", "lake")
    assert reader.option("catalog.warehouse", str(tmp_path / "lake")).table("db.t").count() == 6
    front.conf.set("spark.icebergpy.catalog.harbour.warehouse", str(tmp_path / "lake"))
    register(front)
    assert front.read.format("icebergpy").table("harbour.db.t").where("i = 1").count() == 1
    with pytest.raises(NoSuchTableError, match="no configured catalog"):
        front.read.format("icebergpy").table("nowhere.db.t")


def test_changes_are_read_as_ever(front: SparkSession, table: Table) -> None:
    first = str(table.snapshots()[0].snapshot_id)
    df = load(front, table, **{"start-snapshot-id": first})
    assert ids(df.where("i is null or i = 2")) == [2, 5]


def test_errors_are_raised_by_the_load(front: SparkSession, table: Table, tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="did you mean 'filter'"):
        load(front, table, filtr="i = 1")
    with pytest.raises(InvalidFilterError, match="nope"):
        load(front, table, filter="nope = 1")
    with pytest.raises(NoSuchTableError, match="nowhere"):
        front.read.format("icebergpy").load(str(tmp_path / "nowhere"))
    with pytest.raises(InvalidOptionError, match="one table, not several"):
        front.read.format("icebergpy").load([table.location(), table.location()])
    with pytest.raises(AnalysisException, match="nope"):
        load(front, table).where("nope = 1")


def test_other_formats_have_sparks_reader(front: SparkSession, table: Table) -> None:
    reader = front.read.format("icebergpy")
    assert is_ours(reader, READER)
    assert not is_ours(reader.format("parquet"), READER)
    assert not is_ours(front.read, READER)


def test_sessions_that_are_not_registered_notice_nothing(
    spark: SparkSession, front: SparkSession, table: Table
) -> None:
    other = spark.newSession()
    unregister(other)
    assert not is_ours(other.read.format("icebergpy"), READER)
    df = load(other, table)
    assert type(df) is type(other.range(1))
    assert ids(df.where("i = 1")) == [1]
    assert df.inputFiles() == []


def test_the_reader_can_be_left_as_it_was(spark: SparkSession, table: Table) -> None:
    session = spark.newSession()
    register(session, reader=False)
    assert not is_ours(session.read.format("icebergpy"), READER)


def test_pushdown_leaves_the_load_to_spark(front: SparkSession, table: Table) -> None:
    front.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    df = load(front, table, pushdown="true")
    assert type(df) is type(front.range(1))
    assert ids(df.where("i = 1")) == [1]


def test_streams_are_read_as_ever(front: SparkSession, table: Table, tmp_path: Path) -> None:
    df = front.readStream.format("icebergpy").load(table.location())
    query = (
        df.writeStream.format("memory")
        .queryName("front_rows")
        .option("checkpointLocation", str(tmp_path / "c"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert front.table("front_rows").count() == 6
