"""A commit that fails leaves the table before it or after it, and no file that nobody uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from built.commit_tables import CommitTable, create_table
from built.replace_files import ReplaceFiles
from effort import some
from interleaving import InterleavedOperations

from icebergds.catalog.filesystem.commits import location_operations
from icebergds.commit.data_files import Append, FastAppend, Overwrite
from icebergds.commit.operations import TableOperations
from icebergds.commit.replace_partitions import ReplacePartitions
from icebergds.commit.snapshot_commit import Action, commit_snapshot
from icebergds.errors import CommitConflictError, CommitStateUnknownError, ValidationError
from icebergds.expr.sql import parse_filter
from icebergds.io.fileio import FileIO
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.updates.table_updates import (
    LAST_ADDED,
    AddPartitionSpec,
    RemovePartitionSpecs,
    SetDefaultSpec,
)
from icebergds.testing.faults import Crash, Fault, Faults, FaultyFileIO, FaultyOperations, When

_Make = Callable[[CommitTable], Action]


def _replace_all(table: CommitTable) -> Action:
    removed = tuple(f.entry.data_file for f in table.files())
    return ReplaceFiles(removed, (table.file([100, 101], 1),), table.head.snapshot_id)


_ACTIONS: dict[str, _Make] = {
    "append": lambda table: Append((table.file([100], 1),)),
    "fast append": lambda table: FastAppend((table.file([100], 1),)),
    "overwrite": lambda table: Overwrite((table.file([100], 1),), parse_filter("day = 1")),
    "replace partitions": lambda table: ReplacePartitions((table.file([100], 2),)),
    "replace files": _replace_all,
}


_ERRORS = (OSError("storage"), PermissionError("denied"))


@pytest.fixture
def table(tmp_path: Path) -> CommitTable:
    return _fresh(tmp_path / "t")


def _fresh(location: Path) -> CommitTable:
    """Days 1 and 2 in two commits; merges at the third manifest."""
    table = create_table(location, properties={"commit.manifest.min-count-to-merge": "3"})
    table.commit(Append((table.file([1], 1),)))
    table.commit(Append((table.file([2], 2),)))
    return table


def _faulty(table: CommitTable, faults: Faults) -> TableOperations:
    """Storage and table that fail as planned."""
    io = FaultyFileIO(FileIO(), faults)
    return FaultyOperations(location_operations(io, str(table.location), "db.t"), faults)


def _at_every_call(tmp_path: Path, make: _Make) -> Iterator[tuple[int, CommitTable, Action]]:
    """Calls of a commit that can fail, all in nightly, each with a table and an action."""
    table = _fresh(tmp_path / "count")
    faults = Faults()
    commit_snapshot(_faulty(table, faults), make(table))
    assert "commit" in faults.calls
    assert "create" in faults.calls
    for call in some(range(len(faults.calls)), 5):
        table = _fresh(tmp_path / f"t{call}")
        yield call, table, make(table)


def _new_files(action: Action) -> set[str]:
    files = action.added if isinstance(action, ReplaceFiles) else action.files  # type: ignore[attr-defined]
    return {file.file_path for file in files}


@pytest.mark.parametrize("name", _ACTIONS)
@pytest.mark.parametrize("when", When)
def test_a_crash_at_any_call_leaves_before_or_after(tmp_path: Path, name: str, when: When) -> None:
    landed = []
    for call, table, action in _at_every_call(tmp_path, _ACTIONS[name]):
        before = table.paths()
        with pytest.raises(Crash):
            commit_snapshot(_faulty(table, Faults([Fault(call, when, Crash())])), action)
        after = table.paths()
        landed.append(after != before)
        assert (_new_files(action) <= after) is (after != before)
        assert len(table.metadata.snapshots) == (3 if landed[-1] else 2)
        # Nobody who comes later is kept from committing.
        table.commit(FastAppend((table.file([7], 3),)))
        assert table.paths() > after
    # Once landed it stays so: there is one moment of the commit.
    assert landed == sorted(landed)


@pytest.mark.parametrize(
    ("name", "when", "error"), some(list(product(_ACTIONS, When, _ERRORS)), 10)
)
def test_an_error_at_any_call_tells_what_happened(
    tmp_path: Path, name: str, when: When, error: Exception
) -> None:
    """Returned: once in the table. Raised: not in the table, or said to be unknown."""
    for call, table, action in _at_every_call(tmp_path, _ACTIONS[name]):
        before, files_before = table.head.snapshot_id, table.paths()
        outcome: Exception | None = None
        faults = Faults([Fault(call, when, error)])
        try:
            commit_snapshot(_faulty(table, faults), action)
        except Exception as raised:
            outcome = raised
        assert all(Path(path).exists() for path in _new_files(action))
        if outcome is None:
            assert table.head.parent_snapshot_id == before
            assert _new_files(action) <= table.paths()
        elif not isinstance(outcome, CommitStateUnknownError):
            assert table.head.snapshot_id == before
            assert table.paths() == files_before
        if not isinstance(outcome, CommitStateUnknownError):
            # Files that could not be deleted are the one thing that may stay.
            assert faults.calls[call] == "delete_all" or table.left_over() == set()


def test_a_lost_answer_is_found_out_and_not_repeated(table: CommitTable) -> None:
    for error in (TimeoutError("lost"), CommitStateUnknownError("lost")):
        faults = Faults([Fault(0, When.AFTER, error)], counted=("commit",))
        before = table.head.snapshot_id
        committed = commit_snapshot(
            FaultyOperations(table.operations, faults), Append((table.file([9], 1),))
        )
        assert committed.snapshot == table.head
        assert table.head.parent_snapshot_id == before
    assert table.ids() == [1, 2, 9, 9]
    assert table.left_over() == set()


def test_a_commit_that_cannot_be_found_stays_unknown_and_keeps_its_files(
    table: CommitTable,
) -> None:
    faults = Faults([Fault(0, When.BEFORE, TimeoutError("lost"))], counted=("commit",))
    with pytest.raises(CommitStateUnknownError, match=r"lost.*No files were deleted") as raised:
        commit_snapshot(FaultyOperations(table.operations, faults), Append((table.file([9], 1),)))
    assert raised.value.outcome_unknown
    assert table.ids() == [1, 2]
    assert table.left_over()


def test_a_table_that_cannot_be_loaded_after_a_lost_answer_stays_unknown(
    table: CommitTable,
) -> None:
    lost = TimeoutError("lost")
    faults = Faults(
        [Fault(call, When.AFTER, lost) for call in range(1, 9)], counted=("commit", "refresh")
    )
    with pytest.raises(CommitStateUnknownError):
        commit_snapshot(FaultyOperations(table.operations, faults), Append((table.file([9], 1),)))
    assert table.ids() == [1, 2, 9]


def test_a_conflict_that_cannot_be_looked_into_stays_unknown(table: CommitTable) -> None:
    """It may be one of the commit with itself, and then its files are the table's."""
    away = TimeoutError("storage is away")
    faults = Faults(
        [
            Fault(1, When.AFTER, CommitConflictError("409")),
            *(Fault(call, When.BEFORE, away) for call in range(2, 9)),
        ],
        counted=("commit", "refresh"),
    )
    with pytest.raises(CommitStateUnknownError, match="away"):
        commit_snapshot(FaultyOperations(table.operations, faults), Append((table.file([9], 1),)))
    assert table.ids() == [1, 2, 9]


