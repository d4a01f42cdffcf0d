"""Row deltas and rewritten rows: what they make of a table, and which commits they refuse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from built.commit_tables import CommitTable
from commit_races import Race

from icebergds.commit.data_files import Append, RewriteRows
from icebergds.commit.options import IsolationLevel
from icebergds.commit.row_delta import RowDelta
from icebergds.commit.validation import Isolation
from icebergds.errors import InvalidDataError, UnsupportedFeatureError, ValidationError
from icebergds.expr.nodes import TRUE
from icebergds.expr.sql import parse_filter
from icebergds.spec.manifest import DataFile, DataFileRef
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.updates.table_updates import (
    AddPartitionSpec,
    SetDefaultSpec,
    UpgradeFormatVersion,
)

_SNAPSHOT, _SERIALIZABLE = IsolationLevel.SNAPSHOT, IsolationLevel.SERIALIZABLE


@pytest.fixture
def race(tmp_path: Path) -> Race:
    return Race(tmp_path / "t")


@pytest.fixture
def vectors(tmp_path: Path) -> Race:
    """The same table in version 3."""
    return Race(tmp_path / "v3", format_version=3)


def _ref(file: DataFile) -> DataFileRef:
    return DataFileRef(file.file_path, file.spec_id, file.partition)


def _deletes(race: Race, day: int, positions: Sequence[int] = (0,)) -> DataFile:
    """Deletes of rows of the day's first file, of the kind that the table takes."""
    data = race.data[day]
    if race.table.metadata.format_version >= 3:
        (vector,) = race.builder.deletion_vectors([(data, positions)])
        return vector
    return race.builder.position_deletes({data.file_path: positions}, partition=(day,))


def _delta(race: Race, level: IsolationLevel = _SNAPSHOT, **changed: Any) -> RowDelta:
    """Deletes a row of day 1."""
    delta = RowDelta(
        (),
        (_deletes(race, 1),),
        referenced=(_ref(race.data[1]),),
        isolation=Isolation(level, race.read_at),
        conflict_filter=parse_filter("day = 1"),
    )
    return replace(delta, **changed)


def _update(race: Race, level: IsolationLevel = _SNAPSHOT) -> RowDelta:
    """Replaces a row of day 1."""
    return _delta(race, level, files=(race.table.file([100], 1),))


def _deletes_of(table: CommitTable) -> dict[str, list[DataFile]]:
    """The deletes by position that a scan applies to each data file."""
    return {
        file.entry.data_file.file_path: [e.data_file for e in file.deletes.position_deletes]
        for file in table.files()
    }


def test_deletes_apply_to_the_files_they_name(race: Race) -> None:
    delta = _delta(race)
    race.table.commit(delta)
    applied = _deletes_of(race.table)
    assert [f.file_path for f in applied[race.data[1].file_path]] == [delta.deletes[0].file_path]
    assert applied[race.data[2].file_path] == []


@pytest.mark.parametrize("kind", ["append", "delete", "overwrite"])
def test_operations_are_named_by_what_they_do(race: Race, kind: str) -> None:
    delta = _update(race)
    if kind == "append":
        delta = replace(delta, deletes=(), referenced=())
    if kind == "delete":
        delta = replace(delta, files=())
    assert race.table.commit(delta).snapshot.operation == kind


def test_summaries_count_deletes(race: Race, vectors: Race) -> None:
    summary = race.table.commit(_update(race)).snapshot.summary
    assert summary["added-position-deletes"] == summary["added-position-delete-files"] == "1"
    assert summary["added-records"] == "1"
    of_vector = vectors.table.commit(_delta(vectors)).snapshot.summary
    assert of_vector["added-dvs"] == of_vector["added-position-deletes"] == "1"


def test_a_newer_vector_takes_the_place_of_the_older(vectors: Race) -> None:
    older = _delta(vectors)
    vectors.table.commit(older)
    vectors.read_at = vectors.table.head.snapshot_id
    newer = _delta(vectors, deletes=(_deletes(vectors, 1, [0, 1]),), replaced=older.deletes)
    summary = vectors.table.commit(newer).snapshot.summary
    assert [len(found) for found in _deletes_of(vectors.table).values()].count(1) == 1
    assert summary["removed-dvs"] == summary["removed-position-deletes"] == "1"
    assert summary["added-position-deletes"] == "2"


def test_a_vector_that_others_replaced_meanwhile_is_a_conflict(vectors: Race) -> None:
    older = _delta(vectors)
    vectors.table.commit(older)
    vectors.read_at = vectors.table.head.snapshot_id
    mine = _delta(vectors, deletes=(_deletes(vectors, 1, [0, 1]),), replaced=older.deletes)
    theirs = replace(mine, deletes=(_deletes(vectors, 1, [0]),))
    vectors.table.commit(theirs)
    with pytest.raises(ValidationError, match="deleted rows of"):
        vectors.table.commit(mine)
    assert len(_deletes_of(vectors.table)[vectors.data[1].file_path]) == 1


