"""Conversions of equality deletes while others commit."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from built.replace_files import ReplaceFiles
from convert_tables import Meanwhile, RacingTable
from effort import given_seed, rounds

from icebergds.commit.data_files import Append, RewriteRows
from icebergds.commit.options import IsolationLevel
from icebergds.commit.validation import Isolation
from icebergds.errors import ValidationError
from icebergds.operations.maintenance.deletes.convert_equality_deletes import (
    ConvertedEqualityDeletes,
)
from icebergds.spec.manifest import FileContent
from icebergds.spec.snapshot import RefType, SnapshotRef
from icebergds.spec.updates.table_updates import SetProperties, SetSnapshotRef, UpgradeFormatVersion

_KEYS, _POSITIONS = FileContent.EQUALITY_DELETES, FileContent.POSITION_DELETES


@pytest.fixture(params=[2, 3])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> RacingTable:
    """Rows 1 to 6 in two files; equality deletes have deleted 2 and 5."""
    found = RacingTable(tmp_path / "t", version=request.param)
    found.append((1, "a"), (2, "b"), (3, "c"))
    found.append((4, "d"), (5, "e"), (6, "f"))
    found.keyed("delete", [found.batch((2, None), (5, None))])
    return found


def _ids(table: RacingTable) -> list[int]:
    return sorted(row["id"] for row in table.read())


def test_appends_do_not_disturb(table: RacingTable) -> None:
    done = table.convert(Meanwhile(lambda: table.append((2, "new"), (7, "g"))))
    assert done.converted_equality_delete_files_count == 1
    assert _ids(table) == [1, 2, 3, 4, 6, 7]
    assert not table.deletes(_KEYS)


def test_a_condition_may_leave_everything_as_it_is(table: RacingTable) -> None:
    done = table.convert(Meanwhile(lambda: table.append((7, "g"))), where="id < 4")
    assert done == ConvertedEqualityDeletes(remaining_equality_delete_files_count=1)
    assert _ids(table) == [1, 3, 4, 6, 7]
    _assert_no_file_left_over(table)


def test_new_equality_deletes_stay(table: RacingTable) -> None:
    done = table.convert(
        Meanwhile(lambda: table.keyed("upsert", [table.batch((3, "new"), (8, "h"))]))
    )
    assert done.converted_equality_delete_files_count == 1
    assert done.remaining_equality_delete_files_count == 1
    assert table.rows() == [(1, "a"), (3, "new"), (4, "d"), (6, "f"), (8, "h")]


def test_files_of_a_concurrent_compaction_are_converted_too(table: RacingTable) -> None:
    # Compacted from before the deletes, so that they apply to the new file.
    done = table.convert(Meanwhile(table.compact_parent()))
    assert done.converted_equality_delete_files_count == 1
    assert _ids(table) == [1, 3, 4, 6]
    assert not table.deletes(_KEYS)
    _assert_no_file_left_over(table)


def test_equality_deletes_that_a_new_file_needs_stay(table: RacingTable, monkeypatch: Any) -> None:
    """As above, if files must be given up because others compact all the time."""
    monkeypatch.setattr(
        "icebergds.operations.maintenance.deletes.convert_equality_deletes._ROUNDS", 1
    )
    before = _ids(table)
    done = table.convert(Meanwhile(table.compact_parent()))
    assert done.converted_equality_delete_files_count == 0
    assert done.remaining_equality_delete_files_count == 1
    assert _ids(table) == before
    _assert_no_file_left_over(table)


def test_a_compaction_that_began_before_fails(table: RacingTable) -> None:
    (compaction,) = table.prepare(table.compact)
    table.convert()
    with pytest.raises(ValidationError, match="deleted rows of files"):
        table.table.commit(compaction)
    assert _ids(table) == [1, 3, 4, 6]


def test_a_compaction_from_before_the_deletes_fails(tmp_path: Path) -> None:
    table = RacingTable(tmp_path / "t", version=2)
    table.append((1, "a"), (2, "b"))
    (compaction,) = table.prepare(table.compact)
    table.keyed("delete", [table.batch((2, None))])
    table.convert()
    with pytest.raises(ValidationError, match="deleted rows of files"):
        table.table.commit(compaction)
    assert _ids(table) == [1]


def test_concurrent_position_deletes_are_kept(table: RacingTable) -> None:
    done = table.convert(Meanwhile(lambda: table.change_where(lambda row: row["id"] == 3)))
    assert done.converted_equality_delete_files_count == 1
    assert _ids(table) == [1, 4, 6]
    assert not table.deletes(_KEYS)
    _assert_no_file_left_over(table)


def test_files_with_vectors_that_nobody_changed_are_not_converted_again(tmp_path: Path) -> None:
    table = RacingTable(tmp_path / "t", version=3)
    table.append((1, "a"), (2, "b"), (3, "c"))
    table.append((4, "d"), (5, "e"), (6, "f"))
    table.keyed("delete", [table.batch((2, None), (5, None))])
    second, first = (file.file_path for file in table.data_files())
    runner = Meanwhile(lambda: table.change_where(lambda row: row["id"] == 3))
    done = table.convert(runner)
    jobs = [[task.file_path for group in job for task in group.tasks] for job in runner.jobs]
    assert jobs == [[second, first], [first]]
    assert done.added_delete_files_count == done.deleted_rows_count == 2
    assert _ids(table) == [1, 4, 6]
    assert len(table.deletes(_POSITIONS)) == 2
    _assert_no_file_left_over(table)


def test_position_deletes_that_began_before(table: RacingTable) -> None:
    (change,) = table.prepare(lambda: table.change_where(lambda row: row["id"] == 3))
    table.convert()
    if table.version == 2:
        table.table.commit(change)
        assert _ids(table) == [1, 4, 6]
    else:
        with pytest.raises(ValidationError, match="only one deletion vector"):
            table.table.commit(change)
        assert _ids(table) == [1, 3, 4, 6]


def test_a_rewrite_that_began_before_fails(table: RacingTable) -> None:
    (change,) = table.prepare(lambda: table.rewrite([3]))
    table.convert()
    with pytest.raises(ValidationError, match="deleted rows of files"):
        table.table.commit(change)
    assert _ids(table) == [1, 3, 4, 6]


def test_a_concurrent_rewrite_wins(table: RacingTable) -> None:
    table.convert(Meanwhile(lambda: table.rewrite([3])))
    assert _ids(table) == [1, 4, 6]
    assert not table.deletes(_KEYS)
    assert not table.deletes(_POSITIONS)
    _assert_no_file_left_over(table)


def test_a_concurrent_conversion_leaves_nothing_to_do(table: RacingTable) -> None:
    done = table.convert(Meanwhile(table.convert))
    assert done.converted_equality_delete_files_count == 0
    assert done.remaining_equality_delete_files_count == 0
    assert _ids(table) == [1, 3, 4, 6]
    _assert_no_file_left_over(table)


def test_a_branch_that_is_rolled_back_keeps_its_rows(table: RacingTable) -> None:
    before = table.table.metadata.snapshots[1]

    def roll_back() -> None:
        ref = SnapshotRef(before.snapshot_id, RefType.BRANCH)
        table.table.change(SetSnapshotRef("main", ref))

    with pytest.raises(ValidationError, match="not in the history"):
        table.convert(Meanwhile(roll_back))
    assert _ids(table) == [1, 2, 3, 4, 5, 6]
    _assert_no_file_left_over(table)


def test_deletes_of_files_that_are_gone_are_not_added(table: RacingTable) -> None:
    table.table.change(SetProperties({"write.delete.granularity": "file"}))
    gone, kept = table.data_files()
    isolation = Isolation(IsolationLevel.NONE, table.table.head.snapshot_id)
    removal = RewriteRows((gone,), (), isolation)
    done = table.convert(Meanwhile(lambda: table.table.commit(removal)))
    assert (done.added_delete_files_count, done.deleted_rows_count) == (1, 1)
    (added,) = table.deletes(_POSITIONS)
    assert added.referenced_data_file == kept.file_path
    assert len(table.read()) == 2
    _assert_no_file_left_over(table)


def test_rows_whose_equality_deletes_are_taken_back_stay(table: RacingTable) -> None:
    (taken_back,) = table.deletes(_KEYS)
    table.keyed("delete", [table.batch((1, None), (4, None))])
    restore = ReplaceFiles((taken_back,), (), table.table.head.snapshot_id)
    done = table.convert(Meanwhile(lambda: table.table.commit(restore)))
    assert (done.converted_equality_delete_files_count, done.deleted_rows_count) == (1, 2)
    assert _ids(table) == [2, 3, 5, 6]
    _assert_no_file_left_over(table)


def test_nothing_is_done_if_all_equality_deletes_are_taken_back(table: RacingTable) -> None:
    restore = ReplaceFiles(tuple(table.deletes(_KEYS)), (), table.table.head.snapshot_id)
    done = table.convert(Meanwhile(lambda: table.table.commit(restore)))
    assert done == ConvertedEqualityDeletes()
    assert _ids(table) == [1, 2, 3, 4, 5, 6]
    _assert_no_file_left_over(table)


def test_a_file_that_is_added_again_keeps_its_rows(table: RacingTable) -> None:
    """Position deletes would delete rows of both; equality deletes only those of the older one."""
    again = table.data_files()[:1]
    done = table.convert(Meanwhile(lambda: table.table.commit(Append(again))))
    assert done.converted_equality_delete_files_count == 0
    assert len(table.table.files()) == 3
    once = [row["id"] for row in table.read() if row["_file"] == again[0].file_path]
    assert len(once) == 5
    assert table.convert().converted_equality_delete_files_count == 0


def test_an_upgraded_table_is_refused(tmp_path: Path) -> None:
    table = RacingTable(tmp_path / "t", version=2)
    table.append((1, "a"), (2, "b"))
    table.keyed("delete", [table.batch((2, None))])
    with pytest.raises(ValidationError, match="format version 3"):
        table.convert(Meanwhile(lambda: table.table.change(UpgradeFormatVersion(3))))
    assert _ids(table) == [1]
    _assert_no_file_left_over(table)


@pytest.mark.parametrize("seed", range(rounds("ICEBERGDS_CONVERSION_RACES", pull=4, nightly=300)))
def test_random_races_keep_the_rows_of_what_committed(seed: int, tmp_path: Path) -> None:
    chosen = random.Random(seed + 1000 * (given_seed() or 0))
    table = RacingTable(tmp_path / "t", version=chosen.choice([2, 3]))
    model = dict[int, str]()
    for _ in range(10):
        early = _random_change(table, model, chosen)
        prepared = table.prepare(early.change)
        if chosen.random() < 0.5:
            late = _random_change(table, model, chosen)
            late.change()
            late.to_model()
        table.convert(Meanwhile(_several(table, model, chosen)))
        for action in prepared:
            try:
                table.table.commit(action)
            except ValidationError:
                continue
            early.to_model()
        assert table.rows() == sorted(model.items(), key=repr)


class _Change:
    """A change of a table, and of the model of its rows."""

    def __init__(self, change: Callable[[], Any], to_model: Callable[[], Any]) -> None:
        self.change = change
        self.to_model = to_model


def _random_change(table: RacingTable, model: dict[int, str], chosen: random.Random) -> _Change:
    ids = chosen.sample(range(12), 3)
    values = {i: f"v{chosen.random()}" for i in ids}
    kinds = ["upsert", "delete_keys"]
    if model:
        kinds += ["change", "rewrite", "compact", "compact"]
    match chosen.choice(kinds):
        case "upsert":
            batch = table.batch(*values.items())
            return _Change(lambda: table.keyed("upsert", [batch]), lambda: model.update(values))
        case "delete_keys":
            batch = table.batch(*((i, None) for i in ids))
            return _Change(lambda: table.keyed("delete", [batch]), lambda: _drop(model, ids))
        case "change":
            seen = [i for i in ids if i in model]
            values = {i: model[i] for i in seen}
            return _Change(
                lambda: table.change_where(lambda row: row["id"] in seen),
                # Deletes the rows that were read, not newer ones with the same key.
                lambda: _drop(model, [i for i in seen if model.get(i) == values[i]]),
            )
        case "rewrite":
            seen = [i for i in ids if i in model]
            values = {i: model[i] for i in seen}
            return _Change(
                lambda: table.rewrite(seen),
                lambda: _drop(model, [i for i in seen if model.get(i) == values[i]]),
            )
        case _:
            return _Change(table.compact, lambda: None)


def _several(
    table: RacingTable, model: dict[int, str], chosen: random.Random
) -> Callable[[], None]:
    def run() -> None:
        for _ in range(chosen.randrange(3)):
            change = _random_change(table, model, chosen)
            change.change()
            change.to_model()

    return run


def _drop(model: dict[int, str], ids: list[int]) -> None:
    for i in ids:
        model.pop(i, None)


def _assert_no_file_left_over(table: RacingTable) -> None:
    metadata = table.table.metadata
    listed = {
        entry.data_file.file_path
        for snapshot in metadata.snapshots
        for entry in table.table.entries(snapshot)
    }
    on_disk = {str(path) for path in (table.table.location / "data").rglob("*.p*")}
    assert on_disk <= listed
