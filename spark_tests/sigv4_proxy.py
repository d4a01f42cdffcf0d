"""A proxy before a REST catalog that lets signed requests pass only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from urllib.parse import parse_qsl, urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from rest_proxy import RestProxy, Seen, rest_proxy

KEY, SECRET, REGION, SERVICE = "AKIDEXAMPLE", "the/secret+key", "eu-west-1", "glue"
_FORM = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/\d+/([^/]+)/([^/]+)/aws4_request, ?"
    r"SignedHeaders=([^,]+), ?Signature=(\w+)"
)


@contextmanager
def sigv4_proxy(server_port: int) -> Iterator[RestProxy]:
    with rest_proxy(server_port) as proxy:
        proxy.refuse = lambda seen: None if _is_signed(seen) else 403
        yield proxy


def sigv4_options(secret: str = SECRET) -> dict[str, str]:
    return {
        "rest.sigv4-enabled": "true",
        "rest.signing-name": SERVICE,
        "rest.signing-region": REGION,
        "rest.access-key-id": KEY,
        "rest.secret-access-key": secret,
    }


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
    # What is signed ends in digits of the hash, though a header of Java Iceberg has it in Base64.
    canonical, _ = signer.canonical_request(request).rsplit("\n", 1)
    text = signer.string_to_sign(request, f"{canonical}\n{sha256(seen.body).hexdigest()}")
    return bool(signer.signature(text, request) == match[5])
