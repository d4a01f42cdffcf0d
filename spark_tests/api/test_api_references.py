"""Branches, tags and the current snapshot, changed without Spark."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icebergds import Table, load_catalog, load_table
from icebergds.errors import (
    AlreadyExistsError,
    InvalidMetadataError,
    InvalidOptionError,
    NoSuchSnapshotError,
    ValidationError,
)
from icebergds.spec.snapshot import RefType, SnapshotRef


@pytest.fixture(params=[1, 2, 3])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    """Rows 1 to 3 in three snapshots, and row 9 in one more of branch `work`, from the second."""
    return made(tmp_path, request.param)


def made(tmp_path: Path, version: int = 3) -> Table:
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    properties = {"format-version": str(version)}
    table = catalog.create_table(
        "db.t", "id bigint", properties=properties, partition_spec="bucket(2, id)"
    )
    for number in (1, 2, 3):
        table.append(ids(number))
    with table.manage_snapshots() as manage:
        manage.create_branch("work", table.snapshots()[1].snapshot_id)
    table.append(ids(9), branch="work")
    return table


def ids(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def rows(table: Table, **of: Any) -> list[int]:
    return sorted(table.scan(**of).to_arrow()["id"].to_pylist())


def snapshot(table: Table, number: int) -> int:
    return table.snapshots()[number - 1].snapshot_id


def test_what_others_committed_meanwhile_is_known(table: Table) -> None:
    other = copy.copy(table)
    other.append(ids(7))
    other.manage_snapshots().create_branch("b").commit()
    newest = other.append(ids(8)).snapshot_id
    table.manage_snapshots().create_tag("now").fast_forward("b", "main").commit()
    assert {table.refs()[name].snapshot_id for name in ("now", "b")} == {newest}


def test_branches_and_tags_are_created_at_any_snapshot_with_their_retention(table: Table) -> None:
    with table.manage_snapshots() as manage:
        manage.create_tag("now").create_tag("first", snapshot(table, 1), max_ref_age_ms=5)
        manage.create_branch(snapshot(table, 2), "second", 1, 2, 3)
    found = load_table(table.location()).refs()
    assert found["now"] == SnapshotRef(snapshot(table, 3), RefType.TAG)
    assert found["first"] == SnapshotRef(snapshot(table, 1), RefType.TAG, max_ref_age_ms=5)
    assert found["second"] == SnapshotRef(snapshot(table, 2), RefType.BRANCH, 3, 2, 1)
    assert rows(table, tag="first") == [1]


def test_branches_and_tags_move_by_replacement_alone(table: Table) -> None:
    with table.manage_snapshots() as manage:
        manage.create_tag("t", max_ref_age_ms=5).replace_tag("t", "work")
        manage.replace_branch("work", snapshot(table, 1))
    assert table.refs()["t"] == SnapshotRef(snapshot(table, 4), RefType.TAG, max_ref_age_ms=5)
    assert rows(table, branch="work") == [1]


def test_a_branch_is_renamed_and_removed(table: Table) -> None:
    table.manage_snapshots().rename_branch("work", "done").commit()
    assert rows(table, branch="done") == [1, 2, 9]
    table.manage_snapshots().remove_branch("done").commit()
    assert list(table.refs()) == ["main"]
    assert len(table.snapshots()) == 4


def test_retention_is_set_and_reset(table: Table) -> None:
    with table.manage_snapshots() as manage:
        manage.set_min_snapshots_to_keep("work", 2).set_max_snapshot_age_ms("work", 3)
        manage.set_max_ref_age_ms("work", 4)
    assert table.refs()["work"] == SnapshotRef(snapshot(table, 4), RefType.BRANCH, 2, 3, 4)
    table.manage_snapshots().set_max_ref_age_ms("work", None).commit()
    assert table.refs()["work"] == SnapshotRef(snapshot(table, 4), RefType.BRANCH, 2, 3)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (lambda m: m.create_tag("work"), AlreadyExistsError, "branch 'work' exists already"),
        (
            lambda m: m.create_branch("b").create_branch("b"),
            AlreadyExistsError,
            "branch 'b' exists already",
        ),
        (
            lambda m: m.create_tag("t").create_tag("t"),
            AlreadyExistsError,
            "tag 't' exists already",
        ),
        (lambda m: m.create_tag("t", 5), NoSuchSnapshotError, "no snapshot 5"),
        (lambda m: m.create_tag("t", "wrok"), NoSuchSnapshotError, "did you mean work"),
        (lambda m: m.create_tag(""), InvalidOptionError, "expected a name"),
        (lambda m: m.create_branch("b", None, 0), InvalidMetadataError, "above 0"),
        (lambda m: m.remove_tag("work"), InvalidOptionError, "is a branch, not a tag"),
        (lambda m: m.remove_branch("nope"), NoSuchSnapshotError, "no branch 'nope'"),
        (lambda m: m.remove_tag("nope"), NoSuchSnapshotError, "no tag 'nope'"),
        (lambda m: m.rename_branch("nope", "b"), NoSuchSnapshotError, "no branch 'nope'"),
        (lambda m: m.replace_branch("nope", "main"), NoSuchSnapshotError, "no branch 'nope'"),
        (lambda m: m.replace_branch("work", "nope"), NoSuchSnapshotError, "tag 'nope'"),
        (
            lambda m: m.create_tag("t").set_min_snapshots_to_keep("t", 1),
            InvalidOptionError,
            "is a tag, not a branch",
        ),
        (
            lambda m: m.create_tag("t").set_max_snapshot_age_ms("t", 1),
            InvalidOptionError,
            "is a tag, not a branch",
        ),
        (lambda m: m.remove_branch("main"), InvalidOptionError, "cannot be removed"),
        (lambda m: m.rename_branch("main", "b"), InvalidOptionError, "cannot be renamed"),
        (lambda m: m.rename_branch("work", "main"), AlreadyExistsError, "'main' exists"),
        (lambda m: m.fast_forward("main", "work"), InvalidOptionError, "is no ancestor of"),
        (lambda m: m.fast_forward("work", "nope"), NoSuchSnapshotError, "branch or tag 'nope'"),
        (
            lambda m: m.rollback_to_timestamp(10**12),
            NoSuchSnapshotError,
            "no ancestor that is older",
        ),
        (lambda m: m.rollback_to_snapshot(5), NoSuchSnapshotError, "no snapshot 5"),
        (lambda m: m.set_current_snapshot(), InvalidOptionError, "either snapshot_id or ref_name"),
        (
            lambda m: m.set_current_snapshot(5, "main"),
            InvalidOptionError,
            "either snapshot_id or ref_name",
        ),
        (lambda m: m.set_current_snapshot(5), NoSuchSnapshotError, "no snapshot 5"),
        (lambda m: m.set_current_snapshot(ref_name="nope"), NoSuchSnapshotError, "tag 'nope'"),
        (lambda m: m.set_min_snapshots_to_keep("nope", 1), NoSuchSnapshotError, "branch 'nope'"),
    ],
)
def test_what_does_not_fit_is_refused_at_once(
    tmp_path: Path, change: Callable[[Any], Any], error: type[Exception], said: str
) -> None:
    table = made(tmp_path)
    with pytest.raises(error, match=said) as raised:
        change(table.manage_snapshots())
    assert "lake.db.t" in str(raised.value) or "expected" in str(raised.value)


def test_the_current_snapshot_is_rolled_back_to_an_ancestor(table: Table) -> None:
    table.manage_snapshots().rollback_to_snapshot(snapshot(table, 1)).commit()
    assert rows(table) == [1]
    with pytest.raises(InvalidOptionError, match="no ancestor of the current"):
        table.manage_snapshots().rollback_to_snapshot(snapshot(table, 3))
    table.manage_snapshots().set_current_snapshot(snapshot(table, 3)).commit()
    assert rows(table) == [1, 2, 3]
    table.manage_snapshots().set_current_snapshot(ref_name="work").commit()
    assert rows(table) == [1, 2, 9]


def test_a_rollback_to_a_time_is_to_the_snapshot_before_it(table: Table) -> None:
    moment = table.snapshots()[1].timestamp_ms
    before = [s.snapshot_id for s in table.snapshots()[:3] if s.timestamp_ms < moment]
    table.manage_snapshots().rollback_to_timestamp(moment).commit()
    assert table.metadata.current_snapshot_id == before[-1]


def test_a_branch_is_fast_forwarded_to_its_descendant(table: Table) -> None:
    table.manage_snapshots().create_branch("old", snapshot(table, 1)).commit()
    table.manage_snapshots().fast_forward("old", "main").commit()
    assert rows(table, branch="old") == [1, 2, 3]
    table.manage_snapshots().fast_forward("new", "work").commit()
    assert rows(table, branch="new") == [1, 2, 9]


def test_an_append_is_cherry_picked_once(table: Table) -> None:
    table.manage_snapshots().cherry_pick(snapshot(table, 4)).commit()
    assert rows(table) == [1, 2, 3, 9]
    summary = table.current_snapshot().summary  # type: ignore[union-attr]
    assert summary["source-snapshot-id"] == str(snapshot(table, 4))
    for _ in range(2):
        with pytest.raises(InvalidOptionError, match="main has its changes already"):
            table.manage_snapshots().cherry_pick(snapshot(table, 4)).commit()
    with pytest.raises(InvalidOptionError, match="main has it already"):
        table.manage_snapshots().cherry_pick(snapshot(table, 1)).commit()


def test_a_child_of_the_current_snapshot_becomes_current_itself(table: Table) -> None:
    table.manage_snapshots().set_current_snapshot(snapshot(table, 2)).commit()
    table.manage_snapshots().cherry_pick(snapshot(table, 4)).commit()
    assert table.metadata.current_snapshot_id == snapshot(table, 4)
    assert len(table.snapshots()) == 4


def test_a_staged_write_is_published_once(table: Table) -> None:
    table.append(ids(7), options={"wap.id": "night"})
    assert rows(table) == [1, 2, 3]
    table.append(ids(4))
    table.manage_snapshots().publish_changes("night").commit()
    assert rows(table) == [1, 2, 3, 4, 7]
    assert table.current_snapshot().summary["published-wap-id"] == "night"  # type: ignore[union-attr]
    with pytest.raises(InvalidOptionError, match="'night' cannot be published: main has its"):
        table.manage_snapshots().publish_changes("night").commit()
    table.append(ids(8), options={"wap.id": "noon"})
    with pytest.raises(NoSuchSnapshotError, match=r"staged are noon$"):
        table.manage_snapshots().publish_changes("day").commit()


def test_a_staged_write_is_published_beside_what_came_first(table: Table) -> None:
    table.append(ids(7), options={"wap.id": "night"})
    publish = table.manage_snapshots().publish_changes("night")
    load_table(table.location()).append(ids(4))
    publish.commit()
    assert rows(table) == [1, 2, 3, 4, 7]


def test_a_transaction_publishes_beside_what_came_first(table: Table) -> None:
    table.append(ids(7), options={"wap.id": "night"})
    with table.transaction() as tx:
        tx.manage_snapshots().publish_changes("night").commit()
        tx.append(ids(8))
        load_table(table.location()).append(ids(4))
    assert rows(table) == [1, 2, 3, 4, 7, 8]


def test_a_write_that_two_publish_at_once_is_published_once(table: Table) -> None:
    table.append(ids(7), options={"wap.id": "night"})
    with table.transaction() as tx:
        tx.manage_snapshots().publish_changes("night").commit()
        load_table(table.location()).manage_snapshots().publish_changes("night").commit()
    assert rows(load_table(table.location())) == [1, 2, 3, 7]


def test_a_write_that_another_commit_has_published_is_not_published_again(table: Table) -> None:
    table.append(ids(7), options={"wap.id": "night"})

    def publish_both() -> None:
        with table.transaction() as tx:
            tx.manage_snapshots().publish_changes("night").commit()
            other = load_table(table.location())
            other.append(ids(4))
            other.manage_snapshots().publish_changes("night").commit()

    with pytest.raises(ValidationError, match="was cherry-picked by another commit"):
        publish_both()
    assert rows(load_table(table.location())) == [1, 2, 3, 4, 7]


def staged_replacement(tmp_path: Path, version: int, before: int | None) -> Table:
    """A table of partitions by id, and a staged replacement of that of 1 by two rows."""
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    properties = {"format-version": str(version)}
    table = catalog.create_table("db.t", "id bigint", properties=properties, partition_spec="id")
    if before is not None:
        table.append(ids(before))
    table.overwrite(ids(1, 1), options={"wap.id": "night", "overwrite-mode": "dynamic"})
    return table


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("before", [1, None])
def test_a_staged_replacement_of_partitions_is_picked_after_a_write_to_others(
    tmp_path: Path, version: int, before: int | None
) -> None:
    table = staged_replacement(tmp_path, version, before)
    staged = table.snapshots()[-1].snapshot_id
    table.append(ids(2))
    table.manage_snapshots().cherry_pick(staged).commit()
    assert rows(table) == [1, 1, 2]
    assert table.metadata.current_snapshot_id != staged


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("before", [1, None])
def test_a_staged_replacement_is_not_picked_if_rows_came_to_its_partitions(
    tmp_path: Path, version: int, before: int | None
) -> None:
    table = staged_replacement(tmp_path, version, before)
    table.append(ids(1))
    found = rows(table)
    with pytest.raises(ValidationError, match="added rows"):
        table.manage_snapshots().publish_changes("night").commit()
    assert rows(table.refresh()) == found


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_staged_replacement_is_not_picked_if_the_rows_it_replaces_are_gone(
    tmp_path: Path, version: int
) -> None:
    table = staged_replacement(tmp_path, version, 1)
    table.append(ids(2))
    table.delete("id = 1")
    with pytest.raises(ValidationError, match="removed files"):
        table.manage_snapshots().publish_changes("night").commit()
    assert rows(table.refresh()) == [2]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_replacement_is_not_picked_onto_a_history_that_it_was_not_made_on(
    tmp_path: Path, version: int
) -> None:
    table = made(tmp_path, version)
    table.overwrite(ids(3), options={"overwrite-mode": "dynamic"})
    replacement = table.metadata.current_snapshot_id
    assert replacement is not None
    table.manage_snapshots().rollback_to_snapshot(snapshot(table, 1)).commit()
    with pytest.raises(ValidationError, match="not in the history of branch 'main'"):
        table.manage_snapshots().cherry_pick(replacement).commit()
    assert rows(table.refresh()) == [1]


def test_a_replacement_of_partitions_is_picked_unless_they_have_changed(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.overwrite(ids(9, 10), branch="work", options={"overwrite-mode": "dynamic"})
    picked = table.metadata.refs["work"].snapshot_id
    with pytest.raises(ValidationError):
        table.manage_snapshots().cherry_pick(picked).commit()
    assert rows(table) == [1, 2, 3]


def test_another_change_is_not_cherry_picked(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.overwrite(ids(8), branch="work")
    with pytest.raises(InvalidOptionError, match="of operation 'overwrite'"):
        table.manage_snapshots().cherry_pick(table.metadata.refs["work"].snapshot_id).commit()


def test_references_and_picks_are_one_commit(tmp_path: Path) -> None:
    table = made(tmp_path)
    before = len(table.metadata.metadata_log)
    with table.manage_snapshots() as manage:
        manage.create_tag("before").cherry_pick(snapshot(table, 4)).create_branch("after", "work")
    assert len(table.metadata.metadata_log) == before + 1
    assert (rows(table), rows(table, tag="before")) == ([1, 2, 3, 9], [1, 2, 3])


def test_a_pick_that_fails_leaves_nothing_of_its_block_in_a_transaction(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.overwrite(ids(8), branch="work")
    with table.transaction() as tx:
        manage = tx.manage_snapshots().create_tag("t")
        manage.cherry_pick(table.metadata.refs["work"].snapshot_id)
        with pytest.raises(InvalidOptionError, match="of operation 'overwrite'"):
            manage.commit()
        tx.append(ids(9))
    assert "t" not in table.refresh().refs()
    assert rows(table) == [1, 2, 3, 9]


def test_a_reference_that_another_commit_moved_is_changed_as_it_is_then(tmp_path: Path) -> None:
    table = made(tmp_path)
    other = load_catalog("lake", warehouse=str(tmp_path)).load_table("db.t")
    changes = table.manage_snapshots().fast_forward("work", "work").create_tag("t")
    other.append(ids(4))
    changes.commit()
    assert rows(table, tag="t") == [1, 2, 3]
    assert rows(table) == [1, 2, 3, 4]
    changes = table.manage_snapshots().create_tag("u")
    other.manage_snapshots().create_tag("u").commit()
    with pytest.raises(AlreadyExistsError, match=r"lake\.db\.t: tag 'u' exists already"):
        changes.commit()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_main_of_a_table_of_staged_writes_alone_is_made_as_a_branch(
    tmp_path: Path, version: int
) -> None:
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id bigint", properties={"format-version": str(version)})
    table.append(ids(1), options={"wap.id": "night"})
    with pytest.raises(InvalidMetadataError, match="'main' must be a branch, not a tag"):
        table.manage_snapshots().create_tag("main", snapshot(table, 1))
    assert table.refresh().refs() == {}
    table.manage_snapshots().create_branch("main", snapshot(table, 1)).commit()
    assert rows(table) == [1]


def test_a_branch_of_a_table_without_snapshots_is_made_by_its_first_write(tmp_path: Path) -> None:
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id bigint")
    with pytest.raises(NoSuchSnapshotError, match="'create-branch'"):
        table.manage_snapshots().create_branch("work")
    table.append(ids(1), branch="work", options={"create-branch": "true"})
    assert (list(table.refs()), table.current_snapshot()) == (["work"], None)
    assert rows(table, branch="work") == [1]


def test_references_that_a_block_creates_are_changed_by_it(table: Table) -> None:
    before = table.metadata_location
    with table.manage_snapshots() as manage:
        manage.create_branch("b").remove_branch("b").create_tag("t").remove_tag("t")
    assert table.metadata_location == before
    with table.manage_snapshots() as manage:
        manage.create_branch("b").set_min_snapshots_to_keep("b", 2).set_max_snapshot_age_ms("b", 3)
        manage.rename_branch("b", "c").create_tag("t").set_max_ref_age_ms("t", 4)
    assert table.refs().keys() == {"main", "work", "c", "t"}
    assert table.refs()["c"] == SnapshotRef(snapshot(table, 3), RefType.BRANCH, 2, 3)
    assert table.refs()["t"] == SnapshotRef(snapshot(table, 3), RefType.TAG, max_ref_age_ms=4)


def test_references_of_a_block_stay_where_they_are_if_it_rolls_main_back(table: Table) -> None:
    with table.manage_snapshots() as manage:
        manage.create_branch("b").create_tag("t").rollback_to_snapshot(snapshot(table, 1))
    found = [rows(table), rows(table, branch="b"), rows(table, tag="t")]
    assert found == [[1], [1, 2, 3], [1, 2, 3]]
    with table.manage_snapshots() as manage:
        manage.set_current_snapshot(ref_name="t").create_tag("u")
    assert rows(table, tag="u") == [1, 2, 3]


@pytest.mark.parametrize(
    "change",
    [
        lambda m, now: m.rollback_to_snapshot(now.snapshot_id),
        lambda m, now: m.rollback_to_timestamp(now.timestamp_ms + 100),
        lambda m, now: m.set_current_snapshot(now.snapshot_id),
        lambda m, now: m.fast_forward("main", "main"),
        lambda m, now: m.replace_branch("main", now.snapshot_id),
    ],
)
def test_main_is_moved_to_where_it_is_without_a_commit(
    tmp_path: Path, change: Callable[[Any, Any], Any]
) -> None:
    table = made(tmp_path)
    before = table.metadata_location
    change(table.manage_snapshots(), table.current_snapshot()).commit()
    assert table.refresh().metadata_location == before


def test_main_is_fast_forwarded_to_a_staged_write(table: Table) -> None:
    table.append(ids(7), options={"wap.id": "night"})
    with table.manage_snapshots() as manage:
        manage.create_branch("staged", snapshot(table, 5)).fast_forward("main", "staged")
    assert (rows(table), table.metadata.current_snapshot_id) == ([1, 2, 3, 7], snapshot(table, 5))
