"""Data files: codecs, layouts, metrics, and files that were there before the table."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from oracles.jvm import Iceberg, IcebergTable
from oracles.registry import table
from oracles.tables.position_deletes import SMALL_ROW_GROUPS

_COLUMNS = [("id!", "long"), ("s", "string"), ("d", "double"), ("t", "timestamp")]


def _rows(count: int) -> list[dict[str, Any]]:
    start = dt.datetime(2024, 1, 1)
    return [
        {
            "id": i,
            "s": None if i % 11 == 0 else f"text {i % 4}" * (i % 3),
            "d": i / 7,
            "t": start + dt.timedelta(hours=i),
        }
        for i in range(count)
    ]


def _codecs(iceberg: Iceberg, name: str, file_format: str, codecs: list[str]) -> IcebergTable:
    """One table with a file a codec."""
    written = iceberg.create(name, _COLUMNS)
    for codec in codecs:
        key = f"write.{file_format}.compression-codec"
        written.append(_rows(60), file_format=file_format, properties={key: codec})
    return written


@table("files", "codecs", "parquet")
def parquet_codecs(iceberg: Iceberg, name: str) -> IcebergTable:
    return _codecs(iceberg, name, "parquet", ["zstd", "gzip", "snappy", "uncompressed"])


@table("files", "codecs", "orc")
def orc_codecs(iceberg: Iceberg, name: str) -> IcebergTable:
    return _codecs(iceberg, name, "orc", ["zlib", "snappy", "lz4", "zstd", "none"])


@table("files", "codecs", "avro")
def avro_codecs(iceberg: Iceberg, name: str) -> IcebergTable:
    return _codecs(iceberg, name, "avro", ["gzip", "snappy", "zstd", "uncompressed"])


@table("files", "manifest codecs")
def manifest_codecs(iceberg: Iceberg, name: str) -> IcebergTable:
    written = iceberg.create(name, _COLUMNS)
    for codec in ("gzip", "snappy", "zstd", "uncompressed"):
        written.set(write__manifest__compression_codec=codec)
        written.append(_rows(3))
    return written


@table("files", "several row groups", "splits", "filters by statistics")
def many_row_groups(iceberg: Iceberg, name: str) -> IcebergTable:
    written = iceberg.create(name, _COLUMNS, properties=SMALL_ROW_GROUPS)
    written.append(_rows(1500))
    return written


@table("files", "several stripes", "several blocks")
def many_stripes_and_blocks(iceberg: Iceberg, name: str) -> IcebergTable:
    written = iceberg.create(
        name,
        _COLUMNS,
        properties={"write.orc.stripe-size-bytes": "4096", "read.split.target-size": "8192"},
    )
    orc = written.append(_rows(3000), file_format="orc")
    avro = written.append(_rows(3000), file_format="avro")
    for files in (orc, avro):
        positions = [0, 999, 1000, 1023, 1024, 2047, 2999]
        written.row_delta(deletes=[written.position_deletes([(files[0], positions)])])
    return written


@table("files", "parquet", "pages of version 2", "no dictionary", "bloom filters")
def parquet_layouts(iceberg: Iceberg, name: str) -> IcebergTable:
    written = iceberg.create(name, _COLUMNS)
    for properties in (
        {"write.parquet.page-version": "v2"},
        {"write.parquet.dict-encoding-enabled.column.s": "false"},
        {"write.parquet.bloom-filter-enabled.column.id": "true"},
        {"write.parquet.page-row-limit": "10", "write.parquet.page-version": "v2"},
    ):
        written.append(_rows(100), properties=properties)
    return written


@table("files", "metrics")
def metrics_modes(iceberg: Iceberg, name: str) -> IcebergTable:
    written = iceberg.create(name, _COLUMNS)
    for mode in ("none", "counts", "truncate(4)", "full"):
        written.set(write__metadata__metrics__default=mode)
        files = written.append(_rows(20))
        delete = written.equality_deletes(["id"], [{"id": 3}, {"id": 100}])
        written.row_delta(deletes=[delete, written.position_deletes([(files[0], [7])])])
    return written


@table("files", "more columns than have metrics")
def many_columns(iceberg: Iceberg, name: str) -> IcebergTable:
    columns = [("id!", "long"), *((f"c{i}", "int") for i in range(150))]
    written = iceberg.create(name, columns)
    written.append([{"id": i, **{f"c{c}": c * i for c in range(150)}} for i in range(3)])
    return written


@table("files", "object storage paths", "partition")
def object_storage_paths(iceberg: Iceberg, name: str) -> IcebergTable:
    written = iceberg.create(
        name,
        _COLUMNS,
        partition=[("s", "identity")],
        properties={
            "write.object-storage.enabled": "true",
            "write.data.path": f"{iceberg.warehouse.as_uri()}/elsewhere/{name}",
        },
    )
    written.append(_rows(20))
    return written


@table("imported files", "name mapping", "parquet")
def imported_parquet(iceberg: Iceberg, name: str) -> IcebergTable:
    return _imported(iceberg, name, "parquet")


@table("imported files", "name mapping", "orc")
def imported_orc(iceberg: Iceberg, name: str) -> IcebergTable:
    return _imported(iceberg, name, "orc")


_IMPORTED_COLUMNS = [
    ("id", "long"),
    ("name", "string"),
    ("amount", "decimal(9,2)"),
    ("tags", {"type": "list", "element": "string", "element-required": False}),
    (
        "s",
        {
            "type": "struct",
            "fields": [
                {"name": "x", "required": False, "type": "int"},
                {"name": "day", "required": False, "type": "date"},
            ],
        },
    ),
]
_IMPORTED_QUERY = """
    SELECT id, concat('n', id) AS name, cast(id * 1.5 AS decimal(9,2)) AS amount,
      array('a', cast(id AS string)) AS tags,
      named_struct('x', cast(id AS int), 'day', date_add(DATE'2024-01-01', cast(id AS int))) AS s
    FROM range(8)
