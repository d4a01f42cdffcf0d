"""Calls the key management service (KMS) of a catalog, which wraps the keys of tables."""

from __future__ import annotations

import atexit
import base64
import contextlib
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol

from icebergds.encryption.ciphers import KEY_LENGTHS, WrongKey
from icebergds.encryption.quiet_clients import quiet_clients
from icebergds.errors import IcebergError, InvalidOptionError, StorageError
from icebergds.io.key_wrapping import WrapsKeys
from icebergds.suggestions import did_you_mean

__all__ = [
    "KMS_IMPL",
    "KMS_TYPE",
    "KeyManagementClient",
    "KeyService",
    "is_of_key_service",
    "load_kms",
]

KMS_TYPE = "encryption.kms-type"
KMS_IMPL = "encryption.kms-impl"


class KeyManagementClient(WrapsKeys, Protocol):
    """What a class named by `encryption.kms-impl` has; it is made without arguments.

    One object serves all threads of a process. What it raises is shown in messages, so it must not
    contain keys.
    """

    def initialize(self, properties: Mapping[str, str]) -> None:
        """Called once, first.

        Args:
            properties: those of the catalog, but for what only reaches the catalog itself, such as
                its `uri`, tokens and passwords.
        """
        ...

    def close(self) -> None:
        """Called when the process ends."""
        ...


@dataclass(frozen=True, slots=True)
class KeyService:
    """The key management service of a catalog; can be pickled, and connects when it is used.

    Attributes:
        where: names the catalog in messages.
        kind: one of our types, or the name of a class.
    """

    where: str
    kind: str
    _properties: tuple[tuple[str, str], ...] = field(repr=False)

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        """A key, encrypted by a master key.

        The result is unwrapped once: what a key encrypts that nobody can unwrap is lost.

        Raises:
            StorageError: the service fails, refuses, returns the key itself, or unwraps another
                key from its result.
            InvalidOptionError: the configuration is not sufficient, there is no such key, or the
                master key cannot unwrap the result.
        """
        wrapped = self._called("wrap", key, wrapping_key_id, self._client().wrap_key)
        if key in wrapped:
            raise StorageError(
                f"{self._named(wrapping_key_id)} returned the key in clear; expected it encrypted, "
                "since everyone who reads the table's metadata sees it"
            )
        if self.unwrap_key(wrapped, wrapping_key_id) != key:
            raise StorageError(
                f"{self._named(wrapping_key_id)} does not unwrap the key that it has wrapped; what "
                "that key encrypted could never be read"
            )
        return wrapped

    def unwrap_key(self, wrapped: bytes, wrapping_key_id: str) -> bytes:
        """The key that a master key encrypted.

        Raises:
            InvalidOptionError: the master key did not encrypt it, there is no such key, or the
                configuration is not sufficient.
            StorageError: the service fails, or refuses.
        """
        key = self._called("unwrap", wrapped, wrapping_key_id, self._client().unwrap_key)
        if len(key) not in KEY_LENGTHS:
            raise StorageError(
                f"{self._named(wrapping_key_id)} unwrapped a key of {len(key)} bytes; expected "
                f"{', '.join(map(str, KEY_LENGTHS))}"
            )
        return key

    def _called(
        self, verb: str, given: bytes, key_id: str, call: Callable[[bytes, str], bytes]
    ) -> bytes:
        try:
            with quiet_clients():
                answer = call(given, key_id)
        except WrongKey:
            raise InvalidOptionError(
                f"{self._named(key_id)} cannot {verb} the key: this master key has not wrapped it, "
                f"or it was changed since; check {KMS_TYPE} and the keys of the service"
            ) from None
        except InvalidOptionError as error:
            raise InvalidOptionError(
                f"{self._named(key_id)} cannot {verb} a key: {error}"
            ) from None
        except Exception as error:
            text, shown = _shown(error, given, self._properties)
            raise StorageError(f"{self._named(key_id)} failed to {verb} a key: {text}") from shown
        if not isinstance(answer, bytes | bytearray | memoryview):
            raise StorageError(
                f"{self._named(key_id)} returned {type(answer).__name__} for a key; expected bytes"
            )
        if not len(answer):
            raise StorageError(f"{self._named(key_id)} returned a key of 0 bytes")
        return bytes(answer)

    def _named(self, key_id: str) -> str:
        return f"{self.where}: its key service ({self.kind}), asked with the master key {key_id!r},"

    def _client(self) -> KeyManagementClient:
        # A forked process must not use its parent's connections.
        known = (os.getpid(), self)
        with _LOCK:
            if (client := _CLIENTS.get(known)) is None:
                client = _CLIENTS[known] = self._initialized()
            return client

    def _initialized(self) -> KeyManagementClient:
        made = _class_of(self.kind, self.where)
        try:
            client: KeyManagementClient = made()
            client.initialize(dict(self._properties))
        except Exception as error:
            text, shown = _shown(error, b"", self._properties)
            raise InvalidOptionError(
                f"{self.where}: its key service ({self.kind}) cannot be used: {text}"
            ) from shown
        return client


