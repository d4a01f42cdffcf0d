"""Rewriting position deletes among other writers, and when tasks fail."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from built.api_tables import faulty
from built.commit_tables import CommitTable, open_table
from built.contents import unused_files
from built.replace_files import ReplaceFiles
from position_delete_tables import ALL, Days, position_deletes_of

from icebergds import RewrittenPositionDeletes
from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import load_for_write
from icebergds.commit.options import IsolationLevel
from icebergds.commit.row_delta import RowDelta
from icebergds.commit.validation import Isolation
from icebergds.errors import (
    CorruptFileError,
    IcebergError,
    StorageError,
    ValidationError,
)
from icebergds.operations.maintenance.deletes.rewrite_position_deletes import (
    rewrite_position_deletes,
)
from icebergds.operations.runner import LocalRunner
from icebergds.operations.write.options import WriteOptions
from icebergds.spec.manifest import DataFile, DataFileRef
from icebergds.spec.snapshot import RefType, SnapshotRef
from icebergds.spec.updates.table_updates import SetSnapshotRef, UpgradeFormatVersion
from icebergds.testing.faults import Fault, Faults, FaultyOperations, When


class Meanwhile:
    """Runs the tasks here, and then what others do before each commit."""

    def __init__(self, others: Iterable[Callable[[], object]]) -> None:
        self._others = iter(others)

    def run(self, task: Callable[..., Any], items: Sequence[Any], discard: Any = None) -> list[Any]:
        done = LocalRunner().run(task, items, discard)
        next(self._others, lambda: None)()
        return done


def _rewrite(
    days: Days,
    *meanwhile: Callable[[], object],
    address: TableAddress | None = None,
    **options: str,
) -> RewrittenPositionDeletes:
    address = address or TableAddress(str(days.builder.location))
    named = {name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}
    runner = Meanwhile(meanwhile)
    table = load_for_write(address)
    return rewrite_position_deletes(table, None, ALL | named, WriteOptions(address), runner)[0]


def _two_each(location: Path, version: int = 2, **named: str) -> Days:
    """Two delete files of each day; the rows at position 0 and 1 of the first files."""
    days = Days(location, **named)
    for day in (1, 2):
        for row in (0, 1):
            days.delete(day, (0, row))
    days.builder.upgrade(version)
    return days


def _table(days: Days) -> CommitTable:
    return open_table(days.builder.location)


def _vector_delta(days: Days, at: int, *positions: int, replaced: tuple[DataFile, ...]) -> RowDelta:
    """A delete statement that makes a deletion vector for a file of day 1."""
    data = days.data[1, at]
    return RowDelta(
        (),
        tuple(days.builder.deletion_vectors([(data, positions)])),
        replaced,
        (DataFileRef(data.file_path, data.spec_id, data.partition),),
        Isolation(IsolationLevel.SNAPSHOT, _table(days).head.snapshot_id),
    )


# --- Other writers.


def test_deletes_that_others_add_meanwhile_stay(tmp_path: Path) -> None:
    days = _two_each(tmp_path / "t")
    _rewrite(days, lambda: days.delete(1, (0, 2)))
    assert days.ids() == [110, 111, 112, 202, 210, 211, 212]
    assert len(position_deletes_of(days.table)) == 3


def test_a_group_of_which_others_removed_a_file_is_planned_anew(tmp_path: Path) -> None:
    days = Days(tmp_path / "t")
    first = days.delete(1, (0, 0))
    for day, row in ((1, 1), (2, 0), (2, 1)):
        days.delete(day, (0, row))
    # They undo a delete: it must not return.
    done = _rewrite(days, lambda: days.remove(first, operation="overwrite"))
    assert done.rewritten_delete_files_count == 3
    assert days.ids() == [100, 102, 110, 111, 112, 202, 210, 211, 212]
    assert unused_files(days.table) == set()


def test_of_two_rewrites_at_once_the_second_does_the_rest(tmp_path: Path) -> None:
    days = _two_each(tmp_path / "t")
    before = days.ids()

    def of_day_1() -> None:
        days.table.rewrite_position_delete_files("day = 1", options=ALL)

    done = _rewrite(days, of_day_1, min_input_files="2", rewrite_all="false")
    assert (done.rewritten_delete_files_count, done.added_delete_files_count) == (2, 1)
    assert days.ids() == before
    assert len(position_deletes_of(days.table)) == 2
    assert unused_files(days.table) == set()


def test_what_is_committed_counts_if_the_table_cannot_be_loaded_afterwards(tmp_path: Path) -> None:
    days = _two_each(tmp_path / "t")
    before = days.ids()
    table = load_for_write(TableAddress(str(days.builder.location)))
    # It is loaded for the second attempt to commit, and then to plan again.
    faults = Faults([Fault(1, When.BEFORE, StorageError("gone"))], counted=("refresh",))
    table = replace(table, operations=FaultyOperations(table.operations, faults))
    others = Meanwhile([lambda: days.table.rewrite_position_delete_files("day = 1", options=ALL)])
    write = WriteOptions(table.address)
    done, _ = rewrite_position_deletes(table, None, ALL, write, others)
    assert done.rewritten_delete_files_count == 2
    assert days.ids() == before
    assert unused_files(days.table) == set()


def test_deletes_do_not_return_after_a_rollback(tmp_path: Path) -> None:
    days = _two_each(tmp_path / "t")
    table = _table(days)
    first = table.metadata.snapshots[0].snapshot_id
    to_first = SetSnapshotRef("main", SnapshotRef(first, RefType.BRANCH))
    assert _rewrite(days, lambda: table.change(to_first)) == RewrittenPositionDeletes()
    assert len(days.ids()) == 12
    assert unused_files(days.table) == set()


def test_files_that_others_replace_each_time_are_an_error(tmp_path: Path) -> None:
    days = _two_each(tmp_path / "t")
    before = days.ids()
    with pytest.raises(ValidationError, match="not in branch 'main' any longer"):
        _rewrite(days, *[lambda: days.rewrite()] * 3)
    assert days.ids() == before
    assert unused_files(days.table) == set()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("compaction_first", [True, False])
def test_a_compaction_of_data_files_goes_together(
    tmp_path: Path, version: int, compaction_first: bool
) -> None:
    days = _two_each(tmp_path / "t", version)
    table, before = _table(days), days.ids()
    kept = days.builder.data_file([(102, 1)], partition=(1,))
    head = table.head
    compaction = ReplaceFiles((days.data[1, 0],), (kept,), head.snapshot_id, head.sequence_number)
    if compaction_first:
        _rewrite(days, lambda: table.commit(compaction))
    else:
        _rewrite(days)
        table.commit(compaction)
    assert days.ids() == before


def test_after_an_upgrade_meanwhile_deletes_become_vectors(tmp_path: Path) -> None:
    days = _two_each(tmp_path / "t")
    table, before = _table(days), days.ids()
    done = _rewrite(days, lambda: table.change(UpgradeFormatVersion(3)))
    assert done.rewritten_delete_files_count == 4
    assert all(e.data_file.is_deletion_vector for e in position_deletes_of(days.table))
    assert days.ids() == before
    assert unused_files(days.table) == set()


def test_a_vector_that_others_add_meanwhile_is_kept(tmp_path: Path) -> None:
    days = Days(tmp_path / "t")
    days.delete(1, (0, 0), (1, 0))
    days.builder.upgrade(3)
    table = _table(days)
    theirs = _vector_delta(days, 0, 0, 1, replaced=())
    done = _rewrite(days, lambda: table.commit(theirs))
    assert (done.rewritten_delete_files_count, done.added_delete_files_count) == (1, 1)
    assert days.ids() == [102, 111, 112, *range(200, 203), *range(210, 213)]
    assert len(position_deletes_of(days.table)) == 2


def test_a_delete_file_that_their_vector_replaced_is_no_conflict(tmp_path: Path) -> None:
    days = Days(tmp_path / "t")
    file = days.delete(1, (0, 0))
    days.delete(1, (1, 0))
    days.builder.upgrade(3)
    table = _table(days)
    theirs = _vector_delta(days, 0, 0, 1, replaced=(file,))
    done = _rewrite(days, lambda: table.commit(theirs))
    assert (done.rewritten_delete_files_count, done.added_delete_files_count) == (1, 1)
    assert days.ids() == [102, 111, 112, *range(200, 203), *range(210, 213)]
    assert unused_files(days.table) == set()


def test_a_vector_for_a_file_that_got_one_here_is_a_conflict(tmp_path: Path) -> None:
    days = Days(tmp_path / "t")
    days.delete(1, (0, 0), (1, 0))
    days.builder.upgrade(3)
    theirs = _vector_delta(days, 0, 0, 1, replaced=())
    _rewrite(days)
    with pytest.raises(ValidationError, match="only one deletion vector"):
        _table(days).commit(theirs)
    assert days.ids() == [101, 102, 111, 112, *range(200, 203), *range(210, 213)]


# --- Failing tasks and commits.


def _damage(file: DataFile) -> None:
    Path(file.file_path).write_bytes(b"PAR1 nothing PAR1")


def test_a_failing_task_leaves_the_table_and_no_files(tmp_path: Path) -> None:
    days = _two_each(tmp_path / "t")
    _damage(days.delete(2, (0, 2)))
    snapshots = len(days.table.snapshots())
    with pytest.raises(CorruptFileError):
        _rewrite(days)
    assert len(days.table.snapshots()) == snapshots
    assert unused_files(days.table) == set()


def test_with_partial_progress_other_groups_are_committed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    days = _two_each(tmp_path / "t")
    damaged = days.delete(2, (0, 2))
    _damage(damaged)
    done = _rewrite(days, partial_progress__enabled="true", partial_progress__max_commits="1")
    assert (done.rewritten_delete_files_count, done.added_delete_files_count) == (2, 1)
    assert "1 groups of position delete files were not rewritten" in caplog.text
    assert damaged.file_path in caplog.text
    assert unused_files(days.table) == set()


def test_partial_progress_commits_a_share_of_the_groups_at_a_time(tmp_path: Path) -> None:
    days = Days(tmp_path / "t", days=5)
    for day in range(1, 6):
        for row in (0, 1):
            days.delete(day, (0, row))
    before, snapshots = days.ids(), len(days.table.snapshots())
    jobs: list[int] = []
    named = {"partial_progress__enabled": "true", "partial_progress__max_commits": "2"}
    seen = [lambda: jobs.append(len(days.table.snapshots()))] * 2
    done = _rewrite(days, *seen, **named)
    assert done.rewritten_delete_files_count == 10
    assert jobs == [snapshots, snapshots + 1]
    assert len(days.table.snapshots()) == snapshots + 2
    assert days.ids() == before


def test_a_failing_commit_does_not_stop_later_ones(tmp_path: Path) -> None:
    days = Days(tmp_path / "t")
    first = days.delete(1, (0, 0))
    for day, row in ((1, 1), (2, 0), (2, 1)):
        days.delete(day, (0, row))
    undo = partial(days.remove, first, operation="overwrite")
    done = _rewrite(days, undo, partial_progress__enabled="true")
    assert done.rewritten_delete_files_count == 3
    assert unused_files(days.table) == set()


def test_if_all_groups_fail_the_first_error_is_raised(tmp_path: Path) -> None:
    days = Days(tmp_path / "t")
    _damage(days.delete(1, (0, 0)))
    with pytest.raises(IcebergError, match="CorruptFileError"):
        _rewrite(days, partial_progress__enabled="true")


def test_few_groups_at_a_time_are_a_job(tmp_path: Path) -> None:
    days = Days(tmp_path / "t", days=3)
    for day in (1, 2, 3):
        days.delete(day, (0, 0))
    before, jobs = days.ids(), []
    counted = [lambda: jobs.append(1)] * 3
    done = _rewrite(days, *counted, max_concurrent_file_group_rewrites="2")
    assert done.added_delete_files_count == 3
    assert len(jobs) == 2
    assert days.ids() == before


@pytest.mark.parametrize(
    ("order", "expected"),
    [("bytes-desc", [2, 1]), ("files-asc", [1, 2]), ("files-desc", [2, 1]), ("none", [1, 2])],
)
def test_groups_are_rewritten_in_the_order_asked_for(
    tmp_path: Path, order: str, expected: list[int]
) -> None:
    days = Days(tmp_path / "t")
    for day, row in ((1, 0), (2, 0), (2, 1)):
        days.delete(day, (0, row))
    _rewrite(days, rewrite_job_order=order, partial_progress__enabled="true")
    counts = [
        int(snapshot.summary["removed-delete-files"])
        for snapshot in days.table.metadata.snapshots[4:]
    ]
    assert counts == expected


@pytest.mark.parametrize(
    ("when", "partial"),
    [(When.BEFORE, "true"), (When.HALFWAY, "false"), (When.AFTER, "false")],
)
def test_faults_of_the_storage_never_change_rows(tmp_path: Path, when: When, partial: str) -> None:
    for call in range(100):
        days = _two_each(tmp_path / f"t{call}")
        before, snapshots = days.ids(), len(days.table.snapshots())
        faults = Faults([Fault(call, when, OSError(errno.EIO, "broken"))])
        address = faulty(days.builder.location, faults)
        outcome: IcebergError | None = None
        try:
            _rewrite(days, address=address, partial_progress__enabled=partial)
        except IcebergError as error:
            outcome = error
        assert days.ids() == before
        if outcome is None or not outcome.outcome_unknown:
            committed = len(days.table.snapshots()) > snapshots
            assert committed == (outcome is None)
            assert unused_files(days.table) == set()
        if len(faults.calls) <= call:
            return
    raise AssertionError("the rewrite does not end")
