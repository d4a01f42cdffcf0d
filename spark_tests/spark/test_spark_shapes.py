"""Geometries and geographies: Spark's own types, and WKB where Spark has none."""

from __future__ import annotations

import struct
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from built.contents import live_files
from built.tables import TableBuilder
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, types as spark_types
from spark_reads import load, message_of, session_conf
from spark_writes import create, refused, save
from sql_sessions import lake_session, rows

from icebergds import load_table
from icebergds.errors import InvalidDataError, InvalidMetadataError
from icebergds.spec.manifest import FileFormat
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    LONG,
    STRING,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

pytestmark = pytest.mark.spark

_IS_OLD = version("pyspark").startswith("4.1.")
only_new = pytest.mark.skipif(_IS_OLD, reason="Spark has these types from 4.2 on")


def point(x: float, y: float) -> bytes:
    return struct.pack("<BI2d", 1, 1, x, y)


def sql_point(x: float, y: float, srid: int = 4326) -> str:
    return f"st_geomfromwkb(X'{point(x, y).hex()}', {srid})"


V3 = {"format-version": "3"}
SHAPES = Schema(
    (
        NestedField(1, "id", LONG),
        NestedField(2, "g", GeometryType()),
        NestedField(3, "m", GeometryType("EPSG:3857")),
        NestedField(4, "n", GeometryType("SRID:0")),
        NestedField(5, "h", GeographyType()),
        NestedField(6, "s", StructType((NestedField(7, "g", GeometryType()),))),
        NestedField(8, "l", ListType(9, GeographyType())),
        NestedField(10, "k", MapType(11, STRING, 12, GeometryType())),
        # Spark has no types for these.
        NestedField(13, "other", GeometryType("EPSG:4269")),
        NestedField(14, "round", GeographyType("OGC:CRS84", "karney")),
    )
)
_P = point(1, 2)
ROWS = [
    (1, _P, _P, _P, _P, (_P,), [_P, None], [("a", _P), ("b", None)], _P, _P),
    (2, *[None] * 9),
]


def shapes(tmp_path: Path, file_format: FileFormat = FileFormat.PARQUET) -> TableBuilder:
    builder = TableBuilder(tmp_path / "t", SHAPES, format_version=3)
    builder.commit(builder.data_file(ROWS, file_format=file_format))
    return builder


def plain(value: Any) -> Any:
    """A value with shapes as their SRID and WKB."""
    match value:
        case spark_types.Row() | list():
            return [plain(each) for each in value]
        case dict():
            return {key: plain(each) for key, each in value.items()}
        case bytearray():
            return bytes(value)
        case _ if hasattr(value, "getSrid"):
            return value.getSrid(), bytes(value.getBytes())
        case _:
            return value


def plain_rows(df: DataFrame) -> list[Any]:
    return sorted(map(plain, df.collect()), key=lambda row: row[0])


def expected_rows() -> list[Any]:
    def shape(srid: int) -> Any:
        return _P if _IS_OLD else (srid, _P)

    known = [shape(srid) for srid in (4326, 3857, 0, 4326)]
    nested = [[shape(4326)], [shape(4326), None], {"a": shape(4326), "b": None}]
    return [[1, *known, *nested, _P, _P], [2, *[None] * 9]]


@pytest.mark.parametrize("file_format", [FileFormat.PARQUET, FileFormat.ORC, FileFormat.AVRO])
def test_shapes_of_spark_s_reference_systems_are_its_own(
    spark: SparkSession, tmp_path: Path, file_format: FileFormat
) -> None:
    df = load(spark, shapes(tmp_path, file_format).location)
    found = [field.dataType.simpleString() for field in df.schema.fields[1:]]
    if _IS_OLD:
        assert found[:2] == ["binary", "binary"]
    else:
        assert found == [
            "geometry(4326)",
            "geometry(3857)",
            "geometry(0)",
            "geography(4326)",
            "struct<g:geometry(4326)>",
            "array<geography(4326)>",
            "map<string,geometry(4326)>",
            "binary",
            "binary",
        ]
    assert plain_rows(df) == expected_rows()
    assert df.where("g IS NOT NULL AND h IS NOT NULL").count() == 1


