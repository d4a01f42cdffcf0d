"""Catalogs by way of a proxy: a request that it passed on may have been carried out."""

from __future__ import annotations

import contextlib
import shutil
import socket
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from faulty_proxy import FaultyProxy, Spoil
from moto_server import MotoServer
from rest_proxy import Fault, RestProxy, Seen, rest_proxy
from rest_server import RestServer
from rest_tables import TABLE, create_table, open_rest_catalog

from icebergds.catalog.base import Catalog
from icebergds.catalog.loading import load_catalog
from icebergds.catalog.rest import http
from icebergds.errors import CommitStateUnknownError, StorageError
from icebergds.spec.updates.table_updates import SetProperties
from icebergds.testing import catalog_steps

_COMMITS = {
    "glue": "UpdateTable",
    "dynamodb": "UpdateItem",
    "s3tables": "PUT metadata-location",
}


@contextmanager
def tunnel(port: int) -> Iterator[int]:
    """A proxy that connects whoever asks to a port of this machine; 0: that refuses to connect."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while self.rfile.readline().strip():
                pass
            if not port:
                self.wfile.write(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
                return
            with socket.create_connection(("127.0.0.1", port)) as server:
                self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
                back = threading.Thread(target=_pump, args=(server, self.connection))
                back.start()
                _pump(self.connection, server)
                back.join()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as proxy:
        proxy.daemon_threads = True
        threading.Thread(target=proxy.serve_forever, args=(0.05,), daemon=True).start()
        yield proxy.server_address[1]
        proxy.shutdown()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def set_property(catalog: Catalog) -> None:
    operations = catalog.operations(TABLE)
    operations.commit(operations.refresh(), [], [SetProperties({"k": "v"})])


def is_commit(seen: Seen) -> bool:
    return seen.method == "POST" and seen.path.endswith("/tables/t")


# Services of AWS, by the proxy of the environment.


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


@pytest.mark.parametrize("service", _COMMITS)
def test_a_commit_to_aws_whose_answer_is_lost_is_found(
    service: str,
    moto: MotoServer,
    proxy: FaultyProxy,
    environment: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    properties = moto.properties(service) | {"warehouse": str(tmp_path)}
    if service == "s3tables":
        properties = moto.s3_tables_properties()
    direct = load_catalog("lake", properties)
    catalog_steps.create_table(direct, TABLE)
    environment.setenv("HTTP_PROXY", proxy.endpoint)
    # Other properties than those of the direct one, whose connections are shared.
    proxied = load_catalog("lake", properties | {f"{service}.max-retries": "1"})
    proxy.spoil(_COMMITS[service], Spoil.CUT_AFTER)
    set_property(proxied)
    assert proxy.seen
    environment.delenv("HTTP_PROXY")
    assert direct.load(TABLE).metadata.properties["k"] == "v"


def test_a_request_to_aws_that_a_proxy_does_not_connect_is_certain(
    environment: pytest.MonkeyPatch, moto: MotoServer, tmp_path: Path
) -> None:
    properties = moto.properties("glue", "https://glue.invalid") | {"glue.max-retries": "0"}
    with tunnel(0) as port:
        environment.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        catalog = load_catalog("lake", properties | {"warehouse": str(tmp_path)})
        with pytest.raises(StorageError, match="Failed to connect to proxy"):
            catalog.create_namespace(("db",), {})


# REST catalogs, by the proxy of their properties.


@pytest.fixture
def rest_by_proxy(rest: RestServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[RestProxy]:
    monkeypatch.setattr(http, "_FIRST_WAIT_S", 0.01)
    with rest_proxy(rest.port) as proxy:
        yield proxy


def by(port: int) -> dict[str, str]:
    return {"rest.client.proxy.hostname": "127.0.0.1", "rest.client.proxy.port": str(port)}


def test_a_commit_that_a_proxy_passed_on_before_it_died_is_unknown(
    rest: RestServer, rest_by_proxy: RestProxy
) -> None:
    uri, proxy = rest.uri(rest.new_catalog()), rest_by_proxy
    direct = open_rest_catalog(uri)
    create_table(direct)
    proxied = open_rest_catalog(uri, **by(proxy.port))

    def die(seen: Seen) -> Fault | None:
        if is_commit(seen):
            return Fault.ANSWER_LOST
        return Fault.NEVER_SENT if any(map(is_commit, proxy.seen)) else None

    proxy.fault = die
    with pytest.raises(CommitStateUnknownError):
        set_property(proxied)
    assert len(list(filter(is_commit, proxy.seen))) == 1
    assert direct.load(TABLE).metadata.properties["k"] == "v"


def test_a_lost_answer_is_not_mistaken_for_an_error_that_is_being_handled(
    rest: RestServer, rest_by_proxy: RestProxy
) -> None:
    uri, proxy = rest.uri(rest.new_catalog()), rest_by_proxy
    create_table(open_rest_catalog(uri))
    catalog = open_rest_catalog(uri, **by(proxy.port))
    proxy.fault = lambda seen: Fault.ANSWER_LOST if is_commit(seen) else None
    operations = catalog.operations(TABLE)
    base = operations.refresh()
    try:
        requests.get("http://127.0.0.1:1/", timeout=5)
    except requests.RequestException:
        assert operations.commit(base, [], [SetProperties({"k": "v"})]).metadata.properties["k"]
    assert len(list(filter(is_commit, proxy.seen))) == 1


def test_a_commit_through_a_tunnel_whose_answer_is_lost_is_sent_once(
    rest: RestServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    files = ["-keyout", "key", "-out", "pem", "-subj", "/CN=s"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, *files, *names], cwd=tmp_path, check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "pem", tmp_path / "key")
    monkeypatch.setattr(http, "_FIRST_WAIT_S", 0.01)
    with rest_proxy(rest.port, tls) as server, tunnel(server.port) as port:
        uri = rest.uri(rest.new_catalog(), server.port).replace("http:", "https:")
        catalog = open_rest_catalog(uri, **{"ssl.cabundle": str(tmp_path / "pem")}, **by(port))
        create_table(catalog)
        server.fault = lambda seen: Fault.ANSWER_LOST if is_commit(seen) else None
        set_property(catalog)
        assert len(list(filter(is_commit, server.seen))) == 1


def test_a_request_that_a_proxy_does_not_connect_is_not_sent(rest: RestServer) -> None:
    with tunnel(0) as port, pytest.raises(StorageError, match="Tunnel connection failed: 502"):
        open_rest_catalog("https://catalog.invalid", **by(port))
