"""Requests to a REST catalog are authenticated by Google's tokens, those of a service account."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rest_proxy import rest_proxy
from rest_server import RestServer
from rest_tables import open_rest_catalog
from token_server import token_server

from icebergds.errors import InvalidOptionError

pytest.importorskip("google.auth", reason="google-auth is not installed")
rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")


def _service_account(path: Path, token_uri: str) -> str:
    """A file of a service account whose tokens come from a server of the tests' own."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    account = {
        "type": "service_account",
        "client_email": "tester@example.org",
        "token_uri": token_uri,
        "private_key": key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode(),
    }
    path.write_text(json.dumps(account))
    return str(path)


@pytest.mark.parametrize("names", ["java", "pyiceberg"])
def test_a_service_account_gets_tokens(names: str, rest: RestServer, tmp_path: Path) -> None:
    with token_server() as tokens, rest_proxy(rest.port) as proxy:
        proxy.refuse = lambda seen: (
            None if tokens.accepts(seen.headers.get("Authorization", "")) else 401
        )
        path = _service_account(tmp_path / "account.json", tokens.uri)
        options = {
            "java": {"rest.auth.type": "google", "gcp.auth.credentials-path": path},
            "pyiceberg": {"auth.type": "google", "auth.google.credentials_path": path},
        }
        uri = rest.uri(rest.new_catalog(), proxy.port)
        catalog = open_rest_catalog(uri, **options[names])
        assert catalog.list_namespaces() == []
        assert len(tokens.requests) == 1
        # A refused token is replaced.
        tokens.valid.clear()
        assert catalog.list_namespaces() == []
        assert len(tokens.requests) == 2


def test_missing_credentials_are_told(tmp_path: Path) -> None:
    options = {"rest.auth.type": "google", "gcp.auth.credentials-path": str(tmp_path / "none")}
    with pytest.raises(InvalidOptionError, match=r"catalog lake: .*gcp\.auth\.credentials-path"):
        open_rest_catalog("http://127.0.0.1:1", **options)
