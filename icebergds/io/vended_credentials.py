"""Holds storage credentials that a catalog vended for prefixes of locations, and renews them.

Pickled, they are as they are then. Other processes renew them only if their properties have a token
of the table.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from icebergds.errors import InvalidOptionError
from icebergds.io.file_systems import forget_file_systems
from icebergds.io.locations import EQUAL_SCHEMES
from icebergds.io.merged_credentials import (
    EXPIRIES,
    secrets_in,
    with_vended,
    without_credentials,
    without_expiries,
)
from icebergds.io.request_signing import RequestSigner
from icebergds.io.storage_options import STORAGE_CREDENTIALS
from icebergds.io.table_access import task_renewal

_LOG = logging.getLogger(__name__)

_LONGEST_MARGIN_S = 300.0
_PAUSE_S = 2.0


@dataclass(frozen=True, slots=True)
class PrefixCredentials:
    """Storage properties for the locations that begin with a prefix.

    Attributes:
        prefix: of locations; empty for all.
        properties: such as `s3.access-key-id`.
    """

    prefix: str
    properties: Mapping[str, str] = field(repr=False)


Vended = Sequence[PrefixCredentials]


class VendedCredentials:
    """Credentials by prefix; threads may share them.

    Args:
        vended: as the catalog gave them.
        renew: gets new ones; by default, what their own properties lead to, if anything. Its errors
            are only logged: the old ones may last a while.
        signer: signs requests to S3 without keys, in this process; None: their properties lead to
            one, or there is none.
    """

    def __init__(
        self,
        vended: Vended,
        renew: Callable[[], Vended] | None = None,
        signer: RequestSigner | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._renew = renew or _renewal_of(vended)
        self.signer = signer
        # The second is later while a renewal that failed pauses.
        self._due_at = self._renew_at = float("inf")
        self._keep(vended)

    def at(self, path: str, properties: Mapping[str, str]) -> Mapping[str, str]:
        """The properties to access a path with: those of the longest prefix replace others.

        Args:
            properties: the user's own of the storage; see `with_vended`.

        Raises:
            InvalidOptionError: a credential is malformed.
        """
        plain = _plain(path)
        fitting = [each for each in self.current() if plain.startswith(_plain(each.prefix))]
        if not fitting:
            return properties
        chosen = max(fitting, key=lambda each: len(_plain(each.prefix))).properties
        return with_vended(properties, chosen)

    def current(self) -> Vended:
        """All credentials, renewed if they expire soon."""
        with self._lock:
            if self._renew is not None and time.time() >= self._renew_at:
                # If that fails, files that are opened meanwhile do not wait for it each time.
                self._renew_at = pause_ends = time.time() + _PAUSE_S
                before = self._vended
                try:
                    self._keep(self._renew())
                except Exception as error:
                    _LOG.warning("credentials of the storage were not renewed: %s", error)
                else:
                    # New ones may seem to have expired if the clock is ahead of the server's.
                    self._renew_at = max(self._renew_at, pause_ends)
                    if _secrets_of(before) != _secrets_of(self._vended):
                        forget_file_systems(_secrets_of(before))
            return self._vended

    @property
    def expires_soon(self) -> bool:
        """Whether they are to be renewed now."""
        return time.time() >= self._due_at

    def __reduce__(self) -> tuple[type[VendedCredentials], tuple[Vended]]:
        return VendedCredentials, (self.current(),)

    def __repr__(self) -> str:
        return f"VendedCredentials({', '.join(repr(each.prefix) for each in self._vended)})"

    def _keep(self, vended: Vended) -> None:
        self._vended = tuple(vended)
        now = time.time()
        lifetimes = [
            int(value) / 1000 - now
            for each in vended
            for key, value in each.properties.items()
            if key.startswith(EXPIRIES) and value.isdecimal()
        ]
        first = min(lifetimes, default=float("inf"))
        self._due_at = now + first - min(_LONGEST_MARGIN_S, max(first, 0.0) / 5)
        self._renew_at = self._due_at


def renewed(whole: Mapping[str, str], found: Vended) -> Vended:
    """The credentials after a renewal that brought those of some prefixes.

    Args:
        whole: the properties of the whole table. The credentials among them stay for other
            locations, but they are not renewed, so it does not matter when they expire.
        found: the new credentials by their prefixes.
    """
    lasting, plain = without_expiries(whole), without_credentials(whole)
    return [
        *([PrefixCredentials("", lasting)] if lasting else []),
        *(PrefixCredentials(each.prefix, {**plain, **each.properties}) for each in found),
    ]


def credentials_in(members: Any) -> Vended:
    """The credentials in a JSON array, in which each is for a prefix.

    Raises:
        ValueError: it is malformed.
    """
    try:
        return [
            PrefixCredentials(str(each["prefix"]), {str(k): str(v) for k, v in found.items()})
            for each in members
            for found in (each["config"],)
        ]
    except (TypeError, KeyError, AttributeError):
        raise ValueError("the credentials are malformed") from None


def credentials_to_text(vended: Vended) -> str:
    """Credentials as the value of the option `storage-credentials`."""
    members = [{"prefix": each.prefix, "config": dict(each.properties)} for each in vended]
    return json.dumps(members)


def credentials_of(properties: Mapping[str, str]) -> VendedCredentials | None:
    """The credentials in the option `storage-credentials`; None without it.

    Raises:
        InvalidOptionError: it is malformed. The value is not shown.
    """
    text = properties.get(STORAGE_CREDENTIALS)
    if not text:
        return None
    try:
        vended = credentials_in(json.loads(text))
    except ValueError:
        vended = None
    if vended is None:
        raise InvalidOptionError(
            f"option {STORAGE_CREDENTIALS!r} is malformed: expected a JSON array of objects such "
            'as {"prefix": "s3://bucket/db", "config": {"s3.access-key-id": "..."}}'
        )
    return VendedCredentials(vended)


def _renewal_of(vended: Vended) -> Callable[[], Vended] | None:
    """What gets new credentials by the properties of those of a whole table."""
    whole = next((each.properties for each in vended if not each.prefix), {})
    ask = task_renewal(whole)
    if ask is None:
        return None

    def renew() -> Vended:
        found = credentials_in(ask().get("storage-credentials"))
        if not found:
            raise ValueError("the catalog's answer has none")
        return renewed(whole, found)

    return renew


def _secrets_of(vended: Vended) -> frozenset[str]:
    return frozenset().union(*(secrets_in(each.properties) for each in vended))


def _plain(location: str) -> str:
    """A location with the one name of equal schemes."""
    scheme, separator, rest = location.partition(":")
    return EQUAL_SCHEMES.get(scheme.lower(), scheme.lower()) + separator + rest
