"""Creates, changes and drops the namespaces of a REST catalog; lists its names page by page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from icebergds.catalog.base import Identifier, nearest_namespace
from icebergds.catalog.rest.config import UPDATE_NAMESPACE
from icebergds.catalog.rest.failures import RestError, refusals, settle
from icebergds.catalog.rest.session import RestSession
from icebergds.errors import (
    AlreadyExistsError,
    IcebergError,
    InvalidMetadataError,
    InvalidOptionError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    UnsupportedFeatureError,
)
from icebergds.expr.names import quote_name
from icebergds.spec.json.fields import optional, required, string_map, strings, typed

_NOT_EMPTY = "NamespaceNotEmptyException"


def list_below(session: RestSession, parent: Identifier) -> list[Identifier]:
    """Namespaces directly below another, sorted. Raises NoSuchNamespaceError."""
    query = {"parent": session.routes.parent(parent)} if parent else {}
    with refusals({404: lambda error: missing(session, parent)}):
        return listed(session, session.routes.namespaces(), "namespaces", query)


def properties(session: RestSession, namespace: Identifier) -> dict[str, str]:
    """The properties of a namespace. Raises NoSuchNamespaceError."""
    if not namespace:
        return {}
    with refusals({404: lambda error: missing(session, namespace)}):
        answer = session.client.get(session.routes.namespace(namespace))
    where = f"the answer for namespace {_named(session, namespace)}"
    return dict(string_map(answer.body, "properties", where))


def create(session: RestSession, namespace: Identifier, given: Mapping[str, str]) -> None:
    """Creates a namespace.

    Raises:
        AlreadyExistsError: it exists.
        UnsupportedFeatureError: the server does not support its properties.
        CommitStateUnknownError: it is unknown whether it was created.
    """
    _check(session, namespace)
    session.routes.namespace(namespace)
    body = {"namespace": list(namespace), "properties": dict(given)}
    exists = AlreadyExistsError(f"namespace {_named(session, namespace)} already exists")
    with refusals(
        {
            404: lambda error: missing(session, namespace[:-1]),
            406: lambda error: _unsupported(session, namespace, error),
            409: lambda error: exists,
        }
    ):
        try:
            session.change("POST", session.routes.namespaces(), body)
        except RestError as error:
            settle(
                f"create namespace {_named(session, namespace)}",
                error,
                lambda: _exists(session, namespace),
            )


def drop(session: RestSession, namespace: Identifier) -> None:
    """Drops an empty namespace.

    Raises:
        NoSuchNamespaceError: there is no such namespace.
        NamespaceNotEmptyError: it has tables, views or namespaces.
        CommitStateUnknownError: it is unknown whether it was dropped.
    """
    _check(session, namespace)

    def not_empty(error: RestError) -> NamespaceNotEmptyError:
        return NamespaceNotEmptyError(
            f"namespace {_named(session, namespace)} is not empty: "
            f"{error.explanation or error.reason}"
        )

    with refusals(
        {
            # Older servers answer this for namespaces that are not empty.
            400: lambda error: not_empty(error) if error.kind == _NOT_EMPTY else error,
            404: lambda error: missing(session, namespace),
            409: not_empty,
        }
    ):
        try:
            session.change("DELETE", session.routes.namespace(namespace))
        except RestError as error:
            settle(
                f"drop namespace {_named(session, namespace)}",
                error,
                lambda: not _exists(session, namespace),
            )


def update(
    session: RestSession,
    namespace: Identifier,
    removals: Sequence[str],
    updates: Mapping[str, str],
) -> None:
    """Removes and sets properties; errors are those of `RestCatalog`."""
    _check(session, namespace)
    if both := set(removals) & updates.keys():
        raise InvalidOptionError(
            f"namespace {_named(session, namespace)}: {', '.join(sorted(both))} cannot be both "
            "removed and set"
        )
    session.config.require(session.name, UPDATE_NAMESPACE, "properties of namespaces")
    body = {"removals": sorted(set(removals)), "updates": dict(updates)}

    def is_changed() -> bool:
        found = properties(session, namespace)
        return updates.items() <= found.items() and found.keys().isdisjoint(removals)

    with refusals(
        {
            404: lambda error: missing(session, namespace),
            406: lambda error: _unsupported(session, namespace, error),
        }
    ):
        try:
            session.change("POST", session.routes.properties(namespace), body)
        except RestError as error:
            settle(f"change namespace {_named(session, namespace)}", error, is_changed)


def missing(session: RestSession, namespace: Identifier) -> NoSuchNamespaceError:
    """The error for a namespace that the server does not know, with a similar name."""
    text = ".".join(namespace)
    try:
        near = nearest_namespace(namespace, list_below(session, ())) if namespace else ""
    except IcebergError:
        near = ""
    hint = near or f"; create it with create_namespace({text!r}) or CREATE NAMESPACE"
    return NoSuchNamespaceError(f"catalog {session.name} has no namespace {text}{hint}")


def _exists(session: RestSession, namespace: Identifier) -> bool:
    try:
        properties(session, namespace)
    except NoSuchNamespaceError:
        return False
    return True


def _unsupported(
    session: RestSession, namespace: Identifier, error: RestError
) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"namespace {_named(session, namespace)}: the server does not support this: "
        f"{error.explanation or error.reason}"
    )


def _named(session: RestSession, namespace: Identifier) -> str:
    return quote_name((session.name, *namespace))


def _check(session: RestSession, namespace: Identifier) -> None:
    if not namespace or not all(namespace):
        raise InvalidOptionError(
            f"catalog {session.name}: {namespace!r} is not a namespace: expected names, such as "
            "('db', 'raw')"
        )


def listed(
    session: RestSession, path: str, member: str, query: Mapping[str, str] | None = None
) -> list[Identifier]:
    """All identifiers of a listing, sorted.

    Args:
        member: of the answer, `identifiers` or `namespaces`.

    Raises:
        RestError: the server refused or did not answer.
        InvalidMetadataError: an answer is malformed, or the pages do not end.
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
    # Functions are named by lists, too.
    if member == "namespaces" or type(value) is list:
        parts = typed(value, list, f"a namespace of {where}")
        return tuple(typed(part, str, f"a namespace of {where}") for part in parts)
    obj = typed(value, dict, f"an identifier of {where}")
    name = required(obj, "name", str, where)
    return (*strings(obj, "namespace", where), name)
