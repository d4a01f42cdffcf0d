"""Which concurrent commits an overwrite refuses, by isolation level and place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from built.replace_files import ReplaceFiles
from commit_races import Race

from icebergds.commit.data_files import Append, Delete, Overwrite
from icebergds.commit.options import IsolationLevel
from icebergds.commit.replace_partitions import ReplacePartitions
from icebergds.commit.snapshot_commit import Action
from icebergds.commit.validation import Isolation
from icebergds.errors import ValidationError
from icebergds.expr.sql import parse_filter
from icebergds.spec.updates.table_updates import RemoveSnapshots

_NONE, _SNAPSHOT, _SERIALIZABLE = IsolationLevel


def _overwrite(race: Race, level: IsolationLevel, by: str) -> Action:
    """An overwrite of day 1 that had read the table before the others."""
    new = (race.table.file([100], 1),)
    isolation = Isolation(level, race.read_at)
    if by == "filter":
        return Overwrite(new, parse_filter("day = 1"), isolation=isolation)
    return ReplacePartitions(new, isolation)


@pytest.fixture
def race(tmp_path: Path) -> Race:
    return Race(tmp_path / "t")


@pytest.mark.parametrize("by", ["filter", "partitions"])
@pytest.mark.parametrize(
    ("others", "level", "is_refused"),
    [
        ("append", _NONE, False),
        ("append", _SNAPSHOT, False),
        ("append", _SERIALIZABLE, True),
        ("delete_rows", _NONE, False),
        ("delete_rows", _SNAPSHOT, True),
        ("delete_rows", _SERIALIZABLE, True),
        ("delete_keys", _SNAPSHOT, True),
        ("remove_file", _NONE, False),
        ("remove_file", _SNAPSHOT, True),
        ("remove_file", _SERIALIZABLE, True),
        ("compact", _NONE, False),
        ("compact", _SNAPSHOT, True),
    ],
)
def test_overwrites_refuse_what_their_isolation_level_says(
    race: Race, by: str, others: str, level: IsolationLevel, is_refused: bool
) -> None:
    getattr(race, others)(1)
    table, before = race.table, race.table.head
    if is_refused:
        with pytest.raises(ValidationError, match=str(before.snapshot_id)):
            table.commit(_overwrite(race, level, by))
        assert table.head == before
    else:
        table.commit(_overwrite(race, level, by))
        assert 100 in table.ids()


@pytest.mark.parametrize("by", ["filter", "partitions"])
@pytest.mark.parametrize(
    "others", ["append", "delete_rows", "delete_keys", "remove_file", "compact"]
)
def test_commits_elsewhere_are_no_conflict(race: Race, by: str, others: str) -> None:
    getattr(race, others)(2)
    race.table.commit(_overwrite(race, _SERIALIZABLE, by))
    assert 100 in race.table.ids()


def test_a_conflict_is_found_behind_other_commits(race: Race) -> None:
    race.append(1)
    race.append(2)
    with pytest.raises(ValidationError):
        race.table.commit(_overwrite(race, _SERIALIZABLE, "filter"))


def test_what_was_read_already_is_no_conflict(race: Race) -> None:
    race.append(1)
    race.read_at = race.table.head.snapshot_id
    race.table.commit(_overwrite(race, _SERIALIZABLE, "filter"))


def test_a_table_that_was_empty_when_it_was_read_conflicts_with_everything(race: Race) -> None:
    isolation = Isolation(_SERIALIZABLE, None)
    action = Overwrite((), parse_filter("day = 1"), isolation=isolation)
    with pytest.raises(ValidationError, match="added rows"):
        race.table.commit(action)


def test_a_history_that_has_expired_cannot_be_checked(race: Race) -> None:
    race.append(2)
    middle = race.table.head.snapshot_id
    race.append(2)
    # The builder's snapshots know their parents also when these are gone.
    race.table.change(RemoveSnapshots((race.read_at, middle)))
    with pytest.raises(ValidationError, match=f"snapshot {middle} has expired"):
        race.table.commit(_overwrite(race, _SNAPSHOT, "filter"))


def test_expiry_of_the_snapshot_that_was_read_itself_does_not_matter(race: Race) -> None:
    race.append(2)
    race.table.change(RemoveSnapshots((race.read_at,)))
    race.table.commit(_overwrite(race, _SERIALIZABLE, "filter"))
    assert 100 in race.table.ids()


def test_a_snapshot_of_another_branch_is_no_start(race: Race) -> None:
    side = race.table.commit(Append(()), branch="side").snapshot
    race.read_at = side.snapshot_id
    with pytest.raises(ValidationError, match="not in the history of branch 'main'"):
        race.table.commit(_overwrite(race, _SNAPSHOT, "filter"))


def test_a_conflict_that_comes_between_attempts_is_found(race: Race) -> None:
    from interleaving import InterleavedOperations

    from icebergds.commit.options import CommitOptions
    from icebergds.commit.snapshot_commit import commit_snapshot

    table = race.table
    other = Append((table.file([50], 1),))
    operations = InterleavedOperations(table.operations, [lambda: table.commit(other)])
    with pytest.raises(ValidationError, match="added rows"):
        commit_snapshot(operations, _overwrite(race, _SERIALIZABLE, "filter"), CommitOptions())
    assert 50 in table.ids()
    assert table.left_over() == set()


# Replacing files.


def _replacement(race: Race, number: int | None = None) -> ReplaceFiles:
    new = race.table.file([1, 11], 1)
    return ReplaceFiles((race.data[1],), (new,), race.read_at, number)


@pytest.mark.parametrize(
    ("others", "keeps_number", "is_refused"),
    [
        ("append", False, False),
        ("delete_rows", False, True),
        ("delete_rows", True, True),
        ("delete_keys", False, True),
        ("delete_keys", True, False),
        ("remove_file", False, True),
        ("compact", False, True),
    ],
)
def test_files_whose_rows_others_changed_are_not_replaced(
    race: Race, others: str, keeps_number: bool, is_refused: bool
) -> None:
    getattr(race, others)(1)
    table = race.table
    action = _replacement(race, 1 if keeps_number else None)
    if is_refused:
        with pytest.raises(ValidationError):
            table.commit(action)
    else:
        table.commit(action)
        assert action.added[0].file_path in table.paths()


@pytest.mark.parametrize("others", ["delete_rows", "delete_keys", "remove_file", "compact"])
def test_changes_of_other_files_do_not_keep_files_from_being_replaced(
    race: Race, others: str
) -> None:
    getattr(race, others)(2)
    race.table.commit(_replacement(race))


def test_position_deletes_of_another_file_of_the_partition_are_no_conflict(race: Race) -> None:
    race.append(1)
    (other,) = [
        f.entry.data_file
        for f in race.table.files()
        if f.entry.data_file.file_path not in {d.file_path for d in race.data.values()}
    ]
    deletes = race.builder.position_deletes({other.file_path: [0]}, partition=(1,))
    race.builder.commit(deletes, operation="delete")
    race.table.commit(_replacement(race))


def test_a_new_deletion_vector_is_a_conflict(tmp_path: Path) -> None:
    race = Race(tmp_path / "t", format_version=3)
    (vector,) = race.builder.deletion_vectors([(race.data[1], [0])])
    race.builder.commit(vector, operation="delete")
    with pytest.raises(ValidationError, match="deleted rows of files"):
        race.table.commit(_replacement(race))


def test_keys_deleted_everywhere_are_a_conflict_wherever_the_file_is(race: Race) -> None:
    from icebergds.spec.partition import PartitionSpec

    race.builder.evolve(spec=PartitionSpec(1))
    deletes = race.builder.equality_deletes(["id"], [(1,)])
    race.builder.commit(replace(deletes, spec_id=1), operation="delete")
    with pytest.raises(ValidationError, match="deleted rows of files"):
        race.table.commit(_replacement(race))


def test_deletes_without_isolation_see_no_conflicts(race: Race) -> None:
    race.append(1)
    race.table.commit(Delete(parse_filter("day = 1")))
    assert race.table.ids() == [2, 12]
