"""Defines the interface for authenticating requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """A request as sent."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    data: bytes = field(repr=False)

    def with_headers(self, headers: Mapping[str, str]) -> SignedRequest:
        """The request with further headers, which replace those with the same names."""
        return replace(self, headers={**self.headers, **headers})


class Authenticator(Protocol):
    """Authenticates requests; threads may share it."""

    def current(self) -> str | None:
        """The current value of the header `Authorization`, or None.

        Raises:
            StorageError: no token can be obtained.
        """
        ...

    def sign(self, request: SignedRequest, current: str | None) -> SignedRequest:
        """The request, authenticated with what `current` returned."""
        ...

    def renew(self, refused: str | None) -> bool:
        """Replaces a value that a server refused; returns whether requests may now be accepted."""
        ...


@dataclass(frozen=True, slots=True)
class FixedHeader:
    """Sends the same header `Authorization`, or none."""

    value: str | None = field(default=None, repr=False)

    def current(self) -> str | None:
        return self.value

    def sign(self, request: SignedRequest, current: str | None) -> SignedRequest:
        return authorized(request, current)

    def renew(self, refused: str | None) -> bool:
        return False


def authorized(request: SignedRequest, value: str | None) -> SignedRequest:
    """The request with a header `Authorization`, if there is a value."""
    return request if value is None else request.with_headers({"Authorization": value})
