"""Transactions on several tables of a REST catalog whose server fails or misbehaves."""

from __future__ import annotations

import json
import urllib.request

import pyarrow as pa
import pytest
from built.contents import unused_files
from rest_proxy import Fault, RestProxy, Seen
from rest_server import RestServer

from icebergds import Catalog, load_catalog
from icebergds.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    StorageError,
    UnsupportedFeatureError,
)

_IMPATIENT = {
    "commit.retry.num-retries": "2",
    "commit.retry.min-wait-ms": "1",
    "commit.status-check.num-retries": "1",
    "commit.status-check.min-wait-ms": "1",
}
_DONE = [fault for fault in Fault if fault.name.startswith(("DONE", "ANSWER", "SENT"))]
_NOT_DONE = [Fault.NEVER_SENT, Fault.REFUSED_500, Fault.REFUSED_503, Fault.REFUSED_HTML]


@pytest.fixture
def proxy(quick_proxy: RestProxy) -> RestProxy:
    return quick_proxy


@pytest.fixture
def path(rest: RestServer) -> str:
    return rest.new_catalog()


@pytest.fixture
def plain(rest: RestServer, path: str) -> Catalog:
    """A catalog of the empty tables `db.a` and `db.b`, reached directly."""
    catalog = load_catalog("lake", uri=rest.uri(path))
    catalog.create_namespace("db")
    for name in ("db.a", "db.b"):
        catalog.create_table(name, "id bigint", properties=_IMPATIENT)
    return catalog


@pytest.fixture
def proxied(rest: RestServer, path: str, plain: Catalog, proxy: RestProxy) -> Catalog:
    """The same catalog by way of the proxy."""
    return load_catalog("lake", uri=rest.uri(path, proxy.port))


def is_commit(seen: Seen) -> bool:
    return seen.method == "POST" and seen.path.endswith("/transactions/commit")


def append_to_both(catalog: Catalog) -> None:
    with catalog.transaction() as tx:
        for name in ("db.a", "db.b"):
            tx.table(name).append(pa.table({"id": [1]}))


def counts(catalog: Catalog) -> tuple[int, int]:
    return tuple(len(catalog.load_table(f"db.{name}").scan().to_arrow()) for name in "ab")


def unused(catalog: Catalog) -> set[str]:
    return unused_files(catalog.load_table("db.a")) | unused_files(catalog.load_table("db.b"))


@pytest.mark.parametrize("fault", _DONE, ids=lambda fault: fault.name)
def test_a_transaction_whose_answer_is_lost_is_found(
    fault: Fault, plain: Catalog, proxied: Catalog, proxy: RestProxy
) -> None:
    broken = iter([fault])
    proxy.fault = lambda seen: next(broken, None) if is_commit(seen) else None
    append_to_both(proxied)
    assert next(broken, None) is None
    assert counts(plain) == (1, 1)
    assert unused(plain) == set()


@pytest.mark.parametrize("fault", _NOT_DONE, ids=lambda fault: fault.name)
def test_a_transaction_that_may_still_come_is_unknown_and_keeps_its_files(
    fault: Fault, plain: Catalog, proxied: Catalog, proxy: RestProxy
) -> None:
    proxy.fault = lambda seen: fault if is_commit(seen) else None
    with pytest.raises(CommitStateUnknownError, match=r"lake\.db\.a, lake\.db\.b"):
        append_to_both(proxied)
    assert len([seen for seen in proxy.seen if is_commit(seen)]) == 1
    assert counts(plain) == (0, 0)
    assert len(unused(plain)) >= 4


@pytest.mark.parametrize(
    ("status", "error"), [(403, StorageError), (400, StorageError), (409, CommitConflictError)]
)
def test_a_transaction_that_is_refused_leaves_nothing(
    status: int, error: type[Exception], plain: Catalog, proxied: Catalog, proxy: RestProxy
) -> None:
    proxy.refuse = lambda seen: status if is_commit(seen) else None
    with pytest.raises(error) as raised:
        append_to_both(proxied)
    assert not getattr(raised.value, "outcome_unknown", True)
    assert counts(plain) == (0, 0)
    assert unused(plain) == set()


