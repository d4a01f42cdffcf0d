"""Scans that the server of a REST catalog plans have the rows of those that this process plans."""

from __future__ import annotations

import datetime
import pickle
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from effort import some
from rest_proxy import Fault, RestProxy, Seen, rest_proxy
from rest_server import RestServer

from icebergds import Catalog, Table, load_catalog
from icebergds.catalog.rest import http, scan_planning
from icebergds.errors import (
    IcebergError,
    InvalidMetadataError,
    InvalidOptionError,
    StorageError,
    UnsupportedFeatureError,
)

_FILTERS = [
    None,
    "id > 20",
    "id in (1, 5, 40) or name = 'n3'",
    "day >= date '2026-01-03' and id != 7",
    "day is null or name like 'n1%'",
    "score > 10.5",
    "name > 'ä'",
    "not (id < 10)",
    "price = 1.50",
    "ts < timestamp '2026-01-02 00:00:00+00:00'",
    "id < 0",
]


@pytest.fixture
def path(rest: RestServer) -> str:
    return rest.new_catalog()


@pytest.fixture
def client(rest: RestServer, path: str) -> Catalog:
    """A catalog whose scans this process plans."""
    catalog = load_catalog("lake", uri=rest.uri(path))
    catalog.create_namespace("db")
    return catalog


@pytest.fixture
def proxy(rest: RestServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[RestProxy]:
    monkeypatch.setattr(scan_planning, "_FIRST_WAIT_S", 0.01)
    with rest_proxy(rest.port) as proxy:
        yield proxy


@pytest.fixture
def server(rest: RestServer, path: str, client: Catalog, proxy: RestProxy) -> Catalog:
    """The same catalog, whose server plans scans, by way of a proxy."""
    uri = rest.uri(path, proxy.port)
    return load_catalog("lake", uri=uri, **{"scan-planning-mode": "server"})


def day(number: int) -> datetime.date:
    return datetime.date(2026, 1, 1 + number)


def some_rows(*ids: int) -> pa.Table:
    moments = [datetime.datetime(2026, 1, 1 + i % 5, tzinfo=datetime.UTC) for i in ids]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": [f"n{i % 17}" for i in ids],
            "day": [None if i % 11 == 0 else day(i % 5) for i in ids],
            "score": [float("nan") if i % 7 == 0 else i / 2 for i in ids],
            "price": pa.array([f"{i % 4}.50" for i in ids]).cast(pa.decimal128(9, 2)),
            "ts": pa.array(moments, pa.timestamp("us", tz="UTC")),
        }
    )


COLUMNS = "id bigint, name string, day date, score double, price decimal(9,2), ts timestamp"


def a_table(catalog: Catalog, version: int, rng: random.Random) -> Table:
    """A table of two partition specs, with deletes of each kind, and rows newer than they are."""
    table = catalog.create_table(
        "db.t",
        COLUMNS,
        partition_spec="day",
        properties={"format-version": str(version), "write.upsert.mode": "equality-deletes"},
    )
    for step in range(6):
        ids = rng.sample(range(50), 15)
        if version > 1 and step % 2:
            table.upsert(some_rows(*ids), keys=["id"])
            table.delete_keys(
                pa.table({"id": pa.array(rng.sample(range(50), 3), pa.int64())}), ["id"]
            )
        else:
            table.append(some_rows(*ids))
        if step == 3 and version > 1:
            table.convert_equality_deletes()
        if step == 2:
            table.update_spec().add_field("bucket(3, id)").commit()
    return table


def rows(table: Table, **scan: Any) -> list[str]:
    return sorted(map(repr, table.scan(**scan).to_arrow().to_pylist()))


def plans(proxy: RestProxy) -> int:
    return sum(path.endswith("/plan") for path in proxy.paths("POST"))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_rows_are_those_of_planning_in_this_process(
    version: int, client: Catalog, server: Catalog, proxy: RestProxy, rng: random.Random
) -> None:
    expected = a_table(client, version, rng)
    kinds = set(expected.inspect.delete_files()["content"].to_pylist())
    assert kinds == (set() if version == 1 else {1, 2})
    table = server.load_table("db.t")
    for number, condition in enumerate(some(_FILTERS, 5)):
        assert rows(table, filter=condition) == rows(expected, filter=condition), condition
        assert table.scan(filter=condition).count() == expected.scan(filter=condition).count()
        assert plans(proxy) == 2 * number + 2
    for snapshot in some(expected.snapshots(), 3):
        of = {"snapshot_id": snapshot.snapshot_id, "filter": "id > 10"}
        assert rows(table, **of) == rows(expected, **of)


