"""Wraps keys by Google Cloud Key Management Service."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from icebergds.encryption.ciphers import WrongKey
from icebergds.errors import InvalidOptionError
from icebergds.io.option_values import number

_ENDPOINT = "kms.endpoint"
_TOKEN = "gcs.oauth2.token"
_EXPIRES_AT = "gcs.oauth2.token-expires-at"
_SCOPE = "https://www.googleapis.com/auth/cloudkms"


class GcpKmsClient:
    """A `KeyManagementClient` of keys named `projects/P/locations/L/keyRings/R/cryptoKeys/K`.

    Properties: `gcs.oauth2.token`, a token or the path of the file of a service account, with
    `gcs.oauth2.token-expires-at`; application default credentials without it. `kms.endpoint`.
    """

    def __init__(self) -> None:
        self._client: Any = None

    def initialize(self, properties: Mapping[str, str]) -> None:
        """Raises InvalidOptionError if a property is malformed, or there are no credentials."""
        try:
            from google.auth.exceptions import DefaultCredentialsError
            from google.cloud.kms_v1 import KeyManagementServiceClient
            from google.cloud.kms_v1.services.key_management_service.transports import (
                KeyManagementServiceRestTransport,
            )
        except ImportError:
            raise InvalidOptionError(
                "Google Cloud KMS needs the package google-cloud-kms: pip install "
                "'icebergds[encryption-gcp]'"
            ) from None
        address: dict[str, Any] = {}
        if endpoint := properties.get(_ENDPOINT):
            parts = urlsplit(endpoint if "://" in endpoint else f"https://{endpoint}")
            address = {"host": parts.netloc, "url_scheme": parts.scheme}
        try:
            credentials = _credentials(properties)
        except (DefaultCredentialsError, OSError, ValueError) as error:
            raise InvalidOptionError(
                f"there are no credentials for Google Cloud KMS: {error}; set {_TOKEN}, or what "
                "Google's own tools use, such as the variable GOOGLE_APPLICATION_CREDENTIALS"
            ) from error
        # By HTTP, which passes proxies and is not broken by forks.
        transport = KeyManagementServiceRestTransport(credentials=credentials, **address)
        self._client = KeyManagementServiceClient(transport=transport)

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        request = {"name": wrapping_key_id, "plaintext": key}
        found: bytes = self._client.encrypt(request=request).ciphertext
        return found

    def unwrap_key(self, wrapped: bytes, wrapping_key_id: str) -> bytes:
        """Raises WrongKey if another master key has wrapped it."""
        from google.api_core.exceptions import BadRequest

        request = {"name": wrapping_key_id, "ciphertext": wrapped}
        try:
            found: bytes = self._client.decrypt(request=request).plaintext
        except BadRequest:
            raise WrongKey from None
        return found

    def close(self) -> None:
        if self._client is not None:
            self._client.transport.close()


def _credentials(properties: Mapping[str, str]) -> Any:
    token = properties.get(_TOKEN)
    if not token:
        import google.auth

        return google.auth.default(scopes=[_SCOPE])[0]
    if os.path.isabs(token):
        from google.oauth2.service_account import Credentials as ServiceAccount

        return ServiceAccount.from_service_account_file(token, scopes=[_SCOPE])  # type: ignore[no-untyped-call]
    from datetime import UTC, datetime

    from google.oauth2.credentials import Credentials

    expiry = None
    if text := properties.get(_EXPIRES_AT):
        # Without a zone, as google.auth compares it.
        at_s = number(_EXPIRES_AT, text, int) / 1000
        expiry = datetime.fromtimestamp(at_s, UTC).replace(tzinfo=None)
    return Credentials(token, expiry=expiry)  # type: ignore[no-untyped-call]
