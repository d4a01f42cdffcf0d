"""Snapshots and references: what commits make of them, and of the snapshot log."""

from __future__ import annotations

import time
from typing import Any

import pytest
from built.metadata import (
    START_MS,
    branch,
    changed,
    commit,
    new_table,
    snapshot,
    table_with,
    tag,
)
from hypothesis import given, strategies as st

from icebergds.errors import CommitConflictError, InvalidMetadataError
from icebergds.spec.json.metadata import parse_metadata, serialise_metadata
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import SnapshotRef
from icebergds.spec.statistics import PartitionStatisticsFile, StatisticsFile
from icebergds.spec.updates.apply_updates import next_metadata
from icebergds.spec.updates.table_updates import (
    AddSnapshot,
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
)


def logged(metadata: TableMetadata) -> list[int]:
    return [entry.snapshot_id for entry in metadata.snapshot_log]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_commit_makes_its_snapshot_current(version: int) -> None:
    table = table_with(1, 2, format_version=version)
    assert table.current_snapshot_id == 2
    assert table.refs == {"main": branch(2)}
    assert logged(table) == [1, 2]
    assert [e.timestamp_ms for e in table.snapshot_log] == [START_MS + 1000, START_MS + 2000]
    assert table.last_sequence_number == (0 if version == 1 else 2)
    assert table.last_updated_ms == START_MS + 2000
    assert parse_metadata(serialise_metadata(table), "t") == table


def test_a_snapshot_without_a_reference_is_not_current() -> None:
    table = table_with(1)
    staged = changed(table, AddSnapshot(snapshot(table, 2)))
    assert staged.current_snapshot_id == 1
    assert logged(staged) == [1]
    assert staged.last_sequence_number == 2


def test_branches_and_tags_leave_main_and_the_log_alone() -> None:
    table = table_with(1)
    updates = (AddSnapshot(snapshot(table, 2)), SetSnapshotRef("dev", branch(2)))
    table = changed(table, *updates, SetSnapshotRef("v1", tag(1, max_ref_age_ms=5)))
    assert table.refs == {"main": branch(1), "dev": branch(2), "v1": tag(1, max_ref_age_ms=5)}
    assert logged(table) == [1]


def test_a_rollback_is_logged_at_the_time_it_happens() -> None:
    table = table_with(1, 2)
    now = START_MS + 9000
    table = changed(table, SetSnapshotRef("main", branch(1)), now_ms=now)
    assert logged(table) == [1, 2, 1]
    assert table.snapshot_log[-1].timestamp_ms == table.last_updated_ms == now
    assert table.snapshot_as_of(now - 1) == table.snapshot_by_id(2)


def test_new_retention_of_main_is_no_change_of_snapshot() -> None:
    table = table_with(1)
    table = changed(table, SetSnapshotRef("main", branch(1, min_snapshots_to_keep=3)))
    assert logged(table) == [1]
    assert table.refs["main"].min_snapshots_to_keep == 3


def test_snapshots_that_no_reader_saw_stay_out_of_the_log() -> None:
    table = table_with(1)
    two = snapshot(table, 2)
    three = snapshot(table, 3, sequence_number=3)
    table = changed(
        table,
        AddSnapshot(two),
        SetSnapshotRef("main", branch(2)),
        AddSnapshot(three),
        SetSnapshotRef("main", branch(3)),
    )
    assert logged(table) == [1, 3]


def test_a_snapshot_added_and_removed_again_leaves_no_trace_in_the_log() -> None:
    table = table_with(1)
    table = changed(
        table,
        AddSnapshot(snapshot(table, 2)),
        SetSnapshotRef("main", branch(2)),
        SetSnapshotRef("main", branch(1)),
        RemoveSnapshots((2,)),
    )
    assert logged(table) == [1, 1]
    assert set(table.snapshots_by_id) == {1}


def test_removing_a_snapshot_removes_what_refers_to_it_and_the_history_before_it() -> None:
    table = table_with(1, 2, 3, 4)
    table = changed(
        table,
        SetSnapshotRef("old", tag(2)),
        SetSnapshotRef("new", tag(4)),
        *(SetStatistics(StatisticsFile(i, f"/stats-{i}", 1, 1)) for i in (2, 3)),
        *(SetPartitionStatistics(PartitionStatisticsFile(i, f"/p-{i}", 1)) for i in (2, 3)),
    )
    table = changed(table, RemoveSnapshots((2, 77)))
    assert [s.snapshot_id for s in table.snapshots] == [1, 3, 4]
    assert set(table.refs) == {"main", "new"}
    assert logged(table) == [3, 4]
    assert [s.snapshot_id for s in table.statistics] == [3]
    assert [s.snapshot_id for s in table.partition_statistics] == [3]


def test_removing_a_snapshot_that_was_never_current_keeps_the_log() -> None:
    table = table_with(1)
    table = changed(table, AddSnapshot(snapshot(table, 2)))
    table = commit(table, 3)
    assert logged(changed(table, RemoveSnapshots((2,)))) == [1, 3]


def test_without_its_main_branch_a_table_has_no_current_snapshot() -> None:
    table = table_with(1, 2)
    for update in (RemoveSnapshotRef("main"), RemoveSnapshots((2,))):
        assert changed(table, update).current_snapshot() is None


