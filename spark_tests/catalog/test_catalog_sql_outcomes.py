"""What a commit to an SQL catalog says when its database fails in the middle."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from breaking_proxy import BreakingProxy, Cut, breaking_proxy
from mariadb_server import MariaDbServer
from postgres_server import PostgresServer
from sql_tables import (
    TABLE,
    create_table,
    execute,
    metadata_files,
    open_sql_catalog,
    set_property,
)

from icebergds.catalog.pointer.table_operations import PointerTableOperations
from icebergds.catalog.sql.catalog import SqlCatalog
from icebergds.commit.operations import TableCommit, TableState
from icebergds.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    IcebergError,
    StorageError,
)
from icebergds.spec.updates.table_updates import SetProperties
from icebergds.testing.catalog_steps import new_table
from icebergds.testing.faults import Fault, Faults, When
from icebergds.testing.faulty_system import DISK, faulty_system


@pytest.fixture(params=["postgres", "mariadb"])
def server(request: pytest.FixtureRequest) -> PostgresServer | MariaDbServer:
    found: PostgresServer | MariaDbServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def proxy(server: PostgresServer | MariaDbServer) -> Iterator[BreakingProxy]:
    with breaking_proxy(server.port) as proxy:
        yield proxy


@pytest.fixture
def uri(server: PostgresServer | MariaDbServer) -> str:
    return server.uri(server.new_database())


@pytest.fixture
def catalog(uri: str, tmp_path: Path) -> SqlCatalog:
    """A catalog with a direct connection."""
    return open_sql_catalog(uri, tmp_path)


@pytest.fixture
def proxied(
    uri: str,
    catalog: SqlCatalog,
    server: PostgresServer | MariaDbServer,
    proxy: BreakingProxy,
    tmp_path: Path,
) -> SqlCatalog:
    """The same catalog by way of the proxy."""
    return open_sql_catalog(server.uri(uri.rpartition("/")[2], proxy.port), tmp_path)


# The connection is lost.


def test_a_commit_whose_answer_is_lost_is_found(
    catalog: SqlCatalog, proxied: SqlCatalog, proxy: BreakingProxy
) -> None:
    create_table(catalog)
    proxy.arm(Cut.AFTER)
    committed = set_property(proxied)
    assert catalog.load(TABLE) == committed
    assert committed.metadata.properties["k"] == "v"


def test_a_commit_that_others_built_on_is_found(
    catalog: SqlCatalog, proxied: SqlCatalog, proxy: BreakingProxy
) -> None:
    create_table(catalog)
    proxy.arm(Cut.AFTER, lambda: [set_property(catalog, f"later{i}") for i in range(3)])
    committed = set_property(proxied)
    loaded = catalog.load(TABLE).metadata
    assert loaded.properties.keys() >= {"k", "later0", "later2"}
    assert committed.metadata_location in [e.metadata_file for e in loaded.metadata_log]


def test_a_registration_whose_answer_is_lost_is_found_below_later_commits(
    catalog: SqlCatalog, proxied: SqlCatalog, proxy: BreakingProxy
) -> None:
    created = create_table(catalog)
    for later in ([], ["later0", "later1"]):
        set_property(catalog)
        proxy.arm(Cut.AFTER, lambda later=later: [set_property(catalog, each) for each in later])
        assert proxied.register_over(TABLE, created.metadata_location) == created
        found = catalog.load(TABLE).metadata.properties
        assert found.keys() >= {*later}
        assert "k" not in found


def test_an_earlier_file_in_the_log_does_not_prove_that_it_was_registered(
    catalog: SqlCatalog, proxied: SqlCatalog, proxy: BreakingProxy
) -> None:
    created = create_table(catalog)
    set_property(catalog)
    proxy.arm(Cut.BEFORE, lambda: set_property(catalog, "later"))
    with pytest.raises(
        CommitStateUnknownError, match=r"lake\.db\.t: it is unknown whether .*00000-"
    ):
        proxied.register_over(TABLE, created.metadata_location)
    assert catalog.load(TABLE).metadata.properties.keys() >= {"k", "later"}


def test_a_commit_that_may_still_land_is_unknown_and_keeps_its_file(
    catalog: SqlCatalog, proxied: SqlCatalog, proxy: BreakingProxy
) -> None:
    created = create_table(catalog)
    proxy.arm(Cut.BEFORE)
    with pytest.raises(
        CommitStateUnknownError, match=r"lake\.db\.t: it is unknown whether .*00001-"
    ):
        set_property(proxied)
    assert len(metadata_files(created)) == 2
    assert "k" not in catalog.load(TABLE).metadata.properties


def test_a_commit_that_others_overtook_is_a_conflict(
    catalog: SqlCatalog, proxied: SqlCatalog, proxy: BreakingProxy
) -> None:
    created = create_table(catalog)
    proxy.arm(Cut.BEFORE, lambda: [set_property(catalog, f"other{i}") for i in range(2)])
    with pytest.raises(IcebergError) as raised:
        set_property(proxied)
    assert not raised.value.outcome_unknown
    assert isinstance(raised.value, CommitConflictError)
    assert len(metadata_files(created)) == 3


def test_a_commit_older_than_the_log_is_unknown(
    catalog: SqlCatalog, proxied: SqlCatalog, proxy: BreakingProxy
) -> None:
    created = create_table(catalog, {"write.metadata.previous-versions-max": "1"})
    proxy.arm(Cut.BEFORE, lambda: [set_property(catalog, f"other{i}") for i in range(3)])
    with pytest.raises(CommitStateUnknownError):
        set_property(proxied)
    assert len(metadata_files(created)) == 5


def test_a_commit_to_a_table_dropped_since_is_unknown(
    catalog: SqlCatalog, proxied: SqlCatalog, proxy: BreakingProxy
) -> None:
    create_table(catalog)
    proxy.arm(Cut.AFTER, lambda: catalog.drop(TABLE))
    with pytest.raises(CommitStateUnknownError):
        set_property(proxied)


def test_a_creation_whose_answer_is_lost_is_found(
    catalog: SqlCatalog, proxied: SqlCatalog, proxy: BreakingProxy
) -> None:
    catalog.create_namespace(("db",), {})
    proxy.arm(Cut.AFTER)
    created = proxied.create(TABLE, new_table(proxied, TABLE))
    assert catalog.load(TABLE) == created


def test_a_creation_that_may_still_land_is_unknown_and_keeps_its_file(
    catalog: SqlCatalog, proxied: SqlCatalog, proxy: BreakingProxy
) -> None:
    catalog.create_namespace(("db",), {})
    proxy.arm(Cut.BEFORE)
    with pytest.raises(CommitStateUnknownError):
        proxied.create(TABLE, new_table(proxied, TABLE))
    directory = f"{catalog.new_table_location(TABLE)}/metadata"
    assert len(catalog.io.list(directory)) == 1


def test_a_drop_whose_answer_is_lost_is_found(
    catalog: SqlCatalog, proxied: SqlCatalog, proxy: BreakingProxy
) -> None:
    create_table(catalog)
    proxy.arm(Cut.AFTER)
    proxied.drop(TABLE)
    assert not catalog.tables.names(TABLE[:-1])


def test_a_drop_that_may_still_land_is_unknown(
    catalog: SqlCatalog, proxied: SqlCatalog, proxy: BreakingProxy
) -> None:
    create_table(catalog)
    proxy.arm(Cut.BEFORE)
    with pytest.raises(CommitStateUnknownError, match="drop table"):
        proxied.drop(TABLE)


# The database refuses.


@pytest.mark.parametrize("server", ["postgres"], indirect=True)
def test_a_commit_that_the_database_refuses_failed(catalog: SqlCatalog, uri: str) -> None:
    created = create_table(catalog)
    execute(uri, "ALTER TABLE iceberg_tables ADD CHECK (previous_metadata_location IS NULL)")
    with pytest.raises(IcebergError, match=r"refused to change table lake\.db\.t") as raised:
        set_property(catalog)
    assert not raised.value.outcome_unknown
    assert not raised.value.retryable
    assert len(metadata_files(created)) == 1


@pytest.mark.parametrize("server", ["postgres"], indirect=True)
def test_a_commit_that_is_refused_at_its_end_failed(catalog: SqlCatalog, uri: str) -> None:
    created = create_table(catalog)
    execute(
        uri,
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'not today'; END $$",
        "CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON iceberg_tables "
        "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()",
    )
    with pytest.raises(IcebergError, match="not today") as raised:
        set_property(catalog)
    assert not raised.value.outcome_unknown
    assert len(metadata_files(created)) == 1


@pytest.mark.parametrize("server", ["postgres"], indirect=True)
def test_a_creation_that_the_database_refuses_failed(catalog: SqlCatalog, uri: str) -> None:
    execute(uri, "ALTER TABLE iceberg_tables ALTER COLUMN metadata_location TYPE VARCHAR(10)")
    catalog.create_namespace(("db",), {})
    with pytest.raises(IcebergError, match=r"refused to create table .*too long") as raised:
        catalog.create(TABLE, new_table(catalog, TABLE))
    assert not raised.value.outcome_unknown
    assert catalog.io.list(f"{catalog.new_table_location(TABLE)}/metadata") == []


@pytest.mark.parametrize("server", ["postgres"], indirect=True)
def test_a_commit_that_waits_for_a_lock_in_vain_can_be_tried_again(
    catalog: SqlCatalog, uri: str, postgres: PostgresServer, tmp_path: Path
) -> None:
    created = create_table(catalog)
    impatient = open_sql_catalog(f"{uri}?options=-c%20lock_timeout%3D100", tmp_path)
    with postgres.connect(uri.rpartition("/")[2]) as connection:
        connection.execute("SELECT * FROM iceberg_tables FOR UPDATE")
        with pytest.raises(CommitConflictError, match="lock timeout"):
            set_property(impatient)
    assert len(metadata_files(created)) == 1
    assert set_property(impatient).metadata.properties["k"] == "v"


def test_a_commit_to_a_locked_file_can_be_tried_again(tmp_path: Path) -> None:
    catalog = open_sql_catalog(f"sqlite:///{tmp_path}/c.db?timeout=0.1", tmp_path)
    created = create_table(catalog)
    other = sqlite3.connect(tmp_path / "c.db")
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(CommitConflictError, match="locked"):
        set_property(catalog)
    other.rollback()
    other.close()
    assert len(metadata_files(created)) == 1
    assert set_property(catalog).metadata.properties["k"] == "v"


@pytest.mark.parametrize("server", ["postgres"], indirect=True)
def test_serializable_databases_lose_no_commit(
    catalog: SqlCatalog, uri: str, tmp_path: Path
) -> None:
    create_table(catalog)
    database = uri.rpartition("/")[2]
    execute(uri, f"ALTER DATABASE {database} SET default_transaction_isolation = 'serializable'")

    def commit(key: str) -> None:
        operations = open_sql_catalog(uri, tmp_path).operations(TABLE)
        while True:
            try:
                operations.commit(operations.refresh(), [], [SetProperties({key: "v"})])
            except CommitConflictError:
                continue
            return

    threads = [threading.Thread(target=commit, args=(f"k{i}",)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert catalog.load(TABLE).metadata.properties.keys() >= {f"k{i}" for i in range(8)}


def test_a_metadata_file_that_cannot_be_written_leaves_the_table(
    catalog: SqlCatalog, tmp_path: Path
) -> None:
    created = create_table(catalog)
    (tmp_path / "file").write_text("")
    operations = catalog.operations(TABLE)
    updates = [SetProperties({"write.metadata.path": f"{tmp_path}/file/below"})]
    with pytest.raises(IcebergError, match="nothing was committed") as raised:
        operations.commit(created, [], updates)
    assert not raised.value.outcome_unknown
    assert catalog.load(TABLE).metadata == created.metadata


def test_a_commit_that_does_not_reach_the_database_leaves_no_file(tmp_path: Path) -> None:
    catalog = open_sql_catalog(f"sqlite:///{tmp_path}/c.db", tmp_path)
    created = create_table(catalog)
    # The first two connections look for the table, the third one commits.
    faults = Faults([Fault(2, When.BEFORE, DISK)], counted=("sqlite.connect",))
    with faulty_system(faults), pytest.raises(StorageError, match="cannot be reached"):
        set_property(catalog)
    assert len(metadata_files(created)) == 1
    assert catalog.load(TABLE) == created


def test_a_database_out_of_reach_is_named_without_its_password(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    with pytest.raises(IcebergError, match=r"catalog lake: its database .*127\.0\.0\.1") as raised:
        open_sql_catalog("postgresql://me:secret@127.0.0.1:1/nowhere", tmp_path)
    assert "secret" not in str(raised.value)


# Commits to two tables.


OTHER = ("db", "u")


def _create_two(catalog: SqlCatalog) -> list[TableState]:
    return [create_table(catalog), catalog.create(OTHER, new_table(catalog, OTHER))]


def _change_two(catalog: SqlCatalog) -> list[TableState]:
    commits = [
        TableCommit(identifier, catalog.load(identifier), [], [SetProperties({"k": "v"})])
        for identifier in (TABLE, OTHER)
    ]
    return list(catalog.commit_tables(commits))


def _changed(catalog: SqlCatalog) -> list[bool]:
    return ["k" in catalog.load(each).metadata.properties for each in (TABLE, OTHER)]


def test_a_commit_to_two_tables_whose_answer_is_lost_is_found(
    catalog: SqlCatalog, proxied: SqlCatalog, proxy: BreakingProxy
) -> None:
    _create_two(catalog)
    proxy.arm(Cut.AFTER)
    assert _change_two(proxied) == [catalog.load(TABLE), catalog.load(OTHER)]
    assert _changed(catalog) == [True, True]


def test_a_commit_to_two_tables_that_may_still_land_is_unknown_and_keeps_its_files(
    catalog: SqlCatalog, proxied: SqlCatalog, proxy: BreakingProxy
) -> None:
    created = _create_two(catalog)
    proxy.arm(Cut.BEFORE)
    with pytest.raises(CommitStateUnknownError):
        _change_two(proxied)
    assert [len(metadata_files(each)) for each in created] == [2, 2]
    assert _changed(catalog) == [False, False]


def test_a_commit_to_two_tables_leaves_nothing_if_another_changes_the_second(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = _create_two(catalog)
    bases = [catalog.load(each) for each in (TABLE, OTHER)]
    operations = catalog.operations(OTHER)

    prepare = PointerTableOperations.prepare

    def overtaken(self: PointerTableOperations, *given: Any) -> Any:
        """Both metadata files are written when the other commit comes."""
        found = prepare(self, *given)
        if self.name.endswith("db.u"):
            monkeypatch.undo()
            operations.commit(bases[1], [], [SetProperties({"other": "v"})])
        return found

    monkeypatch.setattr(PointerTableOperations, "prepare", overtaken)
    commits = [
        TableCommit(identifier, base, [], [SetProperties({"k": "v"})])
        for identifier, base in zip((TABLE, OTHER), bases, strict=True)
    ]
    with pytest.raises(CommitConflictError):
        catalog.commit_tables(commits)
    assert _changed(catalog) == [False, False]
    assert [len(metadata_files(each)) for each in created] == [1, 2]
