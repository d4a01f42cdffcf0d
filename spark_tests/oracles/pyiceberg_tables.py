"""Tables written by PyIceberg, with what PyIceberg's own scan reads from them.

PyIceberg writes versions 1 and 2, Parquet only, and deletes by copy on write.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from oracles.arrow_schema import list_of, map_of, numbered, struct
from oracles.canon import canonical_rows, write_rows_file
from oracles.tables.types import PRIMITIVES, primitive_rows
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import parse_transform
from pyiceberg.types import DoubleType, LongType, StringType

Build = Callable[["Writer", str], Table]
PYICEBERG_TABLES: dict[str, Build] = {}


def write_pyiceberg_tables(directory: Path) -> None:
    """Writes all tables, their expected rows and an `index.json` to `directory`."""
    (directory / "rows").mkdir(parents=True)
    catalog = SqlCatalog(
        "oracle",
        uri=f"sqlite:///{directory}/catalog.db",
        warehouse=(directory / "warehouse").as_uri(),
    )
    catalog.create_namespace("db")
    writer = Writer(catalog, directory)
    entries = [_entry(name, build(writer, name), directory) for name, build in _builds()]
    index = {"tables": entries}
    (directory / "index.json").write_text(json.dumps(index, indent=1, ensure_ascii=False))


class Writer:
    """Creates tables in a catalog."""

    def __init__(self, catalog: Catalog, directory: Path) -> None:
        self.catalog = catalog
        self.directory = directory

    def create(
        self,
        name: str,
        columns: Sequence[tuple[str, Any]],
        *,
        partition: list[tuple[str, str]] | None = None,
        version: int = 2,
        **properties: str,
    ) -> Table:
        """A new table; `partition` holds (source column, transform) pairs."""
        schema = Schema.model_validate(numbered(struct(*columns)))
        fields = [
            PartitionField(
                source_id=schema.find_field(source).field_id,
                field_id=1000 + index,
                transform=parse_transform(transform),
                name=f"{source}_{transform.partition('[')[0]}",
            )
            for index, (source, transform) in enumerate(partition or [])
        ]
        named = {key.replace("__", ".").replace("_", "-"): v for key, v in properties.items()}
        return self.catalog.create_table(
            f"db.{name}",
            schema,
            partition_spec=PartitionSpec(*fields),
            properties={"format-version": str(version), **named},
        )


def table(build: Build) -> Build:
    """Registers a function that builds a table of the function's name."""
    PYICEBERG_TABLES[build.__name__] = build
    return build


def rows_of(target: Table, rows: list[dict[str, Any]]) -> pa.Table:
    """Python rows as an Arrow table of the table's schema."""
    return pa.Table.from_pylist(rows, target.schema().as_arrow())


@table
def primitives_v1(writer: Writer, name: str) -> Table:
    written = writer.create(name, PRIMITIVES, version=1)
    written.append(rows_of(written, primitive_rows()))
    return written


@table
def primitives_v2(writer: Writer, name: str) -> Table:
    written = writer.create(name, PRIMITIVES)
    written.append(rows_of(written, primitive_rows()))
    return written


@table
def times(writer: Writer, name: str) -> Table:
    written = writer.create(name, [("id!", "int"), ("t", "time")])
    values = [dt.time(0), dt.time(23, 59, 59, 999999), None]
    written.append(rows_of(written, [{"id": i, "t": value} for i, value in enumerate(values)]))
    return written


@table
def nested(writer: Writer, name: str) -> Table:
    columns = [
        ("id!", "int"),
        ("s", struct(("x", "double"), ("deep", struct(("l", list_of("decimal(20,3)")))))),
        ("l", list_of(struct(("k", "string"), ("v", "date")))),
        ("m", map_of("string", list_of("int"))),
    ]
    written = writer.create(name, columns)
    full = {
        "id": 1,
        "s": {"x": 1.5, "deep": {"l": [Decimal("1.234"), None]}},
        "l": [{"k": "a", "v": dt.date(1969, 12, 31)}, None],
        "m": [("a", [1, None]), ("b", None)],
    }
    empty = {"id": 2, "s": {"x": None, "deep": None}, "l": [], "m": []}
    written.append(rows_of(written, [full, empty, {"id": 3}]))
    return written


