"""Requests to a REST catalog are signed for AWS."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, urlsplit

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from rest_proxy import RestProxy, Seen, rest_proxy
from rest_server import RestServer
from rest_tables import TABLE, create_table, open_rest_catalog

from icebergds.errors import InvalidOptionError, StorageError

KEY, SECRET, REGION, SERVICE = "AKIDEXAMPLE", "the/secret+key", "eu-west-1", "glue"
_FORM = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/\d+/([^/]+)/([^/]+)/aws4_request, ?"
    r"SignedHeaders=([^,]+), ?Signature=(\w+)"
)


@pytest.fixture
def proxy(rest: RestServer) -> Iterator[RestProxy]:
    with rest_proxy(rest.port) as proxy:
        proxy.refuse = lambda seen: None if _is_signed(seen) else 403
        yield proxy


def _is_signed(seen: Seen) -> bool:
    """Whether a request has the signature of the key, computed anew."""
    match = _FORM.match(seen.headers.get("Authorization", ""))
    if match is None or match.groups()[:3] != (KEY, REGION, SERVICE):
        return False
    headers = {name.lower(): value for name, value in seen.headers.items()}
    url = urlsplit(seen.path)
    request = AWSRequest(
        seen.method,
        f"http://{headers['host']}{url.path}",
        params=dict(parse_qsl(url.query, keep_blank_values=True)),
        data=seen.body,
        headers={name: headers[name] for name in match[4].split(";") if name != "host"},
    )
    signer = SigV4Auth(Credentials(KEY, SECRET), SERVICE, REGION)
    request.context["timestamp"] = headers["x-amz-date"]
    text = signer.string_to_sign(request, signer.canonical_request(request))
    return bool(signer.signature(text, request) == match[5])


def _options(secret: str) -> dict[str, str]:
    return {
        "rest.sigv4-enabled": "true",
        "rest.signing-name": SERVICE,
        "rest.signing-region": REGION,
        "rest.access-key-id": KEY,
        "rest.secret-access-key": secret,
    }


def test_each_request_is_signed(rest: RestServer, proxy: RestProxy) -> None:
    catalog = open_rest_catalog(rest.uri(rest.new_catalog(), proxy.port), **_options(SECRET))
    create_table(catalog)
    create_table(catalog, ("db", "name with spaces/ünd & more"))
    assert len(catalog.list_tables(("db",))) == 2
    catalog.drop(TABLE)
    assert 403 not in {seen.status for seen in proxy.seen}


def test_a_wrong_key_is_refused_and_not_shown(rest: RestServer, proxy: RestProxy) -> None:
    uri = rest.uri(rest.new_catalog(), proxy.port)
    with pytest.raises(StorageError, match="403") as raised:
        open_rest_catalog(uri, **_options("another-key"))
    assert "another-key" not in str(raised.value)


def test_a_token_travels_beside_the_signature(rest: RestServer, proxy: RestProxy) -> None:
    uri = rest.uri(rest.new_catalog(), proxy.port)
    open_rest_catalog(uri, token="abcdef", **_options(SECRET))
    assert proxy.seen[0].headers["Original-Authorization"] == "Bearer abcdef"


def test_a_region_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    options = _options(SECRET)
    del options["rest.signing-region"]
    with pytest.raises(InvalidOptionError, match=r"rest\.signing-region"):
        open_rest_catalog("http://127.0.0.1:1", **options)
