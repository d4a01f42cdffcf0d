"""Writes that name themselves (`txn-app-id`, `txn-version`) are committed once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from built.api_tables import ids_of, new_table, rows
from built.contents import data_files

from icebergds import Table, load_table
from icebergds.catalog.address import TableAddress
from icebergds.commit.operations import Change
from icebergds.commit.retry import commit_change
from icebergds.errors import InvalidMetadataError, InvalidOptionError
from icebergds.spec.snapshot import RefType, Snapshot, SnapshotRef
from icebergds.spec.updates.table_updates import (
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetProperties,
    SetSnapshotRef,
    TableUpdate,
)

CREATE_BRANCH = {"create-branch": "true"}


def once(version: int, app_id: str = "job", **options: str) -> dict[str, str]:
    return {"txn-app-id": app_id, "txn-version": str(version), **options}


def change(table: Table, *updates: TableUpdate) -> None:
    done: list[bool] = []

    def produce(_: Any) -> Change:
        done.append(True)
        return Change([], updates)

    commit_change(TableAddress(table.location()).operations(), produce, lambda _: False)
    table.refresh()


def test_repeated_append_adds_nothing(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1), options=once(0))
    before = table.metadata_location, data_files(table.location())
    table.append(rows(2), options=once(0))
    assert ids_of(table) == [1]
    assert (table.metadata_location, data_files(table.location())) == before


def test_later_versions_are_committed_and_earlier_ones_are_not(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for version, number in ((0, 1), (1, 2), (5, 3), (4, 4), (0, 5)):
        table.append(rows(number), options=once(version))
    assert ids_of(table) == [1, 2, 3]


def test_applications_count_for_themselves(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1), options=once(0, "a"))
    table.append(rows(2), options=once(0, "b"))
    table.append(rows(3))
    assert ids_of(table) == [1, 2, 3]


def test_overwrites_upserts_and_deletes_are_committed_once(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1, 2, 3))
    table.overwrite(rows(4, 5), options=once(0))
    table.append(rows(6))
    table.overwrite(rows(7), options=once(0))
    assert ids_of(table) == [4, 5, 6]
    assert table.upsert(rows(8), ["id"], options=once(1)).inserted == 1
    assert table.upsert(rows(9), ["id"], options=once(1)).inserted == 0
    assert table.delete("true", options=once(1)).deleted == 0
    assert ids_of(table) == [4, 5, 6, 8]
    assert table.delete("true", options=once(2)).deleted == 4


def test_marker_outlives_its_snapshot(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1), options=once(3))
    marked = table.current_snapshot()
    assert marked is not None
    table.append(rows(2))
    change(table, RemoveSnapshots((marked.snapshot_id,)))
    table.append(rows(3), options=once(3))
    assert ids_of(table) == [1, 2]


def test_write_that_was_rolled_back_may_be_repeated(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1), options=once(0))
    first = table.current_snapshot()
    assert first is not None
    table.append(rows(2), options=once(1))
    change(table, SetSnapshotRef("main", SnapshotRef(first.snapshot_id, RefType.BRANCH)))
    table.append(rows(3), options=once(1))
    table.append(rows(4), options=once(0))
    assert ids_of(table) == [1, 3]


def expire(table: Table, *snapshots: Snapshot | None) -> None:
    change(table, RemoveSnapshots(tuple(s.snapshot_id for s in snapshots if s is not None)))


def roll_back(table: Table, snapshot: Snapshot | None) -> None:
    assert snapshot is not None
    change(table, SetSnapshotRef("main", SnapshotRef(snapshot.snapshot_id, RefType.BRANCH)))


def test_write_that_was_rolled_back_and_has_expired_may_be_repeated(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(0))
    before = table.current_snapshot()
    table.append(rows(1), options=once(0))
    marked = table.current_snapshot()
    roll_back(table, before)
    expire(table, marked)
    table.append(rows(2))
    table.append(rows(1), options=once(0))
    assert ids_of(table) == [0, 1, 2]


def test_earlier_mark_counts_when_the_later_one_was_rolled_back(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    made = []
    for number in (0, 1):
        table.append(rows(number), options=once(number))
        made.append(table.current_snapshot())
    table.append(rows(100))
    before = table.current_snapshot()
    table.append(rows(2), options=once(2))
    last = table.current_snapshot()
    roll_back(table, before)
    expire(table, *made, last)
    table.append(rows(1), options=once(1))
    assert ids_of(table) == [0, 1, 100]
    table.append(rows(2), options=once(2))
    assert ids_of(table) == [0, 1, 2, 100]


def test_branch_has_what_its_expired_ancestors_wrote(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(0), options=once(0))
    marked = table.current_snapshot()
    table.append(rows(50))
    expire(table, marked)
    table.append(rows(0), branch="audit", options=once(0, **CREATE_BRANCH))
    assert "audit" not in table.refs()
    table.append(rows(1), branch="audit", options=once(1, **CREATE_BRANCH))
    audited = table.refs()["audit"]
    change(table, SetSnapshotRef("main", audited))
    table.append(rows(1), options=once(1))
    assert ids_of(table) == [0, 1, 50]


def test_branch_that_was_dropped_and_made_anew_lacks_what_the_old_one_had(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(0))
    table.append(rows(1), branch="dev", options=once(0, **CREATE_BRANCH))
    old = table.metadata.snapshot_by_ref("dev")
    change(table, RemoveSnapshotRef("dev"))
    expire(table, old)
    table.append(rows(2), branch="dev", options=once(0, **CREATE_BRANCH))
    assert sorted(table.scan(branch="dev").to_arrow()["id"].to_pylist()) == [0, 2]


def test_names_with_dots_are_told_apart(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(0))
    before = table.current_snapshot()
    table.append(rows(1), options=once(0, "a.b"))
    table.append(rows(2), branch="main.a", options=once(0, "b", **CREATE_BRANCH))
    roll_back(table, before)
    assert sorted(table.scan(branch="main.a").to_arrow()["id"].to_pylist()) == [0, 1, 2]
    names = {name for name in table.properties if name.startswith("icebergds.txn.")}
    assert names == {"icebergds.txn.main.a.b", "icebergds.txn.main%2Ea.b"}


def test_branches_count_for_themselves(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    table.append(rows(2), branch="audit", options=once(0, **CREATE_BRANCH))
    table.append(rows(3), branch="audit", options=once(0))
    table.append(rows(4), options=once(0))
    assert ids_of(table) == [1, 4]
    assert sorted(table.scan(branch="audit").to_arrow()["id"].to_pylist()) == [1, 2]


def test_new_branch_has_what_main_has(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1), options=once(0))
    table.append(rows(2), branch="audit", options=once(0, **CREATE_BRANCH))
    assert "audit" not in table.refs()


def test_batch_of_another_writer_of_the_query_counts(tmp_path: Path) -> None:
    """Java Iceberg's sink marks its snapshots by these entries."""
    table = new_table(tmp_path)
    of_java = {"spark.sql.streaming.queryId": "q", "spark.sql.streaming.epochId": "7"}
    table.append(rows(1), snapshot_properties=of_java)
    table.append(rows(2), options=once(7, "q"))
    table.append(rows(3), options=once(8, "q"))
    assert ids_of(table) == [1, 3]