@table
def no_snapshot(writer: Writer, name: str) -> Table:
    return writer.create(name, [("id!", "int")])


@table
def partitioned_by_identity(writer: Writer, name: str) -> Table:
    columns = [("id!", "int"), ("s", "string"), ("d", "date"), ("b", "boolean")]
    fields = [("s", "identity"), ("d", "identity"), ("b", "identity")]
    written = writer.create(name, columns, partition=fields)
    days = [dt.date(1969, 12, 31), dt.date(2024, 2, 29), None]
    texts = ["a/b c%=ü", "", None]
    rows = [
        {"id": i, "s": texts[i % 3], "d": days[i // 3], "b": (True, False, None)[i % 3]}
        for i in range(9)
    ]
    written.append(rows_of(written, rows))
    return written


@table
def partitioned_by_transforms(writer: Writer, name: str) -> Table:
    columns = [("id!", "long"), ("s", "string"), ("t", "timestamp"), ("z", "timestamptz")]
    fields = [("id", "bucket[4]"), ("s", "truncate[2]"), ("t", "hour"), ("z", "month")]
    written = writer.create(name, columns, partition=fields)
    moments = [dt.datetime(1950, 6, 15, 3, 30), dt.datetime(2024, 2, 29, 12), None]
    rows = [
        {
            "id": i,
            "s": ("iceberg", "icé", None)[i % 3],
            "t": moments[i % 3],
            "z": moments[i % 3] and moments[i % 3].replace(tzinfo=dt.UTC),
        }
        for i in range(12)
    ]
    written.append(rows_of(written, rows))
    return written


@table
def evolved_columns(writer: Writer, name: str) -> Table:
    columns = [("id!", "int"), ("a", "string"), ("f", "float"), ("s", struct(("x", "int")))]
    written = writer.create(name, columns)
    old = [{"id": 1, "a": "x", "f": 0.1, "s": {"x": 1}}, {"id": 2}]
    written.append(rows_of(written, old))
    with written.update_schema() as update:
        update.rename_column("a", "title").add_column("n", LongType())
        update.update_column("id", LongType()).update_column("f", DoubleType())
        update.add_column(("s", "y"), StringType())
    written.append(rows_of(written, [{"id": 1 << 40, "title": "y", "n": 3, "s": {"y": "z"}}]))
    with written.update_schema() as update:
        update.delete_column("f").move_first("n").rename_column("s.x", "number")
    written.append(rows_of(written, [{"n": 4, "id": 4, "s": {"number": 4, "y": None}}]))
    with written.update_schema() as update:
        update.add_column("f", StringType())
    written.append(rows_of(written, [{"n": 5, "id": 5, "f": "another f"}]))
    return written


@table
def evolved_specs(writer: Writer, name: str) -> Table:
    columns = [("id!", "int"), ("s", "string"), ("d", "date")]
    written = writer.create(name, columns, partition=[("s", "identity")])

    def append(first: int) -> None:
        rows = [
            {"id": i, "s": f"s{i % 2}", "d": dt.date(2024, 1 + i % 3, 1)}
            for i in range(first, first + 6)
        ]
        written.append(rows_of(written, rows))

    append(0)
    with written.update_spec() as update:
        update.remove_field("s_identity").add_field("d", "month", "d_month")
    append(6)
    with written.update_spec() as update:
        update.rename_field("d_month", "m").add_field("id", "bucket[3]", "shard")
    append(12)
    return written


@table
def copy_on_write(writer: Writer, name: str) -> Table:
    """Deletes, overwrites, upserts, and what each snapshot held."""
    columns = [("id!", "int"), ("s", "string"), ("v", "int")]
    written = writer.create(name, columns, partition=[("s", "identity")])
    rows = [{"id": i, "s": f"s{i % 3}", "v": i} for i in range(12)]
    written.append(rows_of(written, rows))
    written.delete("id in (1, 2)")
    written.delete("s == 's0'")
    written.overwrite(rows_of(written, [{"id": 50, "s": "s2", "v": 50}]), "s == 's2'")
    replacing = rows_of(written, [{"id": 60, "s": "s1", "v": 60}, {"id": 61, "s": None, "v": 61}])
    written.dynamic_partition_overwrite(replacing)
    changed = rows_of(written, [{"id": 60, "s": "s1", "v": 0}, {"id": 70, "s": "s9", "v": 1}])
    written.upsert(changed, join_cols=["id"])
    return written


@table
def branches_and_tags(writer: Writer, name: str) -> Table:
    written = writer.create(name, [("id!", "int"), ("s", "string")])
    written.append(rows_of(written, [{"id": 1, "s": "x"}]))
    first = written.metadata.current_snapshot_id
    assert first is not None
    with written.manage_snapshots() as manage:
        manage.create_tag(first, "first").create_branch(first, "audit")
    written.append(rows_of(written, [{"id": 2, "s": "audit"}]), branch="audit")
    with written.update_schema() as update:
        update.rename_column("s", "text")
    written.append(rows_of(written, [{"id": 3, "text": "main"}]))
    return written


@table
def gzip_metadata(writer: Writer, name: str) -> Table:
    columns = [("id!", "int")]
    written = writer.create(name, columns, write__metadata__compression_codec="gzip")
    written.append(rows_of(written, [{"id": 1}]))
    written.append(rows_of(written, [{"id": 2}]))
    return written


@table
def imported_files(writer: Writer, name: str) -> Table:
    """Files without field ids, under a name mapping."""
    columns = [("id", "long"), ("s", "string"), ("p", "int")]
    written = writer.create(name, columns, partition=[("p", "identity")])
    paths = []
    for part in (1, 2):
        path = writer.directory / f"imported-{part}.parquet"
        data = {"id": [part, part + 10], "s": ["a", None], "p": pa.array([part] * 2, pa.int32())}
        pq.write_table(pa.table(data), path)
        paths.append(path.as_uri())
    written.add_files(paths)
    with written.update_schema() as update:
        update.rename_column("s", "text")
    written.append(rows_of(written, [{"id": 99, "text": "written", "p": 3}]))
    return written


@table
def several_row_groups(writer: Writer, name: str) -> Table:
    columns = [("id!", "int"), ("s", "string")]
    written = writer.create(
        name, columns, write__parquet__row_group_limit="100", write__target_file_size_bytes="4000"
    )
    written.append(rows_of(written, [{"id": i, "s": f"text {i}" * 5} for i in range(1000)]))
    return written


@table
def merged_manifests(writer: Writer, name: str) -> Table:
    written = writer.create(
        name,
        [("id!", "int")],
        commit__manifest_merge__enabled="true",
        commit__manifest__min_count_to_merge="2",
    )
    for batch in range(4):
        written.append(rows_of(written, [{"id": batch}]))
    return written


def _builds() -> list[tuple[str, Build]]:
    return list(PYICEBERG_TABLES.items())


def _entry(name: str, written: Table, directory: Path) -> dict[str, Any]:
    written.refresh()
    points: list[dict[str, Any]] = []
    for snapshot in written.metadata.snapshots:
        scan = written.scan(snapshot_id=snapshot.snapshot_id)
        label = f"travel-{len(points)}"
        expected = _expectation(directory, name, label, scan.to_arrow(), scan.projection())
        points.append({"options": {"snapshot-id": str(snapshot.snapshot_id)}, **expected})
    for ref, target in written.metadata.refs.items():
        kind = str(target.snapshot_ref_type)
        # A branch is read with the table's schema, a tag with the snapshot's.
        scan = written.scan(snapshot_id=target.snapshot_id)
        same_schema = scan.projection() == written.schema()
        if kind == "tag" or same_schema:
            label = f"travel-{len(points)}"
            expected = _expectation(directory, name, label, scan.to_arrow(), scan.projection())
            points.append({"options": {kind: ref}, **expected})
    current = _expectation(directory, name, "now", written.scan().to_arrow(), written.schema())
    return {
        "name": name,
        "features": [],
        "location": written.location(),
        "time_travel": points,
        **current,
    }


def _expectation(
    directory: Path, name: str, label: str, rows: pa.Table, schema: Schema
) -> dict[str, Any]:
    schema_json = json.loads(schema.model_dump_json())
    path = directory / "rows" / f"{name}.{label}.jsonl"
    write_rows_file(path, canonical_rows(rows, schema_json))
    return {"schema": schema_json, "rows_file": f"rows/{path.name}", "row_count": rows.num_rows}
