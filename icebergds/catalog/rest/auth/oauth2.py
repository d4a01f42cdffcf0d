"""Obtains bearer tokens with OAuth2, and renews them when they are used.

A token is renewed shortly before it expires, and when the server refuses it. A failed renewal is
retried soon, so that it recovers.
"""

from __future__ import annotations

import base64
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from icebergds.catalog.rest.auth.base import SignedRequest, authorized
from icebergds.errors import StorageError

_LOG = logging.getLogger(__name__)

TokenRequest = Callable[[Mapping[str, str], str | None], Mapping[str, Any]]
"""Sends a form to the token endpoint, with a header `Authorization` or None; returns the answer.

Raises StorageError.
"""

ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
_TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_LONGEST_MARGIN_S = 60.0
_PAUSE_S = 5.0


@dataclass(frozen=True, slots=True)
class OAuth2Options:
    """How to obtain tokens.

    Attributes:
        token: the first token; None to request one.
        client_id: may be empty if the server identifies clients by the secret.
        client_secret: None if tokens are renewed by exchanging them.
        in_header: whether the client authenticates with a header instead of the form.
        optional: further members of the form, such as scope, audience and resource.
        subject: a token, and its type, to exchange for a token of the catalog.
        exchange: whether a token may be exchanged for a newer one.
        refresh: whether tokens are renewed before they expire.
        lifetime_s: of tokens without an expiry time; None if they do not expire.
    """

    token: str | None = field(default=None, repr=False)
    client_id: str = ""
    client_secret: str | None = field(default=None, repr=False)
    in_header: bool = False
    optional: Mapping[str, str] = field(default_factory=dict)
    subject: tuple[str, str] | None = field(default=None, repr=False)
    exchange: bool = True
    refresh: bool = True
    lifetime_s: float | None = None


class OAuth2:
    """Authenticates requests with a token (`Authenticator`).

    Args:
        catalog: the catalog's name in messages.
        request: sends a form to the token endpoint.
        found: called with each new token.
    """

    def __init__(
        self,
        catalog: str,
        options: OAuth2Options,
        request: TokenRequest,
        found: Callable[[str], None],
    ) -> None:
        self._catalog = catalog
        self._options = options
        self._request = request
        self._found = found
        self._lock = threading.Lock()
        self._token: str | None = None
        self._renew_at = float("inf")
        if options.token is not None and options.subject is None:
            self._keep(options.token, None)

    def current(self) -> str | None:
        """The header with a token that has not expired.

        Raises:
            StorageError: there is no token, and none can be obtained.
        """
        with self._lock:
            if self._token is None:
                self._fetch()
            elif self._options.refresh and time.time() >= self._renew_at:
                # After a failure, not every request waits for a renewal: the token may last a
                # while.
                self._renew_at = time.time() + _PAUSE_S
                self._try_to_fetch()
            return f"Bearer {self._token}"

    def sign(self, request: SignedRequest, current: str | None) -> SignedRequest:
        return authorized(request, current)

    def renew(self, refused: str | None) -> bool:
        with self._lock:
            if refused is not None and refused != f"Bearer {self._token}":
                # Another thread has renewed it.
                return True
            return self._can_fetch() and self._try_to_fetch()

    def _can_fetch(self) -> bool:
        options = self._options
        return options.client_secret is not None or options.exchange

    def _try_to_fetch(self) -> bool:
        try:
            self._fetch()
        except StorageError as error:
            _LOG.warning("catalog %s: its token was not renewed: %s", self._catalog, error)
            return False
        return True

    def _fetch(self) -> None:
        options = self._options
        if options.subject is not None:
            actor = options.token or self._of_client()["access_token"]
            answer = self._exchanged(options.subject, actor)
        elif options.client_secret is not None:
            answer = self._of_client()
        elif self._token is not None and options.exchange:
            answer = self._exchanged((ACCESS_TOKEN, self._token), None)
        else:
            return
        lifetime = answer.get("expires_in")
        self._keep(answer["access_token"], lifetime if _is_number(lifetime) else None)

    def _of_client(self) -> Mapping[str, Any]:
        options = self._options
        form = {"grant_type": "client_credentials", **options.optional}
        if options.in_header:
            login = f"{options.client_id}:{options.client_secret}"
            header = f"Basic {base64.b64encode(login.encode()).decode()}"
            return self._checked(self._request(form, header))
        if options.client_id:
            form["client_id"] = options.client_id
        form["client_secret"] = options.client_secret or ""
        return self._checked(self._request(form, None))

    def _exchanged(self, subject: tuple[str, str], actor: str | None) -> Mapping[str, Any]:
        kind, token = subject
        form = {
            "grant_type": _TOKEN_EXCHANGE,
            "subject_token": token,
            "subject_token_type": kind,
            **self._options.optional,
        }
        if actor is not None:
            form |= {"actor_token": actor, "actor_token_type": ACCESS_TOKEN}
        return self._checked(self._request(form, f"Bearer {actor or token}"))

    def _checked(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        if not isinstance(answer.get("access_token"), str) or not answer["access_token"]:
            raise StorageError(
                f"catalog {self._catalog}: the answer of the token endpoint has no access_token; "
                "is oauth2-server-uri that of an OAuth2 token endpoint?"
            )
        self._found(answer["access_token"])
        return answer

    def _keep(self, token: str, lifetime_s: float | None) -> None:
        self._found(token)
        now = time.time()
        lifetime = _lifetime_of(token, now) if lifetime_s is None else lifetime_s
        if lifetime is None:
            lifetime = self._options.lifetime_s
        self._token = token
        if lifetime is None:
            self._renew_at = float("inf")
        else:
            self._renew_at = now + lifetime - min(_LONGEST_MARGIN_S, lifetime / 10)


def _lifetime_of(token: str, now: float) -> float | None:
    """How long a JSON web token is still valid, in seconds; None for other tokens."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return None
    expires = claims.get("exp") if isinstance(claims, dict) else None
    return float(expires) - now if isinstance(expires, int | float) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
