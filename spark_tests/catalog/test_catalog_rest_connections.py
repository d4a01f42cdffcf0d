"""Connections to a REST catalog: TLS, proxies, idle ones, and those of forked processes."""

from __future__ import annotations

import base64
import multiprocessing
import shutil
import ssl
import subprocess
import time
from pathlib import Path

import pytest
from rest_proxy import rest_proxy
from rest_server import RestServer
from rest_tables import TABLE, create_table, open_rest_catalog

from icebergds.catalog.rest import http
from icebergds.catalog.rest.catalog import RestCatalog
from icebergds.errors import StorageError


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates of a server on this machine and of a client, each signed by itself."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    directory = tmp_path_factory.mktemp("certificates")
    for name in ("server", "client"):
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
        files = ["-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}"]
        names = ["-addext", "subjectAltName=IP:127.0.0.1"]
        subprocess.run(
            [*command, *files, *names], cwd=directory, check=True, capture_output=True, timeout=60
        )
    return directory


def _tls(certificates: Path, *, ask_client: bool = False) -> ssl.SSLContext:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    if ask_client:
        tls.verify_mode = ssl.CERT_REQUIRED
        tls.load_verify_locations(certificates / "client.pem")
    return tls


def _secure_uri(rest: RestServer, port: int) -> str:
    return rest.uri(rest.new_catalog(), port).replace("http:", "https:")


def test_a_certificate_must_be_trusted(rest: RestServer, certificates: Path) -> None:
    with rest_proxy(rest.port, _tls(certificates)) as proxy:
        uri = _secure_uri(rest, proxy.port)
        with pytest.raises(StorageError, match="its certificate is not trusted"):
            open_rest_catalog(uri, **{"rest.client.max-retries": "0"})
        catalog = open_rest_catalog(uri, **{"ssl.cabundle": str(certificates / "server.pem")})
        create_table(catalog)
        assert catalog.list_tables(("db",)) == [TABLE]


def test_a_bundle_that_is_not_there_is_told(rest: RestServer, certificates: Path) -> None:
    with rest_proxy(rest.port, _tls(certificates)) as proxy:
        options = {"ssl.cabundle": "/nowhere.pem", "rest.client.max-retries": "0"}
        with pytest.raises(StorageError, match=r"/nowhere\.pem"):
            open_rest_catalog(_secure_uri(rest, proxy.port), **options)


def test_a_server_may_ask_for_a_certificate(rest: RestServer, certificates: Path) -> None:
    trusted = {"ssl.cabundle": str(certificates / "server.pem")}
    own = {
        "ssl.client.cert": str(certificates / "client.pem"),
        "ssl.client.key": str(certificates / "client.key"),
    }
    with rest_proxy(rest.port, _tls(certificates, ask_client=True)) as proxy:
        uri = _secure_uri(rest, proxy.port)
        with pytest.raises(StorageError, match="catalog lake: GET"):
            open_rest_catalog(uri, **trusted, **{"rest.client.max-retries": "0"})
        assert open_rest_catalog(uri, **trusted, **own).list_namespaces() == []


def test_requests_go_by_way_of_a_proxy(rest: RestServer) -> None:
    with rest_proxy(rest.port) as proxy:
        login = base64.b64encode(b"me:pass word").decode()
        proxy.refuse = lambda seen: (
            None if seen.headers.get("Proxy-Authorization") == f"Basic {login}" else 407
        )
        options = {
            "rest.client.proxy.hostname": "127.0.0.1",
            "rest.client.proxy.port": str(proxy.port),
            "rest.client.proxy.username": "me",
            "rest.client.proxy.password": "pass word",
        }
        # Only the proxy knows it.
        uri = f"http://catalog.invalid{rest.new_catalog()}"
        assert open_rest_catalog(uri, **options).list_namespaces() == []
        wrong = {**options, "rest.client.proxy.password": "wrong-password"}
        with pytest.raises(StorageError, match="407") as raised:
            open_rest_catalog(uri, **wrong)
        assert "wrong-password" not in str(raised.value)


def test_connections_are_used_again_unless_they_were_idle_for_long(
    rest: RestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rest_proxy(rest.port) as proxy:
        catalog = open_rest_catalog(rest.uri(rest.new_catalog(), proxy.port))
        for _ in range(3):
            catalog.list_namespaces()
        assert len(proxy.connections) == 1
        monkeypatch.setattr(http, "_LONGEST_IDLE_S", 0.1)
        time.sleep(0.2)
        create_table(catalog)
        assert len(proxy.connections) > 1


def test_a_forked_process_has_connections_of_its_own(rest: RestServer) -> None:
    with rest_proxy(rest.port) as proxy:
        catalog = open_rest_catalog(rest.uri(rest.new_catalog(), proxy.port))
        catalog.create_namespace(("db",), {})
        fork = multiprocessing.get_context("fork")
        children = [fork.Process(target=_use, args=(catalog, i)) for i in range(4)]
        for child in children:
            child.start()
        _use(catalog, 4)
        for child in children:
            child.join(60)
        assert [child.exitcode for child in children] == [0] * 4
        assert len(catalog.list_tables(("db",))) == 25


def _use(catalog: RestCatalog, number: int) -> None:
    for i in range(5):
        create_table(catalog, ("db", f"t{number}-{i}"))
        assert catalog.load(("db", f"t{number}-{i}")).name == f"lake.db.t{number}-{i}"
