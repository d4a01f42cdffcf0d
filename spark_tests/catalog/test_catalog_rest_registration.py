"""Tables and views of REST catalogs are registered, replaced and unregistered; labels."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator

import pyarrow as pa
import pytest
from rest_newer import NewerServer, newer_server
from rest_proxy import Fault, RestProxy
from rest_server import RestServer

import icebergds
from icebergds.api.catalog import Catalog
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitStateUnknownError,
    InvalidMetadataError,
    MissingFileError,
    NoSuchTableError,
    StorageError,
    UnsupportedFeatureError,
)
from icebergds.spec.updates.table_updates import SetProperties

_LABELS = {
    "object-labels": {"owner": "sales", "tier": "gold"},
    "fields": [
        {"field-id": 2, "labels": {"pii": "mail"}},
        {"field-id": 99, "labels": {"pii": "dropped"}},
    ],
}


@pytest.fixture
def server(rest: RestServer) -> Iterator[NewerServer]:
    with newer_server(rest) as server:
        yield server


@pytest.fixture
def catalog(server: NewerServer) -> Catalog:
    """A catalog with a table of two rows."""
    catalog = icebergds.load_catalog(
        "lake", uri=server.uri, **{"rest-metrics-reporting-enabled": "false"}
    )
    catalog.create_namespace("db")
    catalog.create_table("db.t", "id bigint, mail string").append(_rows(1, 2))
    return catalog


def _rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "mail": ["a@b.c"] * len(ids)})


def _count(catalog: Catalog, name: str = "db.t") -> int:
    return catalog.load_table(name).scan().count()


# Tables.


def test_a_table_is_unregistered_and_registered_again(catalog: Catalog) -> None:
    stale = catalog.load_table("db.t")
    catalog.load_table("db.t").append(_rows(3))
    last = catalog.load_table("db.t").metadata_location
    assert catalog.unregister_table("lake.db.t") == last
    assert not catalog.table_exists("db.t")
    with pytest.raises(NoSuchTableError):
        stale.append(_rows(4))
    assert catalog.register_table("db.u", last).scan().count() == 3


def test_what_is_no_table_is_not_unregistered(catalog: Catalog) -> None:
    catalog.create_view("db.v", "id bigint", "SELECT id FROM t")
    with pytest.raises(NoSuchTableError, match="nothing"):
        catalog.unregister_table("db.nothing")
    with pytest.raises(NoSuchTableError, match="is a view"):
        catalog.unregister_table("db.v")
    assert catalog.view_exists("db.v")


def test_a_server_without_the_endpoint_is_not_asked_to_unregister(rest: RestServer) -> None:
    catalog = icebergds.load_catalog("lake", uri=rest.uri(rest.new_catalog()))
    catalog.create_namespace("db")
    catalog.create_table("db.t", "id bigint")
    with pytest.raises(UnsupportedFeatureError, match=r"drop_table.*tables/\{table\}/unregister"):
        catalog.unregister_table("db.t")
    assert catalog.table_exists("db.t")


def test_a_lost_answer_of_unregister_is_unknown_and_tells_the_last_file(
    catalog: Catalog, server: NewerServer
) -> None:
    last = catalog.load_table("db.t").metadata_location
    proxy, reply = server.proxy, server.proxy.reply
    # The server does it, but its answer lacks what is asked for.
    proxy.reply = lambda seen: reply(seen) and {"metadata": {}}
    with pytest.raises(CommitStateUnknownError, match="unregister table") as raised:
        catalog.unregister_table("db.t")
    assert last in str(raised.value)
    assert not catalog.table_exists("db.t")


def test_a_table_is_replaced_by_another_registration(catalog: Catalog) -> None:
    table = catalog.load_table("db.t")
    first = table.metadata_location
    table.append(_rows(3))
    stale = catalog.load_table("db.t")
    with pytest.raises(AlreadyExistsError):
        catalog.register_table("db.t", first)
    assert catalog.register_table("db.t", first, overwrite=True).scan().count() == 2
    assert _count(catalog) == 2
    assert catalog.register_table("db.new", first, True).scan().count() == 2
    with pytest.raises(CommitConflictError):
        catalog._catalog.operations(("db", "t")).commit(
            stale._state, [], [SetProperties({"k": "v"})]
        )
    stale.refresh().append(_rows(5))
    assert _count(catalog) == 3


def test_a_server_that_cannot_replace_tables_is_named(rest: RestServer) -> None:
    catalog = icebergds.load_catalog("lake", uri=rest.uri(rest.new_catalog()))
    catalog.create_namespace("db")
    location = catalog.create_table("db.t", "id bigint").metadata_location
    catalog.load_table("db.t").append(pa.table({"id": [1]}))
    with pytest.raises(UnsupportedFeatureError, match=r"lake\.db\.t was not replaced.*drop_table"):
        catalog.register_table("db.t", location, overwrite=True)
    assert catalog.load_table("db.t").scan().count() == 1


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.DONE_EMPTY, Fault.DONE_500])
def test_a_registration_whose_answer_is_lost_is_looked_for(
    rest: RestServer, quick_proxy: RestProxy, fault: Fault
) -> None:
    catalog = icebergds.load_catalog("lake", uri=rest.uri(rest.new_catalog(), quick_proxy.port))
    catalog.create_namespace("db")
    location = catalog.create_view("db.v", "id bigint", "SELECT 1 AS id").metadata_location
    quick_proxy.fault = lambda seen: fault if "register" in seen.path else None
    assert catalog.register_view("db.w", location).metadata_location == location
    assert catalog.list_views("db") == [("db", "v"), ("db", "w")]


# Views.


def test_a_view_is_registered_by_its_metadata(catalog: Catalog, server: NewerServer) -> None:
    made = catalog.create_view("db.v", "id bigint", "SELECT id FROM t")
    server.proxy.seen.clear()
    view = catalog.register_view("lake.db.w", made.metadata_location)
    [sent] = [seen for seen in server.proxy.seen if seen.method == "POST"]
    assert sent.path.endswith("/v1/namespaces/db/register-view")
    assert json.loads(sent.body) == {"name": "w", "metadata-location": made.metadata_location}
    assert (view.name, view.sql_for()) == ("lake.db.w", "SELECT id FROM t")
    assert view.uuid == made.uuid


def test_views_without_metadata_or_endpoint_are_not_registered(
    catalog: Catalog, server: NewerServer
) -> None:
    with pytest.raises(MissingFileError, match=r"view lake\.db\.w.*nothing\.metadata\.json"):
        catalog.register_view("db.w", "/nothing.metadata.json")
    with pytest.raises(MissingFileError, match=r"table lake\.db\.w.*nothing\.metadata\.json"):
        catalog.register_table("db.w", "/nothing.metadata.json")
    rewrite = server.proxy.rewrite
    server.proxy.rewrite = lambda seen, body: _without_views(rewrite(seen, body))
    others = icebergds.load_catalog("lake", uri=server.uri, **{"header.x": "another session"})
    with pytest.raises(UnsupportedFeatureError, match="register-view"):
        others.register_view("db.w", "/nothing.metadata.json")


def _without_views(body: object) -> object:
    if isinstance(body, dict) and "endpoints" in body:
        kept = [each for each in body["endpoints"] if "register-view" not in each]
        return {**body, "endpoints": kept}
    return body


# Labels.


def test_labels_are_shown_and_are_not_part_of_the_table(
    catalog: Catalog, server: NewerServer
) -> None:
    assert not catalog.load_table("db.t").labels
    catalog.create_view("db.v", "id bigint", "SELECT id FROM t")
    server.labels = {"u": _LABELS, "v": _LABELS}
    catalog.rename_table("db.t", "db.u")
    table = catalog.load_table("db.u")
    assert table.labels.object_labels == {"owner": "sales", "tier": "gold"}
    assert table.labels.field_labels == {2: {"pii": "mail"}, 99: {"pii": "dropped"}}
    assert "owner = sales, tier = gold, mail: pii = mail, #99: pii = dropped" in repr(table)
    assert catalog.load_view("db.v").labels == table.labels
    assert "owner" not in table.properties
    table.append(_rows(3))
    assert table.labels, "the answer of a commit has none"
    assert not pickle.loads(pickle.dumps(table)).labels
    assert catalog.load_table("db.u").labels == table.labels
    server.labels = {}
    assert catalog.load_table("db.u").labels == table.labels
    assert server.proxy.seen[-1].status == 304


@pytest.mark.parametrize(
    "labels", [[], {"fields": {}}, {"object-labels": 5}, {"fields": [{"labels": {}}]}]
)
def test_malformed_labels_are_named(catalog: Catalog, server: NewerServer, labels: object) -> None:
    server.labels = {"u": labels}
    # It loads the table by its new name.
    with pytest.raises(InvalidMetadataError, match="labels"):
        catalog.rename_table("db.t", "db.u")


# Views that lead to a table.


def test_a_table_is_loaded_through_views(catalog: Catalog, server: NewerServer) -> None:
    server.readable_by = {"t": ["db", "v,1"]}
    with pytest.raises(StorageError, match="403"):
        catalog.load_table("db.t").refresh()
    through = catalog._referenced_by([("a", "b", "outer"), ("db", "v,1")])
    assert through.load_table("db.t").scan().count() == 2
    path = server.proxy.paths("GET")[-1]
    assert "?referenced-by=a%1Fb%1Fouter,db%1Fv%2C1&snapshots=" in path
    assert server.chains[-1] == ("t", [["a", "b", "outer"], ["db", "v,1"]])
    # The same catalog without the views gets nothing of what it may not read.
    with pytest.raises(StorageError, match="403"):
        catalog.load_table("db.t")


def test_what_was_loaded_through_a_view_is_kept_for_that_view(
    catalog: Catalog, server: NewerServer
) -> None:
    through = catalog._referenced_by([("db", "v")])
    server.proxy.seen.clear()
    through.load_table("db.t")
    catalog._referenced_by([("db", "w")]).load_table("db.t")
    through.load_table("db.t")
    assert [seen.status for seen in server.proxy.seen] == [200, 200, 304]
    catalog.drop_table("db.t")
    with pytest.raises(NoSuchTableError):
        through.load_table("db.t")


def test_views_of_views_are_loaded_through_them(catalog: Catalog, server: NewerServer) -> None:
    catalog.create_view("db.v", "id bigint", "SELECT id FROM t")
    catalog._referenced_by([("db", "outer")]).load_view("db.v")
    assert server.chains == [("v", [["db", "outer"]])]


def test_a_view_whose_name_would_be_misread_is_not_told(rest: RestServer) -> None:
    with newer_server(rest) as server:
        server.separator = "."
        catalog = icebergds.load_catalog("lake", uri=server.uri)
        catalog.create_namespace("db")
        catalog.create_table("db.t", "id bigint")
        catalog._referenced_by([("db", "a.b")]).load_table("db.t")
        catalog._referenced_by([("db", "ab")]).load_table("db.t")
        gets = [path for path in server.proxy.paths("GET") if "/tables/t" in path]
        assert ["referenced-by" in path for path in gets] == [False, True]
        assert "referenced-by=db.ab&" in gets[-1]
