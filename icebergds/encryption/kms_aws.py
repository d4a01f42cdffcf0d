"""Wraps keys by AWS Key Management Service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icebergds.encryption.ciphers import WrongKey
from icebergds.errors import InvalidOptionError
from icebergds.io.aws_settings import AwsSettings, aws_settings

_ALGORITHM = "kms.encryption-algorithm-spec"
_SYMMETRIC = "SYMMETRIC_DEFAULT"


class AwsKmsClient:
    """A `KeyManagementClient` whose master keys are named by key id, ARN or alias.

    Properties: `kms.region` and the like, or `client.region` and the like, as of catalogs of AWS;
    `kms.encryption-algorithm-spec`.
    """

    def __init__(self) -> None:
        self._settings: AwsSettings | None = None
        self._algorithm = _SYMMETRIC

    def initialize(self, properties: Mapping[str, str]) -> None:
        """Raises InvalidOptionError if a property is malformed, or the region is missing."""
        try:
            import botocore  # noqa: F401
        except ImportError:
            raise InvalidOptionError(
                "AWS KMS needs the package botocore: pip install 'icebergds[encryption-aws]'"
            ) from None
        self._settings = aws_settings("", "kms", properties)
        self._algorithm = properties.get(_ALGORITHM) or _SYMMETRIC

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        found: bytes = self._client().encrypt(
            KeyId=wrapping_key_id, Plaintext=key, EncryptionAlgorithm=self._algorithm
        )["CiphertextBlob"]
        return found

    def unwrap_key(self, wrapped: bytes, wrapping_key_id: str) -> bytes:
        """Raises WrongKey if another master key has wrapped it."""
        client = self._client()
        try:
            found: bytes = client.decrypt(
                KeyId=wrapping_key_id, CiphertextBlob=wrapped, EncryptionAlgorithm=self._algorithm
            )["Plaintext"]
        except (
            client.exceptions.IncorrectKeyException,
            client.exceptions.InvalidCiphertextException,
        ):
            raise WrongKey from None
        return found

    def close(self) -> None:
        """Leaves the connections to botocore, which shares them."""

    def _client(self) -> Any:
        from icebergds.io.aws_session import botocore_client

        assert self._settings is not None, "initialize was called"
        return botocore_client(self._settings)