def test_vectors_of_two_writers_for_one_file_are_a_conflict(vectors: Race) -> None:
    mine, theirs = _delta(vectors), _delta(vectors)
    vectors.table.commit(theirs)
    with pytest.raises(ValidationError, match="a data file can have only one deletion vector"):
        vectors.table.commit(mine)


def test_position_deletes_of_two_writers_go_together(race: Race) -> None:
    mine, theirs = _delta(race), _delta(race, deletes=(_deletes(race, 1, [1]),))
    race.table.commit(theirs)
    race.table.commit(mine)
    assert len(_deletes_of(race.table)[race.data[1].file_path]) == 2


@pytest.mark.parametrize(
    ("others", "level", "deletes_refused", "updates_refused"),
    [
        ("append", _SNAPSHOT, False, False),
        ("append", _SERIALIZABLE, True, True),
        ("delete_rows", _SNAPSHOT, False, True),
        ("delete_rows", _SERIALIZABLE, False, True),
        ("delete_keys", _SNAPSHOT, False, True),
        ("remove_file", _SNAPSHOT, False, True),
        ("compact", _SNAPSHOT, True, True),
        ("compact", _SERIALIZABLE, True, True),
    ],
)
def test_row_deltas_refuse_what_their_isolation_level_says(
    race: Race, others: str, level: IsolationLevel, deletes_refused: bool, updates_refused: bool
) -> None:
    getattr(race, others)(1)
    for delta, is_refused in ((_delta, deletes_refused), (_update, updates_refused)):
        before = race.table.head
        if is_refused:
            with pytest.raises(ValidationError, match=str(before.snapshot_id)):
                race.table.commit(delta(race, level))
            assert race.table.head == before
    if not deletes_refused:
        race.table.commit(_delta(race, level))


@pytest.mark.parametrize(
    "others", ["append", "delete_rows", "delete_keys", "remove_file", "compact"]
)
def test_commits_elsewhere_are_no_conflict(race: Race, others: str) -> None:
    getattr(race, others)(2)
    race.table.commit(_update(race, _SERIALIZABLE))
    assert 100 in race.table.ids()


def test_without_a_filter_rows_added_anywhere_conflict(race: Race) -> None:
    race.append(2)
    delta = replace(_delta(race, _SERIALIZABLE), conflict_filter=TRUE)
    with pytest.raises(ValidationError, match="added rows"):
        race.table.commit(delta)


def test_deletes_by_equality_alone_conflict_with_nothing(race: Race) -> None:
    keys = race.builder.equality_deletes(["id"], [(1,)], partition=(1,))
    for others in ("append", "delete_rows", "compact"):
        getattr(race, others)(1)
    race.table.commit(RowDelta((race.table.file([1], 1),), (keys,)))


def test_keys_of_a_column_that_no_schema_has_any_more_are_refused(race: Race) -> None:
    keys = race.builder.equality_deletes(["id"], [(1,)], partition=(1,))
    gone = replace(keys, equality_ids=(1, 99))
    with pytest.raises(ValidationError, match=r"no schema with field 99.*repeat the operation"):
        race.table.commit(RowDelta((), (gone,)))


def test_keys_deleted_in_a_partition_need_all_files_to_be_of_that_spec(race: Race) -> None:
    keys = race.builder.equality_deletes(["id"], [(1,)], partition=(1,))
    race.table.change(AddPartitionSpec(PartitionSpec(1)), SetDefaultSpec(-1))
    race.table.commit(RowDelta((), (keys,)))
    race.table.commit(Append((race.table.file([1], None, spec_id=1),)))
    with pytest.raises(ValidationError, match="has files of partition spec 1, to which"):
        race.table.commit(RowDelta((), (replace(keys, file_path=f"{keys.file_path}2"),)))


def test_twenty_deletes_between_appends_of_others_pass_at_snapshot_isolation(race: Race) -> None:
    for turn in range(20):
        read_at = race.table.head.snapshot_id
        race.table.commit(Append((race.table.file([50], 1),)))
        delta = _delta(race, isolation=Isolation(_SNAPSHOT, read_at))
        race.table.commit(delta)
        assert len(_deletes_of(race.table)[race.data[1].file_path]) == turn + 1


def test_twenty_deletes_between_appends_of_others_fail_if_serializable(race: Race) -> None:
    for _ in range(20):
        read_at = race.table.head.snapshot_id
        race.table.commit(Append((race.table.file([50], 1),)))
        with pytest.raises(ValidationError, match="added rows"):
            race.table.commit(_delta(race, isolation=Isolation(_SERIALIZABLE, read_at)))


