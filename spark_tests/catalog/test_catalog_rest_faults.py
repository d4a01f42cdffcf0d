"""Requests to a REST catalog fail at each point; what is said of the outcome holds.

Each operation runs with a fault at each of its requests in turn. If it returns, it is done; if it
raises an error that does not leave the outcome open, it is not done.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from built.schemas import optional
from effort import some
from rest_proxy import Fault, RestProxy, Seen
from rest_server import RestServer
from rest_tables import TABLE, appending, create_table, open_rest_catalog

from icebergds.catalog.rest import http
from icebergds.catalog.rest.catalog import RestCatalog
from icebergds.commit.operations import TableCommit
from icebergds.errors import (
    AlreadyExistsError,
    CommitStateUnknownError,
    IcebergError,
    NotFoundError,
    StorageError,
)
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG
from icebergds.spec.updates.table_updates import SetProperties
from icebergds.spec.values.dates import now_ms
from icebergds.spec.views.new_version import new_version_updates, new_view_updates
from icebergds.spec.views.updates import ViewUpdate
from icebergds.testing.catalog_steps import new_table

_MOST_REQUESTS = 12


@dataclass(frozen=True)
class Operation:
    """Something that a catalog does.

    Attributes:
        prepare: what comes before, without faults; returns what `run` gets.
        run: does it.
        is_done: looks for its effect with another catalog object.
    """

    prepare: Callable[[RestCatalog], object]
    run: Callable[[RestCatalog, object], object]
    is_done: Callable[[RestCatalog, object], bool]


def _exists(look: Callable[[], object]) -> bool:
    try:
        look()
    except NotFoundError:
        return False
    return True


def _with_view(catalog: RestCatalog) -> object:
    catalog.create_namespace(("db",), {})
    location = catalog.new_view_location(("db", "v"))
    return catalog.create_view(("db", "v"), _view(location, "SELECT 1 AS id"))


def _place_of_view(catalog: RestCatalog) -> str:
    catalog.create_namespace(("db",), {})
    return catalog.new_view_location(("db", "v"))


def _view(location: str, sql: str) -> list[ViewUpdate]:
    version = new_version_updates(
        Schema((optional(1, "id", LONG),)),
        {"spark": sql},
        default_catalog=None,
        default_namespace=("db",),
        summary={},
        now_ms=now_ms(),
    )
    return new_view_updates(
        version,
        view_uuid="9a1ab9bb-7b69-4d35-9b4a-0c3e6a7a9d10",
        location=location,
        properties={},
    )


def _append(catalog: RestCatalog, made: object) -> object:
    state, (_, updates) = made
    return catalog.operations(TABLE).commit(state, [], updates)


def _prepare_append(catalog: RestCatalog) -> object:
    state = create_table(catalog)
    return state, appending(state)


OTHER = ("db", "u")


def _prepare_commit_to_two(catalog: RestCatalog) -> object:
    made = [(TABLE, create_table(catalog))]
    made.append((OTHER, catalog.create(OTHER, new_table(catalog, OTHER))))
    parts = [(identifier, state, *appending(state)) for identifier, state in made]
    commits = [TableCommit(each, state, [], updates) for each, state, _, updates in parts]
    return commits, [snapshot.snapshot_id for *_, snapshot, _ in parts]


def _has_both(catalog: RestCatalog, made: object) -> bool:
    commits, snapshot_ids = made

    def found() -> list[bool]:
        return [
            snapshot_id in catalog.load(commit.identifier).metadata.snapshots_by_id
            for commit, snapshot_id in zip(commits, snapshot_ids, strict=True)
        ]

    # The server commits to one after the other, and may not be done yet.
    deadline = time.monotonic() + 10
    while len(set(states := found())) > 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(set(states)) == 1, "one table has its part, the other has not"
    return all(states)


def _has_snapshot(catalog: RestCatalog, snapshot_id: int) -> bool:
    try:
        return snapshot_id in catalog.load(TABLE).metadata.snapshots_by_id
    except NotFoundError:
        return False


def _prepare_creation(catalog: RestCatalog) -> object:
    catalog.create_namespace(("db",), {})
    snapshot, updates = appending()
    return snapshot, [*new_table(catalog, TABLE), *updates]


def _has_tables(catalog: RestCatalog, *names: str) -> bool:
    return catalog.list_tables(("db",)) == [("db", name) for name in names]


OPERATIONS = {
    "create a namespace": Operation(
        lambda catalog: None,
        lambda catalog, _: catalog.create_namespace(("db",), {}),
        lambda catalog, _: ("db",) in catalog.list_namespaces(),
    ),
    "change a namespace": Operation(
        lambda catalog: catalog.create_namespace(("db",), {"old": "1"}),
        lambda catalog, _: catalog.update_namespace_properties(("db",), ["old"], {"new": "2"}),
        lambda catalog, _: catalog.namespace_properties(("db",)).get("new") == "2",
    ),
    "drop a namespace": Operation(
        lambda catalog: catalog.create_namespace(("db",), {}),
        lambda catalog, _: catalog.drop_namespace(("db",)),
        lambda catalog, _: catalog.list_namespaces() == [],
    ),
    "create a table": Operation(
        lambda catalog: catalog.create_namespace(("db",), {}) or new_table(catalog, TABLE),
        lambda catalog, updates: catalog.create(TABLE, updates),
        lambda catalog, _: _has_tables(catalog, "t"),
    ),
    "create a table with rows": Operation(
        _prepare_creation,
        lambda catalog, made: catalog.create(TABLE, made[1]),
        lambda catalog, made: _has_snapshot(catalog, made[0].snapshot_id),
    ),
    "append": Operation(
        _prepare_append,
        _append,
        lambda catalog, made: _has_snapshot(catalog, made[1][0].snapshot_id),
    ),
    "commit to two tables": Operation(
        _prepare_commit_to_two,
        lambda catalog, made: catalog.commit_tables(made[0]),
        _has_both,
    ),
    "set properties": Operation(
        create_table,
        lambda catalog, state: catalog.operations(TABLE).commit(
            state, [], [SetProperties({"k": "v"})]
        ),
        lambda catalog, _: catalog.load(TABLE).metadata.properties.get("k") == "v",
    ),
    "drop a table": Operation(
        create_table,
        lambda catalog, _: catalog.drop(TABLE),
        lambda catalog, _: _has_tables(catalog),
    ),
    "rename a table": Operation(
        create_table,
        lambda catalog, _: catalog.rename(TABLE, ("db", "u")),
        lambda catalog, _: _has_tables(catalog, "u"),
    ),
    "register a table": Operation(
        lambda catalog: create_table(catalog) and catalog.drop(TABLE),
        lambda catalog, state: catalog.register(("db", "u"), state.metadata_location),
        lambda catalog, _: _has_tables(catalog, "u"),
    ),
    "load a table": Operation(
        create_table, lambda catalog, _: catalog.load(TABLE), lambda catalog, _: True
    ),
    "list tables": Operation(
        create_table, lambda catalog, _: catalog.list_tables(("db",)), lambda catalog, _: True
    ),
    "create a view": Operation(
        _place_of_view,
        lambda catalog, location: catalog.create_view(
            ("db", "v"), _view(location, "SELECT 1 AS id")
        ),
        lambda catalog, _: _exists(lambda: catalog.load_view(("db", "v"))),
    ),
    "change a view": Operation(
        _with_view,
        lambda catalog, base: catalog.commit_view(
            ("db", "v"), base, _view("", "SELECT 2 AS id")[2:]
        ),
        lambda catalog, _: catalog.load_view(("db", "v")).metadata.current_version_id == 2,
    ),
    "drop a view": Operation(
        _with_view,
        lambda catalog, _: catalog.drop_view(("db", "v")),
        lambda catalog, _: not _exists(lambda: catalog.load_view(("db", "v"))),
    ),
    "rename a view": Operation(
        _with_view,
        lambda catalog, _: catalog.rename_view(("db", "v"), ("db", "w")),
        lambda catalog, _: _exists(lambda: catalog.load_view(("db", "w"))),
    ),
}
READS = ("load a table", "list tables")
# With ids of their own, so that they are recognised when they come back.
RECOGNISED = ("create a table with rows", "append", "commit to two tables", "set properties")


def _is_done(fault: Fault) -> bool:
    return fault.name.startswith(("DONE", "ANSWER", "SENT", "LATE"))


@pytest.fixture
def proxy(quick_proxy: RestProxy) -> RestProxy:
    return quick_proxy


@pytest.mark.parametrize(
    ("name", "fault"),
    some([(name, fault) for fault in Fault for name in OPERATIONS], 20),
    ids=lambda part: part.name if isinstance(part, Fault) else part,
)
def test_what_is_said_of_the_outcome_holds(
    name: str, fault: Fault, rest: RestServer, proxy: RestProxy
) -> None:
    operation = OPERATIONS[name]
    for number in range(_MOST_REQUESTS):
        path = rest.new_catalog()
        plain = open_rest_catalog(rest.uri(path))
        made = operation.prepare(plain)
        timeout = "300" if fault is Fault.LATE else "60000"
        catalog = open_rest_catalog(
            rest.uri(path, proxy.port),
            **{"rest.client.socket-timeout-ms": timeout},
        )
        proxy.break_request(number, fault)
        try:
            operation.run(catalog, made)
            error = None
        except IcebergError as raised:
            error = raised
        requests = len(proxy.seen)
        is_done = operation.is_done(plain, made)
        where = f"{name}, {fault.name} at request {number}: {error!r}"
        if error is None:
            assert is_done, where
        elif not (error.outcome_unknown or name in READS or _says_it_is_so(name, fault, error)):
            assert not is_done, where
        if requests <= number:
            # A busy server may be late by itself.
            assert error is None or fault is Fault.LATE, where
            return
    raise AssertionError(f"{name} sends more than {_MOST_REQUESTS} requests")


def _says_it_is_so(name: str, fault: Fault, error: IcebergError) -> bool:
    """Whether an error says what is there: that what was created exists, what was dropped does not.

    If a proxy sends a request twice, the client cannot know who has done it.
    """
    twice = fault is Fault.SENT_TWICE and name not in RECOGNISED
    return twice and isinstance(error, AlreadyExistsError | NotFoundError)


@pytest.mark.parametrize(
    ("name", "fault"),
    some([(name, fault) for name in RECOGNISED for fault in Fault if _is_done(fault)], 12),
)
def test_a_commit_whose_answer_is_lost_is_found(
    name: str, fault: Fault, rest: RestServer, proxy: RestProxy
) -> None:
    operation = OPERATIONS[name]
    path = rest.new_catalog()
    made = operation.prepare(open_rest_catalog(rest.uri(path)))
    timeout = {"rest.client.socket-timeout-ms": "500"} if fault is Fault.LATE else {}
    catalog = open_rest_catalog(rest.uri(path, proxy.port), **timeout)
    broken = iter((fault,))
    proxy.fault = lambda seen: next(broken, None) if _is_commit(seen) else None
    operation.run(catalog, made)
    assert next(broken, None) is None
    assert operation.is_done(open_rest_catalog(rest.uri(path)), made)


def _is_commit(seen: Seen) -> bool:
    return seen.method == "POST" and seen.path.endswith(("/tables/t", "/transactions/commit"))


@pytest.mark.parametrize("fault", [Fault.NEVER_SENT, Fault.REFUSED_500, Fault.REFUSED_503])
def test_a_commit_that_may_still_come_is_unknown(
    fault: Fault, rest: RestServer, proxy: RestProxy
) -> None:
    path = rest.new_catalog()
    made = _prepare_append(open_rest_catalog(rest.uri(path)))
    catalog = open_rest_catalog(rest.uri(path, proxy.port))
    proxy.fault = lambda seen: fault if seen.method == "POST" else None
    with pytest.raises(CommitStateUnknownError, match=r"lake\.db\.t"):
        _append(catalog, made)
    assert len(proxy.paths("POST")) == 1


def test_a_throttled_commit_is_sent_again(rest: RestServer, proxy: RestProxy) -> None:
    path = rest.new_catalog()
    made = _prepare_append(open_rest_catalog(rest.uri(path)))
    catalog = open_rest_catalog(rest.uri(path, proxy.port))
    proxy.break_request(0, Fault.THROTTLED)
    _append(catalog, made)
    assert [seen.status for seen in proxy.seen if seen.method == "POST"][-1] == 200


def test_an_answer_to_another_request_is_not_taken_for_the_commits(
    rest: RestServer, proxy: RestProxy
) -> None:
    path = rest.new_catalog()
    made = _prepare_append(open_rest_catalog(rest.uri(path)))
    catalog = open_rest_catalog(rest.uri(path, proxy.port))
    bodies: list[Any] = []
    proxy.rewrite = lambda seen, body: bodies.append(body) or body
    catalog.load(TABLE)
    # As a cache that ignores the method would answer.
    proxy.rewrite = lambda seen, body: bodies[0] if seen.method == "POST" else body
    committed = _append(catalog, made)
    assert made[1][0].snapshot_id in committed.metadata.snapshots_by_id
    proxy.reply = lambda seen: bodies[0]
    with pytest.raises(CommitStateUnknownError, match="does not have the new snapshot"):
        _append(catalog, (committed, appending(committed)))


def test_an_answer_that_is_malformed_is_not_taken_for_a_failure(
    rest: RestServer, proxy: RestProxy
) -> None:
    path = rest.new_catalog()
    made = _prepare_append(open_rest_catalog(rest.uri(path)))
    catalog = open_rest_catalog(rest.uri(path, proxy.port))
    proxy.rewrite = lambda seen, body: {} if seen.method == "POST" else body
    committed = _append(catalog, made)
    assert made[1][0].snapshot_id in committed.metadata.snapshots_by_id


def test_a_server_that_stays_silent_is_given_up(
    rest: RestServer, proxy: RestProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"rest.client.socket-timeout-ms": "500", "rest.client.max-retries": "5"}
    catalog = open_rest_catalog(rest.uri(rest.new_catalog(), proxy.port), **options)
    monkeypatch.setattr(http, "_PATIENCE_S", 0.8)
    proxy.seen.clear()
    proxy.fault = lambda seen: Fault.LATE
    with pytest.raises(StorageError, match=r"there was no answer: none within 0\.5 s"):
        catalog.list_namespaces()
    assert len(proxy.seen) <= 2


@pytest.mark.parametrize(
    "name", ["create a table", "register a table", "create a view", "change a view"]
)
def test_an_answer_that_is_malformed_does_not_undo_what_was_done(
    name: str, rest: RestServer, proxy: RestProxy
) -> None:
    operation, path = OPERATIONS[name], rest.new_catalog()
    plain = open_rest_catalog(rest.uri(path))
    made = operation.prepare(plain)
    catalog = open_rest_catalog(rest.uri(path, proxy.port))
    proxy.fault = lambda seen: Fault.DONE_EMPTY if seen.method == "POST" else None
    if name.startswith("create"):
        # The server gives what it creates a UUID, so it is not known whose it is.
        with pytest.raises(CommitStateUnknownError, match="cannot be read"):
            operation.run(catalog, made)
    else:
        operation.run(catalog, made)
    assert operation.is_done(plain, made)


def test_a_change_is_not_found_in_another_table_of_the_same_name(
    rest: RestServer, proxy: RestProxy
) -> None:
    path = rest.new_catalog()
    plain = open_rest_catalog(rest.uri(path))
    base = create_table(plain)
    catalog = open_rest_catalog(rest.uri(path, proxy.port))

    def re_create(seen: Seen) -> Fault | None:
        if not _is_commit(seen):
            return None
        plain.drop(TABLE)
        created = plain.create(TABLE, new_table(plain, TABLE))
        plain.operations(TABLE).commit(created, [], [SetProperties({"k": "v"})])
        return Fault.NEVER_SENT

    proxy.fault = re_create
    with pytest.raises(CommitStateUnknownError):
        OPERATIONS["set properties"].run(catalog, base)
