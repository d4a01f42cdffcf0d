"""Reads from a server's answer how to access a table's storage, here and in tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl

from icebergds.catalog.base import Identifier
from icebergds.catalog.rest.config import SIGN
from icebergds.catalog.rest.failures import RestError
from icebergds.catalog.rest.http import HttpClient, Request
from icebergds.catalog.rest.session import RestSession
from icebergds.io.fileio import FileIO
from icebergds.io.merged_credentials import SENT_AS_THEY_ARE, without_expiries
from icebergds.io.option_values import first, is_true
from icebergds.io.request_signing import Signature, UnsignedRequest
from icebergds.io.storage_options import STORAGE_PREFIXES
from icebergds.io.table_access import (
    REFRESH_ENDPOINTS,
    REMOTE_SIGNING,
    SIGNER_ENDPOINT,
    SIGNING_CONFIG,
    TABLE_TOKEN,
    SigningConfig,
    refresh_endpoints,
    signature_in,
    signing_config,
    signing_request,
)
from icebergds.io.vended_credentials import PrefixCredentials, VendedCredentials
from icebergds.spec.json.fields import optional, string_map


@dataclass(frozen=True, slots=True)
class TableConfig:
    """The storage configuration of a table in an answer.

    Attributes:
        properties: of the storage, also for tasks; includes a token only if tasks need it.
        signer: signs requests to S3 in this process, if the catalog is to sign them.
    """

    properties: Mapping[str, str] = field(repr=False)
    signer: RestSigner | None


def storage_of_all(session: RestSession, io: FileIO) -> FileIO:
    """The user's storage with the properties that the server sets for all tables.

    For storages whose credentials are sent as they are, these count as vended, so that the server
    cannot decide where the user's own credentials are sent.
    """
    sent = _sent_by_all(session)
    given = {key: value for key, value in _served(session).items() if key not in sent}
    vended = io.vended
    if sent:
        own = () if vended is None else vended.current()
        vended = VendedCredentials([*own, PrefixCredentials("", sent)])
    return replace(io, properties={**io.properties, **given}, vended=vended)


def table_config(
    session: RestSession,
    identifier: Identifier,
    body: Mapping[str, Any],
    own: Mapping[str, str],
    where: str,
) -> TableConfig:
    """The storage configuration in an answer.

    Args:
        body: of the answer.
        own: the user's properties of the storage.
        where: names the answer in messages.

    Raises:
        InvalidMetadataError: the answer is malformed.
    """
    given = string_map(body, "config", where)
    # A server cannot allow other URI schemes or set limits.
    kept = {key: value for key, value in given.items() if key.startswith(STORAGE_PREFIXES)}
    kept = {**without_expiries(_sent_by_all(session)), **kept}
    for name in REFRESH_ENDPOINTS:
        if kept.get(name):
            kept[name] = session.routes.with_views(_whole(session.client.uri, kept[name]))
    signer = None
    signing = {REMOTE_SIGNING: kept.pop(REMOTE_SIGNING, own.get(REMOTE_SIGNING, ""))}
    if is_true(signing, REMOTE_SIGNING) and not _has_key(body, own, where):
        endpoint = _signer_endpoint(session, identifier, {**own, **given})
        document = optional(body, "remote-signing-config", dict, where) or {}
        string_map(document, "properties", where)
        optional(document, "headers", dict, where)
        signer = RestSigner(session.client, endpoint, signing_config(document))
        kept[REMOTE_SIGNING] = "true"
        kept.pop(SIGNER_ENDPOINT, None)
        if TABLE_TOKEN in given or session.client.is_anonymous:
            kept |= {SIGNER_ENDPOINT: endpoint, SIGNING_CONFIG: json.dumps(document)}
    if TABLE_TOKEN in given and (signer is not None or refresh_endpoints(kept)):
        kept[TABLE_TOKEN] = given[TABLE_TOKEN]
        session.client.hide(given[TABLE_TOKEN])
    return TableConfig(kept, signer)


@dataclass(frozen=True, slots=True)
class RestSigner:
    """Requests signatures like the catalog's other requests (`RequestSigner`)."""

    client: HttpClient = field(repr=False)
    endpoint: str = field(repr=False)
    config: SigningConfig

    def sign(self, request: UnsignedRequest) -> Signature:
        # The query may be a secret, and messages show the path.
        path, _, query = self.endpoint.partition("?")
        sent = Request(
            "POST",
            path,
            query=dict(parse_qsl(query, keep_blank_values=True)),
            headers=dict(self.config.headers),
            body=signing_request(request, self.config),
            repeatable=True,
        )
        try:
            answer = self.client.send(sent)
        except RestError as error:
            # An unused signature has no effect.
            error.maybe_done = False
            raise
        return signature_in(answer.headers, answer.body)


def _served(session: RestSession) -> dict[str, str]:
    """The storage properties that the server sets and the user does not override."""
    served, merged = session.config.served, session.config.properties
    return {
        key: value
        for key, value in served.items()
        if key.startswith(STORAGE_PREFIXES) and merged[key] == value
    }


def _sent_by_all(session: RestSession) -> dict[str, str]:
    served = _served(session)
    return {key: value for key, value in served.items() if key.startswith(SENT_AS_THEY_ARE)}


# For servers that predate signing endpoints for each table.
_OLD_ENDPOINT = "v1/aws/s3/sign"


def _has_key(body: Mapping[str, Any], own: Mapping[str, str], where: str) -> bool:
    """Whether there are signing keys, the user's or vended."""
    name = "s3.access-key-id"
    members = optional(body, "storage-credentials", list, where) or ()
    vended = [string_map(each, "config", where) for each in members if isinstance(each, dict)]
    return name in own or any(name in each for each in (string_map(body, "config", where), *vended))


def _signer_endpoint(
    session: RestSession, identifier: Identifier, properties: Mapping[str, str]
) -> str:
    base = first(properties, "s3.signer.uri", "signer.uri") or session.client.uri
    path = first(properties, SIGNER_ENDPOINT, "signer.endpoint")
    if not path:
        supported = session.config.supports(session.name, SIGN)
        path = session.routes.sign(identifier) if supported else _OLD_ENDPOINT
    return _whole(base, path)


def _whole(base: str, path: str) -> str:
    return path if "://" in path else f"{base.rstrip('/')}/{path.lstrip('/')}"