def test_compaction_against_a_stream_of_deletes_ends_in_one_or_the_other(race: Race) -> None:
    for _ in range(5):
        race.table.commit(_delta(race, isolation=Isolation(_SNAPSHOT, race.read_at)))
        rewritten = RewriteRows(
            (race.data[1],), (race.table.file([11], 1),), Isolation(_SNAPSHOT, race.read_at)
        )
        with pytest.raises(ValidationError, match="deleted rows of files"):
            race.table.commit(rewritten)


# What has no place in a table.


def test_version_1_has_no_deletes(tmp_path: Path) -> None:
    race = Race(tmp_path / "v1", format_version=1)
    with pytest.raises(UnsupportedFeatureError, match="upgrade it to version 2 or 3"):
        race.table.commit(_delta(race))


def test_position_delete_files_have_no_place_in_version_3(race: Race) -> None:
    delta = _delta(race)
    race.table.change(UpgradeFormatVersion(3))
    with pytest.raises(ValidationError, match="version 3, which requires deletion vectors"):
        race.table.commit(delta)


def test_vectors_have_no_place_in_version_2(race: Race) -> None:
    (vector,) = race.builder.deletion_vectors([(race.data[1], [0])])
    with pytest.raises(ValidationError, match="version 2, which requires position delete files"):
        race.table.commit(_delta(race, deletes=(vector,)))


def test_one_commit_gives_a_file_one_vector(vectors: Race) -> None:
    two = (_deletes(vectors, 1, [0]), _deletes(vectors, 1, [1]))
    with pytest.raises(InvalidDataError, match="two deletion vectors"):
        vectors.table.commit(_delta(vectors, deletes=two))


def test_data_files_are_no_deletes(race: Race) -> None:
    with pytest.raises(InvalidDataError, match="is a data file"):
        race.table.commit(_delta(race, deletes=(race.table.file([5], 1),)))
    with pytest.raises(InvalidDataError, match="is a delete file"):
        race.table.commit(_delta(race, files=(_deletes(race, 1),)))


# Rewritten rows.


def _rewrite(
    race: Race, level: IsolationLevel = _SNAPSHOT, ids: Sequence[int] = (11,)
) -> RewriteRows:
    """Day 1 without its first row."""
    added = (race.table.file(ids, 1),) if ids else ()
    return RewriteRows(
        (race.data[1],), added, Isolation(level, race.read_at), parse_filter("day = 1")
    )


def test_rewritten_rows_take_the_place_of_their_files(race: Race) -> None:
    snapshot = race.table.commit(_rewrite(race)).snapshot
    assert race.table.ids() == [2, 11, 12]
    assert snapshot.operation == "overwrite"
    assert snapshot.summary["deleted-records"] == "2"


def test_files_of_which_no_row_is_left_are_deleted(race: Race) -> None:
    assert race.table.commit(_rewrite(race, ids=())).snapshot.operation == "delete"
    assert race.table.ids() == [2, 12]


def test_rewritten_files_may_hold_more_rows_than_before(race: Race) -> None:
    race.table.commit(_rewrite(race, ids=(11, 101, 102, 103)))
    assert race.table.ids() == [2, 11, 12, 101, 102, 103]


@pytest.mark.parametrize(
    ("others", "level", "is_refused"),
    [
        ("append", _SNAPSHOT, False),
        ("append", _SERIALIZABLE, True),
        ("delete_rows", _SNAPSHOT, True),
        ("delete_keys", _SNAPSHOT, True),
        ("remove_file", _SNAPSHOT, True),
        ("compact", _SNAPSHOT, True),
    ],
)
def test_rewrites_refuse_what_their_isolation_level_says(
    race: Race, others: str, level: IsolationLevel, is_refused: bool
) -> None:
    getattr(race, others)(1)
    if is_refused:
        with pytest.raises(ValidationError):
            race.table.commit(_rewrite(race, level))
    else:
        race.table.commit(_rewrite(race, level))
        assert 11 in race.table.ids()


@pytest.mark.parametrize(
    "others", ["append", "delete_rows", "delete_keys", "remove_file", "compact"]
)
def test_rewrites_go_together_with_commits_elsewhere(race: Race, others: str) -> None:
    getattr(race, others)(2)
    race.table.commit(_rewrite(race, _SERIALIZABLE))


def test_vectors_go_with_the_files_that_are_rewritten(vectors: Race) -> None:
    vectors.table.commit(_delta(vectors))
    vectors.read_at = vectors.table.head.snapshot_id
    summary = vectors.table.commit(_rewrite(vectors)).snapshot.summary
    assert summary["removed-dvs"] == "1"
    assert not any(_deletes_of(vectors.table).values())


def test_nothing_is_left_of_a_commit_that_was_refused(race: Race) -> None:
    race.compact(1)
    for action in (_rewrite(race), _update(race)):
        with pytest.raises(ValidationError):
            race.table.commit(action)
    assert race.table.left_over() == set()
    race.table.commit(Append(()))