@given(st.lists(st.integers(1, 8), max_size=8))
def test_the_log_names_only_snapshots_there_are_and_ends_with_the_current(gone: list[int]) -> None:
    table = changed(table_with(*range(1, 10)), RemoveSnapshots(tuple(gone)))
    assert set(logged(table)) <= set(table.snapshots_by_id)
    assert logged(table) == list(range(max(gone, default=0) + 1, 10))
    assert changed(table, RemoveSnapshots(tuple(gone))) is table


# What is refused


def test_an_id_is_given_once() -> None:
    table = table_with(1)
    with pytest.raises(InvalidMetadataError, match="snapshot 1 is already in the table"):
        commit(table, 1)


@pytest.mark.parametrize("sequence_number", [0, 1, 2])
def test_a_snapshot_behind_another_commit_is_a_conflict(sequence_number: int) -> None:
    with pytest.raises(CommitConflictError, match="last sequence number, 2"):
        commit(table_with(1, 2), 3, sequence_number=sequence_number)


@pytest.mark.parametrize(
    ("version", "members", "message"),
    [
        (1, {"sequence_number": 1}, "expected 0 in format version 1"),
        (2, {"manifest_list": None, "manifests": ("/m",)}, "no manifest list"),
        (2, {"summary": {}}, "no 'operation'"),
        (2, {"schema_id": 4}, "schema 4, but the table has only"),
        (2, {"key_id": "k"}, "needs encryption key 'k'"),
        (2, {"timestamp_ms": START_MS * 1000}, "is not between 1970 and now"),
        (2, {"timestamp_ms": START_MS - 100_000}, "check the writers' clocks"),
        (3, {"first_row_id": None}, "format version 3 requires both"),
        (3, {"added_rows": None}, "format version 3 requires both"),
        (3, {"added_rows": -1}, "below 0"),
    ],
)
def test_snapshots_that_a_version_does_not_admit_are_refused(
    version: int, members: dict[str, Any], message: str
) -> None:
    table = table_with(1, format_version=version)
    bad = snapshot(table, 2, **members)
    with pytest.raises(InvalidMetadataError, match=message):
        changed(table, AddSnapshot(bad), SetSnapshotRef("main", branch(2)))


@pytest.mark.parametrize(
    ("name", "ref", "message"),
    [
        ("main", branch(9), "snapshot 9, which the table does not have"),
        ("main", tag(1), "must be a branch"),
        ("t", tag(1, min_snapshots_to_keep=1), "cannot have min-snapshots-to-keep"),
        ("b", branch(1, max_snapshot_age_ms=0), "expected a number above 0"),
    ],
)
def test_references_that_cannot_be_are_refused(name: str, ref: SnapshotRef, message: str) -> None:
    with pytest.raises(InvalidMetadataError, match=message):
        changed(table_with(1), SetSnapshotRef(name, ref))


def test_statistics_need_their_snapshot() -> None:
    with pytest.raises(InvalidMetadataError, match="snapshot 9, which the table does not have"):
        changed(table_with(1), SetStatistics(StatisticsFile(9, "/s", 1, 1)))


# Row ids of version 3


def test_row_ids_of_commits_follow_each_other() -> None:
    table = table_with(1, format_version=3)
    assert table.next_row_id == 10
    table = commit(table, 2, added_rows=5)
    assert table.next_row_id == 15
    table = commit(table, 3, first_row_id=100, added_rows=1)
    assert table.next_row_id == 101


def test_row_ids_that_another_commit_took_are_a_conflict() -> None:
    with pytest.raises(CommitConflictError, match="below the table's next-row-id, 10"):
        commit(table_with(1, format_version=3), 2, first_row_id=9)


# The metadata log


def test_the_previous_metadata_file_is_logged_with_its_own_time() -> None:
    table = commit(new_table(), 1)
    assert [(e.timestamp_ms, e.metadata_file) for e in table.metadata_log] == [
        (START_MS, f"s3://b/t/metadata/{START_MS}.metadata.json")
    ]


@pytest.mark.parametrize(("limit", "kept"), [("3", 3), ("0", 1)])
def test_the_metadata_log_is_trimmed_from_its_old_end(limit: str, kept: int) -> None:
    properties = {"write.metadata.previous-versions-max": limit}
    table = table_with(*range(1, 7), properties=properties)
    assert [e.timestamp_ms for e in table.metadata_log] == [
        START_MS + 1000 * i for i in range(6 - kept, 6)
    ]


def test_time_never_runs_backwards() -> None:
    for table in (new_table(), table_with(1)):
        later = next_metadata(table, "/1.json", [SetProperties({"a": "b"})], now_ms=5)
        assert later.last_updated_ms == table.last_updated_ms


def test_changes_that_change_nothing_give_the_same_object() -> None:
    table = table_with(1, properties={"a": "b"})
    updates = (
        SetProperties({"a": "b"}),
        SetSnapshotRef("main", branch(1)),
        RemoveSnapshotRef("no"),
        RemoveSnapshots((9,)),
    )
    assert next_metadata(table, "/1.json", updates, now_ms=START_MS + 10_000) is table


def test_a_commit_to_a_long_history_takes_far_less_than_5_ms() -> None:
    table = table_with(*range(1, 1001))
    fastest = 1.0
    for _ in range(5):
        start = time.perf_counter()
        commit(table, 1001)
        fastest = min(fastest, time.perf_counter() - start)
    assert fastest < 0.002
