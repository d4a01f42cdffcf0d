"""Wraps keys with master keys from a local file, for tests and small installations."""

from __future__ import annotations

import base64
import binascii
import json
import os
import stat
from collections.abc import Mapping

from icebergds.encryption.ciphers import KEY_LENGTHS, open_sealed, seal
from icebergds.encryption.pkcs12 import read_secret_keys
from icebergds.errors import InvalidOptionError
from icebergds.suggestions import nearest_of

__all__ = ["PASSWORD", "PATH", "KeyStoreClient"]

PATH = "kms.client.keystore.path"
PASSWORD = "KEYSTORE_PASSWORD"


class KeyStoreClient:
    """A `KeyManagementClient` that has the master keys itself.

    The file named by `kms.client.keystore.path` is a PKCS12 key store of AES keys as Java's
    `keytool -genseckey` makes it, whose password is in the environment variable
    `KEYSTORE_PASSWORD`; or a JSON object of keys in base64 by their names, which nobody but its
    owner may read. Keys are wrapped as Java's `KeyStoreKmsClient` does: by AES-GCM.
    """

    def __init__(self) -> None:
        self._path = ""
        self._keys: Mapping[str, bytes] = {}
        self._ignores_case = False

    def initialize(self, properties: Mapping[str, str]) -> None:
        """Reads the key store. Raises InvalidOptionError if it cannot be read."""
        path = properties.get(PATH)
        if not path:
            raise InvalidOptionError(
                f"a key service of type keystore needs {PATH}: the path of a PKCS12 file, or of a "
                "JSON file, with the master keys"
            )
        self._path = path
        try:
            with open(path, "rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                data = file.read()
        except OSError as error:
            raise InvalidOptionError(f"the key store {path} cannot be read: {error}") from error
        # PKCS12 is a sequence in ASN.1, which begins with this byte.
        self._ignores_case = data.startswith(b"\x30")
        if self._ignores_case:
            self._keys = read_secret_keys(data, self._password(), f"the key store {path}")
        else:
            self._check_mode(mode)
            self._keys = self._from_json(data)

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        """Raises InvalidOptionError if there is no such master key."""
        return seal(self._key(wrapping_key_id), key)

    def unwrap_key(self, wrapped: bytes, wrapping_key_id: str) -> bytes:
        """Raises InvalidOptionError if there is no such master key, WrongKey if it did not wrap."""
        return open_sealed(self._key(wrapping_key_id), wrapped)

    def close(self) -> None:
        self._keys = {}

    def __repr__(self) -> str:
        return f"KeyStoreClient({self._path!r})"

    def _key(self, key_id: str) -> bytes:
        # Java's key stores ignore the case of names, and keytool writes them in lower case.
        found = self._keys.get(key_id.lower() if self._ignores_case else key_id)
        if found is None:
            near = nearest_of(key_id, self._keys) if self._keys else "it has none"
            raise InvalidOptionError(f"the key store {self._path} has no key {key_id!r}; {near}")
        return found

    def _password(self) -> str:
        password = os.environ.get(PASSWORD)
        if password is None:
            raise InvalidOptionError(
                f"the key store {self._path} needs a password: set the environment variable "
                f"{PASSWORD} of Spark's driver"
            )
        return password

    def _check_mode(self, mode: int) -> None:
        if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise InvalidOptionError(
                f"the key store {self._path} has keys in clear text, but others than its owner may "
                f"access it (mode {stat.S_IMODE(mode):o}): chmod 600 {self._path}"
            )

    def _from_json(self, data: bytes) -> dict[str, bytes]:
        expected = (
            f"the key store {self._path} is neither a PKCS12 file nor a JSON object of keys in "
            'base64 by their names, such as {"master-1": "<16, 24 or 32 bytes in base64>"}'
        )
        try:
            found = json.loads(data.decode("utf-8-sig"))
        except ValueError:
            # Its cause would show the text.
            raise InvalidOptionError(expected) from None
        if not isinstance(found, dict):
            raise InvalidOptionError(expected)
        keys = {}
        for name, text in found.items():
            try:
                keys[name] = base64.b64decode(text, validate=True)
            except (TypeError, ValueError, binascii.Error):
                raise InvalidOptionError(f"{expected}: key {name!r} is not base64") from None
            if len(keys[name]) not in KEY_LENGTHS:
                raise InvalidOptionError(
                    f"the key store {self._path}: key {name!r} has {len(keys[name])} bytes, "
                    f"expected {', '.join(map(str, KEY_LENGTHS))}"
                )
        return keys