def test_registered_sessions_give_the_same(front: SparkSession, tmp_path: Path) -> None:
    table = load_table(str(shapes(tmp_path).location))
    assert plain_rows(table.scan().to_df(front)) == expected_rows()
    df = front.read.format("icebergpy").load(str(tmp_path / "t"))
    assert plain_rows(df) == expected_rows()
    # Columns beside them may be read by Spark's own reader.
    assert sorted(row.id for row in df.select("id").where("g IS NULL OR id < 5").collect()) == [
        1,
        2,
    ]
    assert df.where("g IS NULL").count() == 1


def test_a_schema_given_to_the_load_may_have_them_as_wkb(
    spark: SparkSession, tmp_path: Path
) -> None:
    builder = TableBuilder(tmp_path / "t", SHAPES, format_version=3)
    # Not WKB, which Spark's own types refuse.
    builder.commit(builder.data_file([(1, b"nowhere", None, None, _P, *[None] * 5)]))
    df = spark.read.format("icebergpy").schema("id bigint, h binary, g binary")
    [row] = df.load(str(builder.location)).collect()
    assert (bytes(row.h), bytes(row.g)) == (_P, b"nowhere")
    if not _IS_OLD:
        assert "WKB" in message_of(lambda: load(spark, builder.location).collect())
        wrong = spark.read.format("icebergpy").schema("g geometry(3857)")
        message = message_of(lambda: wrong.load(str(builder.location)).collect())
        assert "is read as geometry(4326); use that type" in message


@only_new
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_shapes_are_written(spark: SparkSession, tmp_path: Path, file_format: str) -> None:
    source = load(spark, shapes(tmp_path).location)
    path = create(source, tmp_path / "u", **V3, **{"write-format": file_format})
    schema = load_table(path).schema()
    kinds = [field.field_type for field in schema.fields[1:5]]
    assert kinds == [field.field_type for field in SHAPES.fields[1:5]]
    save(source, path)
    assert plain_rows(load(spark, path)) == sorted(2 * expected_rows(), key=lambda row: row[0])
    # Columns of any reference system take WKB.
    other = TableBuilder(tmp_path / "o", SHAPES.select({1, 13}), format_version=3)
    other.commit()
    save(source.select("id", "other"), other.location)
    assert plain_rows(load(spark, other.location)) == [[1, _P], [2, None]]
    (lower, *_) = (file.lower_bounds for file in live_files(path))
    assert {at: lower[at] for at in (2, 3, 4, 5)} == dict.fromkeys(
        (2, 3, 4, 5), struct.pack("<2d", 1, 2)
    )


@only_new
def test_what_a_column_does_not_take_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = shapes(tmp_path).location
    for given, column, message in (
        (sql_point(1, 2, 0), "g", r"SRID 0, not 4326; write st_setsrid(..., 4326)"),
        (f"st_geogfromwkb(X'{_P.hex()}')", "g", "are of the type geography; write st_asbinary"),
        (sql_point(1, 2), "h", "are of the type geometry; write st_asbinary"),
        (sql_point(1, 2), "other", "Spark has no such type; write st_asbinary"),
        (f"array({sql_point(1, 2)}, {sql_point(1, 2, 0)})[0]", "g", "st_setsrid(..., 4326)"),
        ("'POINT (1 2)'", "g", "cannot store every value of the incoming type string"),
    ):
        assert message in refused(spark.sql(f"SELECT {given} AS {column}"), path), given
    version_2 = message_of(lambda: create(spark.sql(f"SELECT {sql_point(1, 2)} g"), tmp_path / "u"))
    assert "'g' is of type geometry, which format version 2 does not support" in version_2


