"""Reads AES keys from PKCS12 key stores as Java writes them (RFC 7292: secret bags).

The package cryptography reads private keys and certificates of such files, but no secret keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from icebergds.encryption.ciphers import require_cryptography
from icebergds.errors import InvalidOptionError

__all__ = ["read_secret_keys"]


def read_secret_keys(data: bytes, password: str, where: str) -> dict[str, bytes]:
    """The AES keys of a key store, by their names in lower case.

    Keys of other kinds are left out.

    Args:
        where: names the key store in messages.

    Raises:
        InvalidOptionError: it is not a PKCS12 key store, the password is wrong, or its keys are
            encrypted otherwise than with PBES2 and AES.
    """
    require_cryptography()
    from cryptography.hazmat.primitives.serialization import pkcs12

    try:
        pkcs12.load_pkcs12(data, password.encode())
    except ValueError as error:
        raise InvalidOptionError(
            f"{where} cannot be opened: {error}; expected a PKCS12 key store, and its password in "
            "KEYSTORE_PASSWORD"
        ) from error
    try:
        return dict(_secret_keys(data, password.encode()))
    except (_MalformedError, ValueError) as error:
        raise InvalidOptionError(
            f"{where} cannot be read ({error}); make it by keytool -genseckey -keyalg AES "
            "-storetype PKCS12"
        ) from None


class _MalformedError(Exception):
    """The file is not as Java writes them."""


@dataclass(frozen=True, slots=True)
class _Element:
    """An element of DER: its tag, and its content."""

    tag: int
    content: bytes

    def inner(self) -> list[_Element]:
        return list(_elements(self.content))


_SEQUENCE, _SET, _OCTETS, _OID, _NAME, _EXPLICIT = 0x30, 0x31, 0x04, 0x06, 0x1E, 0xA0

_DATA = bytes.fromhex("2a864886f70d010701")
_SECRET_BAG = bytes.fromhex("2a864886f70d010c0a0105")
_SHROUDED_KEY = bytes.fromhex("2a864886f70d010c0a0102")
_FRIENDLY_NAME = bytes.fromhex("2a864886f70d010914")
_PBES2 = bytes.fromhex("2a864886f70d01050d")
_PBKDF2 = bytes.fromhex("2a864886f70d01050c")
_AES = bytes.fromhex("6086480165030401")
_HMAC = {
    bytes.fromhex("2a864886f70d0207"): "SHA1",
    bytes.fromhex("2a864886f70d0209"): "SHA256",
    bytes.fromhex("2a864886f70d020a"): "SHA384",
    bytes.fromhex("2a864886f70d020b"): "SHA512",
}
# AES-128, 192 and 256 in mode CBC are 2, 22 and 42.
_CBC = {2: 16, 22: 24, 42: 32}


def _elements(data: bytes) -> Iterator[_Element]:
    at = 0
    while at < len(data):
        if at + 2 > len(data):
            raise _MalformedError("it ends too early")
        tag, length = data[at], data[at + 1]
        at += 2
        if length & 0x80:
            count = length & 0x7F
            if not 0 < count <= 4:
                raise _MalformedError("it is not DER")
            length = int.from_bytes(data[at : at + count], "big")
            at += count
        if at + length > len(data):
            raise _MalformedError("it ends too early")
        yield _Element(tag, data[at : at + length])
        at += length


def _parts(element: _Element, *tags: int) -> list[_Element]:
    """The elements in a sequence, which begins with these."""
    found = element.inner()
    if [part.tag for part in found[: len(tags)]] != list(tags):
        raise _MalformedError("it has another structure than Java writes")
    return found


def _only(data: bytes) -> _Element:
    found = list(_elements(data))
    if len(found) != 1:
        raise _MalformedError("it has another structure than Java writes")
    return found[0]


def _secret_keys(data: bytes, password: bytes) -> Iterator[tuple[str, bytes]]:
    _, contents = _parts(_only(data), 0x02, _SEQUENCE)[:2]
    for safe in _only(_octets_of(contents)).inner():
        kind, *_ = _parts(safe, _OID)
        if kind.content != _DATA:
            # Certificates, which Java encrypts as a whole.
            continue
        for bag in _only(_octets_of(safe)).inner():
            oid, value, *attributes = _parts(bag, _OID, _EXPLICIT)
            if oid.content == _SECRET_BAG:
                key = _decrypted(_only(value.content), password)
                if key is not None:
                    yield _name(attributes), key


def _octets_of(content_info: _Element) -> bytes:
    _, explicit = _parts(content_info, _OID, _EXPLICIT)[:2]
    octets = _only(explicit.content)
    if octets.tag != _OCTETS:
        raise _MalformedError("it has another structure than Java writes")
    return octets.content


def _name(attributes: list[_Element]) -> str:
    for attribute in attributes[0].inner() if attributes else []:
        oid, values = _parts(attribute, _OID, _SET)[:2]
        if oid.content == _FRIENDLY_NAME:
            return _only(values.content).content.decode("utf-16-be").lower()
    raise _MalformedError("one of its keys has no name")


def _decrypted(secret: _Element, password: bytes) -> bytes | None:
    """The key of a secret bag; None if it is not one of AES."""
    kind, value = _parts(secret, _OID, _EXPLICIT)[:2]
    if kind.content != _SHROUDED_KEY:
        return None
    algorithm, encrypted = _parts(_only(_only(value.content).content), _SEQUENCE, _OCTETS)[:2]
    info = _only(_decrypt(algorithm, encrypted.content, password))
    _, of_key, octets = _parts(info, 0x02, _SEQUENCE, _OCTETS)[:3]
    is_aes = _parts(of_key, _OID)[0].content.startswith(_AES)
    return octets.content if is_aes else None


def _decrypt(algorithm: _Element, encrypted: bytes, password: bytes) -> bytes:
    from cryptography.hazmat.primitives import hashes, padding
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC

    scheme, parameters = (*_parts(algorithm, _OID), None, None)[:2]
    if scheme is None or scheme.content != _PBES2 or parameters is None:
        raise _MalformedError("its keys are not encrypted with PBES2 and AES")
    derivation, cipher = _parts(parameters, _SEQUENCE, _SEQUENCE)[:2]
    derives, how = _parts(derivation, _OID, _SEQUENCE)[:2]
    encrypts, vector = _parts(cipher, _OID, _OCTETS)[:2]
    length = _CBC.get(encrypts.content[-1]) if encrypts.content[:-1] == _AES else None
    if derives.content != _PBKDF2 or length is None:
        raise _MalformedError("its keys are not encrypted with PBES2 and AES")
    salt, rounds, *others = _parts(how, _OCTETS, 0x02)
    prf = [_parts(other, _OID)[0].content for other in others if other.tag == _SEQUENCE]
    digest = _HMAC.get(prf[0], "") if prf else "SHA1"
    if not digest:
        raise _MalformedError("its keys are encrypted with an unknown hash")
    key = PBKDF2HMAC(
        getattr(hashes, digest)(), length, salt.content, int.from_bytes(rounds.content, "big")
    ).derive(password)
    decryptor = Cipher(algorithms.AES(key), modes.CBC(vector.content)).decryptor()
    unpadder = padding.PKCS7(128).unpadder()
    try:
        padded = decryptor.update(encrypted) + decryptor.finalize()
        return unpadder.update(padded) + unpadder.finalize()
    except ValueError:
        raise _MalformedError("a key has another password than the key store") from None
