"""Tables of a REST catalog are accessed with the credentials that the catalog vends."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from rest_proxy import Seen, rest_proxy
from rest_server import RestServer
from rest_tables import TABLE, open_rest_catalog
from rest_vending import Vending, vending_catalog
from s3_server import S3Server

import icebergds
from icebergds.catalog.rest.catalog import RestCatalog
from icebergds.errors import StorageError
from icebergds.io import vended_credentials
from icebergds.io.fileio import FileIO
from icebergds.testing.catalog_steps import create_table, new_table


@pytest.fixture
def vending(rest: RestServer, s3: S3Server) -> Iterator[Vending]:
    with vending_catalog(rest, s3) as made:
        yield made


def _open(vending: Vending, **properties: str) -> RestCatalog:
    return open_rest_catalog(vending.uri, **properties)


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def test_credentials_are_asked_for(vending: Vending) -> None:
    _open(vending)
    asked = vending.proxy.seen[0].headers["X-Iceberg-Access-Delegation"]
    assert asked == "vended-credentials,remote-signing"


def test_rows_are_written_and_read_with_vended_keys(vending: Vending) -> None:
    catalog = icebergds.load_catalog("lake", uri=vending.uri)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id bigint")
    table.append(pa.table({"id": [1, 2]}))
    table.append(pa.table({"id": [3]}))
    assert table.inspect.files().num_rows == 2
    assert set(vending.guard.used) <= set(vending.keys)
    catalog.purge_table("db.t")


def test_the_longest_prefix_counts(vending: Vending) -> None:
    bucket = vending.bucket
    vending.prefixes = ("s3", f"s3://{bucket}/lake/db/t/data", f"s3://{bucket}/lake")
    catalog = _open(vending)
    state = create_table(catalog, TABLE)
    whole, data, lake = vending.keys[-3:]
    location = state.metadata.location
    for path, key in (
        (f"{location}/data/1", data),
        (f"s3a://{bucket}/lake/db/t/data/1", data),
        (f"{location}/metadata/1", lake),
        (f"s3://{bucket}/elsewhere", whole),
    ):
        vending.guard.used.clear()
        state.io.write(path, b"rows")
        assert set(vending.guard.used) == {key}


def test_vended_keys_replace_the_users_own(vending: Vending) -> None:
    catalog = _open(
        vending,
        **{"s3.access-key-id": "OWN", "s3.secret-access-key": "own", "s3.session-token": "own"},
    )
    state = create_table(catalog, TABLE)
    state.io.write(f"{state.metadata.location}/data/1", b"rows")
    assert set(vending.guard.used) <= set(vending.keys)


def test_executors_get_the_keys_and_nothing_of_the_catalog(vending: Vending) -> None:
    catalog = _open(vending, token="catalogs-token")
    state = create_table(catalog, TABLE)
    location = f"{state.metadata.location}/data/1"
    state.io.write(location, b"rows")
    pickled = pickle.dumps(state.io)
    assert b"catalogs-token" not in pickled
    assert vending.uri.encode() not in pickled
    assert b"not-of-tables" not in pickled
    copy = pickle.loads(pickled)
    assert copy.read_bytes(location) == b"rows"
    assert "vended-secret" not in repr(copy)
    assert "vended-secret" not in repr(state)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(catalog)


@pytest.mark.parametrize("with_endpoint", [True, False], ids=["endpoint", "loading"])
def test_keys_are_renewed_before_they_expire(vending: Vending, with_endpoint: bool) -> None:
    vending.with_endpoint = with_endpoint
    vending.lifetime_s = 1.5
    state = create_table(_open(vending), TABLE)
    first = vending.keys[-1]
    state.io.write(f"{state.metadata.location}/data/1", b"rows")
    time.sleep(1.3)
    vending.guard.valid.pop(first)
    vending.proxy.seen.clear()
    vending.lifetime_s = 3600
    assert state.io.read_bytes(f"{state.metadata.location}/data/1") == b"rows"
    asked = [seen.path.split("?")[0].rpartition("/")[2] for seen in vending.proxy.seen]
    assert asked == ["credentials" if with_endpoint else "t"]
    # What is pickled now has the new ones.
    copy = pickle.loads(pickle.dumps(state.io))
    assert copy.read_bytes(f"{state.metadata.location}/data/1") == b"rows"


def test_keys_are_renewed_once_although_the_table_came_with_others(vending: Vending) -> None:
    vending.config = {
        "s3.access-key-id": "OF-THE-TABLE",
        "s3.secret-access-key": "secret",
        "s3.session-token-expires-at-ms": "1",
        **_ENDPOINT,
    }
    state = create_table(_open(vending), TABLE)
    location = f"{state.metadata.location}/data/1"
    vending.proxy.seen.clear()
    state.io.write(location, b"rows")
    for io in (state.io, *_for_tasks(state.io)):
        for _ in range(3):
            assert io.read_bytes(location) == b"rows"
    assert len(vending.proxy.seen) == 1


_ENDPOINT = {
    "client.refresh-credentials-endpoint": "v1/namespaces/db/tables/t/credentials",
    "token": "tables-token",
}


def _for_tasks(io: FileIO) -> list[FileIO]:
    """The storage as other processes get it: pickled, and as options."""
    return [pickle.loads(pickle.dumps(io)), FileIO(io.all_properties)]


def test_tasks_renew_keys_with_the_token_of_the_table(vending: Vending) -> None:
    vending.lifetime_s, vending.config = 2, _ENDPOINT
    state = create_table(_open(vending, token="catalogs-token"), TABLE)
    location = f"{state.metadata.location}/data/1"
    state.io.write(location, b"rows")
    copies = _for_tasks(state.io)
    time.sleep(2)
    vending.guard.valid.clear()
    vending.lifetime_s = 3600
    for copy in copies:
        vending.proxy.seen.clear()
        assert copy.read_bytes(location) == b"rows"
        assert copy.read_bytes(location) == b"rows"
        (seen,) = vending.proxy.seen
        assert seen.path.endswith("/v1/namespaces/db/tables/t/credentials")
        assert seen.headers["Authorization"] == "Bearer tables-token"
        # They can hand it on.
        assert FileIO(copy.all_properties).read_bytes(location) == b"rows"


def test_keys_are_renewed_for_the_view_that_they_were_given_for(vending: Vending) -> None:
    vending.lifetime_s, vending.config = 2, _ENDPOINT
    own = _open(vending, token="catalogs-token")
    create_table(own, TABLE)
    state = own.referenced_by([("db", "v")]).load(TABLE)
    location = f"{state.metadata.location}/data/1"
    state.io.write(location, b"rows")
    copies = _for_tasks(state.io)
    time.sleep(2)
    vending.guard.valid.clear()
    vending.lifetime_s = 3600
    for copy in copies:
        vending.proxy.seen.clear()
        assert copy.read_bytes(location) == b"rows"
        (seen,) = vending.proxy.seen
        assert "/credentials?referenced-by=db" in seen.path
        assert seen.path.endswith("v")


@pytest.mark.parametrize(
    "config",
    [
        {"client.refresh-credentials-endpoint": ""},
        {**_ENDPOINT, "client.refresh-credentials-enabled": "false"},
    ],
)
def test_tasks_get_no_token_that_they_do_not_need(vending: Vending, config: dict[str, str]) -> None:
    vending.lifetime_s, vending.config = 2, {"token": "tables-token", **config}
    state = create_table(_open(vending), TABLE)
    assert b"tables-token" not in pickle.dumps(state.io)
    copies = _for_tasks(state.io)
    time.sleep(2)
    vending.proxy.seen.clear()
    for copy in copies:
        copy.write(f"{state.metadata.location}/data/1", b"rows")
    assert vending.proxy.seen == []


def test_keys_are_used_as_long_as_they_last_if_there_are_no_new_ones(
    vending: Vending, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vended_credentials, "_PAUSE_S", 0)
    vending.lifetime_s, vending.config = 2, _ENDPOINT
    state = create_table(_open(vending), TABLE)
    copies = [state.io, *_for_tasks(state.io)]
    time.sleep(2)
    answers: list[Any] = [{"storage-credentials": 1}, {"storage-credentials": []}, {}]
    for copy in copies:
        for answer in answers:
            vending.proxy.reply = lambda seen, answer=answer: answer  # type: ignore[misc]
            copy.write(f"{state.metadata.location}/data/1", b"rows")
        vending.proxy.refuse = lambda seen: 403
        copy.write(f"{state.metadata.location}/data/1", b"rows")
        vending.proxy.refuse = lambda seen: None
    assert "not renewed" in caplog.text
    assert "tables-token" not in caplog.text


def test_keys_that_cannot_be_renewed_are_used_as_long_as_they_last(
    vending: Vending, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vended_credentials, "_PAUSE_S", 0)
    vending.lifetime_s = 0.5
    state = create_table(_open(vending), TABLE)
    location = f"{state.metadata.location}/data/1"
    time.sleep(0.5)
    vending.proxy.refuse = lambda seen: 403
    state.io.write(location, b"rows")
    vending.guard.valid.clear()
    with pytest.raises(StorageError):
        state.io.read_bytes(location)
    vending.proxy.refuse = lambda seen: None
    assert state.io.read_bytes(location) == b"rows"


def test_a_table_whose_keys_expire_is_not_asked_for_on_condition(vending: Vending) -> None:
    vending.lifetime_s = 0.5
    catalog = _open(vending)
    create_table(catalog, TABLE)
    catalog.load(TABLE)
    time.sleep(0.5)
    vending.lifetime_s = 3600
    vending.proxy.seen.clear()
    state = catalog.load(TABLE)
    assert [seen.status for seen in vending.proxy.seen] == [200]
    state.io.write(f"{state.metadata.location}/data/1", b"rows")
    assert vending.guard.used[-1] == vending.keys[-1]


def test_a_new_tables_first_files_are_written_with_vended_keys(vending: Vending) -> None:
    catalog = _open(vending)
    catalog.create_namespace(("db",), {})
    updates = new_table(catalog, TABLE)
    io = catalog.new_table_io(TABLE, updates)
    io.write(f"{catalog.new_table_location(TABLE)}/data/1", b"rows")
    assert set(vending.guard.used) <= set(vending.keys)
    assert catalog.list_tables(("db",)) == []


def test_only_a_vended_token_goes_to_the_server_that_the_catalog_names(rest: RestServer) -> None:
    host, path = {"gcs.service.host": "http://store"}, "gs://bucket/t"
    config: dict[str, str] = {}

    def rewrite(seen: Seen, body: Any) -> Any:
        if seen.path.split("?")[0].endswith("/v1/config"):
            body["overrides"] |= host
        elif "metadata" in body:
            body["config"] = config
        return body

    with rest_proxy(rest.port) as proxy:
        proxy.rewrite = rewrite
        uri = rest.uri(rest.new_catalog(), proxy.port)
        own = {"gcs.oauth2.token": "own-token", "rest.client.max-connections": "1"}
        catalog = open_rest_catalog(uri, **own)
        for io in (catalog.io, create_table(catalog, TABLE).io):
            assert io.vended is not None
            used = io.vended.at(path, io.properties)
            assert used == {"gcs.oauth2.token": "own-token"}
        vended = {"gcs.oauth2.token": "vended-token"}
        config |= vended
        io = catalog.load(TABLE).io
        assert io.vended is not None
        assert io.vended.at(path, io.properties) == {**vended, **host}
