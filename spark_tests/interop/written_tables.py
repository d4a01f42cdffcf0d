"""The tables that icebergds writes for other readers: each a function that builds one."""

from __future__ import annotations

import datetime as dt
import math
import struct as packing
from decimal import Decimal
from typing import Any

from built.replace_files import ReplaceFiles
from oracles.arrow_schema import list_of, map_of, struct
from our_tables import OUR_TABLES, OurTable, Writer, table
from sample_values import NANOSECONDS, SAMPLES, column_of, columns_of, rows_of

from icebergds.commit.data_files import FastAppend
from icebergds.commit.snapshot_commit import commit_snapshot
from icebergds.formats.manifests.manifest import read_manifest
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.spec.manifest import DataFile, ManifestEntryStatus
from icebergds.spec.snapshot import RefType, SnapshotRef
from icebergds.spec.updates.table_updates import SetSnapshotRef

_OLD_KINDS = [kind for kind in SAMPLES if kind not in NANOSECONDS]
_IDENTITIES = [kind for kind in _OLD_KINDS if kind != "fixed[5]"]
_BUCKETED = [k for k in _OLD_KINDS if k not in ("boolean", "float", "double")]
_TRUNCATED = {
    "int": 10,
    "long": 7,
    "decimal(9,2)": 9,
    "decimal(38,10)": 3,
    "string": 2,
    "binary": 1,
}


def _types(writer: Writer, name: str, version: int, **properties: str) -> OurTable:
    kinds = list(SAMPLES) if version == 3 else _OLD_KINDS
    if properties.get("write__format__default") == "orc":
        kinds = [kind for kind in kinds if kind != "time"]
    written = writer.create(name, columns_of(kinds), version=version, **properties)
    rows = rows_of(kinds)
    if properties.get("write__format__default") == "orc":
        rows = [_for_orc(row) for row in rows]
    # Several files of different ranges, so that there is something to prune.
    for first in range(0, 8, 2):
        written.append(rows[first : first + 2])
    written.append([{"id": 100}])
    return written


def _for_orc(row: dict[str, Any]) -> dict[str, Any]:
    """Without what ORC's writers and readers do not agree on.

    Those are seconds' fractions before 1970, which are refused, and zeros of both signs, which
    Java's reader takes for one value.
    """
    changed = dict(row)
    for column, value in row.items():
        if isinstance(value, dt.datetime) and value.year < 1970:
            changed[column] = value.replace(microsecond=0)
        elif "timestamp" in column and isinstance(value, int) and value < 0:
            changed[column] = value // 1_000_000_000 * 1_000_000_000
        elif isinstance(value, float) and value == 0.0:
            changed[column] = 0.0
    return changed


def _register_types() -> None:
    for version in (1, 2, 3):
        for file_format in ("parquet", "avro", "orc"):

            def build(
                writer: Writer, name: str, version: int = version, file_format: str = file_format
            ) -> OurTable:
                return _types(writer, name, version, write__format__default=file_format)

            OUR_TABLES[f"types_v{version}_{file_format}"] = build


_register_types()


@table
def full_bounds(writer: Writer, name: str) -> OurTable:
    return _types(writer, name, 2, write__metadata__metrics__default="full")


@table
def short_bounds(writer: Writer, name: str) -> OurTable:
    return _types(writer, name, 2, write__metadata__metrics__default="truncate(1)")


@table
def counts_alone(writer: Writer, name: str) -> OurTable:
    return _types(writer, name, 2, write__metadata__metrics__default="counts")


def _partitioned(writer: Writer, name: str, kinds: list[str], terms: str, version: int) -> OurTable:
    partition = ", ".join(terms.format(column_of(kind)) for kind in kinds)
    written = writer.create(name, columns_of(kinds), partition=partition, version=version)
    rows = rows_of(kinds)
    written.append(rows[:5])
    written.append([*rows[5:], {"id": 100}])
    return written


@table
def identity_v1(writer: Writer, name: str) -> OurTable:
    return _partitioned(writer, name, _IDENTITIES, "{}", 1)


@table
def identity_v2(writer: Writer, name: str) -> OurTable:
    return _partitioned(writer, name, _IDENTITIES, "{}", 2)


