"""Errors show no secret, although a server or a gateway quotes the request in its answer."""

from __future__ import annotations

import base64
import html
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import pytest
from rest_tables import open_rest_catalog

from icebergds.catalog.rest.secrets import Secrets
from icebergds.errors import StorageError

_TOKEN = "secret-" + "0123456789" * 12
Quoting = Callable[[str, str], bytes]


@contextmanager
def quoting_server(quoting: Quoting) -> Iterator[str]:
    """Refuses each request with an answer made of its header `Authorization` and its body."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def refuse(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            answer = quoting(self.headers.get("Authorization", ""), body)
            self.send_response(400)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = refuse  # noqa: N815

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def refused(quoting: Quoting, **properties: str) -> str:
    with quoting_server(quoting) as uri, pytest.raises(StorageError, match="400") as raised:
        open_rest_catalog(uri, **properties)
    return str(raised.value)


def test_a_secret_is_hidden_before_a_page_is_cut() -> None:
    message = refused(lambda header, _: f"{'x' * 150} {header}".encode(), token=_TOKEN)
    assert "***" in message
    assert "secret" not in message


def test_a_secret_is_hidden_before_an_explanation_is_cut() -> None:
    def quoting(header: str, _: str) -> bytes:
        return json.dumps({"error": {"message": f"{'x' * 900} {header}"}}).encode()

    message = refused(quoting, token=_TOKEN)
    assert "***" in message
    assert "secret" not in message


def test_a_secret_is_hidden_in_the_name_of_an_error() -> None:
    message = refused(lambda h, _: json.dumps({"error": {"type": h}}).encode(), token=_TOKEN)
    assert "secret" not in message


def test_a_quoted_form_shows_no_secret() -> None:
    def quoting(_: str, body: str) -> bytes:
        return json.dumps({"error": "invalid_request", "error_description": body}).encode()

    message = refused(quoting, credential="client:S3cr3t/with+special=chars &more")
    assert "client_id=client" in message
    assert "S3cr3t" not in message
    assert "special" not in message


def test_a_login_in_a_header_is_not_shown() -> None:
    options = {
        "auth.type": "oauth2",
        "auth.oauth2.client_id": "client",
        "auth.oauth2.client_secret": "S3cr3t-of-the-client",
    }
    message = refused(lambda header, _: header.encode(), **options)
    assert "Basic ***" in message
    assert base64.b64encode(b"client:S3cr3t").decode()[:-4] not in message


@pytest.mark.parametrize("secret", ['pa\'ss&word <very>"secret"', "tök\\en/+=\n%東🔑end"])
@pytest.mark.parametrize(
    "spelling",
    [
        str,
        quote,
        lambda text: quote(text, safe="").replace("%", "%25"),
        lambda text: quote(text, safe="").lower(),
        html.escape,
        lambda text: "".join(f"&#{ord(c)};" if not c.isalnum() else c for c in text),
        json.dumps,
        lambda text: json.dumps(text, ensure_ascii=False).replace("/", "\\/"),
        lambda text: html.escape(json.dumps(json.dumps(text))),
    ],
)
def test_each_spelling_of_a_secret_is_hidden(secret: str, spelling: Callable[[str], str]) -> None:
    secrets = Secrets()
    secrets.add(secret)
    shown = secrets.hide(f"header {spelling(secret)}, refused")
    assert shown.startswith("header ")
    assert shown.endswith(", refused")
    assert set(shown) - set("header , refused") <= set('*"\\&quot;')


def test_a_relative_token_endpoint_is_shown_without_its_query() -> None:
    with pytest.raises(StorageError, match=r"POST http://127\.0\.0\.1:1/oauth failed") as raised:
        open_rest_catalog(
            "http://127.0.0.1:1",
            credential="client:password",
            **{"oauth2-server-uri": "oauth?key=S3cr3t", "rest.client.max-retries": "0"},
        )
    assert "S3cr3t" not in str(raised.value)
