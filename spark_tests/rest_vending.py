"""A REST catalog of the tests' own that vends credentials for tables in S3."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rest_proxy import RestProxy, Seen, rest_proxy
from rest_server import RestServer
from s3_guard import S3Guard, s3_guard
from s3_server import S3Server, storage_properties

_CREDENTIALS = "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials"


@dataclass
class Vending:
    """A catalog whose tables are in S3, and which vends keys to them.

    Attributes:
        keys: the keys that it has vended.
        prefixes: of the credentials; each has a key of its own.
        lifetime_s: of new keys.
        with_endpoint: whether there is an endpoint for new credentials.
        config: further properties of each table.
    """

    uri: str
    proxy: RestProxy
    guard: S3Guard
    bucket: str
    keys: list[str] = field(default_factory=list)
    prefixes: tuple[str, ...] = ()
    lifetime_s: float = 3600
    with_endpoint: bool = True
    config: dict[str, str] = field(default_factory=dict)

    def vend(self) -> list[dict[str, Any]]:
        found = []
        for prefix in self.prefixes or (f"s3://{self.bucket}",):
            key = f"VENDED{len(self.keys)}"
            self.keys.append(key)
            self.guard.valid[key] = "/" + prefix.removeprefix("s3://").removeprefix("s3")
            expires = str(int((time.time() + self.lifetime_s) * 1000))
            config = {
                "s3.access-key-id": key,
                "s3.secret-access-key": "vended-secret",
                "s3.session-token": "vended-token",
                "s3.session-token-expires-at-ms": expires,
            }
            found.append({"prefix": prefix, "config": config})
        return found

    def rewrite(self, seen: Seen, body: Any) -> Any:
        if seen.path.split("?")[0].endswith("/v1/config"):
            if self.with_endpoint:
                body["endpoints"].append(_CREDENTIALS)
            return body
        # Tables that are loaded, created or staged.
        is_commit = seen.method == "POST" and b'"updates"' in seen.body
        if "metadata" in body and not is_commit:
            endpoint = {"s3.endpoint": f"http://127.0.0.1:{self.guard.port}"}
            body["config"] = {**endpoint, "s3.path-style-access": "true", "token": "not-of-tables"}
            body["config"] |= {"client.region": "us-east-1", **self.config}
            body["storage-credentials"] = self.vend()
        return body

    def reply(self, seen: Seen) -> Any:
        is_asked = seen.path.partition("?")[0].endswith("/credentials")
        return {"storage-credentials": self.vend()} if is_asked else None


@contextmanager
def vending_catalog(rest: RestServer, s3: S3Server) -> Iterator[Vending]:
    """A new catalog behind a proxy that adds credentials, with its tables behind a guard."""
    bucket = s3.new_location().split("/")[2]
    behind = {
        **storage_properties(s3.atomic_port),
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "client.region": "us-east-1",
        "warehouse": f"s3://{bucket}/lake",
    }
    path = rest.new_catalog(**behind)
    with rest_proxy(rest.port) as proxy, s3_guard(s3.atomic_port) as guard:
        made = Vending(rest.uri(path, proxy.port), proxy, guard, bucket)
        proxy.rewrite, proxy.reply = made.rewrite, made.reply
        yield made