def load_kms(properties: Mapping[str, str], where: str) -> KeyService | None:
    """The key management service that properties configure; None without one.

    It is not asked yet.

    Args:
        properties: all of a catalog, or options of a table without a catalog: `encryption.kms-type`
            (aws, azure, gcp or keystore), or `encryption.kms-impl`, the class of a
            `KeyManagementClient` such as `my_package.kms.MyClient`; and what these need.
        where: names the catalog in messages.

    Raises:
        InvalidOptionError: both are set, the type is unknown, or the class cannot be imported or
            lacks a method.
    """
    kind, impl = properties.get(KMS_TYPE), properties.get(KMS_IMPL)
    if kind and impl:
        raise InvalidOptionError(
            f"{where}: both {KMS_TYPE} = {kind!r} and {KMS_IMPL} = {impl!r} are set; leave one out"
        )
    if not kind and not impl:
        return None
    if kind:
        kind = kind.strip().lower()
        if kind not in _TYPES:
            near = did_you_mean(kind, _TYPES)
            raise InvalidOptionError(
                f"{where}: {KMS_TYPE} is {kind!r}, expected one of {', '.join(_TYPES)}"
                f"{'; ' + near if near else ''}; for a client of your own, set {KMS_IMPL}"
            )
    else:
        assert impl is not None
        kind = _JAVA_CLASSES.get(impl, impl)
    _class_of(kind, where)
    given = (item for item in properties.items() if _is_for_client(item[0], kind))
    return KeyService(where, kind, tuple(sorted(given)))


def _is_for_client(name: str, kind: str) -> bool:
    if kind in _TYPES:
        return name.startswith((*_PREFIXES, *_OF_CLOUDS))
    return name not in _OF_CATALOGS and not name.startswith(_PREFIXES_OF_CATALOGS)


def is_of_key_service(name: str) -> bool:
    """Whether a property, such as `encryption.kms-type`, is one of a key service alone."""
    return name.startswith(_PREFIXES)


# Imported when they are used; each is a KeyManagementClient.
_TYPES: Mapping[str, str] = {
    "aws": "icebergds.encryption.kms_aws.AwsKmsClient",
    "azure": "icebergds.encryption.kms_azure.AzureKeyVaultClient",
    "gcp": "icebergds.encryption.kms_gcp.GcpKmsClient",
    "keystore": "icebergds.encryption.keystore.KeyStoreClient",
}
# Java's names of the same.
_JAVA_CLASSES = {
    "org.apache.iceberg.aws.AwsKeyManagementClient": "aws",
    "org.apache.iceberg.azure.keymanagement.AzureKeyManagementClient": "azure",
    "org.apache.iceberg.gcp.GcpKeyManagementClient": "gcp",
    "org.apache.iceberg.encryption.KeyStoreKmsClient": "keystore",
}
_PREFIXES = ("encryption.", "kms.", "azure.keyvault.")
# With credentials that storages and key services of a cloud share.
_OF_CLOUDS = ("client.", "gcs.", "adls.")
# Of what reaches the catalog itself: passwords and tokens of it go to no other process.
_OF_CATALOGS = ("uri", "url", "token", "credential", "ugi", "user", "username", "password")
_PREFIXES_OF_CATALOGS = (
    *("jdbc.", "rest.", "header.", "auth.", "oauth2", "ssl.", "hive.", "s3."),
    *("glue.", "dynamodb.", "s3tables.", "urn:"),
)
_SECRET = ("secret", "token", "password", "credential", "private", "access-key", "account-key")
_METHODS = ("initialize", "wrap_key", "unwrap_key", "close")

_LOCK = threading.Lock()
_CLIENTS: dict[tuple[int, KeyService], KeyManagementClient] = {}


def _class_of(kind: str, where: str) -> Any:
    """The class of a client. Raises InvalidOptionError if there is none, or it is not one."""
    path = _TYPES.get(kind, kind)
    module, _, name = path.rpartition(".")
    try:
        found = getattr(import_module(module), name) if module else None
    except Exception as error:
        raise InvalidOptionError(
            f"{where}: {KMS_IMPL} is {path!r}, which cannot be imported "
            f"({type(error).__name__}: {error}); expected a Python class such as "
            "my_package.kms.MyClient, in a module on the path of Spark's driver"
        ) from error
    if not isinstance(found, type):
        raise InvalidOptionError(
            f"{where}: {KMS_IMPL} is {path!r}, which is not a class; expected one such as "
            "my_package.kms.MyClient"
        )
    missing = [method for method in _METHODS if not callable(getattr(found, method, None))]
    if missing:
        raise InvalidOptionError(
            f"{where}: the class {path} ({KMS_IMPL}) lacks {', '.join(missing)}; it needs "
            f"{', '.join(_METHODS)}, as KeyManagementClient has them"
        )
    return found


def _shown(
    error: Exception, given: bytes, properties: tuple[tuple[str, str], ...]
) -> tuple[str, Exception | None]:
    """An error as text, and as the cause to show; None if its text has secrets in it."""
    try:
        text = str(error)
    except Exception:
        # The error would fail again if it was shown as the cause.
        return type(error).__name__, None
    if not isinstance(error, IcebergError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    secrets = {value for name, value in properties if _is_secret(name) and len(value) > 3}
    if given:
        secrets |= {given.hex(), base64.b64encode(given).decode(), repr(given)[2:-1]}
        secrets |= {given.decode("latin-1")}
    hidden = text
    for secret in sorted(secrets, key=len, reverse=True):
        hidden = hidden.replace(secret, "***")
    return hidden, (error if hidden == text else None)


def _is_secret(name: str) -> bool:
    return any(word in name.lower() for word in _SECRET)


@atexit.register
def _close() -> None:
    for (process, _), client in list(_CLIENTS.items()):
        if process == os.getpid():
            with contextlib.suppress(Exception):
                client.close()
