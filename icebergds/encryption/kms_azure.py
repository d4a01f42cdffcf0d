"""Wraps keys by Azure Key Vault."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

from icebergds.encryption.ciphers import WrongKey
from icebergds.errors import InvalidOptionError
from icebergds.io.azure_options import azure_client

_VAULT = "azure.keyvault.url"
_ALGORITHM = "azure.keyvault.key-wrap-algorithm"
_LIFETIME_S = 3600


class AzureKeyVaultClient:
    """A `KeyManagementClient` of keys in a vault, named `name` or `name/version`.

    What a key without a version wrapped can be unwrapped only until the key has a newer one.

    Properties: `azure.keyvault.url`, `azure.keyvault.key-wrap-algorithm`; `adls.token`, or
    `adls.tenant-id`, `adls.client-id` and `adls.client-secret`, or what Azure's own tools use.
    """

    def __init__(self) -> None:
        self._client: Any = None
        self._algorithm: Any = None

    def initialize(self, properties: Mapping[str, str]) -> None:
        """Raises InvalidOptionError if a property is missing or malformed."""
        try:
            from azure.identity import ClientSecretCredential, DefaultAzureCredential
            from azure.keyvault.keys import KeyClient
            from azure.keyvault.keys.crypto import KeyWrapAlgorithm
        except ImportError:
            raise InvalidOptionError(
                "Azure Key Vault needs the packages azure-keyvault-keys and azure-identity: pip "
                "install 'icebergds[encryption-azure]'"
            ) from None
        vault = properties.get(_VAULT)
        if not vault or not vault.startswith("https://"):
            raise InvalidOptionError(
                f"Azure Key Vault needs {_VAULT}, such as https://my-vault.vault.azure.net"
            )
        name = properties.get(_ALGORITHM) or "RSA-OAEP-256"
        try:
            self._algorithm = KeyWrapAlgorithm(name)
        except ValueError:
            raise InvalidOptionError(
                f"{_ALGORITHM} is {name!r}, expected one of {', '.join(KeyWrapAlgorithm)}"
            ) from None
        client = azure_client(properties)
        credential: Any
        if token := properties.get("adls.token"):
            credential = _Token(token)
        elif client is not None:
            credential = ClientSecretCredential(*astuple(client))
        else:
            credential = DefaultAzureCredential()
        self._client = KeyClient(vault, credential)

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        found: bytes = self._of(wrapping_key_id).wrap_key(self._algorithm, key).encrypted_key
        return found

    def unwrap_key(self, wrapped: bytes, wrapping_key_id: str) -> bytes:
        """Raises WrongKey if another master key, or another version of it, has wrapped it."""
        from azure.core.exceptions import HttpResponseError

        try:
            found: bytes = self._of(wrapping_key_id).unwrap_key(self._algorithm, wrapped).key
        except HttpResponseError as error:
            if error.status_code == 400:
                raise WrongKey from None
            raise
        return found

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def _of(self, key_id: str) -> Any:
        name, _, version = key_id.partition("/")
        return self._client.get_cryptography_client(name, key_version=version or None)


@dataclass(frozen=True, slots=True, repr=False)
class _Token:
    """A bearer token for azure.core, which asks for it again when it may have expired."""

    token: str

    def get_token(self, *_: str, **__: Any) -> Any:
        from azure.core.credentials import AccessToken

        return AccessToken(self.token, int(time.time()) + _LIFETIME_S)
