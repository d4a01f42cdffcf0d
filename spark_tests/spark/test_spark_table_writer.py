"""What `df.writeTo` does in a registered session, for tables of our catalogs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession, functions as f
from pyspark.sql.functions import partitioning
from pyspark.sql.readwriter import DataFrameWriterV2

from icebergds import Catalog, Table, load_catalog, register, unregister
from icebergds.errors import (
    AlreadyExistsError,
    InvalidDataError,
    InvalidFilterError,
    InvalidOptionError,
    NoSuchTableError,
    ValidationError,
)

pytestmark = pytest.mark.spark


@pytest.fixture
def harbour(front: SparkSession, tmp_path: Path) -> Catalog:
    """The catalog `harbour` of the session, with the namespace `db`."""
    warehouse = str(tmp_path / "harbour")
    front.conf.set("spark.icebergpy.catalog.harbour.warehouse", warehouse)
    register(front)
    catalog = load_catalog("harbour", warehouse=warehouse)
    catalog.create_namespace("db")
    return catalog


def numbers(spark: SparkSession, *ids: int) -> DataFrame:
    return spark.createDataFrame([(i, f"s{i % 3}") for i in ids], "id bigint, s string")


def ids(table: Table) -> list[int]:
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


def terms(table: Table) -> list[tuple[str, str]]:
    return [(field.name, str(field.transform)) for field in table.refresh().spec().fields]


def test_a_table_is_created_once(front: SparkSession, harbour: Catalog) -> None:
    writer = numbers(front, 1, 2).writeTo("harbour.db.t").using("icebergpy")
    writer.tableProperty("Owner", "me").option("format-version", 3).create()
    table = harbour.load_table("db.t")
    assert ids(table) == [1, 2]
    assert table.properties["Owner"] == "me"
    assert table.metadata.format_version == 3
    assert len(table.snapshots()) == 1
    with pytest.raises(AlreadyExistsError, match="createOrReplace"):
        writer.create()


def test_a_table_that_appears_meanwhile_is_replaced(
    front: SparkSession, harbour: Catalog, tmp_path: Path
) -> None:
    warehouse = str(tmp_path / "harbour")

    def create(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = load_catalog("port", warehouse=warehouse)
            found.create_table_if_not_exists("db.t", batch.schema).append(batch)
            yield batch

    df = front.range(3, numPartitions=1).mapInArrow(create, "id bigint")
    df.writeTo("harbour.db.t").using("icebergpy").createOrReplace()
    table = harbour.load_table("db.t")
    assert ids(table) == [0, 1, 2]
    assert len(table.snapshots()) == 3


@pytest.mark.parametrize("verb", ["create", "createOrReplace"])
def test_columns_that_the_session_cannot_tell_apart_are_refused(
    front: SparkSession, harbour: Catalog, verb: str
) -> None:
    writer = front.range(1).selectExpr("id", "id ID").writeTo("harbour.db.t").using("icebergpy")
    with pytest.raises(InvalidDataError, match=r"db\.t: .* id, ID apart"):
        getattr(writer, verb)()
    assert not harbour.table_exists("db.t")


def test_a_condition_on_a_column_of_a_frame_is_refused(
    front: SparkSession, harbour: Catalog
) -> None:
    df = numbers(front, 1)
    df.writeTo("harbour.db.t").using("icebergpy").create()
    with pytest.raises(InvalidFilterError, match=r"overwrite: condition.*as in col\('id'\)"):
        df.writeTo("harbour.db.t").overwrite(df["id"] == 1)
    assert ids(harbour.load_table("db.t")) == [1]


# Columns are made in the test: they need a session.
PARTITIONINGS: dict[str, tuple[list[Any], list[tuple[str, str]]]] = {
    "column": (["s"], [("s", "identity")]),
    "text": (["bucket(4, id)", "truncate(2, s)"], [("id_bucket", "bucket[4]"), ("s_trunc", "t")]),
    "Column": ([lambda: f.col("s")], [("s", "identity")]),
    "years": ([lambda: partitioning.years("at")], [("at_year", "year")]),
    "months": ([lambda: partitioning.months(f.col("at"))], [("at_month", "month")]),
    "days and bucket": (
        [lambda: partitioning.days("at"), lambda: partitioning.bucket(8, "id")],
        [("at_day", "day"), ("id_bucket", "bucket[8]")],
    ),
    "hours": ([lambda: partitioning.hours("at")], [("at_hour", "hour")]),
    "odd names": ([lambda: f.col("`a.b c`"), "x y"], [("a.b c", "identity"), ("x y", "identity")]),
}


@pytest.mark.parametrize("case", PARTITIONINGS)
def test_tables_are_partitioned_by_columns_and_transforms(
    front: SparkSession, harbour: Catalog, case: str
) -> None:
    given, expected = PARTITIONINGS[case]
    columns = [each() if callable(each) else each for each in given]
    df = numbers(front, 1).withColumns(
        {"at": f.lit("2024-01-02").cast("timestamp"), "a.b c": f.lit(1), "x y": f.lit(2)}
    )
    df.writeTo("harbour.db.t").partitionedBy(*columns).create()
    found = terms(harbour.load_table("db.t"))
    assert [name for name, _ in found] == [name for name, _ in expected]
    assert all(have.startswith(want) for (_, have), (_, want) in zip(found, expected, strict=True))


def test_a_table_is_replaced_if_it_exists(front: SparkSession, harbour: Catalog) -> None:
    writer = numbers(front, 1).writeTo("harbour.db.t").partitionedBy("s")
    with pytest.raises(NoSuchTableError, match="createOrReplace"):
        writer.replace()
    writer.createOrReplace()
    table = harbour.load_table("db.t")
    first = table.current_snapshot()
    assert first is not None
    front.range(3).writeTo("harbour.db.t").createOrReplace()
    assert ids(table) == [0, 1, 2]
    assert terms(table) == []
    front.range(2).writeTo("harbour.db.t").tableProperty("a", "b").replace()
    assert ids(table) == [0, 1]
    assert table.scan(snapshot_id=first.snapshot_id).to_arrow()["s"].to_pylist() == ["s1"]
    assert len(table.snapshots()) == 3


def test_branches_and_tags_outlive_a_replacement(front: SparkSession, harbour: Catalog) -> None:
    numbers(front, 1).writeTo("harbour.db.t").create()
    branch = {"branch": "audit", "create-branch": True}
    numbers(front, 2).writeTo("harbour.db.t").options(**branch).append()
    front.range(1).writeTo("harbour.db.t").replace()
    table = harbour.load_table("db.t")
    assert sorted(table.refs()) == ["audit", "main"]
    assert table.scan(branch="audit").to_arrow().num_rows == 2
    with pytest.raises(InvalidOptionError, match="main branch"):
        front.range(1).writeTo("harbour.db.t").option("branch", "audit").replace()


def test_a_replacement_is_validated_if_asked_to(front: SparkSession, harbour: Catalog) -> None:
    numbers(front, 1).writeTo("harbour.db.t").create()
    table = harbour.load_table("db.t")
    seen = {"isolation-level": "serializable"}
    seen["validate-from-snapshot-id"] = str(table.snapshots()[0].snapshot_id)
    numbers(front, 2).writeTo("harbour.db.t").append()
    with pytest.raises(ValidationError):
        numbers(front, 3).writeTo("harbour.db.t").options(**seen).createOrReplace()
    named = {"txn-app-id": "a", "txn-version": "1"}
    with pytest.raises(InvalidOptionError, match="replaces table"):
        numbers(front, 3).writeTo("harbour.db.t").options(**named).replace()
    assert ids(table) == [1, 2]


def test_a_replacement_upgrades_and_does_not_move_the_table(
    front: SparkSession, harbour: Catalog
) -> None:
    numbers(front, 1).writeTo("harbour.db.t").create()
    front.range(1).writeTo("harbour.db.t").option("format-version", "3").replace()
    table = harbour.load_table("db.t")
    assert table.metadata.format_version == 3
    front.range(1).writeTo("harbour.db.t").replace()
    assert table.refresh().metadata.format_version == 3
    with pytest.raises(InvalidOptionError, match="stays there"):
        front.range(1).writeTo("harbour.db.t").option("location", "/else").replace()


def test_rows_are_appended_by_name(front: SparkSession, harbour: Catalog) -> None:
    numbers(front, 1).writeTo("harbour.db.t").create()
    front.sql("select 's' s, 2L id").writeTo("harbour.db.t").append()
    front.sql("select 3L id, 's' s, 1 x").writeTo("harbour.db.t").option(
        "merge-schema", True
    ).append()
    table = harbour.load_table("db.t")
    assert ids(table) == [1, 2, 3]
    assert table.schema().find_id("x") == 3
    with pytest.raises(InvalidDataError):
        front.sql("select 1L id, 2 nope").writeTo("harbour.db.t").append()
    with pytest.raises(NoSuchTableError, match="create"):
        front.range(1).writeTo("harbour.db.none").append()
    with pytest.raises(InvalidOptionError, match="as it is"):
        front.range(1).writeTo("harbour.db.t").partitionedBy("id").append()


@pytest.mark.every_spark
def test_rows_that_meet_a_condition_are_replaced(front: SparkSession, harbour: Catalog) -> None:
    numbers(front, 1, 2, 3, 4).writeTo("harbour.db.t").partitionedBy("s").create()
    table = harbour.load_table("db.t")
    numbers(front, 10).writeTo("harbour.db.t").overwrite(f.col("s") == "s1")
    assert ids(table) == [2, 3, 10]
    numbers(front, 11).writeTo("harbour.db.t").overwrite("id = 3")
    assert ids(table) == [2, 10, 11]
    numbers(front, 12).writeTo("harbour.db.t").overwrite(f.lit(True))
    assert ids(table) == [12]
    with pytest.raises(InvalidFilterError, match="nope"):
        numbers(front, 13).writeTo("harbour.db.t").overwrite("nope = 3")
    assert ids(table) == [12]


def test_arguments_of_other_types_are_refused(front: SparkSession, harbour: Catalog) -> None:
    writer = numbers(front, 1).writeTo("harbour.db.t")
    with pytest.raises(InvalidOptionError, match="expected columns"):
        writer.partitionedBy(["id"])  # type: ignore[arg-type]
    writer.create()
    with pytest.raises(InvalidOptionError, match="Column or SQL"):
        writer.overwrite(True)  # type: ignore[arg-type]


def test_the_partitions_of_the_rows_are_replaced(front: SparkSession, harbour: Catalog) -> None:
    numbers(front, 1, 2, 3, 4).writeTo("harbour.db.t").partitionedBy("s").create()
    numbers(front, 7, 8).writeTo("harbour.db.t").overwritePartitions()
    assert ids(harbour.load_table("db.t")) == [3, 7, 8]


def test_rows_may_come_from_the_table_itself(front: SparkSession, harbour: Catalog) -> None:
    numbers(front, 1, 2).writeTo("harbour.db.t").create()
    df = front.read.format("icebergpy").table("harbour.db.t")
    df.where("id = 1").writeTo("harbour.db.t").append()
    assert ids(harbour.load_table("db.t")) == [1, 1, 2]


def test_another_catalog_is_named_by_an_option(
    front: SparkSession, harbour: Catalog, tmp_path: Path
) -> None:
    named = {"catalog": "port", "catalog.warehouse": str(tmp_path / "harbour")}
    front.range(1).writeTo("db.t").using("icebergpy").options(**named).create()
    assert ids(harbour.load_table("db.t")) == [0]
    with pytest.raises(
        NoSuchTableError, match=r"catalog \(there are: .*harbour.*catalog\.nowhere\.warehouse"
    ):
        front.range(1).writeTo("nowhere.db.t").using("icebergpy").create()


def test_a_catalog_prescribes_properties_of_tables_that_are_created_or_replaced(
    front: SparkSession, harbour: Catalog
) -> None:
    prefix = "spark.icebergpy.catalog.harbour"
    front.conf.set(f"{prefix}.table-default.owner", "all")
    front.conf.set(f"{prefix}.table-default.format-version", "3")
    front.conf.set(f"{prefix}.table-override.comment", "all")
    register(front)
    writer = numbers(front, 1).writeTo("harbour.db.t").tableProperty("comment", "mine")
    writer.option("format-version", 2).create()
    table = harbour.load_table("db.t")
    assert (table.properties["owner"], table.properties["comment"]) == ("all", "all")
    assert table.metadata.format_version == 2
    numbers(front, 2).writeTo("harbour.db.t").tableProperty("owner", "me").createOrReplace()
    table = table.refresh()
    assert (table.properties["owner"], table.properties["comment"]) == ("me", "all")
    assert table.metadata.format_version == 2
    numbers(front, 3).writeTo("harbour.db.u").create()
    assert harbour.load_table("db.u").metadata.format_version == 3


def test_names_of_three_parts_may_begin_with_a_catalog_of_the_environment(
    front: SparkSession, harbour: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__QUAY__WAREHOUSE", str(tmp_path / "harbour"))
    numbers(front, 1, 2).writeTo("quay.db.t").create()
    numbers(front, 3).writeTo("quay.db.t").append()
    assert ids(harbour.load_table("db.t")) == [1, 2, 3]
    read = front.read.format("icebergpy").load("quay.db.t")
    assert sorted(row.id for row in read.collect()) == [1, 2, 3]
    # The catalog of Spark's own has precedence.
    front.conf.set("spark.sql.catalog.quay", "no.such.Class")
    with pytest.raises(Exception, match=r"no\.such\.Class"):
        numbers(front, 4).writeTo("quay.db.t").append()
    front.conf.unset("spark.sql.catalog.quay")


def test_other_tables_and_formats_have_sparks_writer(
    spark: SparkSession,
    front: SparkSession,
    harbour: Catalog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert type(front.range(1).writeTo("t").using("parquet")) is DataFrameWriterV2
    with pytest.raises(InvalidOptionError, match="parquet"):
        front.range(1).writeTo("harbour.db.t").using("parquet")
    other = spark.newSession()
    unregister(other)
    assert type(other.range(1).writeTo("harbour.db.t").using("icebergpy")) is DataFrameWriterV2
    with monkeypatch.context() as patch:
        # A catalog of another configuration, such as one that is the default, is not the session's.
        patch.setenv("PYICEBERG_CATALOG__DEFAULT__WAREHOUSE", "/nowhere")
        assert type(front.range(1).writeTo("default.t")) is DataFrameWriterV2
        assert type(front.range(1).writeTo("db.t")) is DataFrameWriterV2
    front.conf.set("spark.sql.catalog.harbour", "org.example.Catalog")
    assert type(front.range(1).writeTo("harbour.db.t")) is DataFrameWriterV2
