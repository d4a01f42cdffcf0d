"""Tables whose variants Spark's writes shred: rows, changes and streams are those without it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from sql_sessions import lake_session, rows

from icebergds import load_table

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("compiled")]

_PROPERTIES = (
    "'format-version' = '3', 'write.parquet.shred-variants' = '{shred}', "
    "'write.delete.mode' = '{mode}', 'write.update.mode' = '{mode}', 'write.merge.mode' = '{mode}'"
)
_TYPED = """
    to_variant_object(named_struct(
        'a', cast(id AS int), 'name', repeat('é', cast(id AS int)), 'day', date_from_unix_date(
        cast(id AS int)), 'at', timestamp_micros(id * 1234567), 'n', cast(timestamp_micros(id) AS
        timestamp_ntz), 'f', cast(id / 3 AS float), 'g', id / 7, 't', id % 3 = 0, 'd',
        cast(id AS decimal(15,1)), 'big', cast(id AS decimal(38,3)), 'raw', encode(string(id),
        'UTF-8'), 'tiny', cast(id AS tinyint), 'l', array(id, id + 1)))
"""
_EACH = (
    "id",
    "s",
    "to_json(v)",
    "schema_of_variant(v)",
    "try_variant_get(v, '$.a', 'int')",
    "try_variant_get(v, '$.d', 'string')",
    "v:o.x[0]::int",
    "is_variant_null(v)",
)
_FIELDS = ", ".join(_EACH)


def _rows(count: int) -> str:
    """A query of rows with variants of many kinds."""
    return f"""
    SELECT id, string(id) AS s, CASE id % 8
        WHEN 0 THEN NULL
        WHEN 1 THEN parse_json('null')
        WHEN 2 THEN parse_json(concat('{{"a": ', id, ', "price": ', id, '.5, "o": {{"x": [1]}}}}'))
        WHEN 3 THEN parse_json(concat('{{"a": "', id, '", "day": ', id, ', "z": {{}}}}'))
        WHEN 4 THEN parse_json('{{"o": {{"x": [], "y": null}}, "a": null}}')
        ELSE {_TYPED}
    END AS v
    FROM range({count})
"""


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> SparkSession:
    return lake_session(spark, tmp_path)


def location(lake: SparkSession, name: str) -> str:
    ((found,),) = rows(lake, f"SELECT file FROM lake.db.{name}.metadata_log_entries LIMIT 1")
    return str(Path(found.removeprefix("file://")).parents[1])


def shredded(lake: SparkSession, name: str) -> set[bool]:
    """Whether the data files have typed values."""
    files = rows(lake, f"SELECT file_path FROM lake.db.{name}.files WHERE content = 0")
    paths = [path.removeprefix("file://") for (path,) in files]
    return {"typed_value" in str(pq.read_schema(path).field("v").type) for path in paths}


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_every_change_leaves_the_rows_that_it_leaves_without_shredding(
    lake: SparkSession, mode: str
) -> None:
    for name, shred in (("plain", "false"), ("typed", "true")):
        properties = _PROPERTIES.format(shred=shred, mode=mode)
        statements = [
            f"CREATE TABLE lake.db.{name} TBLPROPERTIES ({properties}) AS {_rows(60)}",
            f'UPDATE lake.db.{name} SET v = parse_json(\'{{"a": 1, "new": [true]}}\') '
            "WHERE id IN (6, 7)",
            f"DELETE FROM lake.db.{name} WHERE id = 5 OR try_variant_get(v, '$.a', 'int') = 13",
            f"MERGE INTO lake.db.{name} t USING (SELECT id + 50 AS id, s, v FROM "
            f"({_rows(20)})) u ON t.id = u.id WHEN MATCHED THEN UPDATE SET t.v = u.v "
            "WHEN NOT MATCHED THEN INSERT *",
        ]
        for statement in statements:
            lake.sql(statement)
    assert (shredded(lake, "plain"), shredded(lake, "typed")) == ({False}, {True})
    expected = rows(lake, f"SELECT {_FIELDS} FROM lake.db.plain ORDER BY id")
    assert rows(lake, f"SELECT {_FIELDS} FROM lake.db.typed ORDER BY id") == expected
    assert len(expected) == 68
    condition = "WHERE try_variant_get(v, '$.a', 'int') > 20 AND s <> '22' ORDER BY id"
    some = rows(lake, f"SELECT id FROM lake.db.plain {condition}")
    assert rows(lake, f"SELECT id FROM lake.db.typed {condition}") == some
    assert some

    lake.sql(
        "CALL lake.system.rewrite_data_files(table => 'db.typed', "
        "options => map('rewrite-all', 'true'))"
    )
    assert rows(lake, f"SELECT {_FIELDS} FROM lake.db.typed ORDER BY id") == expected
    assert shredded(lake, "typed") == {True}


def test_other_columns_are_read_by_spark_and_by_us(lake: SparkSession, spark: SparkSession) -> None:
    properties = _PROPERTIES.format(shred="true", mode="merge-on-read")
    lake.sql(f"CREATE TABLE lake.db.t TBLPROPERTIES ({properties}) AS {_rows(60)}")
    lake.sql("DELETE FROM lake.db.t WHERE id = 7")
    assert shredded(lake, "t") == {True}
    frame = lake.sql("SELECT id, s FROM lake.db.t WHERE s >= '5'")
    # Spark's own reader takes part: it reads no column of the variant.
    assert frame.inputFiles()
    expected = sorted((id, str(id)) for id in range(60) if str(id) >= "5" and id != 7)
    assert sorted(map(tuple, frame.collect())) == expected
    assert rows(lake, "SELECT count(*), max(id) FROM lake.db.t") == [(59, 59)]
    alone = spark.read.format("icebergpy").load(location(lake, "t")).where("s >= '5'")
    assert sorted(map(tuple, alone.select("id", "s").collect())) == expected
    table = load_table(location(lake, "t"))
    assert sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == sorted(
        {*range(60)} - {7}
    )


def test_a_stream_shreds_and_reads_what_is_shredded(spark: SparkSession, tmp_path: Path) -> None:
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    rows_of_both = spark.sql(_rows(20))
    for path, given in ((source, rows_of_both), (target, rows_of_both.where("id < 0"))):
        given.write.format("icebergpy").options(
            **{
                "create": "true",
                "format-version": "3",
                "table-property.write.parquet.shred-variants": "true",
            }
        ).mode("append").save(path)
    query = (
        spark.readStream.format("icebergpy")
        .load(source)
        .writeStream.format("icebergpy")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(target)
    )
    query.awaitTermination()
    found = [
        spark.read.format("icebergpy").load(path).selectExpr(*_EACH).orderBy("id").collect()
        for path in (source, target)
    ]
    assert found[0] == found[1]
    assert len(found[1]) == 20
    for path in (source, target):
        files = Path(path).rglob("*.parquet")
        assert any("typed_value" in str(pq.read_schema(file)) for file in files)
