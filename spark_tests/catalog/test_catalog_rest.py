"""The REST catalog as a client: its configuration, requests, errors and secrets."""

from __future__ import annotations

import json
import logging
import pickle
import re
import time
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from rest_proxy import Fault, RestProxy, Seen
from rest_server import RestServer
from rest_tables import TABLE, appending, create_table, open_rest_catalog

import icebergds
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidOptionError,
    NoSuchTableError,
    NoSuchViewError,
    StorageError,
    UnsupportedFeatureError,
)
from icebergds.spec.types import LONG, NestedField
from icebergds.spec.updates.table_updates import (
    LAST_ADDED,
    AddSchema,
    SetCurrentSchema,
    SetProperties,
    TableUpdate,
    UpgradeFormatVersion,
)
from icebergds.testing.catalog_steps import new_table


@pytest.fixture
def proxy(quick_proxy: RestProxy) -> RestProxy:
    return quick_proxy


@pytest.fixture
def uri(rest: RestServer, proxy: RestProxy) -> str:
    """The address of a new catalog by way of the proxy."""
    return rest.uri(rest.new_catalog(), proxy.port)


def _rewriting_config(proxy: RestProxy, **members: Any) -> None:
    """Changes members of the configuration that the server sends."""

    def rewrite(seen: Seen, body: Any) -> Any:
        if "/v1/config" not in seen.path:
            return body
        for member, value in members.items():
            key = member.replace("_", "-")
            old = body.get(key)
            merged = {**old, **value} if isinstance(old, dict) else value
            body[key] = [*old, *value] if isinstance(old, list) else merged
        return body

    proxy.rewrite = rewrite


# Loading.


def test_an_unchanged_table_is_not_sent_again(uri: str, proxy: RestProxy) -> None:
    catalog = open_rest_catalog(uri)
    create_table(catalog)
    first = catalog.load(TABLE)
    proxy.seen.clear()
    # Another catalog object of the same process, too.
    second = open_rest_catalog(uri).load(TABLE)
    assert [seen.status for seen in proxy.seen] == [304]
    assert second == first
    catalog.operations(TABLE).commit(second, [], [SetProperties({"k": "v"})])
    assert catalog.load(TABLE).metadata.properties["k"] == "v"


def test_a_change_by_others_is_seen(rest: RestServer, uri: str, proxy: RestProxy) -> None:
    catalog = open_rest_catalog(uri)
    create_table(catalog)
    catalog.load(TABLE)
    others = open_rest_catalog(rest.uri(uri[uri.rindex("/") :]))
    others.operations(TABLE).commit(others.load(TABLE), [], [SetProperties({"k": "v"})])
    assert catalog.load(TABLE).metadata.properties["k"] == "v"
    others.drop(TABLE)
    with pytest.raises(NoSuchTableError):
        catalog.load(TABLE)
    create_table(others)
    assert "k" not in catalog.load(TABLE).metadata.properties


def test_a_missing_table_is_named_with_a_similar_one(uri: str) -> None:
    catalog = open_rest_catalog(uri)
    create_table(catalog, ("db", "events"))
    with pytest.raises(NoSuchTableError, match=r"lake\.db\.evnts .*did you mean db\.events\?"):
        catalog.load(("db", "evnts"))
    with pytest.raises(NoSuchTableError, match="no namespace bd; there are db"):
        catalog.load(("bd", "events"))


@pytest.mark.parametrize(
    "identifier", [("t",), ("db", ""), ("", "t"), ("db", ".."), (".", "t"), ("db", "\ud800")]
)
def test_names_that_no_path_can_have_are_refused(uri: str, identifier: tuple[str, ...]) -> None:
    catalog = open_rest_catalog(uri)
    catalog.create_namespace(("db",), {})
    updates, view = new_table(catalog, TABLE), ()
    for use in (
        catalog.load,
        catalog.drop,
        catalog.new_table_location,
        lambda name: catalog.create(name, updates),
        lambda name: catalog.register(name, "/t/metadata/v1.metadata.json"),
        lambda name: catalog.rename(TABLE, name),
        lambda name: catalog.create_view(name, view),
    ):
        with pytest.raises(InvalidOptionError, match="catalog lake"):
            use(identifier)
    assert catalog.list_tables(("db",)) == []


