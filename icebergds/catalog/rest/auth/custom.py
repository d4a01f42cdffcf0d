"""Authenticates requests by headers that other packages provide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Protocol

from icebergds.catalog.rest.auth.base import SignedRequest, authorized
from icebergds.errors import InvalidOptionError, StorageError


class HeaderProvider(Protocol):
    """Provides the value of the header `Authorization`, as PyIceberg's `AuthManager` does.

    If it has a method `forget`, that is called when the server has refused the value.
    """

    def auth_header(self) -> str | None: ...


class ProvidedHeader:
    """Asks a provider at each request (`Authenticator`).

    Args:
        catalog: the catalog's name in messages.
        provider: renews by itself what it provides.
        found: called with each header.
    """

    def __init__(
        self, catalog: str, provider: HeaderProvider, found: Callable[[str], None]
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
        # Not chained: its message may contain a secret that nobody has named.
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


def load_provider(catalog: str, path: str, options: Mapping[str, str]) -> HeaderProvider:
    """Makes a provider from the path of its class, such as `my_package.auth.MyTokens`.

    Args:
        options: the keyword arguments of the class.

    Raises:
        InvalidOptionError: there is no such class, or it cannot be made with these arguments.
    """
    module, _, name = path.rpartition(".")
    try:
        provider: Any = getattr(import_module(module), name)(**options)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        reason = type(error).__name__
    else:
        if callable(getattr(provider, "auth_header", None)):
            checked: HeaderProvider = provider
            return checked
        reason = "it has no method auth_header"
    raise InvalidOptionError(
        f"catalog {catalog}: {path!r}, which is to authenticate requests, cannot be used: {reason};"
        " expected the path of a class whose objects have auth_header(), such as "
        "my_package.auth.MyTokens"
    )