@table
def identity_v3(writer: Writer, name: str) -> OurTable:
    return _partitioned(writer, name, _IDENTITIES, "{}", 3)


@table
def identity_of_fixed(writer: Writer, name: str) -> OurTable:
    return _partitioned(writer, name, ["fixed[5]"], "{}", 2)


@table
def identity_of_nanoseconds(writer: Writer, name: str) -> OurTable:
    return _partitioned(writer, name, list(NANOSECONDS), "{}", 3)


@table
def bucket_v2(writer: Writer, name: str) -> OurTable:
    return _partitioned(writer, name, _BUCKETED, "bucket(16, {})", 2)


@table
def bucket_v3(writer: Writer, name: str) -> OurTable:
    return _partitioned(writer, name, [*_BUCKETED, *NANOSECONDS], "bucket(5, {})", 3)


@table
def truncate_v1(writer: Writer, name: str) -> OurTable:
    return _truncated(writer, name, 1)


@table
def truncate_v2(writer: Writer, name: str) -> OurTable:
    return _truncated(writer, name, 2)


def _truncated(writer: Writer, name: str, version: int) -> OurTable:
    kinds = list(_TRUNCATED)
    partition = ", ".join(f"truncate({_TRUNCATED[k]}, {column_of(k)})" for k in kinds)
    written = writer.create(name, columns_of(kinds), partition=partition, version=version)
    # Truncating the least integers overflows, in Java too.
    rows = [
        {**row, "c_int": row["c_int"] and max(row["c_int"], -(1 << 30))} for row in rows_of(kinds)
    ]
    for row in rows:
        row["c_long"] = row["c_long"] and max(row["c_long"], -(1 << 62))
    return written.append(rows[:4]).append([*rows[4:], {"id": 100}])


@table
def years(writer: Writer, name: str) -> OurTable:
    return _partitioned(writer, name, ["date", "timestamp", "timestamptz"], "years({})", 2)


@table
def months(writer: Writer, name: str) -> OurTable:
    return _partitioned(writer, name, ["date", "timestamp", "timestamptz"], "months({})", 1)


@table
def days(writer: Writer, name: str) -> OurTable:
    return _partitioned(writer, name, ["date", "timestamp", "timestamptz"], "days({})", 2)


@table
def days_v1(writer: Writer, name: str) -> OurTable:
    return _partitioned(writer, name, ["date", "timestamp", "timestamptz"], "days({})", 1)


@table
def hours(writer: Writer, name: str) -> OurTable:
    return _partitioned(writer, name, ["timestamp", "timestamptz"], "hours({})", 2)


@table
def nanosecond_years(writer: Writer, name: str) -> OurTable:
    return _partitioned(writer, name, list(NANOSECONDS), "years({})", 3)


@table
def nanosecond_months(writer: Writer, name: str) -> OurTable:
    return _partitioned(writer, name, list(NANOSECONDS), "months({})", 3)


@table
def nanosecond_days(writer: Writer, name: str) -> OurTable:
    return _partitioned(writer, name, list(NANOSECONDS), "days({})", 3)


@table
def nanosecond_hours(writer: Writer, name: str) -> OurTable:
    return _partitioned(writer, name, list(NANOSECONDS), "hours({})", 3)


@table
def voids(writer: Writer, name: str) -> OurTable:
    return _partitioned(writer, name, ["int", "string"], "void({})", 2)


@table
def nested_source(writer: Writer, name: str) -> OurTable:
    """Partitioned and sorted by fields of structs."""
    columns = [("id!", "int"), ("s", struct(("a", "int"), ("t", struct(("d", "date")))))]
    written = writer.create(
        name, columns, partition="s.a, years(s.t.d) as y", sort="bucket(4, s.a), s.t.d desc"
    )
    rows: list[dict[str, Any]] = [
        {"id": i, "s": {"a": i % 3, "t": {"d": dt.date(1968 + i, 5, 1)}}} for i in range(6)
    ]
    return written.append(rows).append([{"id": 10}, {"id": 11, "s": {"a": None, "t": None}}])


@table
def nested(writer: Writer, name: str) -> OurTable:
    return _nested(writer, name, "parquet", 2)


@table
def nested_avro(writer: Writer, name: str) -> OurTable:
    return _nested(writer, name, "avro", 3)


