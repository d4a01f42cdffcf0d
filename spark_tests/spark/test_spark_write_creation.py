"""Tables that come into being with a write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from built.contents import files_besides_metadata
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from spark_reads import ids, load
from spark_writes import create, planned_write, refused, save

from icebergds import load_catalog, load_table
from icebergds.errors import InvalidDataError, InvalidOptionError, NoSuchTableError
from icebergds.spark.datasource import IcebergDataSource
from icebergds.spec.sort import NullOrder, SortDirection
from icebergds.spec.types import children

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

LAYOUT = {"partition-by": "days(ts), bucket(4, id) as shard", "sort-by": "name desc, id"}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_layout_and_properties_are_those_of_the_options(
    spark: SparkSession, tmp_path: Path, version: int
) -> None:
    rows = spark.sql("SELECT 1L AS id, 'a' AS name, timestamp'2026-03-01 10:00:00' AS ts")
    more = {"format-version": version, "table-property.write.target-file-size-bytes": "1000"}
    path = create(rows, tmp_path / "t", **LAYOUT, **more)
    metadata = load_table(path).metadata
    assert metadata.format_version == version
    assert [(f.name, str(f.transform)) for f in metadata.spec().fields] == [
        ("ts_day", "day"),
        ("shard", "bucket[4]"),
    ]
    assert [(f.direction, f.null_order) for f in metadata.sort_order().fields] == [
        (SortDirection.DESC, NullOrder.NULLS_LAST),
        (SortDirection.ASC, NullOrder.NULLS_FIRST),
    ]
    assert metadata.properties["write.target-file-size-bytes"] == "1000"
    (file,) = files_besides_metadata(path)
    assert file.startswith("data/ts_day=2026-03-01/shard=")
    assert ids(load(spark, path)) == [1]


def test_columns_keep_comments_and_may_be_null(tmp_path: Path) -> None:
    """What a query knows of its rows, such as of a literal, binds no later row."""
    columns = "id long NOT NULL COMMENT 'the key', s struct<a: int NOT NULL> NOT NULL"
    planned_write(columns, tmp_path / "t", create="true").commit([])
    fields = load_table(tmp_path / "t").schema().fields
    inside = children(fields[1].field_type)
    assert [(f.name, f.optional, f.doc) for f in (*fields, *inside)] == [
        ("id", True, "the key"),
        ("s", True, None),
        ("a", True, None),
    ]


def test_create_appends_to_a_table_that_is_there(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark.range(1), tmp_path / "t")
    create(spark.range(1, 2), path, **{"partition-by": "id"})
    assert ids(load(spark, path)) == [0, 1]
    assert load_table(path).spec().is_unpartitioned


def test_location_is_the_option_s_in_a_catalog(spark: SparkSession, tmp_path: Path) -> None:
    uri, where = f"sqlite:///{tmp_path}/catalog.db", tmp_path / "elsewhere"
    pytest.importorskip("sqlalchemy")
    options = {"catalog": "c", "catalog.uri": uri, "catalog.warehouse": str(tmp_path / "w")}
    load_catalog("c", uri=uri, warehouse=str(tmp_path / "w")).create_namespace("db")
    save(spark.range(2), "db.t", create="true", location=str(where), **options)
    assert len(files_besides_metadata(where)) == 2
    assert ids(load(spark, "db.t", **options)) == [0, 1]


def test_a_data_frame_is_no_schema(spark: SparkSession, tmp_path: Path) -> None:
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    df = spark.sql("SELECT 1 AS fieldNames")
    with pytest.raises(InvalidOptionError, match=r"type DataFrame; .* their schema: df\.schema"):
        catalog.create_table("db.t", df)  # type: ignore[arg-type]
    assert catalog.create_table("db.t", df.schema).schema().fields[0].name == "fieldNames"


def test_location_that_contradicts_the_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="location"):
        planned_write("id long", tmp_path / "t", create="true", location=str(tmp_path / "u"))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"partition-by": "bucket(id)"}, "such as bucket(16, id)"),
        ({"partition-by": "days(id)"}, "does not apply to column 'id'"),
        ({"partition-by": "idd"}, "did you mean id"),
        ({"sort-by": "id sideways"}, "cannot be parsed"),
        ({"format-version": "4"}, "expected one of 1, 2, 3"),
    ],
)
def test_layout_that_cannot_be_is_refused(
    tmp_path: Path, options: dict[str, str], reason: str
) -> None:
    with pytest.raises(InvalidOptionError, match=re.escape(reason)):
        planned_write("id long", tmp_path / "t", create="true", **options)
    assert not (tmp_path / "t").exists()


def test_layout_without_create_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match=r"option\('create', 'true'\)"):
        planned_write("id long", tmp_path / "t", **{"partition-by": "id"})


def test_type_that_a_format_version_lacks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="version 3"):
        planned_write("id void", tmp_path / "t", create="true")


def test_type_that_iceberg_lacks_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InvalidDataError, match="interval year"):
        planned_write("a struct<id: interval year>", tmp_path / "t", create="true")
    path = create(spark.range(1), tmp_path / "u")
    message = refused(spark.sql("SELECT interval 1 day AS id"), path)
    assert "column 'id' has the Spark type interval day" in message


def test_failed_creation_leaves_no_table(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    rows = spark.range(9).coalesce(1).selectExpr("if(id < 5, id, raise_error('boom')) AS x")
    with pytest.raises(Exception, match="boom"):
        create(rows, path)
    assert [file for file in path.rglob("*") if file.is_file()] == []


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("lake.db.x", r"option\('catalog', 'lake'\) with 'db.x', or write './lake.db.x'"),
        ("db.x", r"option\('catalog', '<name>'\) with 'db.x', or write './db.x'"),
    ],
)
@pytest.mark.parametrize("streams", [False, True])
def test_no_table_is_created_in_a_directory_that_is_called_as_a_catalogs_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, hint: str, streams: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    source = IcebergDataSource({"path": path, "create": "true"})
    with pytest.raises(InvalidOptionError, match=hint):
        (source.streamWriter if streams else source.writer)(StructType.fromDDL("id long"), False)


@pytest.mark.parametrize("path", ["./lake.db.x", "v1.2", "plain", "other/db.x"])
def test_a_directory_that_cannot_be_meant_as_a_name_becomes_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    planned_write("id long", path, create="true").commit([])
    assert [field.name for field in load_table(tmp_path / path).schema().fields] == ["id"]


def test_a_table_whose_directory_is_called_as_a_catalogs_table_is_still_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    planned_write("id long", "./lake.db.x", create="true").commit([])
    planned_write("id long", "lake.db.x", create="true").commit([])
    assert len(load_table(tmp_path / "lake.db.x").snapshots()) == 2


def test_an_append_to_a_missing_table_that_may_be_a_catalogs_says_how_to_name_it() -> None:
    with pytest.raises(NoSuchTableError, match=r"option\('catalog', 'lake'\) with 'db.x'"):
        planned_write("id long", "lake.db.x")
