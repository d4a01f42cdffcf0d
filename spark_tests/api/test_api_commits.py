"""How writes without Spark end: beside others, after failures, and what they leave."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from built.api_tables import (
    DAYS,
    faulty,
    ids_of,
    new_table,
    prepare,
    rows,
    write,
    written,
)
from built.contents import data_files, head
from built.rows import arrow_table

from icebergds import Table, load_table
from icebergds.catalog.address import TableAddress
from icebergds.errors import CommitStateUnknownError, IcebergError
from icebergds.io.fileio import FileIO
from icebergds.operations.write.append_overwrite import commit_write
from icebergds.operations.write.cleanup import is_committed
from icebergds.spec.updates.table_updates import RemoveSnapshots
from icebergds.testing.faults import Fault, Faults, When

# Beside other writers.


def _interrupted(given: pa.Table, between: Callable[[], object]) -> pa.RecordBatchReader:
    """Rows of which others commit something before the last are there."""

    def batches() -> Iterator[pa.RecordBatch]:
        yield from given.slice(0, 1).to_batches()
        between()
        yield from given.slice(1).to_batches()

    return pa.RecordBatchReader.from_batches(given.schema, batches())


def test_a_commit_while_rows_are_written_is_no_retry(tmp_path: Path) -> None:
    table = new_table(tmp_path, properties={"commit.retry.num-retries": "0"})
    other = load_table(table.location())
    table.append(_interrupted(rows(1, 2), lambda: other.append(rows(3))))
    assert ids_of(table) == [1, 2, 3]


def test_metadata_that_goes_while_rows_are_written_is_not_missed(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(0))
    first = head(table)

    def expire() -> None:
        """As maintenance does, once a snapshot is neither the newest nor named."""
        load_table(table.location()).overwrite(rows(3))
        operations = TableAddress(table.location()).operations()
        operations.commit(operations.refresh(), [], [RemoveSnapshots((first.snapshot_id,))])
        assert first.manifest_list is not None
        Path(first.manifest_list).unlink()

    table.append(_interrupted(rows(1, 2), expire))
    assert ids_of(table) == [1, 2, 3]


def test_writers_that_meet_both_succeed(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    prepared = prepare(table.location(), rows(1))
    files = written(prepared, rows(1))
    table.append(rows(2))
    commit_write(prepared, files)
    assert ids_of(table.refresh()) == [1, 2]


# Failures.


def _commit_that_fails(table: Table, when: When, error: Exception) -> None:
    write(faulty(table.location(), Faults([Fault(0, when, error)], ("create",))), rows(1))


def test_a_commit_that_is_refused_leaves_no_files(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    with pytest.raises(IcebergError, match="nothing was committed"):
        _commit_that_fails(table, When.BEFORE, PermissionError("read-only"))
    assert data_files(table.location()) == []
    assert table.refresh().current_snapshot() is None


def test_a_commit_whose_outcome_is_unknown_keeps_its_files(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    with pytest.raises(CommitStateUnknownError):
        _commit_that_fails(table, When.BEFORE, OSError("connection lost"))
    assert len(data_files(table.location())) == 1


def test_a_commit_whose_answer_is_lost_has_succeeded(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    _commit_that_fails(table, When.AFTER, OSError("connection lost"))
    assert ids_of(table.refresh()) == [1]


def test_files_that_cannot_be_deleted_do_not_hide_the_error(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    faults = Faults(
        [
            Fault(0, When.BEFORE, PermissionError("read-only")),
            *(Fault(n, When.BEFORE, OSError("disk")) for n in range(1, 9)),
        ],
        ("create", "delete", "delete_all"),
    )
    with pytest.raises(IcebergError, match="read-only"):
        write(faulty(table.location(), faults), rows(1))


@pytest.mark.parametrize("call", range(3))
def test_a_task_that_cannot_write_leaves_nothing(tmp_path: Path, call: int) -> None:
    table = new_table(tmp_path, partition_by="day")
    faults = Faults([Fault(call, When.BEFORE, OSError("full"))], ("open_output",))
    mixed = arrow_table(DAYS, [(i, i, None) for i in range(3)])
    with pytest.raises(OSError, match="full"):
        write(faulty(table.location(), faults), mixed)
    assert data_files(table.location()) == []
    assert table.refresh().current_snapshot() is None


def test_rows_that_fail_halfway_leave_nothing(tmp_path: Path) -> None:
    table = new_table(tmp_path)

    def batches() -> Iterator[pa.RecordBatch]:
        text = random.Random(0).randbytes(500_000).hex()
        for i in range(20):
            yield arrow_table(DAYS, [(i, 0, text)]).to_batches()[0]
        assert len(data_files(table.location())) > 1
        raise OSError("the source is gone")

    reader = pa.RecordBatchReader.from_batches(rows(1).schema, batches())
    with pytest.raises(OSError, match="the source is gone"):
        table.append(reader, options={"target-file-size-bytes": "20000"})
    assert data_files(table.location()) == []


def test_whether_a_write_is_committed_is_told(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    one, other = (prepare(table.location(), rows(i)) for i in (1, 2))
    commit_write(one, written(one, rows(1)))
    assert is_committed(one.address, one.write_id)
    assert not is_committed(other.address, other.write_id)
    gone = replace(other, address=TableAddress(str(tmp_path / "gone")))
    assert not is_committed(gone.address, gone.write_id)


def test_a_staged_write_and_one_of_a_branch_count_as_committed(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for options in ({"wap.id": "x"}, {"branch": "b", "create-branch": "true"}):
        prepared = prepare(table.location(), rows(1), **options)
        commit_write(prepared, written(prepared, rows(1)))
        assert is_committed(prepared.address, prepared.write_id)


def test_a_prepared_write_can_be_pickled(tmp_path: Path) -> None:
    table = new_table(tmp_path, partition_by="bucket(2, id)", sort_by="name")
    prepared = pickle.loads(pickle.dumps(prepare(table.location(), rows(1))))
    commit_write(prepared, pickle.loads(pickle.dumps(written(prepared, rows(1)))))
    assert ids_of(table.refresh()) == [1]


def test_the_storage_of_a_write_is_that_of_its_address(tmp_path: Path) -> None:
    table = new_table(tmp_path / "old")
    (tmp_path / "old").rename(tmp_path / "new")
    address = TableAddress(table.location(), location_map={f"{tmp_path}/old/": f"{tmp_path}/new/"})
    write(address, rows(1))
    moved = Table(address, address.load())
    assert ids_of(moved) == [1]
    assert len(data_files(tmp_path / "new" / "db" / "t")) == 1
    assert not (tmp_path / "old").exists()
    assert isinstance(moved.io, FileIO)