def commit_to_a_alone(rest: RestServer, path: str, seen: Seen) -> None:
    """Carries out one part, as servers may that commit to one table after another."""
    changes = json.loads(seen.body)["table-changes"]
    change = next(each for each in changes if each["identifier"]["name"] == "a")
    request = urllib.request.Request(
        f"{rest.uri(path)}/v1/namespaces/db/tables/a",
        json.dumps(change).encode(),
        {"Content-Type": "application/json"},
    )
    urllib.request.urlopen(request).close()


@pytest.mark.parametrize("part", ["rows", "properties"])
@pytest.mark.parametrize("status", [400, 403, 404, 409, 500])
def test_a_transaction_that_one_table_has_alone_is_unknown(
    status: int,
    part: str,
    rest: RestServer,
    path: str,
    plain: Catalog,
    proxied: Catalog,
    proxy: RestProxy,
) -> None:
    def tear(seen: Seen) -> int | None:
        if not is_commit(seen):
            return None
        commit_to_a_alone(rest, path, seen)
        return status

    proxy.refuse = tear
    tx = proxied.transaction()
    tx.table("db.a").append(pa.table({"id": [1]}))
    if part == "rows":
        tx.table("db.b").append(pa.table({"id": [1]}))
    else:
        tx.table("db.b").set_properties(owner="me")
    with pytest.raises(CommitStateUnknownError):
        tx.commit_transaction()
    assert counts(plain) == (1, 0)
    assert "owner" not in plain.load_table("db.b").properties


def test_a_property_that_one_table_has_alone_is_unknown(
    rest: RestServer, path: str, plain: Catalog, proxied: Catalog, proxy: RestProxy
) -> None:
    def tear(seen: Seen) -> int | None:
        if not is_commit(seen):
            return None
        commit_to_a_alone(rest, path, seen)
        plain.load_table("db.b").append(pa.table({"id": [2]}))
        return 409

    proxy.refuse = tear
    tx = proxied.transaction()
    tx.table("db.a").set_properties(owner="me")
    tx.table("db.b").append(pa.table({"id": [1]}))
    with pytest.raises(CommitStateUnknownError):
        tx.commit_transaction()
    assert len([seen for seen in proxy.seen if is_commit(seen)]) == 1


def test_a_table_that_has_its_property_from_before_does_not_hide_a_conflict(
    plain: Catalog, proxied: Catalog
) -> None:
    plain.load_table("db.b").set_properties(owner="me")
    with proxied.transaction() as tx:
        tx.table("db.a").append(pa.table({"id": [1]}))
        tx.table("db.b").set_properties(owner="me")
        plain.load_table("db.a").append(pa.table({"id": [2]}))
    assert counts(plain) == (2, 0)


def test_an_answer_without_the_new_snapshots_is_not_taken_for_a_commit(
    plain: Catalog, proxied: Catalog, proxy: RestProxy
) -> None:
    proxy.refuse = lambda seen: 204 if is_commit(seen) else None
    with pytest.raises(CommitStateUnknownError, match="new snapshot is not in"):
        append_to_both(proxied)
    assert counts(plain) == (0, 0)


def test_tables_that_cannot_be_loaded_after_the_commit_are_as_committed(
    plain: Catalog, proxied: Catalog, proxy: RestProxy
) -> None:
    proxy.refuse = lambda seen: 403 if any(map(is_commit, proxy.seen[:-1])) else None
    with proxied.transaction() as tx:
        tables = [tx.table(name) for name in ("db.a", "db.b")]
        for table in tables:
            table.append(pa.table({"id": [1]}))
    assert [len(table.scan().to_arrow()) for table in tables] == [1, 1]
    assert counts(plain) == (1, 1)


def test_a_server_without_the_endpoint_is_refused_before_the_second_table_is_written(
    plain: Catalog, proxied: Catalog, proxy: RestProxy, rest: RestServer, path: str
) -> None:
    def without(seen: Seen, body: dict[str, list[str]]) -> dict[str, list[str]]:
        if "endpoints" in body:
            body["endpoints"] = [e for e in body["endpoints"] if "transactions" not in e]
        return body

    proxy.rewrite = without
    catalog = load_catalog("lean", uri=rest.uri(path, proxy.port))
    with pytest.raises(UnsupportedFeatureError, match="catalog lean: its server does not support"):
        append_to_both(catalog)
    assert not any(map(is_commit, proxy.seen))
    assert counts(plain) == (0, 0)
    assert unused(plain) == set()