@table
def nested_orc(writer: Writer, name: str) -> OurTable:
    return _nested(writer, name, "orc", 1)


def _nested(writer: Writer, name: str, file_format: str, version: int) -> OurTable:
    point = struct(("x!", "double"), ("y", "double"))
    columns = [
        ("id!", "int"),
        ("point", point),
        ("ints", list_of("int")),
        ("names", map_of("string", "int")),
        ("by_day", map_of("date", point)),
        ("rows", list_of(struct(("k", "string"), ("tags", map_of("int", list_of("string")))))),
        ("matrix", list_of(list_of(list_of("long")))),
        ("deep", struct(("a", struct(("b", struct(("c", list_of("decimal(20,3)")))))))),
    ]
    full = {
        "point": {"x": 1.0, "y": -0.0},
        "ints": [1, None, 3],
        "names": [("a", 1), ("ü", None)],
        "by_day": [(dt.date(1969, 12, 31), {"x": 2.0, "y": None}), (dt.date(2024, 1, 1), None)],
        "rows": [{"k": "p", "tags": [(1, ["x", None]), (2, [])]}, None, {"k": None, "tags": None}],
        "matrix": [[[1, 2], []], [], None, [[None]]],
        "deep": {"a": {"b": {"c": [Decimal("1.234"), None]}}},
    }
    empty: dict[str, Any] = {
        "point": {"x": 0.0, "y": None},
        "ints": [],
        "names": [],
        "by_day": [],
        "rows": [],
        "matrix": [],
        "deep": {"a": None},
    }
    half = {"deep": {"a": {"b": None}}, "ints": [None], "rows": [{"k": "q", "tags": []}]}
    rows = [{"id": i, **row} for i, row in enumerate([full, empty, {}, half])]
    written = writer.create(name, columns, version=version, write__format__default=file_format)
    return written.append(rows).append([{"id": 9, **full}])


@table
def distant_orc(writer: Writer, name: str) -> OurTable:
    """Times that do not fit 64 bits in nanoseconds, which Arrow's reader of ORC has."""
    columns = [("id!", "int"), ("t", "timestamp"), ("zs", list_of("timestamptz"))]
    moments = [
        dt.datetime(1, 1, 1),
        dt.datetime(1582, 10, 4),
        dt.datetime(1677, 9, 21),
        None,
        dt.datetime(2262, 4, 12),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999_999),
    ]
    zoned = [moment and moment.replace(tzinfo=dt.UTC) for moment in moments]
    rows = [{"id": i, "t": t, "zs": zoned[i:]} for i, t in enumerate(moments)]
    return writer.create(name, columns, write__format__default="orc").append(rows)


@table
def required_columns(writer: Writer, name: str) -> OurTable:
    columns = [
        ("id!", "int"),
        ("s!", "string"),
        ("n!", struct(("a!", "int"), ("b!", list_of("string", required=True)))),
        ("m!", map_of("string", "long", required=True)),
    ]
    rows = [
        {"id": i, "s": f"s{i}", "n": {"a": i, "b": ["x"] * i}, "m": [("k", i)]} for i in range(4)
    ]
    return writer.create(name, columns, partition="s").append(rows)


@table
def odd_names(writer: Writer, name: str) -> OurTable:
    names = ["with space", "dot.ted", "1st", "ünïcode", "per%cent", "dash-ed", "漢字", "a`b"]
    inner = struct(("inner field", "int"), ("2nd", "string"))
    columns = [("id!", "int"), *((column, "string") for column in names), ("a struct", inner)]
    written = writer.create(name, columns, partition="`with space`, truncate(2, `漢字`), `a``b`")
    rows = [
        {"id": 1, **{column: f"value of {column}" for column in names}},
        {"id": 2, "a struct": {"inner field": 7, "2nd": "x"}},
    ]
    return written.append(rows)


@table
def odd_names_avro(writer: Writer, name: str) -> OurTable:
    written = writer.create(
        name, [("id!", "int"), ("a b", "string"), ("漢", "int")], write__format__default="avro"
    )
    return written.append([{"id": 1, "a b": "x", "漢": 2}])


@table
def evolved_columns(writer: Writer, name: str) -> OurTable:
    """Added, renamed, dropped, promoted, reordered, and added again, nested too."""
    return _evolved(writer, name, 2)


