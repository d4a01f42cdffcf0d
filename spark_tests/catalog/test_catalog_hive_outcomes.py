"""What an operation of a Hive catalog says when an answer of the metastore is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from breaking_proxy import BreakingProxy, Cut, breaking_proxy
from hive_server import HiveServer
from hive_tables import (
    TABLE,
    create_table,
    cut_call,
    empty,
    metadata_files,
    metastore,
    open_hive_catalog,
    set_property,
)
from postgres_server import PostgresServer

from icebergds.catalog.hive.calls import (
    ALTER_DATABASE,
    ALTER_TABLE,
    CREATE_DATABASE,
    CREATE_TABLE,
    DROP_DATABASE,
    DROP_TABLE,
    GET_DATABASE,
    GET_TABLE,
    LOCK,
    SHOW_LOCKS,
    UNLOCK,
    Call,
)
from icebergds.catalog.hive.catalog import HiveCatalog
from icebergds.catalog.hive.messages import ShowLocksRequest, ShownLock
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitStateUnknownError,
    NoSuchNamespaceError,
    NoSuchTableError,
    StorageError,
)
from icebergds.testing.catalog_steps import new_table

_UNLOCKED = {"iceberg.engine.hive.lock-enabled": "false"}


@pytest.fixture
def proxy(hive: HiveServer) -> Iterator[BreakingProxy]:
    with breaking_proxy(hive.port) as proxy:
        yield proxy
        # Else a test has shown nothing.
        assert not proxy.is_armed


@pytest.fixture
def catalog(hive: HiveServer, tmp_path: Path) -> HiveCatalog:
    """A catalog with a direct connection."""
    return open_hive_catalog(hive.uri, tmp_path)


@pytest.fixture
def proxied(proxy: BreakingProxy, tmp_path: Path) -> HiveCatalog:
    """The same catalog by way of the proxy."""
    return open_hive_catalog(f"thrift://127.0.0.1:{proxy.port}", tmp_path)


def _locks(server: HiveServer) -> list[ShownLock]:
    with metastore(server).connect() as connection:
        return list(connection.ask(SHOW_LOCKS, ShowLocksRequest(*TABLE)).locks)


# Commits in a lock.


def test_a_commit_whose_answer_is_lost_is_found(
    hive: HiveServer, catalog: HiveCatalog, proxied: HiveCatalog, proxy: BreakingProxy
) -> None:
    created = create_table(catalog)
    cut_call(proxy, ALTER_TABLE, Cut.AFTER)
    committed = set_property(proxied)
    assert catalog.load(TABLE) == committed
    assert committed.metadata.properties["k"] == "v"
    assert len(metadata_files(created)) == 2
    assert _locks(hive) == []


def test_a_commit_that_may_still_land_is_unknown_and_keeps_its_file(
    hive: HiveServer, catalog: HiveCatalog, proxied: HiveCatalog, proxy: BreakingProxy
) -> None:
    created = create_table(catalog)
    cut_call(proxy, ALTER_TABLE, Cut.BEFORE)
    with pytest.raises(
        CommitStateUnknownError, match=r"lake\.db\.t: it is unknown whether .*00001-"
    ):
        set_property(proxied)
    assert len(metadata_files(created)) == 2
    assert "k" not in catalog.load(TABLE).metadata.properties
    assert _locks(hive) == []


def test_a_commit_that_others_overtook_is_unknown_in_a_lock(
    catalog: HiveCatalog,
    proxied: HiveCatalog,
    proxy: BreakingProxy,
    hive: HiveServer,
    tmp_path: Path,
) -> None:
    created = create_table(catalog)
    unlocked = open_hive_catalog(hive.uri, tmp_path, **_UNLOCKED)
    cut_call(proxy, ALTER_TABLE, Cut.BEFORE, lambda: set_property(unlocked, "other"))
    with pytest.raises(CommitStateUnknownError):
        set_property(proxied)
    assert len(metadata_files(created)) == 3


@pytest.mark.parametrize("cut", Cut)
def test_a_lock_whose_answer_is_lost_is_used_or_leaves_nothing(
    cut: Cut, hive: HiveServer, catalog: HiveCatalog, proxied: HiveCatalog, proxy: BreakingProxy
) -> None:
    created = create_table(catalog)
    cut_call(proxy, LOCK, cut)
    if cut is Cut.AFTER:
        set_property(proxied)
    else:
        with pytest.raises(StorageError, match=r"failed to lock table lake\.db\.t"):
            set_property(proxied)
        assert len(metadata_files(created)) == 1
    assert _locks(hive) == []


@pytest.mark.parametrize("cut", Cut)
def test_a_lock_is_released_although_an_answer_is_lost(
    cut: Cut, hive: HiveServer, catalog: HiveCatalog, proxied: HiveCatalog, proxy: BreakingProxy
) -> None:
    create_table(catalog)
    cut_call(proxy, UNLOCK, cut)
    assert set_property(proxied).metadata.properties["k"] == "v"
    assert _locks(hive) == []


@pytest.mark.parametrize("call", [GET_TABLE, LOCK], ids=lambda call: call.name)
def test_a_commit_that_fails_before_the_change_leaves_no_file(
    call: Call[object], catalog: HiveCatalog, proxied: HiveCatalog, proxy: BreakingProxy
) -> None:
    created = create_table(catalog)
    cut_call(proxy, call, Cut.BEFORE)
    with pytest.raises(StorageError) as raised:
        set_property(proxied)
    assert not raised.value.outcome_unknown
    assert len(metadata_files(created)) == 1
    assert catalog.load(TABLE) == created


@pytest.fixture
def incomparable(
    conditional_metastore: HiveServer, postgres: PostgresServer
) -> Iterator[HiveServer]:
    """A metastore whose database cannot compare values of parameters, as Derby cannot."""
    empty(conditional_metastore)
    with postgres.connect(conditional_metastore.database) as connection:
        connection.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "IF current_query() ~* 'where.*\"PARAM_VALUE\"' THEN RAISE 'no comparison'; END IF; "
            "RETURN NEW; END $$"
        )
        connection.execute(
            'CREATE TRIGGER compared BEFORE UPDATE ON "TABLE_PARAMS" '
            "FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
    yield conditional_metastore
    with postgres.connect(conditional_metastore.database) as connection:
        connection.execute("DROP FUNCTION refuse CASCADE")


def test_a_database_that_cannot_compare_is_changed_in_the_lock(
    incomparable: HiveServer, tmp_path: Path
) -> None:
    catalog = open_hive_catalog(incomparable.uri, tmp_path)
    created = create_table(catalog)
    committed = set_property(catalog)
    assert catalog.load(TABLE) == committed
    assert len(metadata_files(created)) == 2


def test_a_database_that_cannot_compare_needs_the_lock(
    incomparable: HiveServer, tmp_path: Path
) -> None:
    catalog = open_hive_catalog(incomparable.uri, tmp_path, **_UNLOCKED)
    created = create_table(catalog)
    with pytest.raises(CommitStateUnknownError):
        set_property(catalog)
    assert catalog.load(TABLE) == created


# Commits without a lock.


def test_without_a_lock_a_commit_whose_answer_is_lost_is_found(
    catalog: HiveCatalog, proxy: BreakingProxy, tmp_path: Path
) -> None:
    create_table(catalog)
    unlocked = open_hive_catalog(f"thrift://127.0.0.1:{proxy.port}", tmp_path, **_UNLOCKED)
    cut_call(proxy, ALTER_TABLE, Cut.AFTER, lambda: set_property(catalog, "later"))
    committed = set_property(unlocked)
    loaded = catalog.load(TABLE).metadata
    assert loaded.properties.keys() >= {"k", "later"}
    assert committed.metadata_location in [e.metadata_file for e in loaded.metadata_log]


def test_without_a_lock_a_commit_that_others_overtook_is_a_conflict(
    catalog: HiveCatalog, proxy: BreakingProxy, tmp_path: Path
) -> None:
    created = create_table(catalog)
    unlocked = open_hive_catalog(f"thrift://127.0.0.1:{proxy.port}", tmp_path, **_UNLOCKED)
    cut_call(proxy, ALTER_TABLE, Cut.BEFORE, lambda: set_property(catalog, "other"))
    with pytest.raises(CommitConflictError):
        set_property(unlocked)
    assert len(metadata_files(created)) == 2


def test_without_a_lock_a_commit_that_may_still_land_is_unknown(
    catalog: HiveCatalog, proxy: BreakingProxy, tmp_path: Path
) -> None:
    created = create_table(catalog)
    unlocked = open_hive_catalog(f"thrift://127.0.0.1:{proxy.port}", tmp_path, **_UNLOCKED)
    cut_call(proxy, ALTER_TABLE, Cut.BEFORE)
    with pytest.raises(CommitStateUnknownError):
        set_property(unlocked)
    assert len(metadata_files(created)) == 2


# Other changes.


def test_a_creation_whose_answer_is_lost_is_found(
    catalog: HiveCatalog, proxied: HiveCatalog, proxy: BreakingProxy
) -> None:
    catalog.create_namespace(("db",), {})
    updates = new_table(catalog, TABLE)
    cut_call(proxy, CREATE_TABLE, Cut.AFTER)
    assert proxied.create(TABLE, updates) == catalog.load(TABLE)


def test_a_creation_that_may_still_land_is_unknown_and_keeps_its_file(
    catalog: HiveCatalog, proxied: HiveCatalog, proxy: BreakingProxy
) -> None:
    catalog.create_namespace(("db",), {})
    updates = new_table(catalog, TABLE)
    cut_call(proxy, CREATE_TABLE, Cut.BEFORE)
    with pytest.raises(CommitStateUnknownError):
        proxied.create(TABLE, updates)
    assert len(catalog.io.list(f"{catalog.new_table_location(TABLE)}/metadata")) == 1


def test_a_creation_that_another_overtook_is_not_taken_for_the_own(
    catalog: HiveCatalog, proxied: HiveCatalog, proxy: BreakingProxy
) -> None:
    catalog.create_namespace(("db",), {})
    updates = new_table(catalog, TABLE)
    cut_call(proxy, CREATE_TABLE, Cut.BEFORE, lambda: create_table(catalog))
    with pytest.raises((AlreadyExistsError, CommitStateUnknownError)):
        proxied.create(TABLE, updates)


def test_a_drop_whose_answer_is_lost_is_found(
    catalog: HiveCatalog, proxied: HiveCatalog, proxy: BreakingProxy
) -> None:
    created = create_table(catalog)
    cut_call(proxy, DROP_TABLE, Cut.AFTER)
    assert proxied.drop(TABLE) == created
    with pytest.raises(NoSuchTableError):
        catalog.load(TABLE)


def test_a_drop_that_may_still_land_is_unknown(
    catalog: HiveCatalog, proxied: HiveCatalog, proxy: BreakingProxy
) -> None:
    create_table(catalog)
    cut_call(proxy, DROP_TABLE, Cut.BEFORE)
    with pytest.raises(CommitStateUnknownError, match=r"drop table lake\.db\.t"):
        proxied.drop(TABLE)


def test_a_rename_whose_answer_is_lost_is_found(
    hive: HiveServer, catalog: HiveCatalog, proxied: HiveCatalog, proxy: BreakingProxy
) -> None:
    created = create_table(catalog)
    cut_call(proxy, ALTER_TABLE, Cut.AFTER)
    proxied.rename(TABLE, ("db", "u"))
    assert catalog.load(("db", "u")).metadata == created.metadata
    assert _locks(hive) == []


def test_a_rename_that_may_still_land_is_unknown(
    hive: HiveServer, catalog: HiveCatalog, proxied: HiveCatalog, proxy: BreakingProxy
) -> None:
    create_table(catalog)
    cut_call(proxy, ALTER_TABLE, Cut.BEFORE)
    with pytest.raises(CommitStateUnknownError, match=r"rename table lake\.db\.t"):
        proxied.rename(TABLE, ("db", "u"))
    assert _locks(hive) == []


def test_a_change_of_a_namespace_whose_answer_is_lost_is_found(
    catalog: HiveCatalog, proxied: HiveCatalog, proxy: BreakingProxy
) -> None:
    cut_call(proxy, CREATE_DATABASE, Cut.AFTER)
    proxied.create_namespace(("db",), {"k": "v"})
    cut_call(proxy, ALTER_DATABASE, Cut.AFTER)
    proxied.update_namespace_properties(("db",), ["k"], {"l": "w"})
    found = catalog.namespace_properties(("db",))
    assert (found.get("k"), found.get("l")) == (None, "w")
    cut_call(proxy, DROP_DATABASE, Cut.AFTER)
    proxied.drop_namespace(("db",))
    with pytest.raises(NoSuchNamespaceError):
        catalog.namespace_properties(("db",))


def test_a_change_of_a_namespace_that_may_still_land_is_unknown(
    catalog: HiveCatalog, proxied: HiveCatalog, proxy: BreakingProxy
) -> None:
    cut_call(proxy, CREATE_DATABASE, Cut.BEFORE)
    with pytest.raises(CommitStateUnknownError, match=r"create namespace lake\.db"):
        proxied.create_namespace(("db",), {})
    catalog.create_namespace(("db",), {})
    cut_call(proxy, ALTER_DATABASE, Cut.BEFORE)
    with pytest.raises(CommitStateUnknownError, match=r"change namespace lake\.db"):
        proxied.update_namespace_properties(("db",), [], {"k": "v"})
    cut_call(proxy, DROP_DATABASE, Cut.BEFORE)
    with pytest.raises(CommitStateUnknownError, match=r"drop namespace lake\.db"):
        proxied.drop_namespace(("db",))


def test_a_look_whose_answer_is_lost_fails(
    catalog: HiveCatalog, proxied: HiveCatalog, proxy: BreakingProxy
) -> None:
    create_table(catalog)
    cut_call(proxy, GET_TABLE, Cut.AFTER)
    with pytest.raises(StorageError, match=r"catalog lake: .*the connection broke before the"):
        proxied.load(TABLE)
    cut_call(proxy, GET_DATABASE, Cut.AFTER)
    with pytest.raises(StorageError, match=r"catalog lake: .*the connection broke before the"):
        proxied.namespace_properties(("db",))
