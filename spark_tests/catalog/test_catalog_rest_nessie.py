"""Nessie: tokens that soon expire, credentials that it vends, and a server without version 3.

These servers are fetched for the nightly run only.
"""

from __future__ import annotations

import logging
import time
import uuid

import pyarrow as pa
import pytest
from nessie_server import SECONDS, NessieServer

import icebergds
from icebergds.catalog.loading import load_catalog
from icebergds.errors import MissingFileError, StorageError, UnsupportedFeatureError

pytest.importorskip("requests", reason="requests is not installed")


@pytest.fixture
def catalog(nessie: NessieServer, monkeypatch: pytest.MonkeyPatch) -> icebergds.Catalog:
    """A catalog with a namespace of the test's own; all access to S3 is by vended credentials."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return icebergds.load_catalog("lake", **nessie.properties)


@pytest.fixture
def namespace(catalog: icebergds.Catalog) -> str:
    name = f"db_{uuid.uuid4().hex}"
    catalog.create_namespace(name)
    return name


def test_rows_are_written_and_read_with_vended_credentials(
    catalog: icebergds.Catalog, namespace: str
) -> None:
    table = catalog.create_table(f"{namespace}.t", "id bigint")
    table.append(pa.table({"id": [1, 2]}))
    assert table.metadata_location.startswith("s3://nessie/lake/")
    found = catalog.load_table(f"{namespace}.t").scan().to_arrow()
    assert found["id"].to_pylist() == [1, 2]


def test_rows_are_written_and_read_with_requests_that_the_server_signs(
    catalog: icebergds.Catalog,
    nessie: NessieServer,
    namespace: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    properties = {**nessie.properties, "header.X-Iceberg-Access-Delegation": "remote-signing"}
    signing = icebergds.load_catalog("lake", **properties)
    with caplog.at_level(logging.DEBUG, "icebergds"):
        table = signing.create_table(f"{namespace}.t", "id bigint")
        table.append(pa.table({"id": [1, 2]}))
        found = signing.load_table(f"{namespace}.t").scan().to_arrow()
    assert found["id"].to_pylist() == [1, 2]
    assert "/s3sign/" in caplog.text
    state = load_catalog("lake", properties).load((namespace, "t"))
    files = [f"{state.metadata.location}/data/{number}" for number in range(3)]
    for file in files:
        state.io.write(file, b"rows")
    state.io.delete_all(files)
    for file in files:
        with pytest.raises(MissingFileError):
            state.io.read_bytes(file)
    # Like other servers, it signs no listings.
    with pytest.raises(StorageError, match=r"403 Forbidden.*not allowed for signing"):
        state.io.list(state.metadata.location)


def test_a_token_that_has_expired_is_replaced(catalog: icebergds.Catalog, namespace: str) -> None:
    table = catalog.create_table(f"{namespace}.t", "id bigint")
    time.sleep(SECONDS + 1)
    table.append(pa.table({"id": [1]}))
    time.sleep(SECONDS + 1)
    assert catalog.list_tables(namespace) == [(namespace, "t")]


def test_who_has_the_wrong_secret_is_told_so(nessie: NessieServer) -> None:
    properties = {**nessie.properties, "credential": "icebergds:another secret"}
    with pytest.raises(StorageError, match="invalid_client") as raised:
        icebergds.load_catalog("lake", **properties).list_namespaces()
    assert "another secret" not in str(raised.value)


def test_a_table_of_another_version_than_asked_for_is_not_left_behind(
    catalog: icebergds.Catalog, namespace: str
) -> None:
    """The server says nothing of it: it makes a table of version 2."""
    with pytest.raises(UnsupportedFeatureError, match="makes a table of format version 2"):
        catalog.create_table(f"{namespace}.t", "id bigint", properties={"format-version": "3"})
    assert catalog.list_tables(namespace) == []


def test_a_table_evolves(catalog: icebergds.Catalog, namespace: str) -> None:
    """The server refuses schemas, specs and sort orders with ids that are in use."""
    table = catalog.create_table(f"{namespace}.t", "id bigint, s string")
    with table.update_schema() as schema:
        schema.add_column("more", "string")
    with table.update_schema() as schema:
        schema.rename_column("s", "renamed")
    with table.update_spec() as spec:
        spec.add_identity("renamed")
    with table.update_sort_order() as order:
        order.asc("id")
    with table.transaction() as changes:
        changes.append(pa.table({"id": [1], "renamed": ["a"], "more": ["x"]}))
        with changes.update_schema() as schema:
            schema.add_column("last", "string")
    found = catalog.load_table(f"{namespace}.t")
    assert [field.name for field in found.schema().fields] == ["id", "renamed", "more", "last"]
    assert [field.name for field in found.spec().fields] == ["renamed"]
    assert [key.source_ids for key in found.sort_order().fields] == [(1,)]
    assert found.scan().to_arrow()["more"].to_pylist() == ["x"]


def test_tables_and_views_are_renamed_and_dropped(
    catalog: icebergds.Catalog, namespace: str
) -> None:
    catalog.create_table(f"{namespace}.t", "id bigint")
    view = catalog.create_view(f"{namespace}.v", "id bigint", "SELECT id FROM t")
    view.replace_version("SELECT 1 AS id")
    catalog.rename_table(f"{namespace}.t", f"{namespace}.u")
    assert catalog.list_tables(namespace) == [(namespace, "u")]
    assert catalog.load_view(f"{namespace}.v").sql_for() == "SELECT 1 AS id"
    catalog.drop_table(f"{namespace}.u")
    catalog.drop_view(f"{namespace}.v")
    assert catalog.list_tables(namespace) == catalog.list_views(namespace) == []
