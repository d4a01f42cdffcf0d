"""Gets the configuration of a catalog from its server (REST catalog specification: /v1/config)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from icebergds.catalog.rest.failures import RestError, refusals
from icebergds.catalog.rest.http import HttpClient
from icebergds.catalog.rest.options import flag
from icebergds.catalog.rest.routes import CONFIG
from icebergds.errors import (
    IcebergError,
    InvalidMetadataError,
    InvalidOptionError,
    UnsupportedFeatureError,
)
from icebergds.spec.json.fields import optional, string_map, strings

_TABLES = "/v1/{prefix}/namespaces/{namespace}/tables"
_VIEWS = "/v1/{prefix}/namespaces/{namespace}/views"

CREDENTIALS = f"GET {_TABLES}/{{table}}/credentials"
SIGN = f"POST {_TABLES}/{{table}}/sign"
PLAN_SCAN = f"POST {_TABLES}/{{table}}/plan"
FETCH_PLAN = f"GET {_TABLES}/{{table}}/plan/{{plan-id}}"
CANCEL_PLAN = f"DELETE {_TABLES}/{{table}}/plan/{{plan-id}}"
FETCH_TASKS = f"POST {_TABLES}/{{table}}/tasks"
METRICS = f"POST {_TABLES}/{{table}}/metrics"
REGISTER = "POST /v1/{prefix}/namespaces/{namespace}/register"
UNREGISTER = f"POST {_TABLES}/{{table}}/unregister"
RENAME_TABLE = "POST /v1/{prefix}/tables/rename"
TRANSACTION = "POST /v1/{prefix}/transactions/commit"
UPDATE_NAMESPACE = "POST /v1/{prefix}/namespaces/{namespace}/properties"
LIST_VIEWS = f"GET {_VIEWS}"
LOAD_VIEW = f"GET {_VIEWS}/{{view}}"
CREATE_VIEW = f"POST {_VIEWS}"
UPDATE_VIEW = f"POST {_VIEWS}/{{view}}"
DROP_VIEW = f"DELETE {_VIEWS}/{{view}}"
REGISTER_VIEW = "POST /v1/{prefix}/namespaces/{namespace}/register-view"
RENAME_VIEW = "POST /v1/{prefix}/views/rename"
LIST_FUNCTIONS = "GET /v1/{prefix}/namespaces/{namespace}/functions"
LOAD_FUNCTION = f"{LIST_FUNCTIONS}/{{function}}"

# Endpoints of servers that do not list theirs; no others are used.
_DEFAULT = frozenset({METRICS, REGISTER, RENAME_TABLE, UPDATE_NAMESPACE})
_DEFAULT_VIEWS = frozenset(
    {LIST_VIEWS, LOAD_VIEW, CREATE_VIEW, UPDATE_VIEW, DROP_VIEW, RENAME_VIEW}
)
_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?"
    r"(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """The configuration that a server returns for a catalog.

    Attributes:
        properties: of the catalog: the server's defaults, the user's, and the server's overrides.
        served: only the server's.
        endpoints: what the server supports, such as `GET /v1/{prefix}/namespaces`; None if it does
            not list them.
        idempotency_s: for how long a change may be repeated with the same idempotency key; None if
            the server does not support such keys.
    """

    properties: Mapping[str, str] = field(repr=False)
    served: Mapping[str, str] = field(repr=False)
    endpoints: frozenset[str] | None
    idempotency_s: float | None

    def supports(self, name: str, endpoint: str) -> bool:
        """Whether the server supports an endpoint; `name` is the catalog's, for errors."""
        if self.endpoints is not None:
            return endpoint in self.endpoints
        if flag(name, self.properties, "view-endpoints-supported", False):
            return endpoint in _DEFAULT | _DEFAULT_VIEWS
        return endpoint in _DEFAULT

    def require(self, name: str, endpoint: str, what: str) -> None:
        """Checks that the server supports an endpoint.

        Raises:
            UnsupportedFeatureError: it does not.
        """
        if not self.supports(name, endpoint):
            raise UnsupportedFeatureError(
                f"catalog {name}: its server does not support {what} ({endpoint})"
            )


def fetch_config(name: str, client: HttpClient, given: Mapping[str, str]) -> ServerConfig:
    """Asks the server for the configuration of a catalog.

    Args:
        given: the catalog's properties as the user set them.

    Raises:
        InvalidOptionError: the server has no such warehouse, or is not an Iceberg catalog.
        StorageError: the server does not answer, or refuses to.
    """
    warehouse = given.get("warehouse")

    def missing(error: RestError) -> IcebergError:
        if warehouse and error.kind:
            return InvalidOptionError(
                f"catalog {name}: the server {client.uri} has no warehouse {warehouse!r}: "
                f"{error.explanation or error.reason}"
            )
        return InvalidOptionError(
            f"catalog {name}: there is no Iceberg REST catalog at {client.uri} ({error.status}); "
            "give the address as uri that comes before /v1/config"
        )

    with refusals({404: missing}):
        answer = client.get(CONFIG, {"warehouse": warehouse} if warehouse else None)
    where = f"the configuration from {client.uri}"
    try:
        defaults = string_map(answer.body, "defaults", where)
        overrides = string_map(answer.body, "overrides", where)
        endpoints = strings(answer.body, "endpoints", where)
        lifetime = optional(answer.body, "idempotency-key-lifetime", str, where)
    except InvalidMetadataError as error:
        raise InvalidOptionError(
            f"catalog {name}: {error}; is the uri that of an Iceberg REST catalog?"
        ) from None
    defaults, overrides = _trusted(defaults), _trusted(overrides)
    return ServerConfig(
        properties={**defaults, **given, **overrides},
        served={**defaults, **overrides},
        endpoints=frozenset(map(_normal, endpoints)) or None,
        idempotency_s=None if lifetime is None else _seconds(lifetime),
    )


# Only the user decides which code authenticates requests, who gets passwords, whom to trust.
_ONLY_GIVEN = ("auth.", "rest.auth.", "gcp.auth.", "ssl.", "rest.client.proxy.")
_ONLY_GIVEN_NAMES = ("type", "credential", "oauth2-server-uri")


def _trusted(served: Mapping[str, str]) -> dict[str, str]:
    """The properties that a server may set."""
    return {
        key: value
        for key, value in served.items()
        if key not in _ONLY_GIVEN_NAMES and not key.startswith(_ONLY_GIVEN)
    }


def _normal(endpoint: str) -> str:
    """An endpoint with a slash before its path."""
    method, _, path = endpoint.strip().partition(" ")
    return f"{method.upper()} /{path.strip().lstrip('/')}"


def _seconds(duration: str) -> float | None:
    """A duration such as PT30M, in seconds; None if it is not a duration."""
    match = _DURATION.fullmatch(duration.strip().upper())
    if match is None:
        return None
    parts = {key: float(value or 0) for key, value in match.groupdict().items()}
    total = parts["days"] * 86400 + parts["hours"] * 3600 + parts["minutes"] * 60
    return total + parts["seconds"] or None
