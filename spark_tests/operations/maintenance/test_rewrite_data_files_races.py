"""What a rewrite of data files does not take for the files and rows that it has read."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from built.contents import data_files, live_files, unused_files
from built.delta_tables import BY_DATA, BY_ID, DeltaTable
from test_rewrite_data_files import ALL, add_spec, numbers, rewrite, table_of, ten_files

from icebergds import load_table
from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import LoadedTable, load_for_write
from icebergds.commit.data_files import Append, Delete
from icebergds.commit.row_delta import RowDelta
from icebergds.errors import CommitStateUnknownError, ValidationError
from icebergds.expr.nodes import TRUE
from icebergds.formats.deletes.position_deletes import only_data_path
from icebergds.operations.maintenance.rewrite.commit import CommittedGroups, commit_groups
from icebergds.operations.maintenance.rewrite.groups import RewrittenGroup, rewrite_group
from icebergds.operations.maintenance.rewrite.options import RewriteOptions
from icebergds.operations.maintenance.rewrite.plan import FileGroup
from icebergds.operations.maintenance.rewrite.rewrite_data_files import rewrite_data_files
from icebergds.operations.maintenance.rewrite.task import RewritePlan
from icebergds.operations.runner import LocalRunner
from icebergds.operations.write.cleanup import delete_files
from icebergds.operations.write.options import WriteOptions
from icebergds.spec.manifest import DataFile, FileContent
from icebergds.spec.snapshot import RefType, SnapshotRef
from icebergds.spec.updates.table_updates import (
    SetProperties,
    SetSnapshotRef,
    UpgradeFormatVersion,
)


def data_file_of(table: DeltaTable) -> DataFile:
    files = live_files(table.table.location)
    return next(file for file in files if file.content is FileContent.DATA)


def add_again(table: DeltaTable) -> None:
    """Lists a data file of the table a second time."""
    table.table.commit(Append((data_file_of(table),)))


def lineage(table: DeltaTable) -> dict[int, Any]:
    return {
        row["id"]: (row["_row_id"], row["_last_updated_sequence_number"]) for row in table.read()
    }


def test_a_file_that_is_listed_twice_is_left_alone(tmp_path: Path) -> None:
    table = table_of(tmp_path, [(1, "a"), (2, "b")], [(3, "c")])
    add_again(table)
    before = table.rows()
    options = {**ALL, "max-file-group-input-files": "1", "partial-progress.enabled": "true"}
    assert rewrite(table, options).rewritten_data_files_count == 1
    assert table.rows() == before


def test_a_file_that_others_list_once_more_meanwhile_is_left_alone(tmp_path: Path) -> None:
    table = table_of(tmp_path, [(1, "a"), (2, "b")])
    assert rewrite(table, ALL, others=[lambda: add_again(table)]).rewritten_data_files_count == 0
    assert numbers(table) == [1, 1, 2, 2]


def replace_by_itself(table: DeltaTable) -> None:
    """Removes all rows, and adds a data file again with a higher sequence number."""
    file = data_file_of(table)
    table.table.commit(Delete(TRUE))
    table.table.commit(Append((file,)))


def test_deleted_rows_of_a_file_that_others_add_again_meanwhile_come_back(tmp_path: Path) -> None:
    table = table_of(tmp_path, [(1, "a"), (2, "b"), (3, "c")])
    table.keyed("delete", [table.batch((1, "a"))])
    rewrite(table, ALL, others=[lambda: replace_by_itself(table)])
    assert numbers(table) == [1, 2, 3]


def test_files_that_others_change_again_and_again_count_as_failed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = table_of(tmp_path, [(1, "a")])
    done = rewrite(table, ALL, others=[lambda: replace_by_itself(table)] * 3)
    assert (done.rewritten_data_files_count, done.failed_data_files_count) == (0, 1)
    assert "1 data file not rewritten: others changed them" in caplog.text


@pytest.mark.parametrize("version", [2, 3])
def test_rows_are_deleted_as_often_meanwhile_as_commits_are_tried_again(
    tmp_path: Path, version: int
) -> None:
    table = ten_files(tmp_path, version=version)
    table.table.change(SetProperties({"commit.retry.num-retries": "4"}))
    others = [partial(table.change_where, lambda row, i=i: row["id"] == i) for i in range(40)]
    with pytest.raises(ValidationError, match=r"again and again, 20 times; .*num-retries to more"):
        rewrite(table, others=others[:20])
    assert numbers(table) == [*range(20, 100)]
    table.table.change(SetProperties({"commit.retry.num-retries": "21"}))
    rewrite(table, others=others[20:])
    assert numbers(table) == [*range(40, 100)]


def test_newer_deletes_by_key_of_the_new_spec_spare_rows_of_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would apply to the new files, which have the old sequence number."""
    table = ten_files(tmp_path, spec=BY_DATA)
    add_spec(table, BY_ID)
    before = table.rows()
    # As an engine may write them that does not look for files of other specs.
    monkeypatch.setattr(RowDelta, "_check_equality_delete_specs", lambda action, base: None)
    rewrite(table, others=[lambda: table.keyed("delete", [table.batch((4, "1"))])])
    assert table.rows() == before
    assert {file.spec_id for file in live_files(tmp_path)} == {1}


