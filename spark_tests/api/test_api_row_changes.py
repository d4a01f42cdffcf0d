"""Changes of rows by position, and what concurrent commits make of them; without Spark."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from built.api_tables import ids_of, new_table, rows
from built.contents import data_files, head

from icebergds import Table
from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import load_for_write
from icebergds.commit.snapshot_commit import Committed
from icebergds.errors import (
    InvalidDataError,
    InvalidFilterError,
    InvalidOptionError,
    UnsupportedFeatureError,
    ValidationError,
)
from icebergds.expr.bind import bind
from icebergds.expr.nodes import TRUE
from icebergds.expr.sql import parse_filter
from icebergds.operations.write.cleanup import is_committed
from icebergds.operations.write.delta_commit import PreparedDelta, commit_delta
from icebergds.operations.write.jobs import discard_job
from icebergds.operations.write.options import WriteOptions
from icebergds.operations.write.position_changes import (
    PositionChange,
    RowChangeMode,
    plan_position_change,
)
from icebergds.scan.plan.files import plan_files
from icebergds.write.changes.deltas import DeltaFiles
from icebergds.write.changes.position_delta import TARGET_COLUMN

MERGE_ON_READ, COPY_ON_WRITE = RowChangeMode.MERGE_ON_READ, RowChangeMode.COPY_ON_WRITE
WAYS = pytest.mark.parametrize("operation", list(RowChangeMode))


@dataclass(frozen=True)
class Pending:
    """A change whose files are written, and which is not committed yet."""

    prepared: PreparedDelta
    delta: DeltaFiles

    def commit(self) -> Committed | None:
        return commit_delta(self.prepared, [self.delta])


def table_of(directory: Path, version: int = 3, *, partition_by: str = "day") -> Table:
    """Ids 1 to 4 of day 1 in one file, 5 to 8 of day 2 in another."""
    table = new_table(directory, partition_by=partition_by, version=version)
    table.append(rows(1, 2, 3, 4, day=1))
    table.append(rows(5, 6, 7, 8, day=2))
    return table


def deleting(table: Table, operation: str, *wanted: int, **options: str) -> Pending:
    return changing(table, operation, dict.fromkeys(wanted), **options)


def changing(
    table: Table, operation: str, changes: dict[int, int | None], **options: str
) -> Pending:
    """Rows by id get other ids, or are deleted; based on the table as it is now."""
    table.refresh()
    found = table.scan(columns="id,day,name,_file,_pos").to_arrow().to_pylist()
    hits = [(row, changes[row["id"]]) for row in found if row["id"] in changes]
    columns: dict[str, Any] = {
        "_file": pa.array([row["_file"] for row, _ in hits], pa.string()),
        "_pos": pa.array([row["_pos"] for row, _ in hits], pa.int64()),
        "_write": pa.array([new is not None for _, new in hits], pa.bool_()),
    }
    if any(new is not None for _, new in hits):
        columns |= {
            "id": pa.array([new for _, new in hits], pa.int64()),
            "day": pa.array([row["day"] for row, _ in hits], pa.int32()),
            "name": pa.array([row["name"] for row, _ in hits], pa.string()),
        }
    return prepared(table, operation, pa.table(columns), **options)


def prepared(
    table: Table,
    operation: str,
    changes: pa.Table,
    *,
    conflict_filter: str | None = None,
    statement: str = "delete",
    **options: str,
) -> Pending:
    snapshot = table.current_snapshot()
    loaded = load_for_write(TableAddress(table.location()))
    given = {name.replace("_", "-"): value for name, value in options.items()}
    parsed = WriteOptions.of(loaded.address, given)
    row_filter = TRUE if conflict_filter is None else parse_filter(conflict_filter)
    schema = table.schema()
    bound = bind(row_filter, schema, case_sensitive=False)
    files = plan_files(table.io, table.metadata, snapshot, schema, bound).files
    change = PositionChange(
        RowChangeMode(operation),
        statement,
        snapshot.snapshot_id if snapshot else None,
        files,
        row_filter,
    )
    planned = plan_position_change(loaded, parsed, change, changes.schema)
    # As on executors.
    task = pickle.loads(pickle.dumps(planned.task))
    targets = planned.targets
    described = pa.RecordBatch.from_pydict(
        {
            "_file": pa.array(list(targets), pa.string()),
            TARGET_COLUMN: pa.array(list(targets.values()), pa.binary()),
            **{
                field.name: pa.nulls(len(targets), field.type)
                for field in changes.schema
                if field.name != "_file"
            },
        }
    )
    done = task([described, *changes.to_batches()], partition_id=0, attempt_id=0)
    assert isinstance(done, DeltaFiles)
    return Pending(planned.delta, done)


@WAYS
def test_rows_are_deleted_and_replaced(tmp_path: Path, operation: str) -> None:
    table = table_of(tmp_path)
    pending = changing(table, operation, {1: 10, 2: None, 5: None})
    committed = pending.commit()
    assert committed is not None
    assert ids_of(table.refresh()) == [3, 4, 6, 7, 8, 10]
    summary = committed.snapshot.summary
    counts = [summary[f"icebergds.rows-{name}"] for name in ("inserted", "updated", "deleted")]
    assert counts == ["0", "1", "2"]
    assert is_committed(pending.prepared.address, pending.prepared.write_id)


@WAYS
@pytest.mark.parametrize("is_upgraded_before", [True, False])
def test_rows_that_got_ids_since_they_were_read_are_not_moved_without_them(
    tmp_path: Path, operation: str, is_upgraded_before: bool
) -> None:
    """The first commit after an upgrade to version 3 gives ids to all rows."""
    table = table_of(tmp_path, version=2)
    if is_upgraded_before:
        table.upgrade(3)
    pending = changing(table, operation, {1: 10}, isolation_level="snapshot")
    if not is_upgraded_before:
        table.refresh().upgrade(3)
    table.refresh().append(rows(9, day=3))
    before = table.scan(columns="id,_row_id").to_arrow()
    # Position delete files of version 2 are refused anyway.
    with pytest.raises(ValidationError, match=r"had no ids when|requires deletion vectors"):
        pending.commit()
    assert table.refresh().scan(columns="id,_row_id").to_arrow() == before
    changing(table, operation, {1: 10}).commit()
    kept = dict(zip(*(c.to_pylist() for c in before.filter(pc.field("id") != 1)), strict=True))
    after = table.refresh().scan(columns="id,_row_id").to_arrow()
    assert kept.items() <= dict(zip(*(c.to_pylist() for c in after), strict=True)).items()


@WAYS
def test_the_first_commit_after_an_upgrade_may_change_rows(tmp_path: Path, operation: str) -> None:
    table = table_of(tmp_path, version=2)
    table.upgrade(3)
    changing(table, operation, {1: 10}).commit()
    found = table.refresh().scan(columns="id,_row_id").to_arrow()
    assert sorted(found["id"].to_pylist()) == [2, 3, 4, 5, 6, 7, 8, 10]
    assert found["_row_id"].null_count == 0


def test_change_of_nothing_commits_nothing(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    pending = deleting(table, MERGE_ON_READ)
    assert pending.commit() is None
    assert not is_committed(pending.prepared.address, pending.prepared.write_id)


# Concurrent commits.


@WAYS
def test_rows_that_others_added_are_a_serializable_conflict(tmp_path: Path, operation: str) -> None:
    table = table_of(tmp_path)
    serializable = deleting(table, operation, 1)
    relaxed = deleting(table, operation, 6, isolation_level="snapshot")
    table.append(rows(20, day=1))
    files = set(data_files(table.location()))
    with pytest.raises(ValidationError, match="repeat the operation"):
        serializable.commit()
    assert relaxed.commit() is not None
    assert ids_of(table.refresh()) == [1, 2, 3, 4, 5, 7, 8, 20]
    written = {file.file_path for file in (*serializable.delta.files, *serializable.delta.deletes)}
    left = {str(file) for file in files}
    assert not {path for path in written if Path(path).exists() and path in left}


@WAYS
def test_rows_beside_the_filter_are_no_conflict(tmp_path: Path, operation: str) -> None:
    table = table_of(tmp_path)
    pending = deleting(table, operation, 1, conflict_filter="day = 1")
    table.append(rows(20, day=2))
    pending.commit()
    assert ids_of(table.refresh()) == [2, 3, 4, 5, 6, 7, 8, 20]


@pytest.mark.parametrize(("first", "second"), [(a, b) for a in "mc" for b in "mc"])
def test_two_changes_of_one_file(tmp_path: Path, first: str, second: str) -> None:
    """End as two vectors never: the later one has not seen what the earlier one did."""
    ways = {"m": MERGE_ON_READ, "c": COPY_ON_WRITE}
    table = table_of(tmp_path)
    one, other = deleting(table, ways[first], 1), deleting(table, ways[second], 2)
    one.commit()
    with pytest.raises(ValidationError, match="read the table again"):
        other.commit()
    assert ids_of(table.refresh()) == [2, 3, 4, 5, 6, 7, 8]


@WAYS
def test_changes_of_two_files_go_together(tmp_path: Path, operation: str) -> None:
    table = table_of(tmp_path)
    level = {"isolation_level": "snapshot"}
    one, other = deleting(table, operation, 1, **level), deleting(table, operation, 5, **level)
    one.commit()
    other.commit()
    assert ids_of(table.refresh()) == [2, 3, 4, 6, 7, 8]


def test_position_deletes_of_one_file_add_up(tmp_path: Path) -> None:
    """In version 2, where a data file may have many of them."""
    table = table_of(tmp_path, 2)
    one, other = deleting(table, MERGE_ON_READ, 1), deleting(table, MERGE_ON_READ, 2, 1)
    one.commit()
    other.commit()
    assert ids_of(table.refresh()) == [3, 4, 5, 6, 7, 8]


def test_updates_of_one_row_are_a_conflict(tmp_path: Path) -> None:
    table = table_of(tmp_path, 2)
    one, other = (changing(table, MERGE_ON_READ, {1: new}) for new in (100, 101))
    one.commit()
    with pytest.raises(ValidationError):
        other.commit()
    assert ids_of(table.refresh()) == [2, 3, 4, 5, 6, 7, 8, 100]


def test_failed_commit_deletes_its_files(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    before = set(data_files(table.location()))
    pending = changing(table, MERGE_ON_READ, {1: 10})
    assert set(data_files(table.location())) > before
    table.append(rows(20, day=1))
    after = set(data_files(table.location())) - {
        Path(file.file_path) for file in (*pending.delta.files, *pending.delta.deletes)
    }
    with pytest.raises(ValidationError):
        pending.commit()
    left = {Path(file) for file in data_files(table.location())}
    assert left == {Path(file) for file in after}


def test_files_of_an_abandoned_rewrite_spare_the_originals(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    before = data_files(table.location())
    pending = deleting(table, COPY_ON_WRITE, 1)
    discard_job(pending.prepared, [pending.delta])
    assert data_files(table.location()) == before


# What is refused.


@WAYS
def test_row_that_is_changed_twice(tmp_path: Path, operation: str) -> None:
    table = table_of(tmp_path)
    read = table.scan(columns="_file,_pos", filter="id = 1").to_arrow()
    changes = pa.concat_tables([read, read]).append_column("_write", [[False, False]])
    before = data_files(table.location())
    with pytest.raises(InvalidDataError, match="more than one row of the source"):
        prepared(table, operation, changes)
    assert data_files(table.location()) == before


@WAYS
def test_file_that_is_none_of_the_table(tmp_path: Path, operation: str) -> None:
    table = table_of(tmp_path)
    columns = {"_file": ["elsewhere.parquet"], "_pos": [0], "_write": [False]}
    with pytest.raises(InvalidDataError, match=r"elsewhere\.parquet"):
        prepared(table, operation, pa.table(columns))


def test_version_1_has_no_delete_files(tmp_path: Path) -> None:
    table = table_of(tmp_path, 1)
    with pytest.raises(UnsupportedFeatureError, match=r"upgrade\(2\)"):
        deleting(table, MERGE_ON_READ, 1)
    deleting(table, COPY_ON_WRITE, 1).commit()
    assert ids_of(table.refresh()) == [2, 3, 4, 5, 6, 7, 8]


def test_malformed_properties_and_filters(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    with pytest.raises(InvalidFilterError, match="nope"):
        deleting(table, MERGE_ON_READ, 1, conflict_filter="nope = 1")


# Format versions.


def test_versions_are_raised_and_never_lowered(tmp_path: Path) -> None:
    table = table_of(tmp_path, 1)
    assert table.upgrade(2).metadata.format_version == 2
    assert table.upgrade(3).refresh().metadata.format_version == 3
    location = table.metadata_location
    assert table.upgrade(3).metadata_location == location
    assert ids_of(table) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert head(table).sequence_number == 0
    with pytest.raises(InvalidOptionError, match="cannot be downgraded to 2"):
        table.upgrade(2)
    for version in (0, 4, "three"):
        with pytest.raises(InvalidOptionError, match="format_version"):
            table.upgrade(version)  # type: ignore[arg-type]
