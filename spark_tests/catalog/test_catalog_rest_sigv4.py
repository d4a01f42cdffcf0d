"""Requests to a REST catalog are signed for AWS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rest_proxy import RestProxy
from rest_server import RestServer
from rest_tables import TABLE, create_table, open_rest_catalog
from sigv4_proxy import SECRET, sigv4_options, sigv4_proxy

from icebergds.errors import InvalidOptionError, StorageError


@pytest.fixture
def proxy(rest: RestServer) -> Iterator[RestProxy]:
    with sigv4_proxy(rest.port) as proxy:
        yield proxy


def test_each_request_is_signed(rest: RestServer, proxy: RestProxy) -> None:
    catalog = open_rest_catalog(rest.uri(rest.new_catalog(), proxy.port), **sigv4_options(SECRET))
    create_table(catalog)
    create_table(catalog, ("db", "name with spaces/ünd & more"))
    assert len(catalog.list_tables(("db",))) == 2
    catalog.drop(TABLE)
    assert 403 not in {seen.status for seen in proxy.seen}


def test_a_wrong_key_is_refused_and_not_shown(rest: RestServer, proxy: RestProxy) -> None:
    uri = rest.uri(rest.new_catalog(), proxy.port)
    with pytest.raises(StorageError, match="403") as raised:
        open_rest_catalog(uri, **sigv4_options("another-key"))
    assert "another-key" not in str(raised.value)


def test_a_token_travels_beside_the_signature(rest: RestServer, proxy: RestProxy) -> None:
    uri = rest.uri(rest.new_catalog(), proxy.port)
    open_rest_catalog(uri, token="abcdef", **sigv4_options(SECRET))
    assert proxy.seen[0].headers["Original-Authorization"] == "Bearer abcdef"


def test_a_region_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    options = sigv4_options(SECRET)
    del options["rest.signing-region"]
    with pytest.raises(InvalidOptionError, match=r"rest\.signing-region"):
        open_rest_catalog("http://127.0.0.1:1", **options)
