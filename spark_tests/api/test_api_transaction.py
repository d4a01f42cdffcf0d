"""Transactions: several changes in one commit, without Spark."""

from __future__ import annotations

import gc
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from built.contents import unused_files

from icebergds import Catalog, Table, Transaction, load_catalog
from icebergds.errors import (
    AlreadyExistsError,
    InvalidOptionError,
    ValidationError,
)


@pytest.fixture(params=["filesystem", "sql"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    """A catalog of each kind, with the table `db.t` of row 1."""
    uri = {} if request.param == "filesystem" else {"uri": f"sqlite:///{tmp_path}/catalog.db"}
    found = load_catalog("lake", warehouse=str(tmp_path / "warehouse"), **uri)
    found.create_namespace("db")
    found.create_table("db.t", "id bigint NOT NULL").append(ids(1))
    return found


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return catalog.load_table("db.t")


def ids(*values: int, **columns: Any) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64()), **columns})


def rows(table: Table, **of: Any) -> list[int]:
    return sorted(table.scan(**of).to_arrow()["id"].to_pylist())


def test_rows_are_appended_though_the_snapshot_of_the_beginning_is_gone(
    catalog: Catalog, table: Table
) -> None:
    with table.transaction() as transaction:
        other = catalog.load_table("db.t")
        other.append(ids(2))
        other.expire_snapshots(older_than=time.time_ns() // 1_000_000 + 1, retain_last=1)
        transaction.append(ids(3))
        transaction.append(ids(4))
    assert rows(table.refresh()) == [1, 2, 3, 4]


def test_rows_read_before_the_beginning_expired_do_not_replace_newer_ones(
    catalog: Catalog, table: Table
) -> None:
    def change() -> None:
        with table.transaction() as transaction:
            other = catalog.load_table("db.t")
            other.append(ids(2))
            other.expire_snapshots(older_than=time.time_ns() // 1_000_000 + 1, retain_last=1)
            transaction.append(ids(3))
            transaction.overwrite(ids(5))

    with pytest.raises(ValidationError, match="began with has expired"):
        change()
    assert rows(table.refresh()) == [1, 2]


def test_all_changes_are_one_commit_and_later_ones_see_earlier_ones(
    catalog: Catalog, table: Table
) -> None:
    before = len(table.metadata.metadata_log)
    with table.transaction() as tx:
        tx.update_schema().add_column("name", "string").commit()
        tx.append(ids(2, 3, name=["b", "c"]))
        tx.upsert(ids(3, 4, name=["C", "d"]), keys=["id"])
        tx.update_spec().add_field("bucket(2, id)").commit()
        tx.set_properties(owner="me")
        tx.manage_snapshots().create_tag("done").commit()
        assert rows(tx) == [1, 2, 3, 4]
        assert rows(catalog.load_table("db.t")) == [1]
    found = catalog.load_table("db.t")
    assert len(found.metadata.metadata_log) == before + 1
    assert {row["id"]: row["name"] for row in found.scan().to_arrow().to_pylist()} == {
        1: None,
        2: "b",
        3: "C",
        4: "d",
    }
    assert rows(found, tag="done") == rows(table) == [1, 2, 3, 4]
    assert len(found.spec().fields) == 1
    assert unused_files(found) == set()


def test_snapshots_of_a_transaction_follow_each_other(table: Table) -> None:
    with table.transaction() as tx:
        tx.append(ids(2))
        tx.append(ids(3))
    snapshots = table.snapshots()
    assert [s.sequence_number for s in snapshots] == [1, 2, 3]
    parents = [s.parent_snapshot_id for s in snapshots]
    assert parents == [None, snapshots[0].snapshot_id, snapshots[1].snapshot_id]
    # Readers never saw the one in between.
    log = [entry.snapshot_id for entry in table.metadata.snapshot_log]
    assert log == [snapshots[0].snapshot_id, snapshots[2].snapshot_id]


def test_two_schemas_of_a_transaction_are_both_kept(table: Table) -> None:
    with table.transaction() as tx:
        tx.update_schema().add_column("b", "string").commit()
        tx.update_schema().add_column("c", "string").commit()
    assert table.schema().ids_by_name == {"id": 1, "b": 2, "c": 3}
    assert (table.metadata.current_schema_id, len(table.metadata.schemas)) == (2, 3)


def _roll_back(tx: Transaction, first: int) -> None:
    tx.manage_snapshots().rollback_to_snapshot(first).commit()


def _fast_forward(tx: Transaction, first: int) -> None:
    tx.manage_snapshots().fast_forward("main", "later").commit()


@pytest.mark.parametrize("move", [_roll_back, _fast_forward])
def test_a_move_of_main_before_a_write_may_be_committed_much_later(
    table: Table, monkeypatch: pytest.MonkeyPatch, move: Callable[[Transaction, int], None]
) -> None:
    first = table.snapshots()[0].snapshot_id
    table.manage_snapshots().create_branch("later").commit()
    table.append(ids(2), branch="later")
    if move is _roll_back:
        table.append(ids(3))
    now = time.time_ns
    with table.transaction() as tx:
        move(tx, first)
        tx.append(ids(4))
        monkeypatch.setattr(time, "time_ns", lambda: now() + 120 * 10**9)
    log = table.refresh().metadata.snapshot_log
    assert [entry.timestamp_ms for entry in log] == sorted(entry.timestamp_ms for entry in log)
    assert log[-1].snapshot_id == table.metadata.current_snapshot_id
    assert rows(table) == ([1, 4] if move is _roll_back else [1, 2, 4])


def test_a_rollback_in_a_transaction_is_committed_with_the_rest(table: Table) -> None:
    table.append(ids(2))
    before = table.metadata
    with table.transaction() as tx:
        tx.manage_snapshots().rollback_to_snapshot(table.snapshots()[0].snapshot_id).commit()
        tx.set_properties(owner="me")
        assert rows(tx) == [1]
        assert table.refresh().metadata == before
    assert (rows(table), table.properties["owner"]) == ([1], "me")
    assert len(table.metadata.metadata_log) == len(before.metadata_log) + 1


def test_an_update_that_was_not_committed_to_its_transaction_is_not_in_it(table: Table) -> None:
    with table.transaction() as tx:
        tx.update_schema().add_column("mine", "int")
        tx.append(ids(2))
    assert table.schema().ids_by_name == {"id": 1}
    assert rows(table) == [1, 2]


def test_a_transaction_that_raises_leaves_nothing(table: Table) -> None:
    def fail() -> None:
        with table.transaction() as tx:
            tx.append(ids(2))
            tx.upsert(ids(2), keys=["id"])
            raise KeyError

    before = table.metadata_location
    with pytest.raises(KeyError):
        fail()
    assert table.refresh().metadata_location == before
    assert unused_files(table) == set()


def test_a_step_that_fails_can_be_left_out(table: Table) -> None:
    with table.transaction() as tx:
        tx.append(ids(2))
        with pytest.raises(AlreadyExistsError):
            tx.manage_snapshots().create_branch("main").commit()
        tx.append(ids(3))
    assert rows(table) == [1, 2, 3]
    assert unused_files(table) == set()


def test_appends_and_updates_are_made_anew_if_another_commit_comes_first(
    catalog: Catalog, table: Table
) -> None:
    with table.transaction() as tx:
        tx.append(ids(2))
        tx.append(ids(3))
        tx.set_properties(owner="me")
        tx.manage_snapshots().create_tag("t").commit()
        catalog.load_table("db.t").append(ids(9))
        catalog.load_table("db.t").update_schema().add_column("theirs", "int").commit()
    assert rows(table) == [1, 2, 3, 9]
    assert table.schema().find_id("theirs") == 2
    assert unused_files(table) == set()


def test_changed_rows_are_refused_if_another_commit_moved_their_branch(
    catalog: Catalog, table: Table
) -> None:
    def change() -> None:
        with table.transaction() as tx:
            tx.append(ids(2))
            tx.overwrite(ids(3))
            catalog.load_table("db.t").append(ids(9))

    with pytest.raises(ValidationError, match="moved branch 'main' during this transaction"):
        change()
    assert rows(table.refresh()) == [1, 9]
    assert unused_files(table) == set()


def test_one_change_of_rows_goes_together_with_manifests_that_are_rewritten_and_two_do_not(
    catalog: Catalog, table: Table
) -> None:
    table.append(ids(2, 3))
    with table.transaction() as tx:
        tx.delete_keys(ids(1), keys=["id"])
        other = catalog.load_table("db.t")
        other.rewrite_manifests()
        assert other.metadata != tx.metadata
    assert rows(table) == [2, 3]

    def change() -> None:
        with table.transaction() as tx:
            tx.delete_keys(ids(2), keys=["id"])
            tx.delete_keys(ids(3), keys=["id"])
            catalog.load_table("db.t").rewrite_manifests()

    table.append(ids(4))
    with pytest.raises(ValidationError, match="moved branch 'main' during this transaction"):
        change()
    assert rows(table.refresh()) == [2, 3, 4]
    assert unused_files(table) == set()


def test_changed_rows_of_a_branch_that_nobody_else_moved_are_committed(
    catalog: Catalog, table: Table
) -> None:
    table.manage_snapshots().create_branch("work").commit()
    with table.transaction() as tx:
        tx.append(ids(2), branch="work")
        tx.overwrite(ids(3), branch="work")
        catalog.load_table("db.t").append(ids(9))
    assert (rows(table), rows(table, branch="work")) == ([1, 9], [3])
    assert unused_files(table) == set()


def _columns(table: Table) -> None:
    table.update_schema().add_column("theirs", "int").commit()


def _partitions(table: Table) -> None:
    table.update_spec().add_field("id").commit()


def _order(table: Table) -> None:
    table.update_sort_order().asc("id").commit()


@pytest.mark.parametrize("theirs", [_columns, _partitions, _order])
def test_rows_whose_columns_partitions_or_order_would_get_other_ids_are_refused(
    catalog: Catalog, table: Table, theirs: Callable[[Table], None]
) -> None:
    def change() -> None:
        with table.transaction() as tx:
            tx.update_schema().add_column("mine", "int").commit()
            tx.update_spec().add_field("bucket(2, id)").commit()
            tx.update_sort_order().desc("id").commit()
            tx.append(ids(2, mine=pa.array([7], pa.int32())))
            theirs(catalog.load_table("db.t"))

    with pytest.raises(ValidationError, match="another commit added columns"):
        change()
    assert rows(table.refresh()) == [1]
    assert unused_files(table) == set()


def test_an_update_that_another_commit_made_impossible_commits_nothing(
    catalog: Catalog, table: Table
) -> None:
    def change() -> None:
        with table.transaction() as tx:
            tx.append(ids(2))
            tx.update_schema().add_column("mine", "int").commit()
            catalog.load_table("db.t").update_schema().add_column("mine", "string").commit()

    with pytest.raises(InvalidOptionError, match=r"^table .*db\.t: column 'mine' already exists"):
        change()
    assert rows(table.refresh()) == [1]
    assert unused_files(table) == set()


def test_a_transaction_is_committed_or_abandoned_once(table: Table) -> None:
    tx = table.transaction()
    tx.append(ids(2))
    assert rows(tx.commit_transaction()) == [1, 2]
    for use in (tx.commit_transaction, tx.abandon, lambda: tx.append(ids(3))):
        with pytest.raises(InvalidOptionError, match="this transaction has ended"):
            use()
    tx = table.transaction()
    tx.append(ids(3))
    tx.abandon()
    assert rows(table.refresh()) == rows(tx) == [1, 2]
    assert unused_files(table) == set()


def test_a_transaction_that_nobody_ends_says_that_its_changes_are_lost(
    table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    table.transaction().append(ids(2))
    gc.collect()
    assert "neither committed nor abandoned, and lost 1 change" in caplog.text
    caplog.clear()
    table.transaction()
    with table.transaction() as tx:
        tx.append(ids(3))
    del tx
    gc.collect()
    assert not caplog.text
    assert rows(table.refresh()) == [1, 3]


@pytest.mark.parametrize("verb", ["expire_snapshots", "rewrite_data_files", "transaction"])
def test_maintenance_and_further_transactions_are_refused(table: Table, verb: str) -> None:
    with table.transaction() as tx, pytest.raises(InvalidOptionError, match="not possible inside"):
        getattr(tx, verb)()


def test_a_transaction_stays_in_its_process(table: Table) -> None:
    with table.transaction() as tx, pytest.raises(InvalidOptionError, match="other processes"):
        pickle.dumps(tx)


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.set_properties(owner="me"),
        lambda table: table.update_schema().add_column("name", "string").commit(),
        lambda table: table.append(ids(2)),
        lambda table: table.delete("id = 1"),
    ],
    ids=["properties", "schema", "append", "delete"],
)
def test_a_table_that_is_re_created_during_a_transaction_is_not_changed(
    change: Callable[[Table], object], catalog: Catalog, table: Table
) -> None:
    tx = table.transaction()
    change(tx)
    catalog.drop_table("db.t")
    created = catalog.create_table("db.t", "id bigint NOT NULL")
    with pytest.raises(ValidationError, match="dropped and re-created"):
        tx.commit_transaction()
    assert catalog.load_table("db.t").metadata == created.metadata
