"""Changes of several tables of one catalog are committed together, or not at all."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from built.contents import unused_files
from effort import rounds
from rest_server import RestServer

from icebergds import Catalog, Table, load_catalog
from icebergds.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    InvalidOptionError,
    NoSuchTableError,
    UnsupportedFeatureError,
    ValidationError,
)

# How often each of four threads commits.
_EACH = rounds("ICEBERGDS_ROUNDS", pull=2, nightly=8)
_PATIENT = {"commit.retry.num-retries": "1000", "commit.retry.min-wait-ms": "1"}


def rest_catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    server: RestServer = request.getfixturevalue("rest")
    return load_catalog("lake", uri=server.uri(server.new_catalog()))


def sql_catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    return load_catalog(
        "lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "warehouse")
    )


@pytest.fixture(params=[sql_catalog, rest_catalog], ids=["sql", "rest"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    """A catalog of each kind that can do it, with the tables `db.a` and `db.b` of row 1."""
    return with_tables(request.param(request, tmp_path))


def with_tables(catalog: Catalog, **properties: str) -> Catalog:
    catalog.create_namespace("db")
    for name in ("db.a", "db.b"):
        catalog.create_table(name, "id bigint NOT NULL", properties=properties).append(ids(1))
    return catalog


def ids(*values: int, **columns: Any) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64()), **columns})


def rows(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def stored(catalog: Catalog) -> tuple[list[int], list[int]]:
    return rows(catalog.load_table("db.a")), rows(catalog.load_table("db.b"))


def unused(catalog: Catalog) -> set[str]:
    return unused_files(catalog.load_table("db.a")) | unused_files(catalog.load_table("db.b"))


def test_changes_of_two_tables_are_one_commit_of_each(catalog: Catalog) -> None:
    before = [len(catalog.load_table(name).metadata.metadata_log) for name in ("db.a", "db.b")]
    with catalog.transaction() as tx:
        a, b = tx.table("db.a"), tx.table("db.b")
        a.update_schema().add_column("name", "string").commit()
        a.append(ids(2, name=["b"]))
        b.upsert(ids(1, 3), keys=["id"])
        a.delete("id = 1")
        b.set_properties(owner="me")
        assert (rows(a), rows(b)) == ([2], [1, 3])
        assert stored(catalog) == ([1], [1])
    assert (rows(a), rows(b)) == stored(catalog) == ([2], [1, 3])
    found = [catalog.load_table(name) for name in ("db.a", "db.b")]
    assert [len(table.metadata.metadata_log) for table in found] == [each + 1 for each in before]
    assert a.metadata_location == found[0].metadata_location
    assert found[1].properties["owner"] == "me"
    assert unused(catalog) == set()


def test_a_block_that_raises_commits_nothing_and_leaves_no_files(catalog: Catalog) -> None:
    def fail() -> None:
        with catalog.transaction() as tx:
            tx.table("db.a").append(ids(2))
            tx.table("db.b").upsert(ids(2), keys=["id"])
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert stored(catalog) == ([1], [1])
    assert unused(catalog) == set()


def test_after_a_conflict_in_one_table_both_are_made_anew(catalog: Catalog) -> None:
    with catalog.transaction() as tx:
        tx.table("db.a").append(ids(2))
        tx.table("db.b").append(ids(2))
        catalog.load_table("db.b").append(ids(3))
    assert stored(catalog) == ([1, 2], [1, 2, 3])
    assert unused(catalog) == set()


def test_changes_that_come_to_nothing_are_no_conflict(catalog: Catalog) -> None:
    with catalog.transaction() as tx:
        for name in ("db.a", "db.b"):
            tx.table(name).manage_snapshots().create_tag("t").commit()
            tx.table(name).manage_snapshots().remove_tag("t").commit()
        catalog.load_table("db.a").manage_snapshots().create_tag("other").commit()
    assert sorted(catalog.load_table("db.a").refs()) == ["main", "other"]
    assert sorted(catalog.load_table("db.b").refs()) == ["main"]


def test_a_change_that_another_commit_has_made_invalid_ends_all_of_them(catalog: Catalog) -> None:
    def lose() -> None:
        with catalog.transaction() as tx:
            tx.table("db.a").append(ids(2))
            tx.table("db.b").update_schema().add_column("name", "string").commit()
            catalog.load_table("db.b").update_schema().add_column("name", "int").commit()

    with pytest.raises(InvalidOptionError, match="already exists"):
        lose()
    assert stored(catalog) == ([1], [1])
    assert unused(catalog) == set()


def test_retries_end_as_the_table_says_that_allows_the_fewest(catalog: Catalog) -> None:
    catalog.load_table("db.b").set_properties({"commit.retry.num-retries": "0"})
    tx = catalog.transaction()
    tx.table("db.a").append(ids(2))
    staged = tx.table("db.b")
    staged.append(ids(2))
    other = catalog.load_table("db.b")
    values = iter(range(10, 1000))
    # Whenever the part of `db.b` is made anew, somebody else commits to it.
    for step in staged._staged.steps:
        produce = step.produce

        def losing(state: Any, produce: Callable[[Any], Any] = produce) -> Any:
            change = produce(state)
            other.append(ids(next(values)))
            return change

        object.__setattr__(step, "produce", losing)
    other.append(ids(9))
    with pytest.raises(CommitConflictError, match=r"lake\.db\.b"):
        tx.commit_transaction()
    assert stored(catalog) == ([1], [1, 9, 10])
    assert unused(catalog) == set()


def test_a_table_that_is_dropped_meanwhile_ends_the_transaction(catalog: Catalog) -> None:
    tx = catalog.transaction()
    tx.table("db.a").append(ids(2))
    tx.table("db.b").append(ids(2))
    catalog.drop_table("db.b")
    with pytest.raises(NoSuchTableError):
        tx.commit_transaction()
    assert rows(catalog.load_table("db.a")) == [1]
    assert unused_files(catalog.load_table("db.a")) == set()


@pytest.mark.parametrize("names", [["db.b"], ["db.a", "db.b"]], ids=len)
def test_a_table_that_is_re_created_meanwhile_is_not_changed(
    names: list[str], catalog: Catalog
) -> None:
    tx = catalog.transaction()
    for name in names:
        tx.table(name).set_properties(owner="me")
    catalog.drop_table("db.b")
    catalog.create_table("db.b", "other string")
    with pytest.raises(ValidationError, match=r"lake\.db\.b was dropped and re-created"):
        tx.commit_transaction()
    assert all("owner" not in catalog.load_table(name).properties for name in ("db.a", "db.b"))


def test_a_table_without_changes_is_not_committed(catalog: Catalog) -> None:
    before = catalog.load_table("db.b").metadata_location
    with catalog.transaction() as tx:
        tx.table("db.a").append(tx.table("db.b").scan().to_arrow())
        tx.table("db.b").set_properties({})
    assert stored(catalog) == ([1, 1], [1])
    assert catalog.load_table("db.b").metadata_location == before


def test_properties_of_two_tables_are_set_together(catalog: Catalog) -> None:
    with catalog.transaction() as tx:
        for name in ("db.a", "db.b"):
            tx.table(name).set_properties(owner="me")
    assert {catalog.load_table(f"db.{n}").properties["owner"] for n in "ab"} == {"me"}


def test_a_transaction_that_has_ended_takes_no_more_changes(catalog: Catalog) -> None:
    with catalog.transaction() as tx:
        table = tx.table("db.a")
        assert tx.table("db.a") is table
        table.append(ids(2))
    for use in (
        lambda: tx.table("db.a"),
        lambda: table.append(ids(3)),
        tx.commit_transaction,
        tx.abandon,
    ):
        with pytest.raises(InvalidOptionError, match="has ended"):
            use()
    for thing in (tx, table):
        with pytest.raises(InvalidOptionError, match="other processes"):
            pickle.dumps(thing)
    assert stored(catalog) == ([1, 2], [1])


def test_transactions_of_many_threads_are_in_both_tables_or_in_none(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    catalog = with_tables(sql_catalog(request, tmp_path), **_PATIENT)
    _race(catalog)
    a, b = stored(catalog)
    assert a == b == [1, *range(100, 100 + 4 * _EACH)]
    assert unused(catalog) == set()


def test_what_is_said_of_racing_transactions_holds_on_a_server(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    catalog = with_tables(rest_catalog(request, tmp_path), **_PATIENT)
    done, unknown = _race(catalog)
    a, b = (set(each) for each in stored(catalog))
    # The reference server commits to one table after the other: a transaction may be torn, but
    # nobody is told that it was committed then.
    assert done <= a & b
    assert a | b <= done | unknown | {1}


def _race(catalog: Catalog, threads: int = 4, each: int = _EACH) -> tuple[set[int], set[int]]:
    """Appends the same rows to both tables; returns those that were appended, and may be."""
    done, unknown, lock = set(), set(), threading.Lock()

    def work(thread: int) -> None:
        for row in range(100 + thread * each, 100 + (thread + 1) * each):
            names = ("db.a", "db.b") if row % 2 else ("db.b", "db.a")
            try:
                with catalog.transaction() as tx:
                    for name in names:
                        tx.table(name).append(ids(row))
            except CommitStateUnknownError:
                with lock:
                    unknown.add(row)
            else:
                with lock:
                    done.add(row)

    with ThreadPoolExecutor(threads) as pool:
        for future in [pool.submit(work, thread) for thread in range(threads)]:
            future.result()
    return done, unknown


@pytest.fixture
def one_at_a_time(tmp_path: Path) -> Catalog:
    """A catalog that commits to one table at a time."""
    return with_tables(load_catalog("lake", warehouse=str(tmp_path / "warehouse")))


def test_a_catalog_that_commits_to_one_table_at_a_time_refuses_a_second_one(
    one_at_a_time: Catalog,
) -> None:
    catalog = one_at_a_time
    with pytest.raises(UnsupportedFeatureError, match="catalog lake commits to one table"):
        _append_to_both(catalog)
    assert stored(catalog) == ([1], [1])
    assert unused(catalog) == set()


def test_one_table_is_changed_in_a_transaction_of_any_catalog(one_at_a_time: Catalog) -> None:
    with one_at_a_time.transaction() as tx:
        tx.table("db.a").append(tx.table("db.b").scan().to_arrow())
        tx.table("db.a").append(ids(2))
    assert stored(one_at_a_time) == ([1, 1, 2], [1])


def _append_to_both(catalog: Catalog) -> None:
    with catalog.transaction() as tx:
        tx.table("db.a").append(ids(2))
        tx.table("db.b").append(ids(2))