def test_a_conflict_with_itself_is_success(table: CommitTable) -> None:
    """A client that sent a request twice is told of a conflict with its own commit."""
    faults = Faults([Fault(0, When.AFTER, CommitConflictError("409"))], counted=("commit",))
    committed = commit_snapshot(
        FaultyOperations(table.operations, faults), Append((table.file([9], 1),))
    )
    assert faults.calls == ["commit"]
    assert committed.snapshot == table.head
    assert table.ids() == [1, 2, 9]
    assert table.left_over() == set()


def test_a_conflict_with_itself_at_the_last_try_is_success(table: CommitTable) -> None:
    table.set_properties(commit__retry__num_retries=0)
    faults = Faults([Fault(0, When.AFTER, CommitConflictError("409"))], counted=("commit",))
    commit_snapshot(FaultyOperations(table.operations, faults), Append((table.file([9], 1),)))
    assert table.ids() == [1, 2, 9]
    assert table.left_over() == set()


# Retries.


def _others(table: CommitTable, count: int) -> list[Callable[[], object]]:
    return [lambda: table.commit(FastAppend((table.file([50], 3),)))] * count


@pytest.mark.parametrize("name", _ACTIONS)
def test_a_commit_is_made_again_on_what_others_left(table: CommitTable, name: str) -> None:
    action = _ACTIONS[name](table)
    operations = InterleavedOperations(table.operations, _others(table, 2))
    committed = commit_snapshot(operations, action)
    assert operations.attempts == 3
    assert committed.snapshot == table.head
    assert _new_files(action) <= table.paths()
    assert table.ids().count(50) == 2
    assert table.left_over() == set()
    total = sum(f.entry.data_file.record_count for f in table.files())
    assert table.head.summary["total-records"] == str(total)