@pytest.mark.parametrize("is_read_before_the_upgrade", [True, False])
def test_rows_keep_the_ids_that_others_give_them_meanwhile(
    tmp_path: Path, is_read_before_the_upgrade: bool
) -> None:
    table = ten_files(tmp_path)
    given: dict[int, Any] = {}

    def upgrade() -> None:
        table.table.change(UpgradeFormatVersion(3))

    def append() -> None:
        if is_read_before_the_upgrade:
            upgrade()
        table.append((1000, "x"))
        given.update(lineage(table))

    if not is_read_before_the_upgrade:
        upgrade()
    assert rewrite(table, others=[append]).rewritten_data_files_count == 11
    assert lineage(table) == given


def test_no_position_delete_file_is_added_after_an_upgrade(
    tmp_path: Path,
) -> None:
    table = ten_files(tmp_path)
    others = [
        lambda: table.change_where(lambda row: row["id"] == 5),
        # The deletes have been moved, but are not committed.
        lambda: table.table.change(UpgradeFormatVersion(3)),
    ]
    rewrite(table, others=others)
    assert numbers(table) == [i for i in range(100) if i != 5]
    live = live_files(tmp_path)
    data = {file.file_path for file in live if file.content is FileContent.DATA}
    deletes = [file for file in live if file.content is FileContent.POSITION_DELETES]
    # That of the other commit names a file that is gone.
    assert not [f for f in deletes if only_data_path(f) in data and not f.is_deletion_vector]
    assert not unused_files(load_table(str(tmp_path)))


def test_files_that_failed_are_not_counted_again_in_the_next_pass(tmp_path: Path) -> None:
    table = ten_files(tmp_path, spec=BY_DATA)
    damaged = next(file for file in live_files(tmp_path) if file.partition == ("1",))
    Path(damaged.file_path).write_bytes(b"damaged")
    # Groups of two partitions are dropped, since others rewrote their files.
    others = [lambda: rewrite(table, where="data <> '1'")]
    done = rewrite(table, {**ALL, "partial-progress.enabled": "true"}, others=others)
    assert done.failed_data_files_count == 10


def test_no_more_files_than_asked_for_are_rewritten_in_all_passes(tmp_path: Path) -> None:
    table = ten_files(tmp_path, spec=BY_DATA)
    others = [lambda: rewrite(table, where="data = '1'")]
    done = rewrite(table, {**ALL, "max-files-to-rewrite": "20"}, others=others)
    assert done.rewritten_data_files_count == 20
    assert numbers(table) == list(range(100))


@pytest.mark.parametrize("version", [2, 3])
def test_tasks_that_lose_rows_change_nothing(tmp_path: Path, version: int) -> None:
    table = ten_files(tmp_path, version=version)
    table.change_where(lambda row: row["id"] % 10 == 3)
    loaded = load_for_write(TableAddress(str(tmp_path)))
    before = data_files(tmp_path)

    def lossy(loaded: LoadedTable, plan: RewritePlan, group: FileGroup) -> RewrittenGroup:
        done = rewrite_group(LocalRunner(), loaded, plan, group)
        delete_files(loaded.io, done.files[-1:])
        return replace(done, written=[done.files[:-1]])

    options = RewriteOptions.of({**ALL, "target-file-size-bytes": "3000"}, {})
    with pytest.raises(ValidationError, match=r"rows cannot replace files with 100, .* least 90"):
        rewrite_data_files(
            loaded, LocalRunner(), WriteOptions.of(loaded.address), options, None, lossy
        )
    assert len(numbers(table)) == 90
    assert data_files(tmp_path) == before


@pytest.mark.parametrize("version", [2, 3])
def test_rows_whose_delete_is_rolled_back_after_it_was_moved_stay(
    tmp_path: Path, version: int
) -> None:
    table = ten_files(tmp_path, version=version)
    before = table.table.head.snapshot_id

    def roll_back() -> None:
        table.table.change(SetSnapshotRef("main", SnapshotRef(before, RefType.BRANCH)))

    others = [lambda: table.change_where(lambda row: row["id"] == 5), roll_back]
    done = rewrite(table, others=others)
    assert (done.rewritten_data_files_count, done.added_data_files_count) == (10, 1)
    assert numbers(table) == list(range(100))
    assert not unused_files(load_table(str(tmp_path)))


def test_an_unknown_outcome_of_a_later_pass_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = ten_files(tmp_path, spec=BY_DATA)
    commits = []

    def commit(*given: Any) -> CommittedGroups:
        commits.append(given)
        # The first is that of the others.
        if len(commits) > 2:
            raise CommitStateUnknownError("the connection was lost")
        return commit_groups(*given)

    monkeypatch.setattr(f"{rewrite_data_files.__module__}.commit_groups", commit)
    with pytest.raises(CommitStateUnknownError):
        rewrite(table, ALL, others=[lambda: rewrite(table, where="data = '1'")])