@table
def evolved_columns_v1(writer: Writer, name: str) -> OurTable:
    return _evolved(writer, name, 1)


@table
def evolved_columns_avro(writer: Writer, name: str) -> OurTable:
    return _evolved(writer, name, 2, write__format__default="avro")


def _evolved(writer: Writer, name: str, version: int, **properties: str) -> OurTable:
    columns = [
        ("id!", "int"),
        ("a", "string"),
        ("f", "float"),
        ("d", "decimal(5,2)"),
        ("s", struct(("x", "int"), ("gone", "string"))),
        ("l", list_of(struct(("y", "int")))),
    ]
    written = writer.create(name, columns, version=version, **properties)

    def row(number: int) -> dict[str, Any]:
        return {
            "id": number,
            "a": f"a{number}",
            "f": number / 4,
            "d": Decimal(number),
            "s": {"x": number, "gone": "g"},
            "l": [{"y": number}],
        }

    def rename_and_promote(schema: dict[str, Any]) -> None:
        fields = schema["fields"]
        fields[0]["type"] = "long"
        fields[1]["name"] = "title"
        fields[2]["type"] = "double"
        fields[3]["type"] = "decimal(20,2)"
        inner = fields[4]["type"]["fields"]
        inner[0].update(name="number", type="long")
        inner[1] = {"id": 100, "name": "gone", "required": False, "type": "int"}
        fields[5]["type"]["element"]["fields"].append(
            {"id": 101, "name": "z", "required": False, "type": "date"}
        )
        fields.insert(0, {"id": 102, "name": "first", "required": False, "type": "boolean"})

    def renamed(row: Any) -> dict[str, Any]:
        return {
            **{key: row[key] for key in ("id", "f", "d")},
            "title": row["a"],
            "s": {"number": row["s"]["x"], "gone": None},
            "l": [{"y": element["y"], "z": None} for element in row["l"]],
        }

    def drop_and_add_again(schema: dict[str, Any]) -> None:
        schema["fields"] = [f for f in schema["fields"] if f["name"] not in ("title", "f")]
        schema["fields"] += [
            {"id": 103, "name": "title", "required": False, "type": "int"},
            {"id": 104, "name": "f", "required": False, "type": "string"},
        ]

    written.append([row(1), row(2)])
    written.evolve(rename_and_promote, renamed)
    new = {
        "first": True,
        "id": 1 << 40,
        "title": "new",
        "f": 1e300,
        "d": Decimal("123456789012345678.25"),
        "s": {"number": 1 << 40, "gone": 5},
        "l": [{"y": 1, "z": dt.date(1969, 7, 20)}, None],
    }
    written.append([new])
    written.evolve(drop_and_add_again, lambda row: {**row, "title": None, "f": None})
    return written.append([{"id": 7, "title": 7, "f": "text"}])


@table
def default_values(writer: Writer, name: str) -> OurTable:
    """Columns with defaults of version 3, written and left out."""
    written = writer.create(name, [("id!", "int"), ("s", struct(("x", "int")))], version=3)
    written.append([{"id": 1, "s": {"x": 1}}, {"id": 2}])

    def add(schema: dict[str, Any]) -> None:
        defaults = [
            ("an_int", "int", -34),
            ("a_string", "string", "naïve 漢字"),
            ("a_date", "date", "1969-12-31"),
            ("a_decimal", "decimal(9,2)", "14.20"),
        ]
        schema["fields"] += [
            {
                "id": 10 + at,
                "name": column,
                "required": False,
                "type": kind,
                "initial-default": value,
                "write-default": value,
            }
            for at, (column, kind, value) in enumerate(defaults)
        ]

    defaults = {
        "an_int": -34,
        "a_string": "naïve 漢字",
        "a_date": dt.date(1969, 12, 31),
        "a_decimal": Decimal("14.20"),
    }
    written.evolve(add, lambda row: {**row, **defaults})
    written.append([{"id": 3, "an_int": None, "a_string": "x", "a_date": None, "a_decimal": None}])
    # Columns that are left out get their defaults.
    written.table.append(written.arrow([{"id": 4}]).select(["id"]))
    written.rows.append({"id": 4, **defaults})
    return written.record("append")


