"""Small tables whose rows are changed through Spark, and what is in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
from built.api_tables import new_table
from built.contents import files_besides_metadata
from pyspark.sql import DataFrame

from icebergds import Schema, Table, load_table
from icebergds.catalog.address import TableAddress
from icebergds.commit.operations import Change
from icebergds.commit.retry import commit_change
from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.types import INT, LONG, STRING, NestedField
from icebergds.spec.updates.table_updates import SetProperties

MERGE_ON_READ = "merge-on-read"
COPY_ON_WRITE = "copy-on-write"
WAYS = [(2, MERGE_ON_READ), (3, MERGE_ON_READ), (1, COPY_ON_WRITE), (3, COPY_ON_WRITE)]
"""Format versions, and how they change rows."""

PEOPLE = Schema(
    (NestedField(1, "id", LONG), NestedField(2, "part", INT), NestedField(3, "name", STRING))
)
Row: TypeAlias = tuple[Any, ...]


def people(
    directory: Path,
    version: int = 2,
    mode: str = MERGE_ON_READ,
    *,
    schema: Schema = PEOPLE,
    partition_by: str = "part",
    count: int = 12,
    properties: Mapping[str, str] | None = None,
) -> Table:
    """Ids below `count` in two commits; `part` is their remainder by 3, in files of their own."""
    modes = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
    given = {**modes, "write.upsert.mode": "equality-deletes", **(properties or {})}
    table = new_table(
        directory, schema, partition_by=partition_by, version=version, properties=given
    )
    for ids in (range(count // 2), range(count // 2, count)):
        if ids:
            table.append(arrow([person(i) for i in ids], schema))
    return table


def person(row_id: int) -> Row:
    return row_id, row_id % 3, f"n{row_id}"


def arrow(rows: list[Row], schema: Schema = PEOPLE) -> pa.Table:
    names = [field.name for field in schema.fields]
    columns = [dict(zip(names, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(columns, schema_to_arrow(schema))


def rows_of(table: Table, **scan: Any) -> list[Row]:
    """All rows, in order, as our reader has them."""
    read = load_table(table.location()).scan(**scan).to_arrow()
    return sorted((tuple(row.values()) for row in read.to_pylist()), key=str)


def ids_of(table: Table, **scan: Any) -> list[int]:
    return sorted(row[0] for row in rows_of(table, columns="id", **scan))


def expected(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=str)


def lineage_of(table: Table) -> dict[int, tuple[int, int]]:
    """The row id and the sequence number of the last change of each row, by id."""
    columns = ["id", "_row_id", "_last_updated_sequence_number"]
    return {row[0]: (row[1], row[2]) for row in rows_of(table, columns=columns)}


def head(table: Table) -> Snapshot:
    snapshot = load_table(table.location()).current_snapshot()
    assert snapshot is not None
    return snapshot


def meanwhile_appended(df: DataFrame, table: Table, row: Row) -> DataFrame:
    """The same rows, which append another one to a table when they are first computed."""
    location, marker = table.location(), f"{table.location()}/metadata/appended-{row[0]}"

    def append(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # By value: workers do not have this module.
        import pyarrow as pa

        from icebergds import load_table

        for batch in batches:
            try:
                open(marker, "x").close()
            except FileExistsError:
                # Also of a task beside this one.
                yield batch
                continue
            names = ("id", "part", "name")
            types = (pa.int64(), pa.int32(), pa.string())
            columns = [pa.array([v], t) for v, t in zip(row, types, strict=True)]
            load_table(location).append(pa.table(dict(zip(names, columns, strict=True))))
            yield batch

    return df.mapInArrow(append, df.schema)


def set_property(table: Table, name: str, value: str) -> None:
    commit_change(
        TableAddress(table.location()).operations(),
        lambda state: Change([], [SetProperties({name: value})]),
        lambda state: state.metadata.properties.get(name) == value,
    )


def leaves_as_it_was(table: Table, action: Callable[[], Any], error: type[Exception]) -> str:
    """What an action says that fails and changes neither the table nor its files."""
    location = Path(table.location())
    before = files_besides_metadata(location), load_table(location).metadata_location
    try:
        action()
    except error as raised:
        assert (files_besides_metadata(location), load_table(location).metadata_location) == before
        return str(raised)
    raise AssertionError("no error")