def test_one_of_many_racing_writers_wins(tmp_path: Path) -> None:
    table = new_table(tmp_path, properties={"commit.retry.num-retries": "100"})
    location = table.location()

    def write(number: int) -> None:
        load_table(location).append(rows(number), options=once(0))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    assert len(ids_of(table.refresh())) == 1
    assert len(data_files(location)) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"txn-app-id": "a"}, "give both"),
        ({"txn-version": "1"}, "give both"),
        ({"txn-app-id": "a", "txn-version": "x"}, "txn-version"),
        ({"txn-app-id": "a", "txn-version": "-1"}, "txn-version"),
        ({"txn-app-id": "a", "txn-version": "1", "wap.id": "w"}, "contradict"),
    ],
)
def test_options_that_do_not_name_a_write(
    tmp_path: Path, options: dict[str, str], said: str
) -> None:
    table = new_table(tmp_path)
    with pytest.raises(InvalidOptionError, match=said):
        table.append(rows(1), options=options)


def test_marker_that_is_no_number_is_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    change(table, SetProperties({"icebergds.txn.main.job": "soon"}))
    with pytest.raises(InvalidMetadataError, match=r"icebergds\.txn\.main\.job"):
        table.append(rows(1), options=once(0))
    assert data_files(table.location()) == []