def test_manifests_are_written_once_for_all_attempts(table: CommitTable) -> None:
    table.set_properties(commit__manifest_merge__enabled=False)
    faults = Faults(counted=("write",))
    io = FaultyFileIO(FileIO(), faults)
    operations = InterleavedOperations(
        location_operations(io, str(table.location), "db.t"), _others(table, 3)
    )
    commit_snapshot(operations, Overwrite((table.file([9], 1),), parse_filter("day = 1")))
    # The new manifest, the one without day 1, four lists and the version hint.
    assert len(faults.calls) == 7


def test_retries_end_where_the_table_says(table: CommitTable) -> None:
    table.set_properties(commit__retry__num_retries=2)
    operations = InterleavedOperations(table.operations, _others(table, 9))
    with pytest.raises(CommitConflictError, match=r"property commit\.retry\.num-retries$"):
        commit_snapshot(operations, Append((table.file([9], 1),)))
    assert operations.attempts == 3
    assert 9 not in table.ids()
    assert table.left_over() == set()


def test_retries_end_when_their_time_is_over(table: CommitTable) -> None:
    table.set_properties(commit__retry__total_timeout_ms=0)
    operations = InterleavedOperations(table.operations, _others(table, 9))
    with pytest.raises(CommitConflictError):
        commit_snapshot(operations, Append((table.file([9], 1),)))
    assert operations.attempts == 1


def test_validation_errors_are_final(table: CommitTable) -> None:
    gone = [f.entry.data_file for f in table.files()]
    action = ReplaceFiles((*gone, replace(gone[0], file_path="/gone")), (), table.head.snapshot_id)
    operations = InterleavedOperations(table.operations, [])
    with pytest.raises(ValidationError):
        commit_snapshot(operations, action)
    assert operations.attempts == 0
    assert table.left_over() == set()


def test_files_that_cannot_be_deleted_do_not_hide_that_the_commit_succeeded(
    table: CommitTable,
) -> None:
    faults = Faults([Fault(0, When.BEFORE, OSError("no"))], counted=("delete_all",))
    io = FaultyFileIO(FileIO(), faults)
    operations = InterleavedOperations(
        location_operations(io, str(table.location), "db.t"), _others(table, 1)
    )
    commit_snapshot(operations, Append((table.file([9], 1),)))
    assert faults.calls == ["delete_all"]
    assert 9 in table.ids()


@pytest.mark.parametrize("kind", [FastAppend, Append])
@pytest.mark.parametrize("attempt", [1, 2])
def test_files_of_a_partition_spec_that_was_removed_meanwhile_are_refused(
    tmp_path: Path, kind: type[FastAppend | Append], attempt: int
) -> None:
    table = create_table(tmp_path / "t")
    file = table.file([1])
    base = table.state

    def evolve_and_expire() -> None:
        table.change(AddPartitionSpec(PartitionSpec(1, ())), SetDefaultSpec(LAST_ADDED))
        table.change(RemovePartitionSpecs((0,)))

    if attempt == 1:
        evolve_and_expire()
    operations = InterleavedOperations(table.operations, [evolve_and_expire] * (attempt - 1))
    with pytest.raises(ValidationError, match=r"partition spec 0.* only specs \[1\].*again"):
        commit_snapshot(operations, kind((file,)), base=base if attempt == 2 else None)
    assert table.metadata.snapshots == ()
    assert list((table.location / "metadata").glob("*.avro")) == []