@table
def evolved_specs(writer: Writer, name: str) -> OurTable:
    return _evolved_specs(writer, name, 2)


@table
def evolved_specs_v3(writer: Writer, name: str) -> OurTable:
    return _evolved_specs(writer, name, 3)


def _evolved_specs(writer: Writer, name: str, version: int) -> OurTable:
    columns = [("id!", "int"), ("s", "string"), ("d", "date")]
    written = writer.create(name, columns, partition="s", version=version)

    def rows(first: int) -> list[dict[str, Any]]:
        return [
            {"id": i, "s": f"s{i % 2}", "d": dt.date(2024, 1 + i % 3, 1)}
            for i in range(first, first + 6)
        ]

    written.append(rows(0))
    written.partition_by(("d", "month", "d_month")).append(rows(6))
    written.partition_by(("d", "month", "m"), ("id", "bucket[3]", "shard")).append(rows(12))
    written.partition_by().append(rows(18))
    return written.partition_by(("s", "identity", "s")).append(rows(24))


@table
def evolved_spec_v1(writer: Writer, name: str) -> OurTable:
    """In version 1 dropped partition fields stay, as void."""
    columns = [("id!", "int"), ("s", "string"), ("d", "date")]
    written = writer.create(name, columns, partition="s", version=1)
    row = {"s": "a", "d": dt.date(2024, 1, 1)}
    written.append([{"id": 1, **row}])
    written.partition_by(("s", "void", "s"), ("d", "day", "d_day"))
    return written.append([{"id": 2, **row}, {"id": 3}])


@table
def upgraded(writer: Writer, name: str) -> OurTable:
    """From version 1 by 2 to 3, with rows of each."""
    written = writer.create(name, [("id!", "int"), ("p", "int")], partition="p", version=1)
    for version in (1, 2, 3):
        written.upgrade(version)
        written.append([{"id": 10 * version + i, "p": i % 2} for i in range(4)])
    return written


@table
def history(writer: Writer, name: str) -> OurTable:
    return _history(writer, name, 2)


@table
def history_v1(writer: Writer, name: str) -> OurTable:
    return _history(writer, name, 1)


@table
def history_v3(writer: Writer, name: str) -> OurTable:
    return _history(writer, name, 3)


@table
def history_of_merged_manifests(writer: Writer, name: str) -> OurTable:
    return _history(writer, name, 2, commit__manifest__min_count_to_merge="2")


@table
def history_of_merged_manifests_v3(writer: Writer, name: str) -> OurTable:
    return _history(writer, name, 3, commit__manifest__min_count_to_merge="3")


@table
def history_with_partition_summaries(writer: Writer, name: str) -> OurTable:
    return _history(writer, name, 2, write__summary__partition_limit="10")


def _history(writer: Writer, name: str, version: int, **properties: str) -> OurTable:
    """Every operation: what each snapshot records is compared with Java's records of the same."""
    columns = [("id!", "int"), ("s", "string"), ("v", "int")]
    written = writer.create(name, columns, partition="s", version=version, **properties)

    def rows(first: int, *parts: str | None) -> list[dict[str, Any]]:
        return [{"id": first + i, "s": part, "v": i} for i, part in enumerate(parts)]

    written.append(rows(0, "a", "b", "c", None, "a"))
    written.append(rows(10, "a", "b", "d/e", "ü"))
    written.append(rows(20, "a"))
    _fast_append(written, rows(30, "b", "c"))
    written.delete("s = 'c'", ["equal", "s", "c"], lambda row: row["s"] == "c")
    written.overwrite(
        rows(40, "b", "b"), "s = 'b'", ["equal", "s", "b"], lambda row: row["s"] == "b"
    )
    written.dynamic_overwrite(rows(50, "a", "z"), lambda row: row["s"])
    _replace(written)
    # By metrics: whole files whose rows all match.
    written.delete("id >= 50", ["greaterThanOrEqual", "id", 50], lambda row: row["id"] >= 50)
    written.append(rows(60, None, "b", "b"))
    written.overwrite([], "s is null", ["isNull", "s"], lambda row: row["s"] is None)
    # An overwrite of everything.
    written.overwrite(rows(70, "a", "b"), "true", ["notNull", "id"], lambda row: True)
    return written.append(rows(80, "a"))


