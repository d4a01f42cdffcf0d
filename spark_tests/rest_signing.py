"""A REST catalog of the tests' own that signs requests to S3, for clients that have no keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aws_iam_server import AwsServer
from rest_proxy import RestProxy, Seen, rest_proxy
from rest_server import RestServer

TABLE_TOKEN = "token-of-the-table"


@dataclass
class Signing:
    """A catalog whose tables are in S3, and which alone has keys to them.

    Attributes:
        config: what it answers for each table, beside how to reach the storage.
        extra: further members of its answers for tables.
        tokens: which it accepts for signing; empty: it signs for everybody.
        signed: what it was asked to sign, in order.
        asked: the requests for signatures, in order.
    """

    uri: str
    proxy: RestProxy
    aws: AwsServer
    config: dict[str, str] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    tokens: tuple[str, ...] = ()
    signed: list[dict[str, Any]] = field(default_factory=list)
    asked: list[Seen] = field(default_factory=list)

    def rewrite(self, seen: Seen, body: Any) -> Any:
        if "metadata" in body:
            address = {**self.aws.address, "client.region": "us-east-1"}
            body["config"] = {**address, "s3.remote-signing-enabled": "true", **self.config}
            body |= self.extra
        return body

    def refuse(self, seen: Seen) -> int | None:
        accepted = [f"Bearer {token}" for token in self.tokens]
        if not _is_for_signature(seen) or not accepted:
            return None
        return None if seen.headers.get("Authorization") in accepted else 403

    def reply(self, seen: Seen) -> Any:
        if not _is_for_signature(seen):
            return None
        request = json.loads(seen.body)
        self.asked.append(seen)
        self.signed.append(request)
        return self._signed(request)

    def _signed(self, request: dict[str, Any]) -> dict[str, Any]:
        from botocore.auth import S3SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.config import Config
        from botocore.credentials import Credentials

        if request["method"] == "POST" and "?delete" in request["uri"]:
            assert "<Delete" in request["body"]
        # As servers do, so that a signature holds for all ranges of a file.
        signed = {name: v for name, v in request["headers"].items() if name != "range"}
        headers = {name: ", ".join(values) for name, values in signed.items()}
        made = AWSRequest(request["method"], request["uri"], headers)
        made.context["client_config"] = Config(s3={"payload_signing_enabled": False})
        S3SigV4Auth(Credentials(*self.aws.keys), "s3", request["region"]).add_auth(made)
        return {
            "uri": request["uri"],
            "headers": {name: [value] for name, value in made.headers.items()},
        }


@contextmanager
def signing_catalog(rest: RestServer, aws: AwsServer) -> Iterator[Signing]:
    """A new catalog behind a proxy that signs; the server of its tables checks signatures."""
    behind = {
        **aws.properties,
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "client.region": "us-east-1",
        "warehouse": aws.new_location(),
    }
    path = rest.new_catalog(**behind)
    with rest_proxy(rest.port) as proxy:
        made = Signing(rest.uri(path, proxy.port), proxy, aws)
        proxy.rewrite, proxy.reply, proxy.refuse = made.rewrite, made.reply, made.refuse
        yield made


def _is_for_signature(seen: Seen) -> bool:
    return seen.path.partition("?")[0].endswith("/sign")