def test_the_server_chooses_the_files(client: Catalog, server: Catalog) -> None:
    table = client.create_table("db.t", COLUMNS, partition_spec="day")
    table.append(some_rows(1, 2, 3))
    table.append(some_rows(40))
    found = [server, client]
    files = [
        {task.file.file_path for task in c.load_table("db.t").scan(filter="id < 3").plan_files()}
        for c in found
    ]
    assert files[0] == files[1]
    assert len(files[0]) == 2
    assert "2" in str(server.load_table("db.t").scan(filter="id < 3").plan_summary())


def test_what_the_server_would_read_otherwise_is_planned_in_this_process(
    client: Catalog, server: Catalog, proxy: RestProxy
) -> None:
    table = client.create_table("db.t", "a bigint, b bigint")
    table.append(pa.table({"a": [1], "b": [2]}))
    table.update_schema().rename_column("a", "c").commit()
    found = server.load_table("db.t")
    assert found.scan(filter="c = 1").to_arrow().to_pylist() == [{"c": 1, "b": 2}]
    assert plans(proxy) == 0


def test_reads_in_a_transaction_are_planned_in_this_process(
    client: Catalog, server: Catalog
) -> None:
    client.create_table("db.t", "id bigint")
    with server.load_table("db.t").transaction() as tx:
        tx.append(pa.table({"id": [1]}))
        assert tx.scan().to_arrow()["id"].to_pylist() == [1]


def test_a_plan_that_is_not_ready_is_asked_for_until_it_is(
    client: Catalog, server: Catalog, proxy: RestProxy
) -> None:
    table = client.create_table("db.t", "id bigint")
    table.append(pa.table({"id": [1]}))
    answers: list[Any] = []

    def later(seen: Seen, body: Any) -> Any:
        if seen.path.endswith("/plan"):
            answers.append(body)
            return {"status": "submitted", "plan-id": "p1"}
        return body

    def reply(seen: Seen) -> Any:
        if not seen.path.endswith("/plan/p1"):
            return None
        asked = proxy.paths("GET").count(seen.path)
        return answers[0] if asked > 3 else {"status": "submitted", "plan-id": "p1"}

    proxy.rewrite, proxy.reply = later, reply
    assert rows(server.load_table("db.t")) == rows(table)
    assert sum(path.endswith("/plan/p1") for path in proxy.paths("GET")) == 4


def test_a_plan_that_takes_too_long_is_cancelled(
    rest: RestServer, path: str, client: Catalog, proxy: RestProxy
) -> None:
    client.create_table("db.t", "id bigint").append(pa.table({"id": [1]}))
    proxy.reply = lambda seen: (
        {"status": "submitted", "plan-id": "p1"} if "/plan" in seen.path else None
    )
    given = {"scan-planning-mode": "server", "rest-scan-planning.poll-timeout-ms": "50"}
    table = load_catalog("lake", uri=rest.uri(path, proxy.port), **given).load_table("db.t")
    with pytest.raises(StorageError, match=r"lake\.db\.t: the server has not planned"):
        table.scan().to_arrow()
    assert [path.rpartition("/")[2] for path in proxy.paths("DELETE")] == ["p1"]


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        ({"status": "failed", "error": {"message": "too big"}}, StorageError, "too big"),
        ({"status": "cancelled", "plan-id": "p"}, StorageError, "cancelled"),
        ({"plan-id": "p"}, InvalidMetadataError, "lacks 'status'"),
        ({"status": "submitted"}, InvalidMetadataError, "lacks 'plan-id'"),
    ],
)
def test_a_plan_that_fails_is_an_error(
    answer: Any,
    error: type[IcebergError],
    message: str,
    client: Catalog,
    server: Catalog,
    proxy: RestProxy,
) -> None:
    client.create_table("db.t", "id bigint").append(pa.table({"id": [1]}))
    proxy.reply = lambda seen: answer if seen.path.endswith("/plan") else None
    with pytest.raises(error, match=message):
        server.load_table("db.t").scan().to_arrow()