def _fast_append(written: OurTable, rows: list[dict[str, Any]]) -> None:
    """A fast append of a file that an append to a branch had written."""
    files = _written_to(written, rows, "scratch")
    commit_snapshot(written.operations_of_table(), FastAppend(files))
    written.rows.extend(rows)
    written.record("fast_append")


def _replace(written: OurTable) -> None:
    """Replaces the files of a partition by another of the same rows."""
    snapshot = written.table.current_snapshot()
    assert snapshot is not None
    old = tuple(file for file in _files(written) if file.partition == ("b",))
    new = _written_to(written, [row for row in written.rows if row["s"] == "b"], "rewritten")
    action = ReplaceFiles(old, new, snapshot.snapshot_id)
    commit_snapshot(written.operations_of_table(), action)
    written.record("replace")


def _written_to(written: OurTable, rows: list[Any], branch: str) -> tuple[DataFile, ...]:
    """The files of rows that are appended to a new branch."""
    before = {file.file_path for file in _files(written)}
    written.append(rows, branch=branch)
    return tuple(file for file in _files(written, branch) if file.file_path not in before)


def _files(written: OurTable, branch: str = "main") -> list[DataFile]:
    metadata, io = written.table.metadata, written.table.io
    snapshot = metadata.snapshot_by_ref(branch)
    assert snapshot is not None
    return [
        entry.data_file
        for manifest in read_snapshot_manifests(io, snapshot)
        for entry in read_manifest(io, manifest, metadata.specs_by_id, metadata.schema())
        if entry.status is not ManifestEntryStatus.DELETED
    ]


@table
def branches_and_staged(writer: Writer, name: str) -> OurTable:
    columns = [("id!", "int"), ("s", "string")]
    written = writer.create(name, columns, version=2)
    written.append([{"id": 1, "s": "main"}])
    written.append([{"id": 2, "s": "audit"}], branch="audit")
    written.append([{"id": 3, "s": "main"}])
    written.stage([{"id": 4, "s": "staged"}], "wap-1")
    written.append([{"id": 5, "s": "audit"}], branch="audit")
    return written.append([{"id": 6, "s": "main"}])


@table
def branches_and_staged_v3(writer: Writer, name: str) -> OurTable:
    written = writer.create(name, [("id!", "int")], version=3)
    written.append([{"id": 1}, {"id": 2}])
    written.append([{"id": 3}], branch="audit").stage([{"id": 4}], "wap-1")
    return written.append([{"id": 5}])


@table
def tagged_snapshots(writer: Writer, name: str) -> OurTable:
    """References with and without ages, on a table of two specs."""
    columns = [("id!", "int"), ("d", "date")]
    written = writer.create(name, columns, partition="months(d)")
    day = dt.date(2024, 1, 31)
    written.append([{"id": 1, "d": day}, {"id": 2}])
    first = written.moments[-1].snapshot_id
    written.partition_by(("d", "day", "day"), ("id", "bucket[2]", "shard"))
    written.append([{"id": 3, "d": day}])
    written.append([{"id": 4, "d": day}], branch="audit")
    audited = written.moments[-1].snapshot_id
    written.update(
        SetSnapshotRef("first", SnapshotRef(first, RefType.TAG)),
        SetSnapshotRef("kept", SnapshotRef(audited, RefType.TAG, max_ref_age_ms=10**12)),
        SetSnapshotRef("audit", SnapshotRef(audited, RefType.BRANCH, 3, 10**11, 10**12)),
    )
    return written.append([{"id": 5, "d": day}, {"id": 6}], branch="audit")


@table
def gzip_metadata(writer: Writer, name: str) -> OurTable:
    written = writer.create(name, [("id!", "int")], write__metadata__compression_codec="gzip")
    return written.append([{"id": 1}]).append([{"id": 2}])


@table
def object_storage(writer: Writer, name: str) -> OurTable:
    written = writer.create(
        name,
        [("id!", "int"), ("s", "string")],
        partition="s",
        write__object_storage__enabled="true",
        write__data__path=str(writer.directory / "objects"),
    )
    return written.append([{"id": i, "s": f"ü/{i % 3}"} for i in range(9)])


