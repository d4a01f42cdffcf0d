"""What version 3 adds besides types and deletion vectors: default values and row lineage."""

from __future__ import annotations

from typing import Any

from oracles.arrow_schema import IcebergType, list_of, struct
from oracles.jvm import Iceberg, IcebergTable
from oracles.registry import ALL_FORMATS, table

# Java Iceberg does not read default values for ORC files.
_DEFAULTING_FORMATS = ("parquet", "avro")

_DEFAULTS: list[tuple[str, IcebergType, Any]] = [
    ("a_boolean", "boolean", True),
    ("an_int", "int", -34),
    ("a_long", "long", 1 << 40),
    ("a_float", "float", 1.5),
    ("a_double", "double", -0.25),
    ("a_decimal", "decimal(9,2)", "14.20"),
    ("a_date", "date", "1969-12-31"),
    ("a_time", "time", "10:11:12.123456"),
    ("a_timestamp", "timestamp", "2024-02-29T12:34:56.789012"),
    ("a_timestamptz", "timestamptz", "2024-02-29T12:34:56.789012+00:00"),
    ("a_timestamp_ns", "timestamp_ns", "2024-02-29T12:34:56.789012345"),
    ("a_timestamptz_ns", "timestamptz_ns", "2024-02-29T12:34:56.789012345+00:00"),
    ("a_string", "string", "naïve 漢字"),
    ("a_uuid", "uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
    ("a_fixed", "fixed[3]", b"\x00\x01\xff"),
    ("a_binary", "binary", b"\xff\x00"),
]


@table("default values", "v3", "every type", formats=_DEFAULTING_FORMATS)
def initial_defaults(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    written = iceberg.create(name, [("id!", "int")], version=3)
    written.append([{"id": 1}, {"id": 2}], file_format=file_format)
    written.evolve(
        *(
            ("addColumn", column, iceberg.type(kind), iceberg.literal(value, kind))
            for column, kind, value in _DEFAULTS
        )
    )
    number, text = iceberg.literal(7, "int"), iceberg.literal("required", "string")
    written.evolve(
        ("addRequiredColumn", "required_int", iceberg.type("int"), number),
        ("addRequiredColumn", "required_string", iceberg.type("string"), text),
    )
    # Written nulls stay null.
    row = {"id": 3, "required_int": 1, "required_string": "x"}
    written.append([row], file_format=file_format)
    return written


@table("default values", "v3", "nested fields", formats=_DEFAULTING_FORMATS)
def nested_defaults(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    point = struct(("x", "int"))
    written = iceberg.create(name, [("id!", "int"), ("s", point), ("l", list_of(point))], version=3)
    rows = [{"id": 1, "s": {"x": 1}, "l": [{"x": 2}, None]}, {"id": 2}]
    written.append(rows, file_format=file_format)
    integer = iceberg.type("int")
    written.evolve(
        ("addColumn", "s", "y", integer, iceberg.literal(11, "int")),
        ("addColumn", "l", "z", integer, iceberg.literal(12, "int")),
    )
    row = {"id": 3, "s": {"x": 1, "y": None}, "l": [{"x": 2, "z": 0}]}
    written.append([row], file_format=file_format)
    return written


@table("default values", "v3", "evolution", "time travel")
def changed_defaults(iceberg: Iceberg, name: str) -> IcebergTable:
    """A new write default changes no row; a promotion and a rename keep the initial one."""
    written = iceberg.create(name, [("id!", "int")], version=3)
    written.append([{"id": 1}])
    written.evolve(("addColumn", "n", iceberg.type("int"), iceberg.literal(5, "int")))
    written.append([{"id": 2, "n": 20}])
    written.evolve(("updateColumnDefault", "n", iceberg.literal(6, "int")))
    written.append([{"id": 3, "n": None}])
    written.evolve(("updateColumn", "n", iceberg.type("long")), ("renameColumn", "n", "number"))
    written.append([{"id": 4, "number": 1 << 40}])
    return written


@table("default values", "v3", "partition", "position deletes by vector")
def defaults_with_deletes(iceberg: Iceberg, name: str) -> IcebergTable:
    columns = [("id!", "int"), ("part", "string")]
    written = iceberg.create(name, columns, version=3, partition=[("part", "identity")])
    files = written.append([{"id": i, "part": f"p{i % 2}"} for i in range(8)])
    text = iceberg.type("string")
    written.evolve(("addColumn", "colour", text, iceberg.literal("red", "string")))
    written.deletion_vectors([(files[0], [0])])
    written.java.updateSpec().addField("colour").commit()
    written.append([{"id": 10, "part": "p0", "colour": "blue"}, {"id": 11, "part": "p1"}])
    return written


@table("row lineage", "v3", "time travel")
def lineage_of_appends(iceberg: Iceberg, name: str) -> IcebergTable:
    columns = [("id!", "int"), ("v", "string")]
    written = iceberg.create(name, columns, version=3, partition=[("id", "bucket[3]")])
    for batch in range(3):
        written.append([{"id": batch * 5 + i, "v": f"b{batch}"} for i in range(5)])
    return written


@table("row lineage", "v3", "upgraded from v2")
def lineage_after_upgrade(iceberg: Iceberg, name: str) -> IcebergTable:
    """Files of version 2 have no row ids until their manifests enter a snapshot of version 3."""
    written = iceberg.create(name, [("id!", "int"), ("v", "string")])
    written.append([{"id": i, "v": "old"} for i in range(4)])
    written.set(format_version="3")
    written.append([{"id": i, "v": "new"} for i in range(4, 7)])
    return written


@table("row lineage", "v3", "upgraded from v2", "no snapshot since")
def lineage_before_first_commit(iceberg: Iceberg, name: str) -> IcebergTable:
    written = iceberg.create(name, [("id!", "int")])
    written.append([{"id": i} for i in range(3)])
    written.set(format_version="3")
    return written


@table("row lineage", "v3", "update", "merge", "compaction", formats=ALL_FORMATS)
def lineage_of_updates(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    written = iceberg.create(
        name,
        [("id!", "int"), ("v", "string")],
        version=3,
        properties={
            "write.format.default": file_format,
            "write.update.mode": "copy-on-write",
            "write.merge.mode": "merge-on-read",
        },
    )
    written.append([{"id": i, "v": f"v{i}"} for i in range(8)], file_format=file_format)
    written.sql("UPDATE {t} SET v = 'updated' WHERE id IN (2, 5)")
    written.sql(
        "MERGE INTO {t} USING (SELECT cast(id AS int) AS id FROM range(5, 10)) s "
        "ON {t}.id = s.id WHEN MATCHED THEN UPDATE SET v = 'merged' "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'inserted')"
    )
    return written.call("rewrite_data_files", "options => map('rewrite-all', 'true')")
