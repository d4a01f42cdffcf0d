"""What travels to the tasks of a write, however many files the table has."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from icebergds import NestedField, Schema, load_catalog
from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import LoadedTable, load_for_write
from icebergds.operations.write.key_changes import prepare_key_change
from icebergds.operations.write.options import WriteOptions
from icebergds.operations.write.position_changes import (
    PositionChange,
    RowChangeMode,
    plan_position_change,
)
from icebergds.operations.write.row_change_options import RowChangeOptions, WriteOperation
from icebergds.scan.plan.delete_index import AppliedDeletes
from icebergds.scan.plan.files import PlannedFile
from icebergds.spec.manifest import (
    DataFile,
    FileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
)
from icebergds.spec.types import LONG, STRING
from icebergds.write.changes.position_delta import TARGET_COLUMN, take_targets

MANY = 2_000
KILOBYTE = 1024
SCHEMA = Schema(tuple(NestedField(at, f"c{at}", STRING, False) for at in range(2, 22)))
ROWS = pa.schema([("_file", pa.string()), ("_pos", pa.int64()), ("_write", pa.bool_())])


def table_in(directory: Path, version: int) -> LoadedTable:
    schema = Schema((NestedField(1, "id", LONG, True), *SCHEMA.fields))
    catalog = load_catalog("lake", warehouse=str(directory))
    table = catalog.create_table("db.t", schema, properties={"format-version": str(version)})
    return load_for_write(TableAddress(table.location()))


def data_file(number: int, content: FileContent = FileContent.DATA, **more: object) -> DataFile:
    path = (
        f"s3://bucket/warehouse/db/events/data/event_day=2026-01-01/{number:05d}-{number}.parquet"
    )
    return DataFile(
        content,
        path,
        FileFormat.PARQUET,
        0,
        (),
        1_000_000,
        128_000_000,
        **more,  # type: ignore[arg-type]
    )


def entry(file: DataFile) -> ManifestEntry:
    return ManifestEntry(ManifestEntryStatus.ADDED, 1, 1, 1, file)


def many_files() -> Iterator[PlannedFile]:
    """Data files, each with a deletion vector of its own."""
    for number in range(MANY):
        file = data_file(number)
        vector = data_file(
            number,
            FileContent.POSITION_DELETES,
            referenced_data_file=file.file_path,
            content_offset=4,
            content_size_in_bytes=40,
        )
        yield PlannedFile(entry(file), AppliedDeletes((entry(vector),)))


@pytest.mark.parametrize("mode", list(RowChangeMode))
def test_a_task_that_changes_rows_does_not_grow_with_the_table(
    tmp_path: Path, mode: RowChangeMode
) -> None:
    table = table_in(tmp_path, 3)
    sizes = set()
    for files in ((), tuple(many_files())):
        change = PositionChange(mode, "delete", None, files)
        planned = plan_position_change(table, WriteOptions(table.address), change, ROWS)
        sizes.add(len(pickle.dumps(planned.task)))
    assert len(sizes) == 1
    assert max(sizes) < 256 * KILOBYTE


@pytest.mark.parametrize("mode", list(RowChangeMode))
def test_what_tasks_know_about_a_file_does_not_grow_with_the_table(
    tmp_path: Path, mode: RowChangeMode
) -> None:
    table = table_in(tmp_path, 3)
    change = PositionChange(mode, "delete", None, tuple(many_files()))
    planned = plan_position_change(table, WriteOptions(table.address), change, ROWS)
    assert len(planned.targets) == MANY
    assert max(map(len, planned.targets.values())) < 2 * KILOBYTE


def test_files_are_described_among_the_rows_that_change_them(tmp_path: Path) -> None:
    table = table_in(tmp_path, 3)
    planned = next(many_files())
    path = planned.entry.data_file.file_path
    change = PositionChange(RowChangeMode.MERGE_ON_READ, "delete", None, (planned,))
    planned_change = plan_position_change(table, WriteOptions(table.address), change, ROWS)
    described = pa.RecordBatch.from_pydict(
        {"_file": [path, path], TARGET_COLUMN: [planned_change.targets[path], None]}
    )
    targets: dict[str, object] = {}
    (rows,) = take_targets([described], targets)
    assert rows.to_pydict() == {"_file": [path]}
    assert list(targets) == [path]


@pytest.mark.parametrize("keys_meet", [True, False])
def test_keys_go_to_the_driver_only_if_tasks_may_have_them_in_common(
    tmp_path: Path, keys_meet: bool
) -> None:
    table = table_in(tmp_path, 2)
    change = RowChangeOptions(WriteOperation.UPSERT, "id", keys_meet=keys_meet)
    rows = pa.table({"id": pa.array(range(1000), pa.int64())})
    columns = Schema((NestedField(1, "id", LONG),))
    _, task, _ = prepare_key_change(
        table, WriteOptions(table.address), change, rows.schema, columns
    )
    done = task(rows.to_batches(), partition_id=0, attempt_id=0)
    assert done.counts == {"upserted": 1000}
    assert (done.keys is None) == keys_meet