def test_a_plan_that_lacks_a_deletion_vector_is_an_error(
    client: Catalog, server: Catalog, proxy: RestProxy
) -> None:
    table = client.create_table("db.t", "id bigint", properties={"format-version": "3"})
    for number in range(2):
        table.append(pa.table({"id": [2 * number, 2 * number + 1]}))
    table.delete_keys(pa.table({"id": [0, 2]}), keys=["id"])
    table.convert_equality_deletes()
    assert rows(server.load_table("db.t")) == rows(table)
    proxy.rewrite = lambda seen, body: (
        {**body, "delete-files": body["delete-files"][:1] * 2} if "delete-files" in body else body
    )
    with pytest.raises(InvalidMetadataError, match="refers to a deletion vector for"):
        server.load_table("db.t").scan().to_arrow()


def test_a_server_that_fails_to_plan_leaves_no_outcome_open(
    client: Catalog, server: Catalog, proxy: RestProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_FIRST_WAIT_S", 0.01)
    client.create_table("db.t", "id bigint").append(pa.table({"id": [1]}))
    proxy.fault = lambda seen: Fault.DONE_500 if seen.path.endswith("/plan") else None
    with pytest.raises(StorageError) as raised:
        server.load_table("db.t").scan().to_arrow()
    assert not raised.value.outcome_unknown
    assert plans(proxy) > 1


def test_the_tasks_of_a_plan_are_fetched(
    client: Catalog, server: Catalog, proxy: RestProxy
) -> None:
    table = client.create_table("db.t", "id bigint")
    for number in range(3):
        table.append(pa.table({"id": [number]}))
    parts: list[Any] = []

    def split(seen: Seen, body: Any) -> Any:
        if not seen.path.endswith("/plan"):
            return body
        parts.extend(body.pop("file-scan-tasks"))
        return {**body, "plan-tasks": ["0", "1"]}

    def reply(seen: Seen) -> Any:
        if not seen.path.endswith("/tasks"):
            return None
        number = 0 if b'"0"' in seen.body else 1 if b'"1"' in seen.body else 2
        further = {"plan-tasks": ["2", "0"]} if number == 1 else {}
        return {"file-scan-tasks": [parts[number]], **further}

    proxy.rewrite, proxy.reply = split, reply
    assert rows(server.load_table("db.t")) == rows(table)


def test_a_table_may_say_who_plans(client: Catalog, server: Catalog, proxy: RestProxy) -> None:
    client.create_table("db.t", "id bigint").append(pa.table({"id": [1]}))
    proxy.rewrite = lambda seen, body: (
        {**body, "config": {"scan-planning-mode": "client"}} if "metadata" in body else body
    )
    assert len(rows(server.load_table("db.t"))) == 1
    assert plans(proxy) == 0


def test_a_table_in_another_process_is_planned_there(client: Catalog, server: Catalog) -> None:
    client.create_table("db.t", "id bigint").append(pa.table({"id": [1]}))
    table = pickle.loads(pickle.dumps(server.load_table("db.t")))
    assert len(rows(table)) == 1


def test_a_server_that_plans_no_scans_is_refused_by_name(
    rest: RestServer, path: str, client: Catalog, proxy: RestProxy
) -> None:
    proxy.rewrite = lambda seen, body: (
        {**body, "endpoints": [e for e in body["endpoints"] if "/plan" not in e]}
        if "endpoints" in body
        else body
    )
    uri = rest.uri(path, proxy.port)
    with pytest.raises(UnsupportedFeatureError, match=r"catalog lean: .*planning scans"):
        load_catalog("lean", uri=uri, **{"rest-scan-planning-enabled": "true"})
    with pytest.raises(InvalidOptionError, match="scan-planning-mode is 'both'"):
        load_catalog("lean", uri=uri, **{"scan-planning-mode": "both"})
