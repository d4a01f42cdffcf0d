"""The Hive catalog authenticates by Kerberos, at a metastore that lets nobody else in."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import hive_server
import kerberos_server
import pytest
from breaking_proxy import BreakingProxy, Cut, breaking_proxy
from built.api_tables import create_table as create_days, ids_of, open_table, rows
from effort import IS_NIGHTLY
from hive_server import CONDITIONAL, HiveServer
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
from kerberos_server import KerberosServer
from postgres_server import PostgresServer

from icebergds.catalog.hive.calls import ALTER_TABLE, GET_ALL_DATABASES
from icebergds.catalog.hive.catalog import HiveCatalog
from icebergds.errors import CommitConflictError, CommitStateUnknownError, StorageError
from icebergds.spec.updates.table_updates import SetProperties

pytestmark = pytest.mark.skipif(
    not IS_NIGHTLY, reason="metastores with Kerberos take a while: nightly only"
)

_KERBEROS = {"hive.kerberos-authentication": "true"}
_USER = "tester"


@pytest.fixture(scope="module")
def kerberos() -> Iterator[KerberosServer]:
    """A realm, and the packages of its clients."""
    if (missing := kerberos_server.what_is_missing()) is not None:
        pytest.skip(f"no Kerberos: {missing}")
    with pytest.MonkeyPatch.context() as patch, kerberos_server.kerberos_server() as server:
        patch.syspath_prepend(kerberos_server.PACKAGES)
        # Compiled for one version of Python.
        pytest.importorskip("kerberos", exc_type=ImportError)
        patch.setenv("KRB5_CONFIG", str(server.config))
        yield server


@pytest.fixture(scope="module")
def keytab(kerberos: KerberosServer) -> Path:
    """The key of the user."""
    return kerberos.new_principal(_USER)


@pytest.fixture(scope="module")
def service_keytab(kerberos: KerberosServer) -> Path:
    """The key of the metastores."""
    return kerberos.new_principal("hive/127.0.0.1")


@pytest.fixture(scope="module")
def running_hive(
    kerberos: KerberosServer, service_keytab: Path, postgres: PostgresServer
) -> Iterator[HiveServer]:
    with _hive(kerberos, service_keytab, postgres, protection="authentication") as server:
        yield server


@pytest.fixture(scope="module")
def running_private_hive(
    kerberos: KerberosServer, service_keytab: Path, postgres: PostgresServer
) -> Iterator[HiveServer]:
    with _hive(kerberos, service_keytab, postgres, protection="privacy") as server:
        yield server


@contextmanager
def _hive(
    kerberos: KerberosServer, keytab: Path, postgres: PostgresServer, *, protection: str
) -> Iterator[HiveServer]:
    pytest.importorskip("thrift", reason="thrift is not installed")
    if (missing := hive_server.what_is_missing(CONDITIONAL)) is not None:
        pytest.skip(f"no Hive Metastore: {missing}")
    settings = {
        "hadoop.security.authentication": "kerberos",
        "hadoop.rpc.protection": protection,
        "hive.metastore.sasl.enabled": "true",
        "hive.metastore.kerberos.principal": kerberos.principal("hive/127.0.0.1"),
        "hive.metastore.kerberos.keytab.file": str(keytab),
    }
    jvm_options = [f"-Djava.security.krb5.conf={kerberos.config}"]
    with hive_server.hive_server(
        CONDITIONAL, postgres, settings=settings, jvm_options=jvm_options
    ) as server:
        yield server


@pytest.fixture(autouse=True)
def ticket(kerberos: KerberosServer, keytab: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The credential cache of the user, who has logged in."""
    cache = kerberos.new_ticket(_USER, keytab)
    monkeypatch.setenv("KRB5CCNAME", str(cache))
    return cache


@pytest.fixture
def hive(running_hive: HiveServer, ticket: Path) -> HiveServer:
    """An empty metastore."""
    empty(running_hive, "hive")
    return running_hive


@pytest.fixture
def private_hive(running_private_hive: HiveServer, ticket: Path) -> HiveServer:
    """An empty metastore that wants messages to be encrypted."""
    empty(running_private_hive, "hive")
    return running_private_hive


@pytest.fixture
def catalog(hive: HiveServer, tmp_path: Path) -> HiveCatalog:
    return open_hive_catalog(hive.uri, tmp_path, **_KERBEROS)


@pytest.fixture
def proxy(hive: HiveServer) -> Iterator[BreakingProxy]:
    with breaking_proxy(hive.port) as proxy:
        yield proxy


@pytest.fixture
def proxied(proxy: BreakingProxy, tmp_path: Path) -> HiveCatalog:
    """The catalog by way of the proxy."""
    return open_hive_catalog(f"thrift://127.0.0.1:{proxy.port}", tmp_path, **_KERBEROS)


# What a ticket allows.


def test_rows_are_appended_and_read(hive: HiveServer, tmp_path: Path) -> None:
    given = {"uri": hive.uri, "warehouse": str(tmp_path / "warehouse"), **_KERBEROS}
    create_days(given).append(rows(1, 2))
    open_table(given).append(rows(3))
    assert ids_of(open_table(given)) == [1, 2, 3]


def test_a_commit_is_seen_by_another_catalog(
    hive: HiveServer, catalog: HiveCatalog, tmp_path: Path
) -> None:
    create_table(catalog)
    committed = set_property(catalog)
    other = open_hive_catalog(hive.uri, tmp_path, **_KERBEROS)
    assert other.load(TABLE) == committed


def test_a_commit_that_another_overtook_is_a_conflict(
    hive: HiveServer, catalog: HiveCatalog, tmp_path: Path
) -> None:
    created = create_table(catalog)
    set_property(open_hive_catalog(hive.uri, tmp_path, **_KERBEROS))
    with pytest.raises(CommitConflictError):
        catalog.operations(TABLE).commit(created, [], [SetProperties({"mine": "1"})])


