"""Lists namespaces, tables and views page by page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icebergds.catalog.base import Identifier
from icebergds.catalog.rest.session import RestSession
from icebergds.errors import InvalidMetadataError
from icebergds.spec.json.fields import optional, required, strings, typed


def listed(
    session: RestSession, path: str, member: str, query: Mapping[str, str] | None = None
) -> list[Identifier]:
    """All identifiers of a listing, sorted.

    Args:
        member: of the answer: `identifiers`, or `namespaces`.

    Raises:
        RestError: the server refused or did not answer.
        InvalidMetadataError: an answer is malformed, or its pages have no end.
    """
    where = f"the listing of catalog {session.name}"
    size = session.config.properties.get("rest-page-size")
    sent = {**(query or {}), **({"pageSize": size} if size else {}), "pageToken": ""}
    found: set[Identifier] = set()
    tokens: set[str] = set()
    while True:
        body = session.client.get(path, sent).body
        found.update(
            _identifier(each, member, where) for each in required(body, member, list, where)
        )
        token = optional(body, "next-page-token", str, where)
        if not token:
            return sorted(found)
        if token in tokens:
            raise InvalidMetadataError(f"{where} has the same page token twice")
        tokens.add(token)
        sent["pageToken"] = token


def _identifier(value: Any, member: str, where: str) -> Identifier:
    if member == "namespaces":
        parts = typed(value, list, f"a namespace of {where}")
        return tuple(typed(part, str, f"a namespace of {where}") for part in parts)
    obj = typed(value, dict, f"an identifier of {where}")
    name = required(obj, "name", str, where)
    return (*strings(obj, "namespace", where), name)
