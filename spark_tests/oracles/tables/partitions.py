"""Partitioning: every transform, specs that change, values that are awkward in paths."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

from oracles.arrow_schema import struct
from oracles.jvm import Iceberg, IcebergTable
from oracles.registry import ALL_FORMATS, table
from oracles.tables.types import UTC, primitive_rows

_MOMENTS = [
    dt.datetime(1950, 6, 15, 3, 30),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime(1970, 1, 1),
    dt.datetime(1970, 1, 1, 0, 0, 0, 1),
    dt.datetime(2024, 2, 29, 12, 34, 56, 789012),
    dt.datetime(2038, 1, 19, 3, 14, 8),
    None,
]
_TEMPORAL_COLUMNS = [("id!", "int"), ("d", "date"), ("t", "timestamp"), ("z", "timestamptz")]
_TEMPORAL_ROWS = [
    {
        "id": index,
        "d": moment and moment.date(),
        "t": moment,
        "z": moment and moment.replace(tzinfo=UTC),
    }
    for index, moment in enumerate(_MOMENTS)
]


@table("partition", "identity")
def identity_of_each_type(iceberg: Iceberg, name: str) -> IcebergTable:
    """Fixed is left out: Java Iceberg writes such partition values as invalid Avro."""
    columns = [
        ("id!", "int"),
        ("a_boolean", "boolean"),
        ("an_int", "int"),
        ("a_long", "long"),
        ("a_float", "float"),
        ("a_double", "double"),
        ("a_decimal", "decimal(9,2)"),
        ("a_date", "date"),
        ("a_timestamp", "timestamp"),
        ("a_timestamptz", "timestamptz"),
        ("a_string", "string"),
        ("a_uuid", "uuid"),
        ("a_binary", "binary"),
    ]
    fields = [(column, "identity") for column, _ in columns[1:]]
    written = iceberg.create(name, columns, partition=fields)
    wanted = {column.rstrip("!") for column, _ in columns}
    # U+0000 and U+FFFF cannot be part of a local file's name.
    rows = [{key: value for key, value in row.items() if key in wanted} for row in primitive_rows()]
    rows[2]["a_string"] = "\t\"'"
    written.append(rows)
    return written


@table("partition", "identity", "time")
def identity_of_time(iceberg: Iceberg, name: str) -> IcebergTable:
    columns = [("id!", "int"), ("t", "time")]
    written = iceberg.create(name, columns, partition=[("t", "identity")])
    values = [dt.time(0), dt.time(12, 34, 56, 789012), None]
    written.append([{"id": i, "t": value} for i, value in enumerate(values)])
    return written


@table("partition", "bucket")
def bucket_of_each_type(iceberg: Iceberg, name: str) -> IcebergTable:
    columns = [
        ("id!", "int"),
        ("an_int", "int"),
        ("a_long", "long"),
        ("a_decimal", "decimal(9,2)"),
        ("a_date", "date"),
        ("a_time", "time"),
        ("a_timestamp", "timestamp"),
        ("a_timestamptz", "timestamptz"),
        ("a_string", "string"),
        ("a_uuid", "uuid"),
        ("a_fixed", "fixed[5]"),
        ("a_binary", "binary"),
    ]
    fields = [(column, f"bucket[{4 + i}]") for i, (column, _) in enumerate(columns[1:])]
    written = iceberg.create(name, columns, partition=fields)
    times = [dt.time(1, 2, 3), dt.time(0), dt.time(23, 59, 59, 999999), None]
    wanted = {column.rstrip("!") for column, _ in columns}
    written.append(
        [
            {key: value for key, value in {**row, "a_time": time}.items() if key in wanted}
            for row, time in zip(primitive_rows(), times, strict=True)
        ]
    )
    return written


@table("partition", "truncate")
def truncate_of_each_type(iceberg: Iceberg, name: str) -> IcebergTable:
    columns = [
        ("id!", "int"),
        ("an_int", "int"),
        ("a_long", "long"),
        ("a_decimal", "decimal(9,2)"),
        ("a_string", "string"),
        ("a_binary", "binary"),
    ]
    fields = [(column, "truncate[3]") for column, _ in columns[1:]]
    written = iceberg.create(name, columns, partition=fields)
    values = [
        (7, 7, Decimal("10.65"), "iceberg", b"iceberg"),
        (-1, -1, Decimal("-0.05"), "🧊🧊🧊🧊", b"\xff\xff\xff\xff"),
        (0, 0, Decimal("0.00"), "é", b""),
        (-(1 << 30), 1 << 62, Decimal("-9999999.98"), "", b"\x00"),
        (None, None, None, None, None),
    ]
    names = [column for column, _ in columns[1:]]
    written.append(
        [{"id": i, **dict(zip(names, row, strict=True))} for i, row in enumerate(values)]
    )
    return written


@table("partition", "year", "month", "day", "hour", formats=ALL_FORMATS)
def temporal_transforms(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    fields = [
        (column, transform, f"{column}_{transform}")
        for column in ("d", "t", "z")
        for transform in ("year", "month", "day", "hour")
        if (column, transform) != ("d", "hour")
    ]
    written = iceberg.create(name, _TEMPORAL_COLUMNS, partition=fields)
    written.append(_TEMPORAL_ROWS, file_format=file_format)
    return written


@table("partition", "v3", "timestamp_ns", "year", "month", "day", "hour", "bucket")
def nanosecond_transforms(iceberg: Iceberg, name: str) -> IcebergTable:
    columns = [("id!", "int"), ("n", "timestamp_ns"), ("z", "timestamptz_ns")]
    fields = [
        (column, transform, f"{column}_{transform.partition('[')[0]}")
        for column in ("n", "z")
        for transform in ("year", "month", "day", "hour", "bucket[5]")
    ]
    written = iceberg.create(name, columns, version=3, partition=fields)
    values = [-1, 0, 1, 1_709_210_096_789_012_345, -600_000_000_000_000_001, None]
    written.append([{"id": i, "n": value, "z": value} for i, value in enumerate(values)])
    return written


@table("partition", "void")
def void_transform(iceberg: Iceberg, name: str) -> IcebergTable:
    columns = [("id!", "int"), ("s", "string")]
    fields = [("s", "void"), ("id", "bucket[2]")]
    written = iceberg.create(name, columns, partition=fields)
    written.append([{"id": i, "s": f"s{i}"} for i in range(6)])
    return written


@table("partition", "names in paths", formats=ALL_FORMATS)
def awkward_partition_values(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    columns = [("id!", "int"), ("part of key", "string"), ("v", "string")]
    written = iceberg.create(name, columns, partition=[("part of key", "identity", "part of key")])
    values = [
        "plain",
        "with space",
        "per%cent",
        "%20",
        "a/b/../c",
        "key=value",
        "a:b?c#d&e+f",
        "ünïcödé 漢字 🧊",
        "",
        "null",
        "__HIVE_DEFAULT_PARTITION__",
        "quote'\"`",
        "[x]{y}*",
        None,
    ]
    rows = [{"id": i, "part of key": value, "v": f"v{i}"} for i, value in enumerate(values)]
    files = written.append(rows, file_format=file_format)
    written.row_delta(deletes=[written.position_deletes([(files[1], [0])])])
    return written


@table("partition", "nested source")
def nested_partition_source(iceberg: Iceberg, name: str) -> IcebergTable:
    columns = [("id!", "int"), ("s", struct(("region", "string"), ("at", "timestamp")))]
    fields = [("s.region", "identity", "region"), ("s.at", "day", "at_day")]
    written = iceberg.create(name, columns, partition=fields)
    written.append(
        [
            {"id": 1, "s": {"region": "eu", "at": dt.datetime(2024, 1, 1)}},
            {"id": 2, "s": {"region": None, "at": None}},
            {"id": 3, "s": {"region": "us", "at": dt.datetime(1969, 1, 1, 5)}},
        ]
    )
    return written


@table("partition", "evolution", "v1", "void")
def evolved_specs_v1(iceberg: Iceberg, name: str) -> IcebergTable:
    return _evolve_specs(iceberg, name, 1)


@table("partition", "evolution", "v2")
def evolved_specs_v2(iceberg: Iceberg, name: str) -> IcebergTable:
    return _evolve_specs(iceberg, name, 2)


@table("partition", "evolution", "v3")
def evolved_specs_v3(iceberg: Iceberg, name: str) -> IcebergTable:
    return _evolve_specs(iceberg, name, 3)


def _evolve_specs(iceberg: Iceberg, name: str, version: int) -> IcebergTable:
    expressions = iceberg.api.expressions.Expressions
    columns = [("id!", "int"), ("s", "string"), ("t", "timestamp"), ("v", "int")]
    fields = [("id", "bucket[4]", "shard"), ("s", "identity", "s")]
    written = iceberg.create(name, columns, version=version, partition=fields)

    def append(first: int) -> None:
        rows = [
            {
                "id": i,
                "s": ("red", "green", None)[i % 3],
                "t": dt.datetime(2024, 1 + i % 3, 1, i % 24),
                "v": i * 10,
            }
            for i in range(first, first + 6)
        ]
        written.append(rows)

    append(0)
    written.java.updateSpec().removeField("s").addField("s_day", expressions.day("t")).commit()
    append(6)
    written.java.updateSpec().removeField("shard").addField(expressions.truncate("s", 2)).commit()
    append(12)
    written.java.updateSpec().renameField("s_day", "day_of_t").addField("s").commit()
    append(18)
    update = written.java.updateSpec().removeField("day_of_t").removeField("s")
    update.removeField("s_trunc_2").commit()
    append(24)
    return written


@table("partition", "evolution", "promoted source")
def promoted_partition_source(iceberg: Iceberg, name: str) -> IcebergTable:
    columns = [("i", "int"), ("f", "float"), ("d", "decimal(9,2)"), ("b", "int")]
    fields = [("i", "identity"), ("f", "identity"), ("d", "identity"), ("b", "bucket[8]")]
    written = iceberg.create(name, columns, partition=fields)
    old = [{"i": i - 1, "f": i / 2, "d": Decimal(i), "b": i} for i in range(3)]
    written.append([*old, {}])
    written.evolve(
        ("updateColumn", "i", iceberg.type("long")),
        ("updateColumn", "f", iceberg.type("double")),
        ("updateColumn", "d", iceberg.type("decimal(18,2)")),
        ("updateColumn", "b", iceberg.type("long")),
    )
    written.append([{"i": 1 << 40, "f": 0.1, "d": Decimal("1234567890.12"), "b": 1 << 33}, *old])
    return written


@table("partition", "evolution", "dropped source")
def dropped_partition_source(iceberg: Iceberg, name: str) -> IcebergTable:
    columns = [("id!", "int"), ("s", "string"), ("v", "int")]
    written = iceberg.create(name, columns, partition=[("s", "identity")])
    files = written.append([{"id": i, "s": f"s{i % 2}", "v": i} for i in range(6)])
    written.row_delta(deletes=[written.position_deletes([(files[0], [1])])])
    written.java.updateSpec().removeField("s_identity").commit()
    written.evolve(("deleteColumn", "s"))
    written.append([{"id": 10, "v": 10}])
    return written


@table("partition", "evolution", "renamed source")
def renamed_partition_source(iceberg: Iceberg, name: str) -> IcebergTable:
    columns = [("id!", "int"), ("s", "string")]
    written = iceberg.create(name, columns, partition=[("s", "identity"), ("id", "bucket[2]")])
    written.append([{"id": i, "s": f"s{i % 2}"} for i in range(4)])
    written.evolve(("renameColumn", "s", "colour"), ("renameColumn", "id", "number"))
    written.append([{"number": i, "colour": f"s{i % 2}"} for i in range(4, 8)])
    return written


@table("partition", "uuid")
def many_partitions(iceberg: Iceberg, name: str) -> IcebergTable:
    columns = [("u", "uuid"), ("n!", "int")]
    fields = [("u", "bucket[16]"), ("n", "truncate[10]")]
    written = iceberg.create(name, columns, partition=fields)
    for start in (0, 20):
        rows = [
            {"u": uuid.uuid5(uuid.NAMESPACE_OID, str(n)).bytes, "n": n}
            for n in range(start, start + 20)
        ]
        written.append(rows)
    return written