def test_a_part_of_a_namespace_does_not_contain_the_separator(uri: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"'a\.b' of a namespace contains '\.'"):
        open_rest_catalog(uri).create_namespace(("a.b",), {})


# Configuration.


def test_the_server_is_asked_for_its_configuration_once(uri: str, proxy: RestProxy) -> None:
    for _ in range(3):
        open_rest_catalog(uri, warehouse="a/ware house").list_namespaces()
    asked = [path for path in proxy.paths("GET") if "/v1/config" in path]
    assert len(asked) == 1
    assert asked[0].endswith("/v1/config?warehouse=a%2Fware%20house")


def test_defaults_give_way_and_overrides_do_not(uri: str, proxy: RestProxy) -> None:
    _rewriting_config(
        proxy,
        defaults={"header.X-Default": "server", "header.X-Both": "server", "s3.region": "there"},
        overrides={"header.X-Override": "server", "s3.endpoint": "http://s3.example.org"},
    )
    catalog = open_rest_catalog(
        uri, **{"header.X-Both": "mine", "header.X-Override": "mine", "s3.endpoint": "http://mine"}
    )
    catalog.list_namespaces()
    headers = proxy.seen[-1].headers
    sent = [headers[f"X-{name}"] for name in ("Default", "Both", "Override")]
    assert sent == ["server", "mine", "server"]
    assert catalog.io.properties["s3.endpoint"] == "http://s3.example.org"
    assert catalog.io.properties["s3.region"] == "there"


def test_a_server_can_neither_allow_schemes_nor_name_code(uri: str, proxy: RestProxy) -> None:
    names = ("storage-schemes", "max-metadata-bytes", "metrics-reporter-impl")
    _rewriting_config(
        proxy, defaults=dict.fromkeys(names, "9"), overrides=dict.fromkeys(names, "9")
    )
    assert open_rest_catalog(uri).io.properties == {}


def test_a_server_may_prescribe_properties_of_new_tables(uri: str, proxy: RestProxy) -> None:
    _rewriting_config(
        proxy,
        defaults={"table-default.owner": "server", "table-default.comment": "server"},
        overrides={"table-override.gc.enabled": "false"},
    )
    catalog = icebergds.load_catalog("lake", uri=uri, warehouse="a name")
    catalog.create_namespace("db")
    given = {"comment": "mine", "gc.enabled": "true"}
    properties = catalog.create_table("db.t", "id bigint", properties=given).properties
    found = [properties[name] for name in ("owner", "comment", "gc.enabled")]
    assert found == ["server", "mine", "false"]
    # The name of a warehouse is no location, for other processes either.
    assert catalog.address("db.t").catalog_properties["warehouse"] == "a name"


def test_a_view_and_a_table_are_told_apart(uri: str) -> None:
    catalog = icebergds.load_catalog("lake", uri=uri)
    catalog.create_namespace("db")
    catalog.create_view("db.v", "id bigint", "SELECT 1 AS id")
    catalog.create_table("db.t", "id bigint")
    with pytest.raises(NoSuchTableError, match=r"lake\.db\.v is a view.*load_view"):
        catalog.load_table("db.v")
    with pytest.raises(NoSuchTableError, match=r"lake\.db\.v is a view.*drop_view"):
        catalog.drop_table("db.v")
    with pytest.raises(NoSuchTableError, match=r"lake\.db\.v is a view.*rename_view"):
        catalog.rename_table("db.v", "db.w")
    with pytest.raises(NoSuchViewError, match=r"lake\.db\.t is a table.*drop_table"):
        catalog.drop_view("db.t")