def test_a_keytab_is_enough(
    catalog: HiveCatalog, keytab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KRB5CCNAME", str(tmp_path / "not-there-yet"))
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(keytab))
    assert catalog.list_namespaces() == [("default",)]


def test_calls_are_not_encrypted_unless_the_metastore_wants_it(
    proxied: HiveCatalog, proxy: BreakingProxy
) -> None:
    cut_call(proxy, GET_ALL_DATABASES, Cut.AFTER)
    with pytest.raises(StorageError):
        proxied.list_namespaces()


def test_calls_are_encrypted_for_a_metastore_that_wants_it(
    private_hive: HiveServer, tmp_path: Path
) -> None:
    with breaking_proxy(private_hive.port) as proxy:
        uri = f"thrift://127.0.0.1:{proxy.port}"
        catalog = open_hive_catalog(uri, tmp_path, **_KERBEROS)
        cut_call(proxy, GET_ALL_DATABASES, Cut.AFTER)
        assert catalog.list_namespaces() == [("default",)]
        # It did not find the call.
        assert proxy.is_armed


def test_long_messages_are_encrypted_too(private_hive: HiveServer, tmp_path: Path) -> None:
    catalog = open_hive_catalog(private_hive.uri, tmp_path, **_KERBEROS)
    given = {f"k{number}": "v" * 3000 for number in range(100)}
    catalog.create_namespace(("db",), given)
    assert catalog.namespace_properties(("db",)).items() >= given.items()


# Lost connections.


def test_a_lost_connection_is_opened_again(hive: HiveServer, proxy: BreakingProxy) -> None:
    with metastore(replace(hive, port=proxy.port), "hive").connect() as connection:
        cut_call(proxy, GET_ALL_DATABASES, Cut.AFTER)
        with pytest.raises(StorageError):
            connection.ask(GET_ALL_DATABASES)
        assert list(connection.ask(GET_ALL_DATABASES)) == ["default"]


def test_a_commit_whose_answer_is_lost_is_found(
    catalog: HiveCatalog, proxied: HiveCatalog, proxy: BreakingProxy
) -> None:
    create_table(catalog)
    cut_call(proxy, ALTER_TABLE, Cut.AFTER)
    committed = set_property(proxied)
    assert not proxy.is_armed
    assert catalog.load(TABLE) == committed


def test_a_commit_is_unknown_if_the_ticket_is_lost_with_its_answer(
    catalog: HiveCatalog, proxied: HiveCatalog, proxy: BreakingProxy, ticket: Path
) -> None:
    created = create_table(catalog)
    cut_call(proxy, ALTER_TABLE, Cut.AFTER, ticket.unlink)
    with pytest.raises(CommitStateUnknownError, match=r"lake\.db\.t: .*No Kerberos credentials"):
        set_property(proxied)
    assert len(metadata_files(created)) == 2


# What is refused.


def test_without_a_ticket_it_is_told_how_to_get_one(catalog: HiveCatalog, ticket: Path) -> None:
    ticket.unlink()
    with pytest.raises(
        StorageError, match=r"No Kerberos credentials available .*klist.*kinit"
    ) as e:
        catalog.list_namespaces()
    assert str(e.value).startswith("catalog lake: its Hive Metastore cannot be reached")


def test_a_ticket_that_has_expired_is_told(
    catalog: HiveCatalog, kerberos: KerberosServer, keytab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KRB5CCNAME", str(kerberos.new_ticket(_USER, keytab, lifetime="1s")))
    time.sleep(2)
    with pytest.raises(StorageError, match=r"catalog lake: .*\(\S+: Ticket expired\).*kinit"):
        catalog.list_namespaces()


def test_a_service_name_without_a_principal_is_told(hive: HiveServer, tmp_path: Path) -> None:
    wrong = {**_KERBEROS, "hive.kerberos-service-name": "bees"}
    with pytest.raises(
        StorageError,
        match=r"catalog lake: .*Server bees/127\.0\.0\.1@\S+ not found .* principal bees/.* "
        r"\(hive\.kerberos-service-name\)",
    ):
        open_hive_catalog(hive.uri, tmp_path, **wrong).list_namespaces()


def test_a_service_name_of_another_service_is_told(
    hive: HiveServer, kerberos: KerberosServer, tmp_path: Path
) -> None:
    kerberos.new_principal("other/127.0.0.1")
    wrong = {**_KERBEROS, "hive.kerberos-service-name": "other"}
    with pytest.raises(StorageError, match=r"catalog lake: .*hive\.kerberos-service-name"):
        open_hive_catalog(hive.uri, tmp_path, **wrong).list_namespaces()


def test_a_catalog_without_kerberos_is_told_that_it_may_need_it(
    hive: HiveServer, tmp_path: Path
) -> None:
    with pytest.raises(
        StorageError,
        match=r"catalog lake: .*closed the connection; .* set hive\.kerberos-authentication",
    ):
        open_hive_catalog(hive.uri, tmp_path).list_namespaces()


def test_a_metastore_without_kerberos_is_told(
    conditional_metastore: HiveServer, tmp_path: Path
) -> None:
    catalog = open_hive_catalog(conditional_metastore.uri, tmp_path, **_KERBEROS)
    with pytest.raises(
        StorageError, match=r"catalog lake: .*closed the connection.* for Kerberos also"
    ):
        catalog.list_namespaces()


def test_tokens_are_not_logged(catalog: HiveCatalog, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    create_table(catalog)
    # How they begin, in bytes and in base64.
    assert not re.search(r"`\\x82|YII", caplog.text)