"""


def _imported(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    """Files that Spark wrote, so without field ids, then columns renamed, added, dropped."""
    source = _source(iceberg, name)
    iceberg.spark.sql(_IMPORTED_QUERY).write.format(file_format).save(source)
    written = iceberg.create(name, _IMPORTED_COLUMNS)
    written.call("add_files", f"source_table => '`{file_format}`.`{source}`'")
    written.evolve(
        ("renameColumn", "name", "title"),
        ("renameColumn", "s.x", "y"),
        ("deleteColumn", "amount"),
        ("addColumn", "note", iceberg.type("string")),
    )
    new = {"id": 100, "title": "new", "tags": [], "s": {"y": 1}, "note": "written by Iceberg"}
    written.append([new], file_format=file_format)
    return written


@table("imported files", "name mapping", "partition columns absent from files")
def imported_partitions(iceberg: Iceberg, name: str) -> IcebergTable:
    source = _source(iceberg, name)
    query = "SELECT id, concat('v', id) AS v, id % 3 AS p, if(id = 5, null, 'a b/c') AS q"
    frame = iceberg.spark.sql(f"{query} FROM range(9)")
    frame.write.partitionBy("p", "q").parquet(source)
    columns = [("id", "long"), ("v", "string"), ("p", "int"), ("q", "string")]
    written = iceberg.create(
        name, columns, partition=[("p", "identity", "p"), ("q", "identity", "q")]
    )
    written.call("add_files", f"source_table => '`parquet`.`{source}`'")
    data_file = written.tasks()[0].file()
    written.row_delta(deletes=[written.position_deletes([(data_file, [0])])])
    written.append([{"id": 50, "v": "new", "p": 7, "q": None}])
    return written


@table("imported files", "name mapping", "legacy Parquet: int96, two-level lists")
def imported_legacy_parquet(iceberg: Iceberg, name: str) -> IcebergTable:
    source = _source(iceberg, name)
    spark = iceberg.spark
    legacy = {
        "spark.sql.parquet.writeLegacyFormat": "true",
        "spark.sql.parquet.outputTimestampType": "INT96",
    }
    for key, value in legacy.items():
        spark.conf.set(key, value)
    spark.sql(
        "SELECT id, cast(id * 1.25 AS decimal(9,2)) AS amount, array(id, null) AS numbers, "
        "map('k', id) AS m, timestamp_seconds(id * 86400 - 100000) AS at FROM range(5)"
    ).write.parquet(source)
    for key in legacy:
        spark.conf.unset(key)
    columns = [
        ("id", "long"),
        ("amount", "decimal(9,2)"),
        ("numbers", {"type": "list", "element": "long", "element-required": False}),
        ("m", {"type": "map", "key": "string", "value": "long", "value-required": False}),
        ("at", "timestamptz"),
    ]
    written = iceberg.create(name, columns)
    return written.call("add_files", f"source_table => '`parquet`.`{source}`'")


@table("imported files", "name mapping", "several names for a column")
def mapped_names(iceberg: Iceberg, name: str) -> IcebergTable:
    """Two generations of files without ids, which name one column differently."""
    written = iceberg.create(name, [("id", "long"), ("label", "string"), ("extra", "int")])
    written.set(
        schema__name_mapping__default=(
            '[{"field-id": 1, "names": ["id", "ID_OLD"]},'
            ' {"field-id": 2, "names": ["label", "name"]}]'
        )
    )
    old, new = _source(iceberg, f"{name}_old"), _source(iceberg, f"{name}_new")
    spark = iceberg.spark
    spark.sql("SELECT id AS ID_OLD, concat('o', id) AS name FROM range(3)").write.parquet(old)
    # Column extra is in the file but not in the mapping: it reads as null.
    spark.sql(
        "SELECT id, concat('n', id) AS label, cast(id AS int) AS extra FROM range(3, 6)"
    ).write.parquet(new)
    util = iceberg.api.data.TableMigrationUtil
    metrics = iceberg.api.MetricsConfig.forTable(written.java)
    mapping = iceberg.api.mapping.NameMappingParser.fromJson(
        written.java.properties().get("schema.name-mapping.default")
    )
    conf = spark._jsc.hadoopConfiguration()
    for source in (old, new):
        spec = written.java.spec()
        files = util.listPartition({}, source, "parquet", spec, conf, metrics, mapping)
        written.commit_files(written.java.newAppend(), files)
    return written


def _source(iceberg: Iceberg, name: str) -> str:
    return str(iceberg.warehouse / "imported" / name)


@table("files", "decimal", "binary", "boolean partitions", formats=("parquet", "avro"))
def small_partition_types(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    columns = [("id!", "int"), ("b", "boolean"), ("d", "decimal(5,2)"), ("x", "binary")]
    fields = [(column, "identity") for column in ("b", "d", "x")]
    written = iceberg.create(name, columns, partition=fields)
    values = [(True, Decimal("1.50"), b"\x01"), (False, Decimal("-1.50"), b""), (None, None, None)]
    rows = [{"id": i, "b": b, "d": d, "x": x} for i, (b, d, x) in enumerate(values)]
    written.append(rows, file_format=file_format)
    return written