def test_a_server_does_not_decide_how_it_is_trusted(uri: str, proxy: RestProxy) -> None:
    _rewriting_config(
        proxy,
        overrides={
            "rest.auth.type": "subprocess.Popen",
            "auth.custom.args": "/bin/false",
            "oauth2-server-uri": "http://127.0.0.1:1/thief",
            "ssl.cabundle": "/nowhere",
        },
    )
    catalog = open_rest_catalog(uri, token="abcdef")
    catalog.list_namespaces()
    assert proxy.seen[-1].headers["Authorization"] == "Bearer abcdef"
    served = {"rest.auth.type", "auth.custom.args", "oauth2-server-uri", "ssl.cabundle"}
    assert served.isdisjoint(catalog.session.config.properties)


def test_a_wrong_address_is_told_from_a_wrong_warehouse(uri: str, proxy: RestProxy) -> None:
    with pytest.raises(InvalidOptionError, match="as uri that comes before /v1/config"):
        open_rest_catalog(uri[: uri.rindex("/")], warehouse="lake")
    proxy.refuse = lambda seen: 404
    proxy.kind = "NoSuchWarehouseException"
    with pytest.raises(InvalidOptionError, match=r"catalog lake: .* has no warehouse 'lake'"):
        open_rest_catalog(uri, warehouse="lake")


def test_paths_have_the_servers_prefix(uri: str, proxy: RestProxy) -> None:
    _rewriting_config(proxy, overrides={"prefix": "catalogs/my lake"})
    catalog = open_rest_catalog(uri)
    proxy.reply = lambda seen: {"namespaces": []} if "/namespaces" in seen.path else None
    catalog.list_namespaces()
    assert "/v1/catalogs/my%20lake/namespaces?" in proxy.paths("GET")[-1]


def test_parts_of_namespaces_are_joined_as_the_server_says(uri: str, proxy: RestProxy) -> None:
    catalog = open_rest_catalog(uri)
    create_table(catalog, ("a", "b c", "t"))
    assert "/namespaces/a%2Eb%20c/tables" in proxy.paths("POST")[-1].replace("a.b", "a%2Eb")
    _rewriting_config(proxy, overrides={"namespace-separator": "%1F"})
    other = open_rest_catalog(uri, **{"header.X-Other": "1"})
    proxy.reply = lambda seen: {"namespaces": []}
    other.list_namespaces(("a", "b c"))
    assert "parent=a%1Fb%20c" in proxy.paths("GET")[-1]


def test_what_the_server_does_not_support_is_refused_by_name(uri: str, proxy: RestProxy) -> None:
    def rewrite(seen: Seen, body: Any) -> Any:
        if "/v1/config" in seen.path:
            body["endpoints"] = ["GET /v1/{prefix}/namespaces/{namespace}/tables/{table}"]
        return body

    proxy.rewrite = rewrite
    catalog = open_rest_catalog(uri)
    uses = {
        "views": lambda: catalog.list_views(("db",)),
        "renaming": lambda: catalog.rename(TABLE, ("db", "u")),
        "registering": lambda: catalog.register(TABLE, "/x.metadata.json"),
        "properties": lambda: catalog.update_namespace_properties(("db",), [], {"k": "v"}),
    }
    for what, use in uses.items():
        with pytest.raises(UnsupportedFeatureError, match=f"catalog lake: .*{what}"):
            use()


@pytest.mark.parametrize(
    ("properties", "hint"),
    [
        ({"uri": "http://me:s3cr3t@127.0.0.1:1"}, "uri contains a user or password"),
        ({"uri": "http://"}, "uri is not the address"),
        ({"uri": "http://127.0.0.1:1/?token=s3cr3t"}, "uri is not the address"),
        ({"uri": "http://127.0.0.1:1", "tokn": "x"}, "no property 'tokn'; did you mean 'token'"),
        ({"uri": "http://127.0.0.1:1", "rest.signing-nme": "x"}, "did you mean 'rest.signing-name"),
        ({"uri": "http://127.0.0.1:1", "rest.client.max-retries": "-1"}, "max-retries is '-1'"),
        ({"uri": "http://127.0.0.1:1", "ssl.client.key": "k"}, "ssl.client.cert"),
    ],
)
def test_malformed_properties_are_refused(properties: dict[str, str], hint: str) -> None:
    with pytest.raises(InvalidOptionError, match=rf"catalog lake: .*{hint}") as raised:
        open_rest_catalog(**properties)
    assert "s3cr3t" not in str(raised.value)


