"""Variants that Spark shredded are read as Spark's own Parquet reader reads them."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from built.schemas import optional
from built.tables import TableBuilder
from pyspark.sql import SparkSession
from spark_reads import session_conf

from icebergds.spec.manifest import DataFile, FileContent, FileFormat
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, VARIANT, StructType

pytestmark = pytest.mark.spark

_SCHEMA = Schema(
    (
        optional(1, "id", LONG),
        optional(2, "v", VARIANT),
        optional(3, "s", StructType((optional(4, "w", VARIANT),))),
    )
)
_SHREDDED = (
    "a int, b string, c struct<d: decimal(15,1), e: timestamp>, l array<struct<x: bigint>>, "
    "n timestamp_ntz, day date, raw binary, f float, g double, t boolean, big decimal(38,3)"
)
_TYPED = """
    named_struct(
        'a', cast(id AS int), 'c', named_struct('d', cast(id AS decimal(15,1)),
        'e', timestamp_micros(id * 1234567)), 'n', cast(timestamp_micros(id) AS timestamp_ntz),
        'day', date_from_unix_date(cast(id AS int)), 'raw', encode(repeat('é', cast(id AS int)),
        'UTF-8'), 'f', cast(id / 3 AS float), 'g', id / 7, 't', id % 3 = 0,
        'big', cast(id AS decimal(38,3)), 'rest', array(id, id + 1))
"""
_ROWS = f"""
    SELECT id, CASE id % 10
        WHEN 0 THEN NULL
        WHEN 1 THEN parse_json('null')
        WHEN 2 THEN parse_json(concat('[', id, ', "x", {{}}]'))
        WHEN 3 THEN parse_json(concat('{{"a": ', id, ', "b": "', repeat('ab', cast(id AS int)),
            '", "z": [1], "0": {{"a": null}}}}'))
        WHEN 4 THEN parse_json(concat('{{"c": {{"d": ', id, '.5, "other": 1}}, "a": "text"}}'))
        WHEN 5 THEN parse_json(concat('{{"l": [{{"x": ', id,
            '}}, {{"x": "y", "w": 2}}, 3, null]}}'))
        WHEN 6 THEN parse_json('{{}}')
        WHEN 7 THEN parse_json('{{"b": null, "l": {{}}, "c": []}}')
        ELSE to_variant_object({_TYPED})
    END AS v
    FROM range(100)
"""
_COLUMNS = ("id", "to_json(v)", "schema_of_variant(v)", "variant_get(v, '$.a', 'string')")
_MORE = ("variant_get(v, '$.c.d', 'double')", "variant_get(v, '$.l[1].w', 'int')", "to_json(s.w)")


def _shredded_file(spark: SparkSession, path: Path) -> DataFile:
    with ExitStack() as settings:
        for name, value in {
            "writeShredding.enabled": "true",
            "inferShreddingSchema": "false",
            "forceShreddingSchemaForTest": _SHREDDED,
        }.items():
            settings.enter_context(session_conf(spark, f"spark.sql.variant.{name}", value))
        rows = spark.sql(f"SELECT *, named_struct('w', v) AS s FROM ({_ROWS})")
        rows.coalesce(1).write.parquet(str(path))
    (file,) = path.glob("*.parquet")
    return DataFile(
        content=FileContent.DATA,
        file_path=str(file),
        file_format=FileFormat.PARQUET,
        spec_id=0,
        partition=(),
        record_count=100,
        file_size_in_bytes=file.stat().st_size,
    )


@pytest.mark.usefixtures("compiled")
def test_variants_that_spark_shredded_are_those_that_spark_reads(
    spark: SparkSession, tmp_path: Path
) -> None:
    file = _shredded_file(spark, tmp_path / "written")
    assert "typed_value" in str(pq.read_schema(file.file_path))
    table = TableBuilder(tmp_path / "table", _SCHEMA, format_version=3)
    table.commit(file)
    deleted = [3, 14, 50]
    table.commit(*table.deletion_vectors([(file, deleted)]), operation="delete")

    theirs = spark.read.parquet(file.file_path).where(f"id NOT IN ({', '.join(map(str, deleted))})")
    ours = spark.read.format("icebergpy").load(table.metadata_location)
    columns = (*_COLUMNS, *_MORE)
    expected = [tuple(row) for row in theirs.selectExpr(*columns).orderBy("id").collect()]
    assert [tuple(row) for row in ours.selectExpr(*columns).orderBy("id").collect()] == expected
    assert len(expected) == 97
