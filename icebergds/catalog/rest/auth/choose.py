"""Chooses how requests are authenticated, from the catalog's properties."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

from icebergds.catalog.rest.auth.base import Authenticator, FixedHeader, SignedRequest, authorized
from icebergds.catalog.rest.auth.oauth2 import OAuth2, OAuth2Options, TokenRequest
from icebergds.catalog.rest.options import TOKEN_TYPES, flag, integer
from icebergds.catalog.rest.secrets import Secrets
from icebergds.errors import InvalidOptionError, StorageError


class _HeaderProvider(Protocol):
    """Provides the value of the header `Authorization`, as PyIceberg's `AuthManager` does.

    Its method `forget`, if it has one, is called when the server has refused the value.
    """

    def auth_header(self) -> str | None: ...


class _ProvidedHeader:
    """Asks a provider for each request (`Authenticator`).

    Args:
        catalog: the catalog's name in messages.
        provider: renews its values itself.
        found: called with each header.
    """

    def __init__(
        self, catalog: str, provider: _HeaderProvider, found: Callable[[str], None]
    ) -> None:
        self._catalog = catalog
        self._provider = provider
        self._found = found

    def current(self) -> str | None:
        try:
            header = self._provider.auth_header()
        except Exception as error:
            reason = type(error).__name__
        else:
            if header is not None:
                self._found(header)
            return header
        # Not chained: its message may contain a secret that is not known to us.
        raise StorageError(
            f"catalog {self._catalog}: {type(self._provider).__name__}, which authenticates "
            f"requests, failed with {reason}"
        )

    def sign(self, request: SignedRequest, current: str | None) -> SignedRequest:
        return authorized(request, current)

    def renew(self, refused: str | None) -> bool:
        forget = getattr(self._provider, "forget", None)
        if forget is not None:
            forget()
        return self.current() != refused


def _load_provider(catalog: str, path: str, options: Mapping[str, str]) -> _HeaderProvider:
    """Creates a provider from the path of its class, such as `my_package.auth.MyTokens`.

    Args:
        options: the keyword arguments of the class.

    Raises:
        InvalidOptionError: there is no such class, or it cannot be created with these arguments.
    """
    module, _, name = path.rpartition(".")
    try:
        provider: Any = getattr(import_module(module), name)(**options)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        reason = type(error).__name__
    else:
        if callable(getattr(provider, "auth_header", None)):
            checked: _HeaderProvider = provider
            return checked
        reason = "it has no method auth_header"
    raise InvalidOptionError(
        f"catalog {catalog}: {path!r}, which is to authenticate requests, cannot be used: {reason};"
        " expected the path of a class whose objects have auth_header(), such as "
        "my_package.auth.MyTokens"
    )


AUTH_TYPES = ("none", "basic", "oauth2", "sigv4", "google", "custom")
_SAME = {"noop": "none", "legacyoauth2": "oauth2"}
_SCOPE = "catalog"


def auth_type(name: str, properties: Mapping[str, str]) -> str:
    """The type of authentication.

    Raises:
        InvalidOptionError: the type is unknown.
    """
    given = properties.get("rest.auth.type") or properties.get("auth.type")
    if given is None and flag(name, properties, "rest.sigv4-enabled", False):
        return "sigv4"
    if given is None:
        return _plain_type(properties)
    kind = given.strip().lower()
    kind = _SAME.get(kind, kind)
    # The path of a class contains a dot.
    if kind not in AUTH_TYPES and "." not in kind:
        raise InvalidOptionError(
            f"catalog {name}: the type of authentication is {given!r}, expected one of "
            f"{', '.join(AUTH_TYPES)}"
        )
    return "custom" if "." in kind else kind


def choose_authenticator(
    name: str, properties: Mapping[str, str], request: TokenRequest, secrets: Secrets
) -> Authenticator:
    """The authenticator for the requests of a catalog.

    Args:
        request: sends forms to the token endpoint.
        secrets: receives the passwords and tokens.

    Raises:
        InvalidOptionError: a property is missing or malformed, or a package is not installed.
    """
    return _of_type(auth_type(name, properties), name, properties, request, secrets)


def _of_type(
    kind: str, name: str, properties: Mapping[str, str], request: TokenRequest, secrets: Secrets
) -> Authenticator:
    match kind:
        case "basic":
            return _basic(name, properties, secrets)
        case "oauth2":
            options = oauth2_options(name, properties, secrets)
            return OAuth2(name, options, request, secrets.add)
        case "sigv4":
            from icebergds.catalog.rest.auth.sigv4 import SigV4

            given = properties.get("rest.auth.sigv4.delegate-auth-type", "").lower()
            inner = given or _plain_type(properties)
            if inner not in AUTH_TYPES or inner == "sigv4":
                raise InvalidOptionError(
                    f"catalog {name}: rest.auth.sigv4.delegate-auth-type is {given!r}, expected "
                    "none, basic or oauth2"
                )
            secrets.add(*(properties.get(f"{p}.secret-access-key") for p in ("rest", "client")))
            secrets.add(*(properties.get(f"{p}.session-token") for p in ("rest", "client")))
            return SigV4(name, properties, _of_type(inner, name, properties, request, secrets))
        case "google":
            return _google(name, properties, secrets)
        case "custom":
            return _custom(name, properties, secrets)
        case _:
            return FixedHeader()


def _plain_type(properties: Mapping[str, str]) -> str:
    typed = any(key.startswith(TOKEN_TYPES) for key in properties)
    has_token = properties.get("token") or properties.get("credential") or typed
    return "oauth2" if has_token else "none"


def _basic(name: str, properties: Mapping[str, str], secrets: Secrets) -> Authenticator:
    user = properties.get("rest.auth.basic.username") or properties.get("auth.basic.username")
    password = properties.get("rest.auth.basic.password") or properties.get("auth.basic.password")
    if not user or password is None:
        raise InvalidOptionError(
            f"catalog {name}: authentication of type basic needs rest.auth.basic.username and "
            "rest.auth.basic.password"
        )
    login = base64.b64encode(f"{user}:{password}".encode()).decode()
    secrets.add(password, login)
    return FixedHeader(f"Basic {login}")


def oauth2_options(name: str, properties: Mapping[str, str], secrets: Secrets) -> OAuth2Options:
    """How to obtain tokens.

    Raises:
        InvalidOptionError: a property is missing or malformed.
    """
    ours = own_options("oauth2", properties)
    token, credential = properties.get("token") or None, properties.get("credential")
    subjects = [(k, v) for k, v in properties.items() if k.startswith(TOKEN_TYPES) and v]
    client_id, secret, in_header = "", None, False
    if credential:
        # The secret may contain colons, but the id may not.
        client_id, colon, rest = credential.partition(":")
        client_id, secret = (client_id, rest) if colon else ("", credential)
    elif ours.get("client_secret"):
        client_id, secret, in_header = ours.get("client_id", ""), ours["client_secret"], True
    if token is None and secret is None:
        raise InvalidOptionError(
            f"catalog {name}: authentication of type oauth2 needs a credential, such as "
            "<client id>:<client secret>, or a token"
        )
    secrets.add(token, secret, *(value for _, value in subjects))
    expires = "token-expires-in-ms"
    lifetime_ms = integer(name, properties, expires, 0) or None
    optional = {
        "scope": properties.get("scope") or ours.get("scope") or ("" if in_header else _SCOPE),
        "audience": properties.get("audience") or "",
        "resource": properties.get("resource") or "",
    }
    return OAuth2Options(
        token=token,
        client_id=client_id,
        client_secret=secret,
        in_header=in_header,
        optional={key: value for key, value in optional.items() if value},
        subject=subjects[0] if subjects else None,
        exchange=flag(name, properties, "token-exchange-enabled", True),
        refresh=flag(name, properties, "token-refresh-enabled", True),
        lifetime_s=None if lifetime_ms is None else lifetime_ms / 1000,
    )


def _google(name: str, properties: Mapping[str, str], secrets: Secrets) -> Authenticator:
    ours = own_options("google", properties)
    path = properties.get("gcp.auth.credentials-path") or ours.get("credentials_path")
    scopes = properties.get("gcp.auth.scopes") or ours.get("scopes") or DEFAULT_SCOPE
    listed = [scope.strip() for scope in scopes.split(",") if scope.strip()]
    return _ProvidedHeader(name, GoogleTokens(name, path, listed), secrets.add)


def _custom(name: str, properties: Mapping[str, str], secrets: Secrets) -> Authenticator:
    kind = properties.get("rest.auth.type") or ""
    path = kind if "." in kind else properties.get("auth.impl") or properties.get("auth.type", "")
    if "." not in path:
        raise InvalidOptionError(
            f"catalog {name}: authentication of type custom needs auth.impl, the path of a class "
            "such as my_package.auth.MyTokens"
        )
    options = own_options("custom", properties)
    secrets.add(*options.values())
    return _ProvidedHeader(name, _load_provider(name, path, options), secrets.add)


def own_options(kind: str, properties: Mapping[str, str]) -> dict[str, str]:
    """The properties of a type of authentication, `auth.<type>.<name>`, by their names.

    Environment variables have dashes instead of underscores.
    """
    prefix = f"auth.{kind}."
    return {
        key.removeprefix(prefix).replace("-", "_"): value
        for key, value in properties.items()
        if key.startswith(prefix) and value
    }


DEFAULT_SCOPE = "https://www.googleapis.com/auth/cloud-platform"


class GoogleTokens:
    """Provides tokens (`_HeaderProvider`).

    Args:
        catalog: the catalog's name in messages.
        credentials_path: a file with credentials; None for those of the environment.

    Raises:
        InvalidOptionError: google-auth is not installed, or there are no credentials.
    """

    def __init__(self, catalog: str, credentials_path: str | None, scopes: Sequence[str]) -> None:
        try:
            import google.auth
            from google.auth.exceptions import GoogleAuthError
            from google.auth.transport.requests import Request
        except ImportError as error:
            raise InvalidOptionError(
                f"catalog {catalog}: authentication by Google needs google-auth: pip install "
                "'icebergds[gcs]'"
            ) from error
        # It has no type annotations.
        auth: Any = google.auth
        try:
            if credentials_path:
                found = auth.load_credentials_from_file(credentials_path, scopes=scopes)
            else:
                found = auth.default(scopes=scopes)
        except (GoogleAuthError, OSError, ValueError) as error:
            raise InvalidOptionError(
                f"catalog {catalog}: there are no credentials of Google: {type(error).__name__}; "
                "set gcp.auth.credentials-path to a file of a service account, or the environment "
                "variable GOOGLE_APPLICATION_CREDENTIALS"
            ) from None
        self._credentials: Any = found[0]
        self._request: Any = Request()

        self._lock = threading.Lock()

    def auth_header(self) -> str:
        with self._lock:
            if not self._credentials.valid:
                self._credentials.refresh(self._request)
            return f"Bearer {self._credentials.token}"

    def forget(self) -> None:
        """Gets a new token at the next request."""
        with self._lock:
            self._credentials.token = None