@table
def sorted_rows(writer: Writer, name: str) -> OurTable:
    columns = [("id!", "int"), ("s", "string"), ("d", "double")]
    written = writer.create(
        name, columns, partition="bucket(2, id)", sort="s desc nulls last, truncate(1, s), d"
    )
    values = [0.5, math.nan, -0.0, None]
    rows = [{"id": i, "s": "xyz"[i % 3] if i % 4 else None, "d": values[i % 4]} for i in range(24)]
    return written.append(rows).append([{"id": 99}])


@table
def many_row_groups(writer: Writer, name: str) -> OurTable:
    columns = [("id!", "int"), ("s", "string"), ("b", "binary"), ("d", "double")]
    written = writer.create(
        name,
        columns,
        write__parquet__row_group_size_bytes="2000",
        write__parquet__row_group_check_min_record_count="50",
        write__parquet__page_row_limit="20",
    )
    rows = [
        {
            "id": i,
            "s": f"{i:04d}" * 20,
            "b": b"\xff" * (i % 70),
            "d": math.nan if i % 7 == 0 else i / 3,
        }
        for i in range(600)
    ]
    return written.append(rows)


@table
def many_columns(writer: Writer, name: str) -> OurTable:
    """More columns than metrics are kept for, and a mode of its own for some."""
    columns = [("id!", "int"), *((f"c{i}", "int") for i in range(120))]
    written = writer.create(
        name,
        columns,
        write__metadata__metrics__column__c1="none",
        write__metadata__metrics__column__c119="full",
    )
    return written.append([{"id": r, **{f"c{i}": r * i for i in range(120)}} for r in range(3)])


@table
def empty(writer: Writer, name: str) -> OurTable:
    return writer.create(name, [("id!", "int"), ("s", "string")], partition="s")


@table
def empty_append(writer: Writer, name: str) -> OurTable:
    """Snapshots without files."""
    written = writer.create(name, [("id!", "int")], version=3)
    return written.append([]).append([{"id": 1}]).append([])


@table
def unknown_columns(writer: Writer, name: str) -> OurTable:
    columns = [("u", "unknown"), ("id!", "int"), ("s", struct(("a", "unknown"), ("b", "int")))]
    written = writer.create(name, columns, version=3)
    return written.append([{"id": 1, "s": {"b": 1}}, {"id": 2}])


@table
def geometries(writer: Writer, name: str) -> OurTable:
    written = writer.create(name, [("id!", "int"), ("g", "geometry")], version=3)
    return written.append([*({"id": at, "g": g} for at, g in enumerate(_SHAPES)), {"id": 9}])


@table
def geographies(writer: Writer, name: str) -> OurTable:
    written = writer.create(name, [("id!", "int"), ("h", "geography")], version=3)
    return written.append([*({"id": at, "h": h} for at, h in enumerate(_SHAPES)), {"id": 9}])


# Points at both sides of 180, one with a height, and a line; DuckDB gives the least octet first.
_SHAPES = [
    packing.pack("<BI2d", 1, 1, 179, 2),
    packing.pack("<BI3d", 1, 1001, -179, 3, 50),
    packing.pack("<BII4d", 1, 2, 2, 178, -1, 178, 1),
]


def _replaced(writer: Writer, name: str, version: int) -> OurTable:
    columns = [("id!", "int"), ("text", "string"), ("point", struct(("x", "int"), ("y", "int")))]
    written = writer.create(name, columns, partition="text", version=version)
    rows = [{"id": i, "text": f"t{i % 3}", "point": {"x": i, "y": -i}} for i in range(9)]
    written.append(rows[:6]).append(rows[6:])
    # A wider type, another one, a field more, another order and a column of an old one's name.
    columns = [("point", struct(("y", "long"), ("z", "int"))), ("text", "int"), ("id", "int")]
    new = [{"id": i, "text": i * 2, "point": {"y": i, "z": i + 1}} for i in range(20, 25)]
    written.replace(new, columns, "bucket(2, id)").append([{"id": 30, "text": 7}])
    return written.replace([{"id": 1, "text": "new"}], [("text", "string"), ("id", "int")], "text")


@table
def replaced_v2(writer: Writer, name: str) -> OurTable:
    return _replaced(writer, name, 2)


@table
def replaced_v3(writer: Writer, name: str) -> OurTable:
    return _replaced(writer, name, 3)
