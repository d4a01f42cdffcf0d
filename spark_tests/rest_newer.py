"""Parts of the REST specification that Java Iceberg's server lacks, in front of that server."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from rest_proxy import RestProxy, Seen, rest_proxy
from rest_server import RestServer

_ENDPOINTS = (
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/unregister",
    "GET /v1/{prefix}/namespaces/{namespace}/functions",
    "GET /v1/{prefix}/namespaces/{namespace}/functions/{function}",
)
_PAGE = 2


@dataclass
class NewerServer:
    """A server of the newest specification.

    Attributes:
        uri: of a new catalog.
        labels: by the name of a table or view: the `labels` of loads.
        functions: by namespace and name: the metadata of functions.
        readable_by: by the name of a table or view: the only views, as namespace and name, through
            which it may be loaded.
        chains: what was loaded through views, and these, with all parts decoded.
        separator: of the parts of namespaces.
    """

    proxy: RestProxy
    uri: str = ""
    labels: dict[str, Any] = field(default_factory=dict)
    functions: dict[tuple[str, str], Any] = field(default_factory=dict)
    readable_by: dict[str, list[str]] = field(default_factory=dict)
    chains: list[tuple[str, list[list[str]]]] = field(default_factory=list)
    separator: str = "%1F"

    def _refuse(self, seen: Seen) -> int | None:
        parts, query = _parts(seen)
        self.proxy.kind = "NoSuchTableException"
        if parts[-1:] == ["unregister"] and self._send("GET", parts[:-1])[0] == 404:
            return 404
        if parts[-2:-1] == ["functions"] and (parts[-3], parts[-1]) not in self.functions:
            self.proxy.kind = "NoSuchFunctionException"
            return 404
        if parts[-1:] == ["functions"] and self._send("GET", parts[:-1])[0] == 404:
            self.proxy.kind = "NoSuchNamespaceException"
            return 404
        if seen.method == "GET" and parts[-2:-1] in (["tables"], ["views"]):
            chain = _chain(query)
            if chain:
                self.chains.append((parts[-1], chain))
            allowed = self.readable_by.get(parts[-1])
            if allowed is not None and (chain[-1:] or [None])[0] != allowed:
                self.proxy.kind = "ForbiddenException"
                return 403
        return None

    def _reply(self, seen: Seen) -> Any:
        parts, query = _parts(seen)
        if parts[-1:] == ["unregister"]:
            _, loaded = self._send("GET", parts[:-1])
            self._send("DELETE", parts[:-1], "?purgeRequested=false")
            return {key: loaded[key] for key in ("metadata-location", "metadata")}
        if parts[-1:] == ["register"] and (body := json.loads(seen.body)).pop("overwrite", False):
            self._send("DELETE", [*parts[:-1], "tables", body["name"]], "?purgeRequested=false")
            return self._send("POST", parts, body=body)[1]
        if parts[-1:] == ["functions"]:
            found = [key for key in sorted(self.functions) if key[0] == parts[-2]]
            begin = int(query.get("pageToken") or 0)
            more = {"next-page-token": str(begin + _PAGE)} if begin + _PAGE < len(found) else {}
            named = [list(key) for key in found]
            return {"identifiers": named[begin : begin + _PAGE], **more}
        if parts[-2:-1] == ["functions"]:
            return {"metadata": self.functions[parts[-3], parts[-1]]}
        return None

    def _rewrite(self, seen: Seen, body: Any) -> Any:
        parts, _ = _parts(seen)
        if parts[-1:] == ["config"]:
            overrides = {**body["overrides"], "namespace-separator": self.separator}
            endpoints = [*body["endpoints"], *_ENDPOINTS]
            return {**body, "endpoints": endpoints, "overrides": overrides}
        if seen.method == "GET" and "metadata" in body and parts[-1] in self.labels:
            return {**body, "labels": self.labels[parts[-1]]}
        return body

    def _send(
        self, method: str, parts: list[str], query: str = "", body: Any = None
    ) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy.server_port, timeout=60)
        try:
            sent = None if body is None else json.dumps(body)
            headers = {"Content-Type": "application/json"}
            connection.request(method, "/" + "/".join(parts) + query, sent, headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or "{}")
        finally:
            connection.close()


@contextmanager
def newer_server(rest: RestServer) -> Iterator[NewerServer]:
    """Starts one, with a new catalog, and stops it in the end."""
    with rest_proxy(rest.port) as proxy:
        server = NewerServer(proxy, rest.uri(rest.new_catalog(), proxy.port))
        proxy.refuse, proxy.reply, proxy.rewrite = server._refuse, server._reply, server._rewrite
        yield server


def _parts(seen: Seen) -> tuple[list[str], Mapping[str, str]]:
    """The segments of a path, and the query, both as they are written."""
    address = urlsplit(seen.path)
    pairs = (each.partition("=") for each in address.query.split("&") if each)
    return address.path.strip("/").split("/"), {key: value for key, _, value in pairs}


def _chain(query: Mapping[str, str]) -> list[list[str]]:
    """The views of `referenced-by`: split at commas, and then at the separators, then decoded."""
    views = query.get("referenced-by")
    return [list(map(unquote, each.split("%1F"))) for each in views.split(",")] if views else []