def test_beginnings_of_properties_that_are_misspelt_are_warned_of(
    uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    open_rest_catalog(uri, **{"hedaer.X-Tenant": "a", "table-default.x": "y", "spark.y": "z"})
    [said] = [record.getMessage() for record in caplog.records if "no effect" in record.msg]
    assert said.endswith("property 'hedaer.X-Tenant' has no effect; did you mean 'header'?")


@pytest.mark.parametrize(
    ("properties", "error"),
    [
        ({"snapshot-loading-mode": "none"}, InvalidOptionError),
        ({"rest-page-size": "0"}, InvalidOptionError),
        ({"scan-planning-mode": "both"}, InvalidOptionError),
    ],
)
def test_modes_are_checked(uri: str, properties: dict[str, str], error: type[Exception]) -> None:
    with pytest.raises(error, match=f"catalog lake: {next(iter(properties))}"):
        open_rest_catalog(uri, **properties)


# Listing.


@pytest.mark.parametrize("size", ["1", "2", "100"])
def test_all_pages_are_listed(uri: str, proxy: RestProxy, size: str) -> None:
    catalog = open_rest_catalog(uri, **{"rest-page-size": size})
    for i in range(5):
        create_table(catalog, ("db", f"t{i}"))
        catalog.create_namespace((f"n{i}",), {})
    proxy.seen.clear()
    assert catalog.list_tables(("db",)) == [("db", f"t{i}") for i in range(5)]
    assert len(catalog.list_namespaces()) == 6
    assert (len(proxy.paths("GET")) > 2) == (size != "100")


def test_a_listing_without_end_is_refused(uri: str, proxy: RestProxy) -> None:
    proxy.reply = lambda seen: (
        {"namespaces": [], "next-page-token": "again"} if "/namespaces" in seen.path else None
    )
    with pytest.raises(icebergds.errors.InvalidMetadataError, match="page token twice"):
        open_rest_catalog(uri).list_namespaces()


# Requests.


def test_reads_are_sent_again(uri: str, proxy: RestProxy) -> None:
    catalog = open_rest_catalog(uri)
    create_table(catalog)
    for fault in (Fault.NEVER_SENT, Fault.REFUSED_500, Fault.DONE_502, Fault.DONE_HTML):
        proxy.break_request(0, fault)
        catalog.load(TABLE)
        assert len(proxy.seen) == 2


def test_a_server_that_asks_to_wait_is_given_time(uri: str, proxy: RestProxy) -> None:
    catalog = open_rest_catalog(uri)
    proxy.break_request(0, Fault.THROTTLED)
    catalog.list_namespaces()
    assert len(proxy.seen) == 2


def test_a_server_that_does_not_answer_is_told(rest: RestServer, uri: str) -> None:
    started = time.monotonic()
    with pytest.raises(StorageError, match=r"catalog lake: GET .* the server cannot be reached"):
        open_rest_catalog("http://127.0.0.1:1", **{"rest.client.max-retries": "1"})
    assert time.monotonic() - started < 5


def test_an_answer_that_comes_too_late_is_not_waited_for(uri: str, proxy: RestProxy) -> None:
    catalog = open_rest_catalog(
        uri, **{"rest.client.socket-timeout-ms": "200", "rest.client.max-retries": "0"}
    )
    proxy.break_request(0, Fault.LATE)
    with pytest.raises(StorageError, match=r"no answer: none within 0\.2 s"):
        catalog.list_namespaces()


def test_what_is_no_catalog_is_told(uri: str, proxy: RestProxy) -> None:
    proxy.fault = lambda seen: Fault.DONE_HTML
    with pytest.raises(StorageError, match="is the uri that of an Iceberg REST catalog"):
        open_rest_catalog(uri)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed(uri: str, proxy: RestProxy, status: int) -> None:
    proxy.refuse, proxy.location = lambda seen: status, f"{uri}/elsewhere?secret=1"
    with pytest.raises(StorageError, match=r"redirects to .*/elsewhere; set that address as"):
        open_rest_catalog(uri, token="abcdef")
    assert len(proxy.seen) == 1


def test_credentials_of_netrc_are_not_sent(
    uri: str, proxy: RestProxy, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    open_rest_catalog(uri)
    assert "Authorization" not in proxy.seen[0].headers


# Idempotency keys.


def test_without_idempotency_keys_a_commit_is_sent_once(uri: str, proxy: RestProxy) -> None:
    catalog = open_rest_catalog(uri)
    state = create_table(catalog)
    proxy.break_request(0, Fault.DONE_503)
    catalog.operations(TABLE).commit(state, [], [SetProperties({"k": "v"})])
    assert len(proxy.paths("POST")) == 1
    assert "Idempotency-Key" not in proxy.seen[0].headers


def test_a_commit_is_sent_again_with_its_idempotency_key(uri: str, proxy: RestProxy) -> None:
    _rewriting_config(proxy, idempotency_key_lifetime="PT30M")
    catalog = open_rest_catalog(uri)
    state = create_table(catalog)
    for fault in (Fault.ANSWER_LOST, Fault.REFUSED_500, Fault.DONE_504, Fault.DONE_HTML):
        proxy.break_request(0, fault)
        snapshot, updates = appending(state)
        state = catalog.operations(TABLE).commit(state, [], updates)
        assert snapshot.snapshot_id in state.metadata.snapshots_by_id
        posts = [s for s in proxy.seen if s.method == "POST" and s.path.endswith("/t")]
        keys = [each.headers["Idempotency-Key"] for each in posts]
        assert keys[0] == keys[1]
        assert re.fullmatch(
            r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-.{12}", keys[0]
        )


def test_each_change_has_its_own_idempotency_key(uri: str, proxy: RestProxy) -> None:
    _rewriting_config(proxy, idempotency_key_lifetime="PT30M")
    catalog = open_rest_catalog(uri)
    create_table(catalog)
    create_table(catalog, ("db", "u"))
    catalog.drop(TABLE)
    keys = [s.headers["Idempotency-Key"] for s in proxy.seen if s.method != "GET"]
    assert len(set(keys)) == len(keys) >= 4


def test_a_key_is_not_used_after_its_lifetime(uri: str, proxy: RestProxy) -> None:
    _rewriting_config(proxy, idempotency_key_lifetime="PT0.001S")
    catalog = open_rest_catalog(uri)
    state = create_table(catalog)
    proxy.break_request(0, Fault.DONE_500)
    catalog.operations(TABLE).commit(state, [], [SetProperties({"k": "v"})])
    assert len(proxy.paths("POST")) == 1


# Creating and committing.


@pytest.mark.parametrize("rows", [False, True], ids=["empty", "with rows"])
def test_a_table_of_another_version_than_asked_for_is_not_created(
    uri: str, proxy: RestProxy, rows: bool
) -> None:
    def downgrade(seen: Seen, body: Any) -> Any:
        if "metadata" in body and seen.method == "POST":
            body["metadata"]["format-version"] = 2
        return body

    catalog = open_rest_catalog(uri)
    catalog.create_namespace(("db",), {})
    updates: list[TableUpdate] = [
        UpgradeFormatVersion(3) if isinstance(each, UpgradeFormatVersion) else each
        for each in new_table(catalog, TABLE)
    ]
    if rows:
        snapshot, appended = appending()
        added = replace(snapshot, first_row_id=0, added_rows=0)
        updates += [replace(appended[0], snapshot=added), appended[1]]
    proxy.rewrite = downgrade
    with pytest.raises(UnsupportedFeatureError, match=r"lake\.db\.t: .* version 2, although .* 3"):
        catalog.create(TABLE, updates)
    assert catalog.list_tables(("db",)) == []


def test_a_table_may_be_created_in_each_version(uri: str) -> None:
    catalog = icebergds.load_catalog("lake", uri=uri)
    catalog.create_namespace("db")
    for version in ("1", "2", "3"):
        table = catalog.create_table(
            f"db.t{version}",
            "id bigint NOT NULL, s string, p struct<x: int, y: array<int>>",
            partition_spec="bucket(4, id), s",
            sort_order="id desc",
            properties={"format-version": version, "k": "v"},
        )
        assert table.metadata.format_version == int(version)
        assert [field.name for field in table.spec().fields] == ["id_bucket", "s"]
        assert "format-version" not in table.properties
        table.append(pa.table({"id": [1], "s": ["a"], "p": [{"x": 1, "y": [1]}]}))
        assert table.refresh().current_snapshot().summary["total-records"] == "1"


def test_a_server_that_stages_no_tables_chooses_their_locations(uri: str, proxy: RestProxy) -> None:
    plain = open_rest_catalog(uri)
    plain.create_namespace(("db",), {})
    expected = plain.new_table_location(TABLE)

    def refuse(seen: Seen) -> int | None:
        # As S3 Tables, which neither stages tables nor takes a location for them.
        body = json.loads(seen.body) if seen.path.endswith("/tables") and seen.body else {}
        return 400 if body.get("stage-create") or "location" in body else None

    def without_location(seen: Seen, body: Any) -> Any:
        body.get("properties", {}).pop("location", None)
        return body

    proxy.refuse, proxy.rewrite = refuse, without_location
    catalog = icebergds.load_catalog("lake", uri=uri)
    table = catalog.create_table("db.t", "id bigint")
    assert table.location() == expected
    table.append(pa.table({"id": [1]}))
    updates = [*new_table(plain, ("db", "u")), *appending()[1]]
    with pytest.raises(UnsupportedFeatureError, match=r"lake\.db\.u: .* create_table"):
        plain.create(("db", "u"), updates)


def test_parts_that_a_table_had_before_come_back(uri: str) -> None:
    catalog = icebergds.load_catalog("lake", uri=uri)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id bigint, s string", sort_order="id")
    with table.update_schema() as update:
        update.add_column("x", "int")
    with table.update_schema() as update:
        update.delete_column("x")
    assert [s.schema_id for s in table.metadata.schemas] == [0, 1]
    assert table.metadata.current_schema_id == 0
    for _ in range(2):
        with table.update_spec() as update:
            update.add_field("s")
        with table.update_spec() as update:
            update.remove_field("s")
    assert len(table.metadata.partition_specs) == 2
    assert table.metadata.default_spec_id == 0
    for order in ("s", "id"):
        with table.update_sort_order() as update:
            update.asc(order)
    assert table.metadata.default_sort_order_id == 1


def test_a_commit_requires_all_of_its_base_that_can_be_named(uri: str, proxy: RestProxy) -> None:
    catalog = open_rest_catalog(uri)
    state = create_table(catalog)
    _, updates = appending(state)
    state = catalog.operations(TABLE).commit(state, [], updates)
    catalog.operations(TABLE).commit(state, [], [SetProperties({"k": "v"})])
    first, second = (json.loads(each.body) for each in proxy.seen if b'"updates"' in each.body)
    for body, snapshot_id in ((first, None), (second, state.metadata.current_snapshot_id)):
        found = {each["type"]: each for each in body["requirements"]}
        assert found["assert-table-uuid"]["uuid"] == state.metadata.table_uuid
        assert found["assert-ref-snapshot-id"]["snapshot-id"] == snapshot_id
        assert found.keys() >= {
            "assert-current-schema-id",
            "assert-last-assigned-field-id",
            "assert-default-spec-id",
            "assert-last-assigned-partition-id",
            "assert-default-sort-order-id",
        }


def test_a_commit_of_nothing_sends_nothing(uri: str, proxy: RestProxy) -> None:
    catalog = open_rest_catalog(uri)
    state = create_table(catalog)
    state = catalog.operations(TABLE).commit(state, [], [SetProperties({"k": "v"})])
    proxy.seen.clear()
    assert catalog.operations(TABLE).commit(state, [], [SetProperties({"k": "v"})]) is state
    assert proxy.seen == []


def test_a_conflict_of_schemas_is_told(rest: RestServer, uri: str) -> None:
    ours, others = open_rest_catalog(uri), open_rest_catalog(rest.uri(uri[uri.rindex("/") :]))
    state = create_table(ours)
    schema = state.metadata.schema()
    wider = replace(schema, fields=(*schema.fields, NestedField(3, "more", LONG)))
    others.operations(TABLE).commit(
        others.load(TABLE), [], [AddSchema(wider), SetCurrentSchema(LAST_ADDED)]
    )
    with pytest.raises(CommitConflictError, match=r"lake\.db\.t was changed by another commit"):
        ours.operations(TABLE).commit(state, [], [SetProperties({"k": "v"})])


def test_two_writers_do_not_create_the_same_table(uri: str) -> None:
    catalog = open_rest_catalog(uri)
    catalog.create_namespace(("db",), {})
    first, second = ([*new_table(catalog, TABLE), *appending()[1]] for _ in range(2))
    created = catalog.create(TABLE, first)
    with pytest.raises(AlreadyExistsError, match=r"lake\.db\.t already exists"):
        catalog.create(TABLE, second)
    assert catalog.load(TABLE).metadata == created.metadata


# Secrets.


def test_no_secret_is_told(uri: str, proxy: RestProxy, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secrets = ("token-secret", "header-secret")
    catalog = open_rest_catalog(uri, token=secrets[0], **{"header.X-Key": secrets[1]})
    create_table(catalog)
    told = []
    # A server that tells what it got.
    proxy.rewrite = lambda seen, body: {"namespaces": f"{seen.headers}"}
    for use in (
        catalog.list_namespaces,
        lambda: catalog.load(("db", "missing")),
        lambda: catalog.drop(("db", "missing")),
    ):
        with pytest.raises(icebergds.errors.IcebergError) as raised:
            use()
        told.append(f"{raised.value!r} {raised.value}")
        told.append(str(pickle.dumps(raised.value)))
    told += [repr(each) for each in (catalog, catalog.operations(TABLE), catalog.session)]
    told.append(caplog.text)
    for secret in secrets:
        assert secret not in " ".join(told)


def test_an_error_that_quotes_a_secret_hides_it(uri: str, proxy: RestProxy) -> None:
    catalog = open_rest_catalog(uri, token="token-secret")
    proxy.reply = lambda seen: None
    proxy.refuse = lambda seen: 400
    with pytest.raises(StorageError) as raised:
        catalog.list_namespaces(("token-secret",))
    assert "400" in str(raised.value)
    assert "token-secret" not in str(raised.value)


def test_what_is_forbidden_is_said_with_a_remedy(uri: str, proxy: RestProxy) -> None:
    catalog = open_rest_catalog(uri)
    proxy.refuse = lambda seen: 403
    with pytest.raises(StorageError, match=r"403.*; the server .* does not permit it: ask for"):
        catalog.load(TABLE)


def test_errors_survive_pickling(uri: str, proxy: RestProxy) -> None:
    catalog = open_rest_catalog(uri)
    proxy.refuse = lambda seen: 403
    with pytest.raises(StorageError) as raised:
        catalog.list_namespaces()
    copy = pickle.loads(pickle.dumps(raised.value))
    assert str(copy) == str(raised.value)
    assert copy.status == 403