@only_new
def test_streams_carry_shapes(spark: SparkSession, tmp_path: Path) -> None:
    source = spark.readStream.format("icebergpy").load(str(shapes(tmp_path).location))
    copy = create(spark.createDataFrame([], source.schema), tmp_path / "copy", **V3)
    query = (
        source.writeStream.format("icebergpy")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(copy))
    )
    query.awaitTermination()
    assert plain_rows(load(spark, copy)) == expected_rows()


@only_new
def test_statements_have_shapes(spark: SparkSession, tmp_path: Path) -> None:
    lake = lake_session(spark, tmp_path)
    lake.sql(
        "CREATE TABLE lake.db.t (id bigint, g geometry(4326), s struct<h: geography(4326)>) "
        "TBLPROPERTIES ('format-version' = '3')"
    )
    wkb = f"X'{point(5, 6).hex()}'"
    lake.sql(
        f"INSERT INTO lake.db.t VALUES (1, {sql_point(1, 2)}, "
        f"named_struct('h', st_geogfromwkb({wkb}))), (2, null, null)"
    )
    lake.sql(f"INSERT INTO lake.db.t (id, g) VALUES (3, {wkb})")
    shown = "SELECT id, hex(st_asbinary(g)), hex(st_asbinary(s.h)) FROM lake.db.t ORDER BY id"
    one, five = point(1, 2).hex().upper(), point(5, 6).hex().upper()
    assert rows(lake, shown) == [(1, one, five), (2, None, None), (3, five, None)]
    lake.sql(f"UPDATE lake.db.t SET g = {sql_point(1, 2)} WHERE g IS NULL")
    lake.sql(f"UPDATE lake.db.t SET g = {wkb}, s.h = {wkb} WHERE st_srid(g) = 4326 AND id = 1")
    lake.sql(
        f"MERGE INTO lake.db.t USING (SELECT 3 AS id, {sql_point(1, 2)} AS g UNION ALL "
        f"SELECT 4, {sql_point(1, 2)}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET g = s.g "
        "WHEN NOT MATCHED THEN INSERT (id, g) VALUES (s.id, s.g)"
    )
    expected = [(1, five, five), (2, one, None), (3, one, None), (4, one, None)]
    assert rows(lake, shown) == expected
    lake.sql("CREATE TABLE lake.db.u TBLPROPERTIES ('format-version' = '3') AS TABLE lake.db.t")
    lake.table("lake.db.t").write.format("icebergpy").options(**V3).saveAsTable("lake.db.v")
    for copy in ("lake.db.u", "lake.db.v"):
        assert rows(lake, shown.replace("lake.db.t", copy)) == expected
        [(created,)] = rows(lake, f"SHOW CREATE TABLE {copy}")
        assert "g GEOMETRY(4326)" in created
    with pytest.raises(InvalidDataError, match=r"SRID 0, not 4326; write st_setsrid"):
        lake.sql(f"INSERT INTO lake.db.t (id, g) VALUES (5, {sql_point(1, 2, 0)})")
    with pytest.raises(InvalidMetadataError, match="format version 2 does not support"):
        lake.sql("CREATE TABLE lake.db.w (g geometry(3857))")


@only_new
def test_a_session_without_shapes_reads_them_as_wkb(spark: SparkSession, tmp_path: Path) -> None:
    path = str(shapes(tmp_path).location)
    with session_conf(spark, "spark.sql.geospatial.enabled", "false"):
        as_binary = spark.read.format("icebergpy").schema("id bigint, g binary").load(path)
        assert as_binary.where("g IS NOT NULL").count() == 1
        with pytest.raises(PySparkException, match="GEOSPATIAL_DISABLED"):
            load(spark, path).where("g IS NOT NULL").count()


@only_new
def test_spark_has_no_condition_that_boxes_could_answer(spark: SparkSession) -> None:
    """Once it has one, such as st_intersects, files can be skipped by their boxes."""
    found = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS LIKE 'st_*'").collect()}
    made = {"st_geogfromwkb", "st_geomfromwkb", "st_setsrid"}
    assert found == {*made, "st_asbinary", "st_srid"}
